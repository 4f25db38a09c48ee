import { keyOf, type ObjectKey } from '../../objects/key.ts';
import { parseStrictAddress } from '../../objects/address.ts';
import type { IPFamily, Service } from '../../objects/service.ts';
import { LoadBalancerAllocator } from './allocator.ts';
import { readPool, type AddressPool } from './pool.ts';
import type { Forbidden } from './pool-layout.ts';
import { presentAddresses, unservedPorts } from './present.ts';
import { isServed, readRequest, type AddressRequest, type RequestSettings } from './request.ts';

/** The cluster for which an edit is tried out. */
export interface EditedCluster {
  readonly services: readonly Service[];
  /** Labels of a namespace. */
  readonly namespaceLabels: (namespace: string) => Readonly<Record<string, string>>;
  readonly settings: RequestSettings;
  readonly forbidden: readonly Forbidden[];
  /** All pools as they are, and as they would be. */
  readonly pools: readonly AddressPool[];
  readonly edited: readonly AddressPool[];
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** What an edit would do to one address of one Service. */
export interface EditEffect {
  readonly service: ObjectKey;
  readonly family: IPFamily;
  /**
   * `moves` from an address to another, `loses` one, `gains` one that it waits for, or `stays` although no pool would
   * contain its address any more.
   */
  readonly effect: 'moves' | 'loses' | 'gains' | 'stays';
  readonly from?: string;
  readonly to?: string;
}

/**
 * Which Services an edit of pools would affect, found by making it in books of its own. Quarantines are not known
 * outside of the controller, so an address that rests may show as given.
 */
export function planEdit(cluster: EditedCluster): EditEffect[] {
  const { settings, forbidden, now } = cluster;
  const allocator = new LoadBalancerAllocator();
  const poolsOf = (objects: readonly AddressPool[]): ReturnType<typeof readPool>['pool'][] =>
    objects.map((object) => readPool(object).pool);
  allocator.setPools(poolsOf(cluster.pools), forbidden, now);
  const requests = cluster.services
    .filter((service) => isServed(service, settings) && service.metadata.deletionTimestamp === undefined)
    .map((service) => ({
      service,
      request: readRequest(service, cluster.namespaceLabels(service.metadata.namespace ?? ''), settings),
    }))
    .sort(
      (a, b) => a.request.createdAt - b.request.createdAt || (keyOf(a.service) < keyOf(b.service) ? -1 : 1),
    );
  for (const { service, request } of requests) {
    const isPooled = (family: IPFamily, value: bigint): boolean =>
      allocator.book.poolOf(family, value) !== undefined;
    allocator.adopt(request, presentAddresses(service, isPooled), unservedPorts(service));
  }
  for (const { request } of requests) allocator.assign(request, [], now);
  const before = new Map(requests.map(({ request }) => [request.service, addressesOf(allocator, request)]));

  allocator.takeChanged();
  allocator.setPools(poolsOf(cluster.edited), forbidden, now);
  for (const { request } of requests) allocator.assign(request, [], now);
  return requests.flatMap(({ request }) =>
    effectsOn(allocator, request, before.get(request.service) ?? new Map()),
  );
}

function addressesOf(allocator: LoadBalancerAllocator, request: AddressRequest): Map<IPFamily, string> {
  return new Map(allocator.book.addressesOf(request.service));
}

function effectsOn(
  allocator: LoadBalancerAllocator,
  request: AddressRequest,
  before: ReadonlyMap<IPFamily, string>,
): EditEffect[] {
  const { service } = request;
  const after = addressesOf(allocator, request);
  return request.families.flatMap((family): EditEffect[] => {
    const from = before.get(family);
    const to = after.get(family);
    if (from === undefined) return to === undefined ? [] : [{ service, family, effect: 'gains', to }];
    if (to === undefined) return [{ service, family, effect: 'loses', from }];
    if (from !== to) return [{ service, family, effect: 'moves', from, to }];
    const value = parseStrictAddress(to)?.value ?? -1n;
    return allocator.book.poolOf(family, value) === undefined
      ? [{ service, family, effect: 'stays', from }]
      : [];
  });
}
