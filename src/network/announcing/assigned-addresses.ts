import { chosenEndpoints } from '../../objects/endpoints.ts';
import { type AddressRange, parseAddressRange } from '../../allocation/address-range.ts';
import { type ParsedAddress, parseStrictAddress } from '../../objects/address.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import { conditionOf } from '../../objects/meta.ts';
import type { Condition } from '../../objects/meta.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { AddressPool } from '../../objects/types/servicenet.ts';
import type { EgressRule } from '../egress/egress-plan.ts';
import type { AssignedAddress } from './announcement-plan.ts';
import { type PoolAnnouncement, readAnnounce } from './announcement-plan.ts';

/** An address, and the Services that have it. */
export interface ServiceAddress extends AssignedAddress {
  readonly services: readonly ObjectKey[];
  /** The pool that contains it; undefined if none does (`shrinkPolicy: Retain`): then it is announced by default. */
  readonly pool: string | undefined;
}

/** The parts of a pool that announcing uses. */
export interface AnnouncedPool {
  readonly name: string;
  readonly ranges: readonly AddressRange[];
  /** Parts of the ranges that no Service is given. */
  readonly excluded: readonly AddressRange[];
  readonly announcement: PoolAnnouncement;
}

/** The condition of every Service that the load balancer serves. */
export const loadBalancerReady = 'servicenet.dev/LoadBalancerReady';

/** The condition of a Service that the load balancer serves or served. */
export function loadBalancerReadyCondition({ status }: Service): Condition | undefined {
  return conditionOf(status.conditions, loadBalancerReady);
}

/** The pools in their order: of two that overlap, the older one has the address. */
export function announcedPools(pools: Iterable<AddressPool>): readonly AnnouncedPool[] {
  const age = ({ metadata }: AddressPool): string =>
    `${metadata.creationTimestamp ?? ''} ${metadata.name ?? ''}`;
  return [...pools]
    .toSorted((a, b) => (age(a) < age(b) ? -1 : 1))
    .map(({ metadata, spec }) => ({
      name: metadata.name ?? '',
      ranges: rangesOf(spec.addresses),
      excluded: rangesOf(spec.exclude),
      announcement: readAnnounce(spec.announce).announcement,
    }));
}

function rangesOf(texts: readonly string[] = []): readonly AddressRange[] {
  return texts.flatMap((text) => {
    const isRange = text.includes('/') || text.includes('-');
    return parseAddressRange(isRange ? text : `${text}-${text}`) ?? [];
  });
}

/** Whether a pool has an address that it may give to a Service. */
export function isPooled(address: ParsedAddress, pools: readonly AnnouncedPool[]): boolean {
  const { family, value } = address;
  return poolOf(address, pools)?.excluded.some((range) => range.contains(family, value)) === false;
}

/** The pool that has an address. */
export function poolOf(
  { family, value }: ParsedAddress,
  pools: readonly AnnouncedPool[],
): AnnouncedPool | undefined {
  return pools.find(({ ranges }) => ranges.some((range) => range.contains(family, value)));
}

/** Whether a Service may have addresses to announce: others need not be read. */
export function mayBeAnnounced({ spec, status }: Service): boolean {
  return spec.type === 'LoadBalancer' && (status.loadBalancer?.ingress ?? []).length > 0;
}

/**
 * The addresses that Services have from AddressPools, by their canonical text.
 *
 * @param slicesOf the EndpointSlices of a Service.
 */
export function assignedAddresses(
  services: Iterable<Service>,
  slicesOf: (service: ObjectKey) => Iterable<EndpointSlice>,
  pools: readonly AnnouncedPool[],
): ReadonlyMap<string, ServiceAddress> {
  const found = new Map<string, ServiceAddress>();
  for (const service of services) {
    if (!mayBeAnnounced(service) || !hasPoolAddresses(service)) continue;
    const key = keyOf(service);
    const localNodes =
      service.spec.externalTrafficPolicy === 'Local' ? localNodesOf(slicesOf(key)) : undefined;
    for (const { ip, ipMode = 'VIP' } of service.status.loadBalancer?.ingress ?? []) {
      const parsed = ipMode === 'VIP' ? parseStrictAddress(ip ?? '') : undefined;
      if (parsed === undefined) continue;
      const { canonical: address } = parsed;
      const known = found.get(address);
      const pool = poolOf(parsed, pools);
      found.set(address, {
        address,
        services: [...(known?.services ?? []), key],
        pool: pool?.name,
        announcement: pool?.announcement ?? byDefault,
        localNodes: intersection(known?.localNodes, localNodes),
      });
    }
  }
  return found;
}

/** The addresses that EgressIPs have on nodes: each is announced by that node, on the interface whose subnet contains it. */
export function egressAddresses(rules: readonly EgressRule[]): readonly ServiceAddress[] {
  return rules.flatMap(({ exits }) =>
    exits.map(({ address, node }) => ({
      ...{ address, announcement: byDefault, services: [], pool: undefined, localNodes: undefined },
      egressNode: node,
    })),
  );
}

const byDefault = readAnnounce(undefined).announcement;

function hasPoolAddresses(service: Service): boolean {
  return (
    service.metadata.deletionTimestamp === undefined && loadBalancerReadyCondition(service) !== undefined
  );
}

/**
 * The nodes with a ready endpoint; where there is none at all, those with one that serves although it terminates
 * (KEP-1669): kube-proxy forwards in the same way.
 */
function localNodesOf(slices: Iterable<EndpointSlice>): ReadonlySet<string> {
  const onNodes = [...slices]
    .flatMap(({ endpoints }) => endpoints ?? [])
    .filter(({ nodeName }) => nodeName !== undefined);
  return new Set(chosenEndpoints(onNodes, (endpoint) => endpoint).flatMap(({ nodeName }) => nodeName ?? []));
}

function intersection(
  a: ReadonlySet<string> | undefined,
  b: ReadonlySet<string> | undefined,
): ReadonlySet<string> | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return new Set([...a].filter((node) => b.has(node)));
}
