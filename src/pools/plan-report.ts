import type { IPFamily } from '../objects/address.ts';
import { keyOf, type ObjectKey } from '../objects/key.ts';
import type { Allocation } from '../controllers/load-balancer/allocations.ts';
import { announcedBy } from '../controllers/announcement-status/plan.ts';
import type { AddressPool, FamilyUsage } from '../objects/types/servicenet.ts';
import { loadBalancerReadyCondition } from '../network/announcing/assigned-addresses.ts';
import { poolProblems, startController, type PooledCluster } from './plan-cluster.ts';

/** The pools, which Service has which address, and which Services wait and why. */
export interface PoolReport {
  /** By name. */
  readonly pools: readonly ReportedPool[];
  /** Those in use by family and value, then reserved ones that are not in use. */
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
  /** Invalid parts of its spec, and overlaps with other pools and with addresses of the cluster. */
  readonly problems: readonly string[];
}

export interface ReportedAddress {
  readonly address: string;
  readonly family: IPFamily;
  /** Absent when no pool contains the address. */
  readonly pool?: string;
  readonly services: readonly ReportedHolder[];
  readonly reservedFor?: ObjectKey;
}

/** A Service that has an address. */
export interface ReportedHolder {
  readonly service: ObjectKey;
  readonly ports: readonly string[];
  /** Nodes that announce it, or the reason; absent: it has no such condition. */
  readonly announced?: string;
}

export interface WaitingService {
  readonly service: ObjectKey;
  /** From its condition; `Pending` before a controller has written one. */
  readonly reason: string;
  readonly message: string;
}

/** Reports how pools are used, from the objects of the API server: no controller has to run. */
export function planReport(cluster: PooledCluster, now: number): PoolReport {
  const { allocator, served } = startController(cluster, now);
  const { allocations } = allocator;
  const problems = poolProblems(cluster.pools, cluster.forbidden);
  const byName = [...cluster.pools].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const pools = byName.map((object): ReportedPool => {
    const name = keyOf(object);
    const allocating = allocations.pools.get(name);
    const own = problems.filter((problem) => problem.startsWith(`${name}: `));
    const ipv4 = allocating === undefined ? undefined : allocations.usage(allocating, 'IPv4');
    const ipv6 = allocating === undefined ? undefined : allocations.usage(allocating, 'IPv6');
    return {
      name,
      addresses: object.spec.addresses ?? [],
      ...(ipv4 === undefined || ipv4.total === 0 ? {} : { ipv4 }),
      ...(ipv6 === undefined || ipv6.total === 0 ? {} : { ipv6 }),
      problems: own.map((problem) => problem.slice(name.length + 2)),
    };
  });
  const objects = new Map(cluster.services.map((service) => [keyOf(service), service]));
  const inUse = [...allocations.values()].sort(byValue).map((allocation): ReportedAddress => {
    const { address, family, value } = allocation;
    const pool = allocations.poolOf(family, value)?.pool.name;
    const reservedFor = allocations.reservation(address);
    return {
      address,
      family,
      ...(pool === undefined ? {} : { pool }),
      services: [...allocation.services.keys()].sort().map((service) => {
        const object = objects.get(service);
        const announced = object === undefined ? undefined : announcedBy(object, address);
        return {
          service,
          ports: [...allocation.ports].flatMap(([port, server]) => (server === service ? [port] : [])),
          ...(announced === undefined ? {} : { announced }),
        };
      }),
      ...(reservedFor === undefined ? {} : { reservedFor }),
    };
  });
  const waiting = served
    .filter(
      ({ request }) =>
        allocations.addressesOf(request.service).size < (request.needsAll ? request.families.length : 1),
    )
    .map(({ service }): WaitingService => {
      const { reason = 'Pending', message = 'no controller has looked at it yet' } =
        loadBalancerReadyCondition(service) ?? {};
      return { service: keyOf(service), reason, message };
    })
    .sort((a, b) => (a.service < b.service ? -1 : 1));
  return { pools, addresses: [...inUse, ...reservedOnly(cluster.pools, inUse)], waiting };
}

/** Reserved addresses that are not in use. */
function reservedOnly(pools: readonly AddressPool[], inUse: readonly ReportedAddress[]): ReportedAddress[] {
  const known = new Set(inUse.map(({ address }) => address));
  return pools.flatMap((pool) =>
    (pool.spec.reservations ?? []).flatMap(({ address, namespace, name }): ReportedAddress[] => {
      if (known.has(address)) return [];
      const family = address.includes(':') ? 'IPv6' : 'IPv4';
      return [{ address, family, pool: keyOf(pool), services: [], reservedFor: `${namespace}/${name}` }];
    }),
  );
}

function byValue(a: Allocation, b: Allocation): number {
  if (a.family !== b.family) return a.family < b.family ? -1 : 1;
  return a.value < b.value ? -1 : 1;
}
