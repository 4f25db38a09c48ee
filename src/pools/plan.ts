import type { Service } from '../objects/types/core.generated.ts';
import {
  type ServedService,
  isForeign,
  readAssigned,
  statusAddresses,
} from '../controllers/load-balancer/status.ts';
import { LoadBalancerAllocator } from '../controllers/load-balancer/allocator.ts';
import type { AddressPool, FamilyUsage } from '../objects/types/servicenet.ts';
import {
  type AddressState,
  readPool,
  type Pool,
  layOut,
  type ForbiddenRange,
} from '../controllers/load-balancer/pools.ts';
import { readQuarantined, type Allocation } from '../controllers/load-balancer/allocations.ts';
import {
  byServiceAge,
  isServed,
  readRequest,
  type RequestSettings,
} from '../controllers/load-balancer/request.ts';
import { formatAddress, ipFamilies, parseStrictAddress, type IPFamily } from '../objects/address.ts';
import { isLeftToOthers } from '../controllers/load-balancer/plan.ts';
import { type ObjectKey, keyOf } from '../objects/meta.ts';
import { announcedBy } from '../controllers/announcement-status/plan.ts';
import { loadBalancerReadyCondition } from '../network/announcing/assigned-addresses.ts';

/** The objects of a cluster that decide which Service gets which address. */
export interface PooledCluster {
  readonly services: readonly Service[];
  /** Labels of a namespace. */
  readonly namespaceLabels: (namespace: string) => Readonly<Record<string, string>>;
  readonly settings: RequestSettings;
  readonly forbidden: readonly ForbiddenRange[];
  readonly pools: readonly AddressPool[];
}

interface PooledService extends ServedService {
  readonly service: Service;
}

/** A controller that has just started in a cluster. */
export interface StartedController {
  readonly allocator: LoadBalancerAllocator;
  /** Oldest first, without Services that another load balancer serves. */
  readonly served: readonly PooledService[];
  /** Others that have addresses, which it takes back. */
  readonly released: readonly PooledService[];
}

function isReleased(service: Service, settings: RequestSettings): boolean {
  return !isServed(service, settings) || service.metadata.deletionTimestamp !== undefined;
}

/** All Services, with what their status shows of the pools that an allocator knows. */
function pooledServices(
  { services, settings, namespaceLabels }: PooledCluster,
  allocator: LoadBalancerAllocator,
): PooledService[] {
  return services.map((service) => ({
    service,
    request: readRequest(service, namespaceLabels(service.metadata.namespace ?? ''), settings),
    inStatus: statusAddresses(service, allocator.isPooled),
  }));
}

/** Adopts the addresses of all Services, as a controller does when it starts. Assigns no new ones. */
function startController(cluster: PooledCluster, now: number): StartedController {
  const { settings } = cluster;
  const allocator = new LoadBalancerAllocator();
  allocator.setPools(poolsOf(cluster.pools), cluster.forbidden);
  const all = pooledServices(cluster, allocator);
  const served = all
    .filter(({ service, inStatus }) => !isReleased(service, settings) && !isForeign(service, inStatus))
    .sort((a, b) => byServiceAge(a.request, b.request));
  const released = all.filter(({ service }) => isReleased(service, settings));
  Array.from(allocator.adopt(served, released));
  for (const one of released) if (isLeftToOthers(one.service, settings)) allocator.hold(one);
  for (const pool of cluster.pools) {
    for (const entry of readQuarantined(pool, now)) allocator.allocations.quarantine(entry);
  }
  return { allocator, served, released };
}

function poolsOf(objects: readonly AddressPool[]): Pool[] {
  return objects.map((object) => readPool(object).pool);
}

/** The problems and conflicts that a controller would write to the status of pools: `name: sentence`. */
export function poolProblems(
  objects: readonly AddressPool[],
  forbidden: readonly ForbiddenRange[],
): string[] {
  const layouts = layOut(poolsOf(objects), forbidden);
  return objects.flatMap((object) => {
    const { pool, problems } = readPool(object);
    const conflicts = layouts.get(pool.name)?.conflicts ?? [];
    return [...problems, ...conflicts].map((problem) => `${pool.name}: ${problem}`);
  });
}

