import type { Service } from '../objects/core.generated.ts';
import { LoadBalancerAllocator } from '../controllers/load-balancer/allocator.ts';
import { readPool, type AddressPool, type Pool } from '../controllers/load-balancer/pool.ts';
import { layOut, type Forbidden } from '../controllers/load-balancer/pool-layout.ts';
import { readResting } from '../controllers/load-balancer/plan-pool.ts';
import { isForeign, presentAddresses, type PresentAddress } from '../controllers/load-balancer/present.ts';
import {
  byAge,
  isServed,
  readRequest,
  type AddressRequest,
  type RequestSettings,
} from '../controllers/load-balancer/request.ts';

/** What there is in a cluster, read once. */
export interface PooledCluster {
  readonly services: readonly Service[];
  /** Labels of a namespace. */
  readonly namespaceLabels: (namespace: string) => Readonly<Record<string, string>>;
  readonly settings: RequestSettings;
  readonly forbidden: readonly Forbidden[];
  readonly pools: readonly AddressPool[];
}

/** A Service as the load balancer sees it. */
interface ServedService {
  readonly service: Service;
  readonly request: AddressRequest;
  /** What it has. */
  readonly present: readonly PresentAddress[];
}

/** The books that a controller would have of a cluster. */
export interface ClusterBooks {
  readonly allocator: LoadBalancerAllocator;
  /** In the order of creation, without those that another provider serves. */
  readonly served: readonly ServedService[];
}

/** AllocationState what every Service has, as a controller does when it starts. Gives nothing. */
export function booksOf(cluster: PooledCluster, now: number): ClusterBooks {
  const allocator = new LoadBalancerAllocator();
  allocator.setPools(poolsOf(cluster.pools), cluster.forbidden);
  const served = ownServices(cluster, allocator);
  Array.from(allocator.adopt(served));
  for (const pool of cluster.pools) {
    for (const rest of readResting(pool, now)) allocator.book.rest(rest);
  }
  return { allocator, served };
}

/** The Services that a controller with these pools would serve, oldest first. */
export function ownServices(
  { services, settings, namespaceLabels }: PooledCluster,
  allocator: LoadBalancerAllocator,
): ServedService[] {
  return services
    .filter((service) => isServed(service, settings) && service.metadata.deletionTimestamp === undefined)
    .map((service) => ({
      service,
      request: readRequest(service, namespaceLabels(service.metadata.namespace ?? ''), settings),
      present: presentAddresses(service, allocator.isPooled),
    }))
    .filter(({ service, present }) => !isForeign(service, present))
    .sort((a, b) => byAge(a.request, b.request));
}

export function poolsOf(objects: readonly AddressPool[]): Pool[] {
  return objects.map((object) => readPool(object).pool);
}

/** What a controller would say against pools in their status: `name: sentence`. */
export function problemsOf(objects: readonly AddressPool[], forbidden: readonly Forbidden[]): string[] {
  const layouts = layOut(poolsOf(objects), forbidden);
  return objects.flatMap((object) => {
    const { pool, problems } = readPool(object);
    const conflicts = layouts.get(pool.name)?.conflicts ?? [];
    return [...problems, ...conflicts].map((problem) => `${pool.name}: ${problem}`);
  });
}
