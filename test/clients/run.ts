/**
 * Runs client programs of others against `servicenet up`: the suites of controller-runtime that need a server, client-go
 * on the streams of containers, and crypto/x509 on our cases of trust. By hand, where Go is installed; the Go module proxy has what it needs.
 *
 *     npm run test:clients
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { trustCases } from '../support/certificates.ts';

/** Suites of controller-runtime, and how many specs of each must pass. */
const suites = [
  ['envtest', 28],
  ['webhook', 8],
] as const;

const folder = import.meta.dirname;
const home = mkdtempSync(join(tmpdir(), 'servicenet-clients-'));
const kubeconfig = join(home, 'kubeconfig');
const cases = join(home, 'trust.json');

function go(args: readonly string[], more: Readonly<Record<string, string>>): { ok: boolean; text: string } {
  const env = { ...process.env, KUBECONFIG: kubeconfig, TRUST_CASES: cases, ...more };
  const { status, stdout, stderr } = spawnSync('go', args, { cwd: folder, env, encoding: 'utf8' });
  return { ok: status === 0, text: `${stdout}${stderr}` };
}

async function startUp(...options: readonly string[]): Promise<ChildProcess> {
  const main = join(folder, '../../src/main.js');
  const args = ['up', ...options, '--port', '0', '--write-kubeconfig', kubeconfig];
  const up = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, HOME: home },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await Promise.race([once(up.stdout, 'data'), once(up, 'exit')]);
  if (up.exitCode !== null) throw new Error(`servicenet up ended with ${up.exitCode}`);
  return up;
}

async function main(): Promise<boolean> {
  if (spawnSync('go', ['version']).status !== 0) throw new Error('go is not installed');
  const pems = trustCases().map((one) => ({
    ...one,
    chain: one.chain.map(({ certificate }) => certificate),
  }));
  writeFileSync(cases, JSON.stringify(pems));
  const own = go(['test', '-count=1', './...'], {});
  console.log(own.text);
  let ok = own.ok;
  const cluster = await startUp('--nodes', '1', '--containers', 'processes');
  try {
    const streams = go(['test', '-count=1', '-v', '-run', 'TestStreams', '.'], {
      STREAMS_KUBECONFIG: kubeconfig,
    });
    console.log(streams.text);
    ok &&= streams.ok;
  } finally {
    cluster.kill('SIGTERM');
    await once(cluster, 'exit');
  }
  const up = await startUp('--nodes', '0', '--controllers', '');
  try {
    for (const [suite, wanted] of suites) {
      const path = `sigs.k8s.io/controller-runtime/pkg/${suite}`;
      const { text } = go(['test', '-count=1', '-v', path], { USE_EXISTING_CLUSTER: 'true' });
      const passed = Number(/(\d+) Passed/.exec(text)?.[1] ?? 0);
      if (passed !== wanted) console.log(text);
      console.log(`${suite}: ${passed} of ${wanted} passed`);
      ok &&= passed === wanted;
    }
  } finally {
    up.kill('SIGTERM');
    await once(up, 'exit');
  }
  return ok;
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} finally {
  rmSync(home, { recursive: true, force: true });
}