/** A cluster and an edit of its pools. */
export interface EditedCluster extends PooledCluster {
  /** All pools after the edit. */
  readonly edited: readonly AddressPool[];
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/** The effect of an edit on one address of one Service. */
export interface EditEffect {
  readonly service: ObjectKey;
  readonly family: IPFamily;
  /**
   * `moves` to another address, `loses` its address, `gains` one that it waits for, `adopts` one that another load
   * balancer assigned, or `stays` on an address that would be in no pool.
   */
  readonly effect: 'moves' | 'loses' | 'gains' | 'adopts' | 'stays';
  readonly from?: string;
  readonly to?: string;
}

/**
 * Plans which Services an edit of pools affects: what their status shows now, and what it shows once a controller has
 * started and then seen the edit.
 */
export function planEdit(cluster: EditedCluster): EditEffect[] {
  const { forbidden, nowMs: now, settings } = cluster;
  const { allocator, served, released } = startController(cluster, now);
  for (const { request, inStatus } of allocator.startOrder(served)) allocator.allocate(request, inStatus);
  const writing = new Map(served.map((one) => [one.request.service, one]));
  const keys = [...served, ...released].map(({ request }) => request.service).sort();
  writeAll(allocator, writing, keys, now);

  allocator.setPools(poolsOf(cluster.edited), forbidden, () => {
    // What the status of a Service showed of the first pools is written by now.
    const others = pooledServices(cluster, allocator).filter(
      ({ request: { service } }) =>
        allocator.allocations.addressesOf(service).size === 0 &&
        (writing.get(service)?.inStatus.length ?? 0) === 0,
    );
    const isUnserved = ({ service }: PooledService): boolean => isReleased(service, settings);
    const adopted = others.filter((one) => !isUnserved(one) && !isForeign(one.service, one.inStatus));
    for (const one of adopted) writing.set(one.request.service, one);
    const held = others.filter((one) => isUnserved(one) && isLeftToOthers(one.service, settings));
    return { adopted, held };
  });
  writeAll(allocator, writing, allocator.takeChanged(), now);
  const all = [...writing.values()].sort((a, b) => byServiceAge(a.request, b.request));
  return all.flatMap((one) => effectsOn(allocator, one));
}

/**
 * Writes Services as a controller does, until none changes any more: what a status no longer shows is free after its
 * write.
 *
 * @param due the keys of the first that are written.
 */
function writeAll(
  allocator: LoadBalancerAllocator,
  served: ReadonlyMap<ObjectKey, PooledService>,
  due: readonly ObjectKey[],
  now: number,
): void {
  for (
    let turn = 0, keys = due;
    keys.length > 0 && turn <= served.size;
    turn++, keys = allocator.takeChanged()
  ) {
    for (const key of keys) {
      const one = served.get(key);
      if (one !== undefined) allocator.allocate(one.request, []);
    }
    for (const key of keys) release(allocator, key, now);
  }
}

function release(allocator: LoadBalancerAllocator, key: ObjectKey, now: number): void {
  const held = new Set(allocator.held(key));
  const addresses = allocator.unreleased(key).filter((address) => !held.has(address));
  allocator.release(key, addresses, now);
}

function effectsOn(
  allocator: LoadBalancerAllocator,
  { service, request, inStatus }: PooledService,
): EditEffect[] {
  const after = allocator.allocations.addressesOf(request.service);
  const before = new Map(inStatus.map((one) => [one.family, one]));
  const own = new Set(
    readAssigned(loadBalancerReadyCondition(service)?.message ?? '').map((one) => one.address),
  );
  return ipFamilies.flatMap((family): EditEffect[] => {
    const from = before.get(family)?.address;
    const to = after.get(family);
    const effect = { service: request.service, family };
    if (from === undefined) return to === undefined ? [] : [{ ...effect, effect: 'gains', to }];
    if (to === undefined) return [{ ...effect, effect: 'loses', from }];
    if (from !== to) return [{ ...effect, effect: 'moves', from, to }];
    if (!own.has(to)) return [{ ...effect, effect: 'adopts', to }];
    const value = parseStrictAddress(to)?.value ?? -1n;
    const isPooled = allocator.allocations.poolOf(family, value) !== undefined;
    return isPooled ? [] : [{ ...effect, effect: 'stays', from }];
  });
}

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
  /** `80/TCP`. */
  readonly ports: readonly string[];
  /** `node-2 on eth0 by layer 2`, or the reason word; absent: it has no such condition, no agent has said anything. */
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
    .map(({ service }) => waitsFor(service))
    .sort((a, b) => (a.service < b.service ? -1 : 1));
  return { pools, addresses: [...inUse, ...reservedOnly(cluster.pools, inUse)], waiting };
}

