import { parseStrictAddress } from '../objects/address.ts';
import type { ObjectKey } from '../objects/key.ts';
import type { IPFamily } from '../objects/address.ts';
import type { LoadBalancerAllocator } from '../controllers/load-balancer/allocator.ts';
import type { AddressPool } from '../objects/types/servicenet.ts';
import type { AddressRequest } from '../controllers/load-balancer/request.ts';
import { poolsOf, servedServices, startController, type PooledCluster } from './plan-cluster.ts';

/** A cluster and an edit of its pools. */
export interface EditedCluster extends PooledCluster {
  /** All pools after the edit. */
  readonly edited: readonly AddressPool[];
  /** Milliseconds since 1970. */
  readonly now: number;
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

/** Plans which Services an edit of pools affects, by applying it to an allocator of its own. */
export function planEdit(cluster: EditedCluster): EditEffect[] {
  const { forbidden, now } = cluster;
  const { allocator, served } = startController(cluster, now);
  for (const { request } of served) allocateAndRelease(allocator, request, now);
  const before = new Map(served.map(({ request }) => [request.service, addressesOf(allocator, request)]));

  allocator.takeChanged();
  allocator.setPools(poolsOf(cluster.edited), forbidden);
  const adopted = servedServices(cluster, allocator).filter(({ request }) => !before.has(request.service));
  Array.from(allocator.adopt(adopted));
  const all = [...served, ...adopted];
  for (const { request } of all) allocateAndRelease(allocator, request, now);
  return all.flatMap(({ request }) => effectsOn(allocator, request, before.get(request.service)));
}

/** Allocates for a Service as if its status were written at once. */
function allocateAndRelease(allocator: LoadBalancerAllocator, request: AddressRequest, now: number): void {
  allocator.allocate(request, []);
  allocator.release(request.service, allocator.unreleased(request.service), now);
}

function addressesOf(allocator: LoadBalancerAllocator, request: AddressRequest): Map<IPFamily, string> {
  return new Map(allocator.allocations.addressesOf(request.service));
}

/** @param before undefined for a Service that another load balancer served. */
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
    return allocator.allocations.poolOf(family, value) === undefined
      ? [{ service, family, effect: 'stays', from }]
      : [];
  });
}
