import { parseStrictAddress } from '../objects/address.ts';
import type { ObjectKey } from '../objects/key.ts';
import type { IPFamily } from '../objects/address.ts';
import type { LoadBalancerAllocator } from '../controllers/load-balancer/allocator.ts';
import { booksOf, ownServices, poolsOf, type PooledCluster } from './plan-books.ts';
import type { AddressPool } from '../controllers/load-balancer/pool.ts';
import type { AddressRequest } from '../controllers/load-balancer/request.ts';

/** The cluster for which an edit is tried out. */
export interface EditedCluster extends PooledCluster {
  /** All pools as they would be. */
  readonly edited: readonly AddressPool[];
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** What an edit would do to one address of one Service. */
export interface EditEffect {
  readonly service: ObjectKey;
  readonly family: IPFamily;
  /**
   * `moves` from an address to another, `loses` one, `gains` one that it waits for, `adopts` one that another provider
   * gave it, or `stays` although no pool would contain its address any more.
   */
  readonly effect: 'moves' | 'loses' | 'gains' | 'adopts' | 'stays';
  readonly from?: string;
  readonly to?: string;
}

/**
 * Which Services an edit of pools would affect, found by making it in books of its own.
 */
export function planEdit(cluster: EditedCluster): EditEffect[] {
  const { forbidden, now } = cluster;
  const { allocator, served } = booksOf(cluster, now);
  for (const { request } of served) serve(allocator, request, now);
  const before = new Map(served.map(({ request }) => [request.service, addressesOf(allocator, request)]));

  allocator.takeChanged();
  allocator.setPools(poolsOf(cluster.edited), forbidden);
  const adopted = ownServices(cluster, allocator).filter(({ request }) => !before.has(request.service));
  Array.from(allocator.adopt(adopted));
  const all = [...served, ...adopted];
  for (const { request } of all) serve(allocator, request, now);
  return all.flatMap(({ request }) => effectsOn(allocator, request, before.get(request.service)));
}

/** Gives a Service what it is to have, as if its status said so at once. */
function serve(allocator: LoadBalancerAllocator, request: AddressRequest, now: number): void {
  allocator.assign(request, []);
  allocator.letGo(request.service, allocator.leftBy(request.service), now);
}

function addressesOf(allocator: LoadBalancerAllocator, request: AddressRequest): Map<IPFamily, string> {
  return new Map(allocator.book.addressesOf(request.service));
}

/** @param before undefined for a Service that another provider serves. */
function effectsOn(
  allocator: LoadBalancerAllocator,
  request: AddressRequest,
  before: ReadonlyMap<IPFamily, string> | undefined,
): EditEffect[] {
  const { service } = request;
  const after = addressesOf(allocator, request);
  return request.families.flatMap((family): EditEffect[] => {
    const from = before?.get(family);
    const to = after.get(family);
    if (before === undefined) return to === undefined ? [] : [{ service, family, effect: 'adopts', to }];
    if (from === undefined) return to === undefined ? [] : [{ service, family, effect: 'gains', to }];
    if (to === undefined) return [{ service, family, effect: 'loses', from }];
    if (from !== to) return [{ service, family, effect: 'moves', from, to }];
    const value = parseStrictAddress(to)?.value ?? -1n;
    return allocator.book.poolOf(family, value) === undefined
      ? [{ service, family, effect: 'stays', from }]
      : [];
  });
}
