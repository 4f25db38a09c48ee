import { spawnSync } from 'node:child_process';

const variable = 'BENCH_INSIDE';

/** Of the endpoint that `Objects.service` of the router's tests makes: routers do not go to endpoints of the loopback network. */
export const podAddress = '10.244.0.1';

/** Whether this process is in a network of its own. */
export function isInside(): boolean {
  return process.env[variable] !== undefined;
}

/**
 * Runs this script anew in a network namespace of its own, which an ordinary user may make too, and ends as it does.
 * Nothing of it reaches the machine's network.
 *
 * @param addresses that the namespace has beside 127.0.0.1.
 */
export function runInside(addresses: readonly string[], env: Readonly<Record<string, string>> = {}): never {
  const lines = [
    'ip link set lo up',
    ...addresses.map((address) => `ip addr add ${address}/32 dev lo`),
    'exec "$@"',
  ];
  // In a user namespace, the kernel takes no large messages of nftables, as kube-proxy sends them.
  const asRoot = process.getuid?.() === 0 ? [] : ['--map-root-user'];
  const inside = ['sh', '-c', lines.join(' && '), 'sh', process.execPath, ...process.argv.slice(1)];
  const { status, error } = spawnSync('unshare', [...asRoot, '--net', ...inside], {
    ...{ stdio: 'inherit', env: { ...process.env, ...env, [variable]: '1' } },
  });
  if (error !== undefined) process.stderr.write(`missing: unshare (package util-linux): ${error.message}\n`);
  process.exit(status ?? 1);
}
