import { isIPv6 } from 'node:net';
import type { AddressPool } from '../../../../src/objects/types/servicenet.ts';
import type { Service } from '../../../../src/objects/types/core.generated.ts';
import { foreignAddress } from '../actors/balancers.ts';
import { sharingAnnotation } from '../actors/services.ts';
import { isIn, type Span, spanOf } from './addresses.ts';
import { keyOf, type Snapshot } from './snapshot.ts';

const finalizer = 'service.kubernetes.io/load-balancer-cleanup';
const conditionType = 'servicenet.dev/LoadBalancerReady';

/** Addresses of pools that are given twice, withheld, or kept by who should have none; pools that count wrong. */
export function balancingFindings({ services, pools }: Snapshot): string[] {
  const found: string[] = [];
  const holders = new Map<string, Service[]>();
  const waiting: Service[] = [];
  const isReassigning = pools.some(({ spec }) => spec.shrinkPolicy === 'Reassign');
  for (const service of services) {
    const key = keyOf(service);
    const given = addressesOf(service);
    const reason = service.status.conditions?.find(({ type }) => type === conditionType)?.reason;
    if (service.metadata.deletionTimestamp !== undefined) found.push(`${key}: never went`);
    if (service.spec.type !== 'LoadBalancer' || service.spec.loadBalancerClass !== undefined) {
      if (given.length > 0) found.push(`${key}: keeps ${given.join()}`);
      if (reason !== undefined) found.push(`${key}: keeps its condition ${reason}`);
      if (service.metadata.finalizers?.includes(finalizer) === true)
        found.push(`${key}: keeps the finalizer`);
      continue;
    }
    // Another load balancer was there first: such a Service is never touched.
    if (reason === undefined && hasForeign(service)) continue;
    if (given.length > 0 && service.metadata.finalizers?.includes(finalizer) !== true)
      found.push(`${key}: has ${given.join()} without the finalizer`);
    for (const address of given) {
      const [told, has] = [entriesAt(address, service), service.spec.ports ?? []].map(portsOf);
      if (told !== has) found.push(`${key}: has ports ${String(has)}, and ${String(told)} at ${address}`);
      const others = holders.get(address) ?? [];
      found.push(...others.flatMap((other) => meeting(address, other, service)));
      holders.set(address, [...others, service]);
      if (isReassigning && !pools.some((pool) => spansOf(pool).some((span) => isIn(address, span))))
        found.push(`${key}: keeps ${address}, which is in no pool any more`);
    }
    // One that was asked for a second family keeps the first, and says what it waits for.
    const lacks = given.length < (service.spec.ipFamilies ?? ['IPv4']).length;
    if (reason === 'Assigned' ? given.length === 0 : !lacks && !isPartlyServed(service))
      found.push(`${key}: ${String(reason)} with ${given.join()}`);
    if (lacks) waiting.push(service);
  }
  const taken = [...holders.keys()];
  for (const service of waiting) {
    const had = new Set(addressesOf(service).map(familyOf));
    const wanted = (service.spec.ipFamilies ?? ['IPv4']).filter((family) => !had.has(family));
    const named = service.metadata.annotations?.['servicenet.dev/pool'];
    const usable = pools.filter(({ metadata, spec }) =>
      named === undefined ? spec.autoAssign !== false : metadata.name === named,
    );
    const has = (family: string): boolean => usable.some((pool) => hasRoom(pool, family, taken));
    const may = service.spec.ipFamilyPolicy === 'PreferDualStack' ? wanted.some(has) : wanted.every(has);
    if (may) found.push(`${keyOf(service)}: waits, and there is room`);
  }
  return [...found, ...pools.flatMap((pool) => miscounted(pool, taken))];
}

/** What is wrong with two that have one address: they need one key, and no port may be served for both. */
function meeting(address: string, one: Service, other: Service): string[] {
  const [key, otherKey] = [one, other].map(keyOf);
  if (!mayShare(one, other)) return [`${address}: of ${String(key)} and ${String(otherKey)}`];
  const served = servedAt(address, one);
  const both = servedAt(address, other).filter((port) => served.includes(port));
  return both.map((port) => `${address}: serves ${port} for ${String(key)} and ${String(otherKey)}`);
}

/** Whether two Services may have one address. */
export function mayShare(one: Service, other: Service): boolean {
  const [key, otherKey] = [one, other].map(({ metadata }) => metadata.annotations?.[sharingAnnotation]);
  return key !== undefined && key === otherKey;
}

/** It keeps its address though another sharer has one of its ports, and says so. */
function isPartlyServed({ status }: Service): boolean {
  return (status.loadBalancer?.ingress ?? []).some(({ ports }) =>
    ports?.some(({ error }) => error !== undefined),
  );
}

function servedAt(address: string, service: Service): number[] {
  return entriesAt(address, service).flatMap(({ port, error }) => (error === undefined ? [port] : []));
}

/** The ports that a status tells of at an address, those included that are not served there. */
function entriesAt(address: string, { status }: Service) {
  return (status.loadBalancer?.ingress ?? []).find(({ ip }) => ip === address)?.ports ?? [];
}

function portsOf(ports: readonly { readonly port: number }[]): string {
  return ports.map(({ port }) => port).join();
}

/** Those of ours: the other load balancer has a range of its own. */
export function addressesOf({ status }: Service): string[] {
  const all = (status.loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? []);
  return all.filter((ip) => !ip.startsWith(foreignAddress));
}

function hasForeign({ status }: Service): boolean {
  return (status.loadBalancer?.ingress ?? []).some(({ ip }) => ip?.startsWith(foreignAddress) === true);
}

function hasRoom(pool: AddressPool, family: string, taken: readonly string[]): boolean {
  const spans = spansOf(pool).filter((span) => span.family === family);
  const size = spans.reduce((sum, { first, last }) => sum + Number(last - first) + 1, 0);
  return taken.filter((ip) => spans.some((span) => isIn(ip, span))).length < size;
}

function miscounted(pool: AddressPool, taken: readonly string[]): string[] {
  const { status, metadata } = pool;
  const used = taken.filter((ip) => spansOf(pool).some((span) => isIn(ip, span)));
  const found: string[] = [];
  for (const [family, counts] of [['IPv4', status?.ipv4] as const, ['IPv6', status?.ipv6] as const]) {
    const own = used.filter((ip) => familyOf(ip) === family).length;
    if (own !== (counts?.used ?? 0))
      found.push(`pool ${metadata.name ?? ''} counts ${String(counts?.used)} ${family}, ${own} are used`);
  }
  const isOld = status?.conditions?.some(
    ({ observedGeneration }) => observedGeneration !== metadata.generation,
  );
  return isOld === false ? found : [...found, `pool ${metadata.name ?? ''}: its status is of an older spec`];
}

function familyOf(ip: string): string {
  return isIPv6(ip) ? 'IPv6' : 'IPv4';
}

function spansOf({ spec }: AddressPool): Span[] {
  return (spec.addresses ?? []).map(spanOf);
}
