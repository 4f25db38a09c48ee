/**
 * The conformance suite of Gateway API against `servicenet up`, from outside of its cluster network:
 * `npm run test:gateway-api`. docs/gateway-api.md says what is claimed.
 */
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { isBuilt, program } from '../cluster/programs.ts';
import { main, startUp } from '../cluster/up.ts';
import type { TestResult } from '../cluster/suite.ts';
import { join as joinSockets } from './inside.ts';
import { runGatewaySuite } from './suite.ts';

const { values } = parseArgs({
  options: {
    profiles: { type: 'string', default: 'GATEWAY-HTTP,GATEWAY-GRPC,GATEWAY-TLS,GATEWAY-TCP,GATEWAY-UDP' },
    test: { type: 'string', default: '' },
    report: { type: 'string', default: '' },
    'if-built': { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const usage = `npm run test:gateway-api [-- OPTION...]

  --profiles=GATEWAY-HTTP,...  the profiles of the suite; all five of gateways without it
  --test=NAME                  this test alone, such as HTTPRouteWeight
  --report=FILE                write the report here
  --if-built                   nothing, where the suite has not been built before
  --keep                       leave the cluster until Ctrl-C
`;

const programs = ['gateway-api.test', 'echo-basic', 'coredns'] as const;
const minutes = 60;
/** A pool of addresses for documentation; of the two addresses a Gateway can have one. */
const addresses = { pool: '198.51.100.0/24', usable: '198.51.100.250', unusable: '203.0.113.250' };

const notBuilt = programs.filter((name) => !isBuilt(name));
if (values.help) console.log(usage);
else if (values['if-built'] && notBuilt.length > 0) {
  console.log(`skipped: missing ${notBuilt.join(', ')}, which npm run test:gateway-api builds`);
  console.log('\n0 passed, 0 failed, 1 skipped');
} else await runSuite();

async function runSuite(): Promise<void> {
  programs.forEach(program);
  const home = mkdtempSync('/var/tmp/servicenet-gateway-api-');
  const kubeconfig = join(home, 'kubeconfig');
  const images = {
    'registry.k8s.io/gateway-api/echo-basic': programIn(home, 'echo-basic'),
    'registry.k8s.io/coredns/coredns': programIn(home, 'coredns'),
  };
  const stop = await startUp({
    ...{ home, kubeconfig, nodes: 2, images },
    flags: ['--default-pool', addresses.pool],
  });
  try {
    const results = await runTests(home, kubeconfig);
    const [passed = 0, failed = 0, skipped = 0] = ['passed', 'failed', 'skipped'].map(
      (word) => results.filter(({ state }) => state === word).length,
    );
    console.log(`\n${passed} passed, ${failed} failed, ${skipped} skipped`);
    process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
    if (values.keep) {
      console.log(`export KUBECONFIG=${kubeconfig}`);
      await once(process, 'SIGINT');
    }
  } finally {
    await stop();
    rmSync(home, { recursive: true, force: true });
  }
}

/** A copy where containers see it: one has a volume at /root, which may have the cache. */
function programIn(home: string, name: 'echo-basic' | 'coredns'): string {
  chmodSync(home, 0o755);
  const path = join(home, name);
  copyFileSync(program(name), path);
  return path;
}

/** Runs the suite on the machine outside. Every line of it is printed. */
async function runTests(home: string, kubeconfig: string): Promise<TestResult[]> {
  const [, port = ''] = /server: https:\/\/127\.0\.0\.1:(\d+)/.exec(readFileSync(kubeconfig, 'utf8')) ?? [];
  const socket = join(home, 'api.sock');
  const relay = createServer((client) => joinSockets(client, connect(Number(port), '127.0.0.1')));
  relay.listen(socket);
  await once(relay, 'listening');
  const inside = [process.execPath, join(import.meta.dirname, 'inside.ts'), socket, port];
  const results = await runGatewaySuite({
    ...{ kubeconfig, minutes, usable: addresses.usable, unusable: addresses.unusable },
    before: [process.execPath, main, 'run', '--outside', '--kubeconfig', kubeconfig, '--', ...inside],
    flags: [
      values.test === '' ? `-conformance-profiles=${values.profiles}` : `-run-test=${values.test}`,
      ...(values.report === '' ? [] : reportFlags(values.report)),
    ],
    onLine: (line) => {
      console.log(line);
    },
  });
  relay.close();
  return results;
}

function reportFlags(file: string): string[] {
  return [
    ...[`-report-output=${file}`, '-organization=servicenet', '-project=servicenet', '-version=v0.2.0'],
    ...['-url=https://servicenet.dev', '-contact=@servicenet', '-mode=default'],
  ];
}
