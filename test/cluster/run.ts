/**
 * A real cluster of two kubelets in namespaces, with servicenet or its peers in it, and what Kubernetes' own suite says of
 * them: `npm run test:cluster`. README.md beside says what it needs and does.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { makeImages } from './images.ts';
import { program, type ProgramName } from './programs.ts';
import { readComponents } from './servicenet.ts';
import { gatewaySuite, suites } from './suites.ts';

const { values } = parseArgs({
  options: {
    with: { type: 'string', default: 'servicenet' },
    components: { type: 'string', default: 'node,dns' },
    suites: {
      type: 'string',
      default: suites
        .filter(({ byDefault }) => byDefault)
        .map(({ name }) => name)
        .join(','),
    },
    focus: { type: 'string', default: '' },
    checks: { type: 'boolean', default: false },
    chart: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const usage = `npm run test:cluster [-- OPTION...]

  --with=servicenet             or kube-proxy,coredns or kube-proxy,coredns,metallb: what carries Services, answers DNS,
                                announces addresses
  --components=node,dns         the components of deploy beside those of the overlay homelab
  --chart                       by helm with the chart, and CoreDNS, which the chart does not replace
  --suites=conformance          of ${[...suites.map(({ name }) => name), gatewaySuite].join(', ')}
  --focus=TEXT                  only the tests of the suites whose name has this
  --checks                      what the suite does not know: hand-over by ARP and BGP, egress, router
  --keep                        leave the cluster until Ctrl-C
`;

const needed = {
  ...{ go: 'golang', unshare: 'util-linux', nsenter: 'util-linux', ip: 'iproute2', nft: 'nftables' },
  ...{ mmdebstrap: 'mmdebstrap', runc: 'runc' },
};

/** Takes the cgroups of the nodes away, once their processes have ended. @throws {Error} where some have not after 10 s. */
async function removeCgroups(): Promise<void> {
  const end = Date.now() + 10_000;
  for (;;) {
    try {
      for (const path of cgroups()) rmdirSync(path);
      return;
    } catch (error) {
      // EBUSY: the kernel is not done with the processes in it.
      if (Date.now() > end) throw error;
      await sleep(200);
    }
  }
}

/** The cgroups of the nodes in every hierarchy, the deepest first. */
function cgroups(): string[] {
  return readdirSync('/sys/fs/cgroup').flatMap((name) =>
    directoriesBelow(join('/sys/fs/cgroup', name, 'servicenet-cluster')),
  );
}

/** Whether a cluster runs: its cgroups have processes. */
function isRunning(): boolean {
  return cgroups().some((path) => readFileSync(join(path, 'cgroup.procs'), 'utf8') !== '');
}

/** The folders below one, and itself, the deepest first; none where it is not there. */
function directoriesBelow(root: string): string[] {
  try {
    const below = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return [...below.flatMap(({ name }) => directoriesBelow(join(root, name))), root];
  } catch {
    return [];
  }
}

if (values.help) {
  console.log(usage);
} else if (process.getuid?.() !== 0) {
  console.error('the cluster needs root: namespaces, mounts, cgroups');
  process.exitCode = 2;
} else {
  const missing = Object.entries(needed)
    .filter(([name]) => spawnSync(name, ['--version']).error !== undefined)
    .map(([name, from]) => `${name} (package ${from})`);
  if (missing.length > 0) {
    console.error(`missing: ${missing.join(', ')}`);
    process.exitCode = 2;
  } else {
    await main();
  }
}

async function main(): Promise<void> {
  if (isRunning()) {
    throw new Error('another cluster runs on this machine: end it first');
  }
  readComponents(values.components);
  const hasPeers = values.with !== 'servicenet';
  const hasMetalLb = values.with === 'kube-proxy,coredns,metallb';
  if (hasPeers && !hasMetalLb && values.with !== 'kube-proxy,coredns')
    throw new Error(`--with: no "${values.with}"`);
  const hasGateways = values.suites.split(',').includes(gatewaySuite);
  const hasCoreDns = hasPeers || values.chart || values.suites.split(',').includes('core');
  const all: readonly ProgramName[] = [
    ...(['etcd', 'containerd', 'containerd-shim-runc-v2', 'ctr', 'bridge', 'host-local'] as const),
    ...(['loopback', 'portmap', 'pause', 'kube-apiserver', 'kube-controller-manager'] as const),
    ...(['kube-scheduler', 'kubelet', 'kubectl', 'agnhost', 'e2e.test'] as const),
    ...(hasPeers || values.checks ? (['kube-proxy'] as const) : []),
    ...(hasCoreDns || hasGateways ? (['coredns'] as const) : []),
    ...(hasMetalLb ? (['metallb-controller', 'metallb-speaker'] as const) : []),
    ...(hasGateways ? (['gateway-api.test', 'echo-basic'] as const) : []),
    ...(values.chart ? (['helm'] as const) : []),
  ];
  all.forEach(program);
  // Overlays of containers do not go on a tmpfs. What a run left that was killed goes.
  const directory = '/var/tmp/servicenet-cluster';
  rmSync(directory, { recursive: true, force: true });
  const logs = mkdtempSync(join(tmpdir(), 'servicenet-cluster-logs-'));
  mkdirSync(join(directory, 'pki'), { recursive: true });
  try {
    const images = makeImages(directory, { hasCoreDns, hasMetalLb, hasGateways });
    const settings = JSON.stringify({ ...values, directory, logs, images });
    await removeCgroups();
    // With the first process of the namespace all others end, and with them its mounts and networks go.
    const child = spawn(
      'unshare',
      [
        ...['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'],
        ...['bash', '-c', '"$@" & child=$!; trap "kill $child" TERM INT; wait $child; wait $child', 'bash'],
        ...[process.execPath, join(import.meta.dirname, 'inside.ts'), settings],
      ],
      { stdio: 'inherit' },
    );
    // Ctrl-C reaches the processes of the terminal; this one stays to clean up.
    process.on('SIGINT', () => undefined);
    // unshare does not heed SIGTERM.
    process.on('SIGTERM', () => child.kill('SIGKILL'));
    await once(child, 'exit');
    process.exitCode = child.exitCode ?? 1;
    console.log(`logs: ${logs}`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
    await removeCgroups();
  }
}
