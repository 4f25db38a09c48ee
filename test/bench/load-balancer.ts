/**
 * The load balancer's books without an API server: `node test/bench/load-balancer.ts`. 50,000 Services from a /14 and
 * a /108, a restart into them, a full pool with 1,000 waiters and 1,000 frees, and the pick of an address from a /16
 * at 50% and 99% full beside the walk from the first address that others do. Writes bench-results/load-balancer.json.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { LoadBalancerAllocator } from '../../src/controllers/load-balancer/allocator.ts';
import { readPool } from '../../src/controllers/load-balancer/pool.ts';
import type { PresentAddress } from '../../src/controllers/load-balancer/present.ts';
import type { AddressRequest } from '../../src/controllers/load-balancer/request.ts';
import { formatAddress, parseAddress } from '../../src/objects/address.ts';
import type { IPFamily } from '../../src/objects/service.ts';

const SERVICES = 50_000;
const results: Record<string, number> = {};

function allocatorOf(addresses: string): LoadBalancerAllocator {
  const allocator = new LoadBalancerAllocator();
  const { pool } = readPool({ metadata: { name: 'p' }, spec: { addresses: [addresses] } });
  allocator.setPools([pool], [], 0);
  return allocator;
}

function request(index: number, family: IPFamily = 'IPv4'): AddressRequest {
  return {
    service: `n/s${index}`,
    namespace: 'n',
    labels: {},
    namespaceLabels: {},
    createdAt: index,
    families: [family],
    needsAll: true,
    addresses: new Map(),
    pools: [],
    sharingKey: '',
    sharingNamespaces: new Set(),
    ports: ['TCP/80'],
    backend: '',
    problems: [],
  };
}

function timed(what: string, count: number, work: () => void): void {
  const start = performance.now();
  work();
  const milliseconds = performance.now() - start;
  const each = (milliseconds * 1000) / count;
  results[what] = each;
  console.log(
    `${what.padEnd(44)} ${milliseconds.toFixed(0).padStart(7)} ms  ${each.toFixed(2).padStart(9)} µs each`,
  );
}

for (const [range, family] of [
  ['10.16.0.0/14', 'IPv4'],
  ['2001:db8::/108', 'IPv6'],
] as const) {
  const requests = Array.from({ length: SERVICES }, (_, i) => request(i, family));
  const allocator = allocatorOf(range);
  const status: PresentAddress[][] = [];
  timed(`assign ${SERVICES} from ${range}`, SERVICES, () => {
    for (const wanted of requests) {
      const { addresses } = allocator.assign(wanted, [], 0);
      status.push(addresses.map((one) => ({ ...one, key: '', served: new Set(wanted.ports) })));
    }
  });
  timed(`  ask again`, SERVICES, () => {
    for (const [i, wanted] of requests.entries()) allocator.assign(wanted, status[i] ?? [], 0);
  });
  const restarted = allocatorOf(range);
  timed(`  restart into them`, SERVICES, () => {
    const claims = requests.map((wanted, i) => ({ request: wanted, present: status[i] ?? [] }));
    Array.from(restarted.adopt(claims));
  });
}

const full = allocatorOf('10.0.0.0/22');
for (let i = 0; i < 1024; i++) full.assign(request(i), [], 0);
timed('1,000 join the line of a full /22', 1000, () => {
  for (let i = 0; i < 1000; i++) full.assign(request(2000 + i), [], 0);
});
timed('1,000 addresses are freed and given on', 1000, () => {
  for (let i = 0; i < 1000; i++) full.release(`n/s${i}`, 0);
});

for (const fill of [0.5, 0.99]) {
  const size = 65_536;
  const allocator = allocatorOf('10.1.0.0/16');
  const taken = Math.floor(size * fill);
  for (let i = 0; i < taken; i++) allocator.assign(request(i), [], 0);
  timed(`assign and release, /16 ${fill * 100}% full`, 2000, () => {
    for (let i = 0; i < 2000; i++) {
      allocator.assign(request(size + i), [], 0);
      allocator.release(`n/s${size + i}`, 0);
    }
  });
  const first = parseAddress('10.1.0.0')?.value ?? 0n;
  const inUse = new Set(Array.from({ length: taken }, (_, i) => formatAddress('IPv4', first + BigInt(i))));
  timed(`  the walk from the first address`, 20, () => {
    for (let i = 0; i < 20; i++) {
      let value = first;
      while (inUse.has(formatAddress('IPv4', value))) value++;
      inUse.add(formatAddress('IPv4', value));
      inUse.delete(formatAddress('IPv4', value));
    }
  });
}
const { rss } = process.memoryUsage();
console.log(`resident memory ${(rss / 2 ** 20).toFixed(0)} MiB`);
mkdirSync('bench-results', { recursive: true });
writeFileSync(
  'bench-results/load-balancer.json',
  JSON.stringify({ microseconds: results, rss }, undefined, 2) + '\n',
);
