import { keyOf, type ObjectKey } from '../objects/key.ts';
import type { IPFamily } from '../objects/address.ts';
import type { Holding } from '../controllers/load-balancer/holding.ts';
import { booksOf, problemsOf, type PooledCluster } from './plan-books.ts';
import type { AddressPool, FamilyUsage } from '../controllers/load-balancer/pool.ts';
import { readyCondition } from '../controllers/load-balancer/present.ts';

/** Pools, who holds which address, and who waits and why. */
export interface PoolReport {
  /** By name. */
  readonly pools: readonly ReportedPool[];
  /** Those that are held or reserved, by family and value. */
  readonly addresses: readonly ReportedAddress[];
  /** By namespace and name. */
  readonly waiting: readonly WaitingService[];
}

export interface ReportedPool {
  readonly name: string;
  readonly addresses: readonly string[];
  /** Absent for a family of which the pool has no address. */
  readonly ipv4?: FamilyUsage;
  readonly ipv6?: FamilyUsage;
  /** What is wrong with its spec, and what it may not give because others have it. */
  readonly problems: readonly string[];
}

export interface ReportedAddress {
  readonly address: string;
  readonly family: IPFamily;
  /** Absent when no pool contains the address any more. */
  readonly pool?: string;
  readonly services: readonly { readonly service: ObjectKey; readonly ports: readonly string[] }[];
  readonly reservedFor?: ObjectKey;
}

export interface WaitingService {
  readonly service: ObjectKey;
  /** Of its condition; `Pending` when no controller has looked at it yet. */
  readonly reason: string;
  readonly message: string;
}

/** Says how pools are used, from what the API server knows: a controller need not run. */
export function planReport(cluster: PooledCluster, now: number): PoolReport {
  const { allocator, served } = booksOf(cluster, now);
  const { book } = allocator;
  const problems = problemsOf(cluster.pools, cluster.forbidden);
  const byName = [...cluster.pools].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const pools = byName.map((object): ReportedPool => {
    const name = keyOf(object);
    const stocked = book.pools.get(name);
    const own = problems.filter((problem) => problem.startsWith(`${name}: `));
    const ipv4 = stocked === undefined ? undefined : book.usage(stocked, 'IPv4');
    const ipv6 = stocked === undefined ? undefined : book.usage(stocked, 'IPv6');
    return {
      name,
      addresses: object.spec.addresses ?? [],
      ...(ipv4 === undefined || ipv4.total === 0 ? {} : { ipv4 }),
      ...(ipv6 === undefined || ipv6.total === 0 ? {} : { ipv6 }),
      problems: own.map((problem) => problem.slice(name.length + 2)),
    };
  });
  const held = [...book.holdings()].sort(byValue).map((holding): ReportedAddress => {
    const { address, family } = holding;
    const pool = book.poolOf(family, holding.value)?.pool.name;
    const reservedFor = book.reservation(address);
    return {
      address,
      family,
      ...(pool === undefined ? {} : { pool }),
      services: [...holding.claims.keys()].sort().map((service) => ({
        service,
        ports: [...holding.ports].flatMap(([port, holder]) => (holder === service ? [port] : [])),
      })),
      ...(reservedFor === undefined ? {} : { reservedFor }),
    };
  });
  const waiting = served
    .filter(
      ({ request }) =>
        book.addressesOf(request.service).size < (request.needsAll ? request.families.length : 1),
    )
    .map(({ service }): WaitingService => {
      const { reason = 'Pending', message = 'no controller has looked at it yet' } =
        readyCondition(service) ?? {};
      return { service: keyOf(service), reason, message };
    })
    .sort((a, b) => (a.service < b.service ? -1 : 1));
  return { pools, addresses: [...held, ...reservedOnly(cluster.pools, held)], waiting };
}

/** Reservations that nobody has claimed yet. */
function reservedOnly(pools: readonly AddressPool[], held: readonly ReportedAddress[]): ReportedAddress[] {
  const known = new Set(held.map(({ address }) => address));
  return pools.flatMap((pool) =>
    (pool.spec.reservations ?? []).flatMap(({ address, namespace, name }): ReportedAddress[] => {
      if (known.has(address)) return [];
      const family = address.includes(':') ? 'IPv6' : 'IPv4';
      return [{ address, family, pool: keyOf(pool), services: [], reservedFor: `${namespace}/${name}` }];
    }),
  );
}

function byValue(a: Holding, b: Holding): number {
  if (a.family !== b.family) return a.family < b.family ? -1 : 1;
  return a.value < b.value ? -1 : 1;
}
