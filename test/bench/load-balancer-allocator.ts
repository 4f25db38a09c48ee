/** The allocator of the load balancer without an API server; a part of load-balancer.ts. */
import { LoadBalancerAllocator } from '../../src/controllers/load-balancer/allocator.ts';
import { readPool } from '../../src/controllers/load-balancer/pools.ts';
import type { AddressRequest } from '../../src/controllers/load-balancer/request.ts';
import type { StatusAddress } from '../../src/controllers/load-balancer/status.ts';
import { formatAddress, parseAddress } from '../../src/objects/address.ts';
import type { IPFamily } from '../../src/objects/address.ts';
import type { Row } from './report.ts';

/**
 * Allocates for `count` Services from a /14 and a /108, restarts, allocates and removes in a full pool with waiting
 * Services, and allocates from a /16 at 50% and 99% full, beside a linear scan from the first address.
 */
export function measureAllocator(count: number, waiters: number): Row[] {
  return [
    ...assigning(count, '10.16.0.0/14', 'IPv4'),
    ...assigning(count, '2001:db8::/108', 'IPv6'),
    ...waiting(waiters),
    ...picking(0.5),
    ...picking(0.99),
  ];
}

function assigning(count: number, range: string, family: IPFamily): Row[] {
  const requests = Array.from({ length: count }, (_, i) => request(i, family));
  const allocator = allocatorOf(range);
  const status: StatusAddress[][] = [];
  const assigned = each(`allocator: assign ${count} from ${range}`, count, () => {
    for (const wanted of requests) {
      const { addresses } = allocator.allocate(wanted, []);
      status.push(addresses.map((one) => ({ ...one, key: '', servedPorts: new Set(wanted.ports) })));
    }
  });
  const again = each('allocator:   ask again', count, () => {
    for (const [i, wanted] of requests.entries()) allocator.allocate(wanted, status[i] ?? []);
  });
  const restarted = allocatorOf(range);
  const services = requests.map((wanted, i) => ({ request: wanted, inStatus: status[i] ?? [] }));
  const restart = each('allocator:   restart into them', count, () => Array.from(restarted.adopt(services)));
  return [assigned, again, restart];
}

function waiting(waiters: number): Row[] {
  const full = allocatorOf('10.0.0.0/16');
  for (let i = 0; i < 65_536; i++) full.allocate(request(i), []);
  const join = each(`allocator: ${waiters} wait for a full /16`, waiters, () => {
    for (let i = 0; i < waiters; i++) full.allocate(request(70_000 + i), []);
  });
  const free = each(`allocator:   ${waiters} addresses are released and assigned again`, waiters, () => {
    for (let i = 0; i < waiters; i++) full.remove(`n/s${i}`, 0);
  });
  if (full.waiting !== 0) throw new Error(`${full.waiting} still wait`);
  return [join, free];
}

function picking(fill: number): Row[] {
  const size = 65_536;
  const times = 2000;
  const allocator = allocatorOf('10.1.0.0/16');
  const taken = Math.floor(size * fill);
  for (let i = 0; i < taken; i++) allocator.allocate(request(i), []);
  const ours = each(`allocator: assign and release, /16 ${fill * 100}% full`, times, () => {
    for (let i = 0; i < times; i++) {
      allocator.allocate(request(size + i), []);
      allocator.remove(`n/s${size + i}`, 0);
    }
  });
  const first = parseAddress('10.1.0.0')?.value ?? 0n;
  const inUse = new Set(Array.from({ length: taken }, (_, i) => formatAddress('IPv4', first + BigInt(i))));
  const walks = 20;
  const naive = each('allocator:   linear scan from the first address', walks, () => {
    for (let i = 0; i < walks; i++) {
      let value = first;
      while (inUse.has(formatAddress('IPv4', value))) value++;
      inUse.add(formatAddress('IPv4', value));
      inUse.delete(formatAddress('IPv4', value));
    }
  });
  return [ours, naive];
}

function each(name: string, count: number, work: () => void): Row {
  const before = process.cpuUsage();
  const start = performance.now();
  work();
  const milliseconds = performance.now() - start;
  const { user, system } = process.cpuUsage(before);
  return { name, value: (milliseconds * 1000) / count, unit: 'µs', cpu: (user + system) / count };
}

function allocatorOf(addresses: string): LoadBalancerAllocator {
  const allocator = new LoadBalancerAllocator();
  const { pool } = readPool({ metadata: { name: 'p' }, spec: { addresses: [addresses] } });
  allocator.setPools([pool], []);
  return allocator;
}

function request(index: number, family: IPFamily = 'IPv4'): AddressRequest {
  return {
    service: `n/s${index}`,
    namespace: 'n',
    labels: {},
    namespaceLabels: {},
    createdAtMs: index,
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