/** What a Service without an address waits for. */
export function waitsFor(service: Service): WaitingService {
  const { reason = 'Pending', message = 'no controller has looked at it yet' } =
    loadBalancerReadyCondition(service) ?? {};
  return { service: keyOf(service), reason, message };
}

/** Whether a pool may serve a Service. */
export interface PoolFit {
  readonly pool: string;
  readonly isFit: boolean;
  /** A sentence without a full stop. */
  readonly message: string;
}

/**
 * Asks each pool for an address of a Service's families, as if the Service named that pool alone.
 *
 * @returns by name; none for a Service that is not of this load balancer.
 */
export function poolFits(cluster: PooledCluster, key: ObjectKey, now: number): readonly PoolFit[] {
  const { allocator, served } = startController(cluster, now);
  const request = served.find((one) => one.request.service === key)?.request;
  if (request === undefined) return [];
  return [...allocator.allocations.pools.values()]
    .map(({ pool: { name, autoAssign } }): PoolFit => {
      const choices = allocator.choices({ ...request, pools: [name] });
      const refused = choices.find((choice) => !('address' in choice));
      const isOpen = autoAssign || request.pools.includes(name);
      if (refused !== undefined && 'message' in refused)
        return { pool: name, isFit: false, message: refused.message };
      return isOpen
        ? { pool: name, isFit: true, message: `pool ${name} has an address for it` }
        : {
            pool: name,
            isFit: false,
            message: `pool ${name} serves only Services that name it (autoAssign)`,
          };
    })
    .toSorted((a, b) => (a.pool < b.pool ? -1 : 1));
}

/** One address of a pool. */
export interface PoolSquare {
  readonly address: string;
  readonly state: 'free' | AddressState;
  /** When a quarantine ends, in milliseconds since 1970. */
  readonly untilMs?: number;
}

/**
 * The addresses of a pool in their order, by family.
 *
 * @param most of a family; one that has more is left out.
 */
export function poolSquares(
  cluster: PooledCluster,
  now: number,
  most: number,
): (pool: string, family: IPFamily) => readonly PoolSquare[] | undefined {
  const { allocations } = startController(cluster, now).allocator;
  const layouts = layOut(poolsOf(cluster.pools), cluster.forbidden);
  return (pool, family) => {
    const spans = layouts.get(pool)?.spans[family] ?? [];
    const size = spans.reduce((sum, { first, last }) => sum + (last - first + 1n), 0n);
    if (size > BigInt(most)) return undefined;
    const squares: PoolSquare[] = [];
    for (const { first, last } of spans) {
      for (let value = first; value <= last; value++) {
        const address = formatAddress(family, value);
        const quarantine = allocations.quarantined(address);
        const state =
          allocations.get(address) !== undefined
            ? 'used'
            : quarantine !== undefined
              ? 'quarantined'
              : allocations.reservation(address) === undefined
                ? 'free'
                : 'reserved';
        const until =
          state === 'quarantined' && quarantine !== undefined ? { untilMs: quarantine.untilMs } : {};
        squares.push({ address, state, ...until });
      }
    }
    return squares;
  };
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
