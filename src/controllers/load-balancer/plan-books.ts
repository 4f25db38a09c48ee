import { keyOf } from '../../objects/key.ts';
import type { IPFamily, Service } from '../../objects/service.ts';
import { LoadBalancerAllocator } from './allocator.ts';
import { readPool, type AddressPool, type Pool } from './pool.ts';
import { layOut, type Forbidden } from './pool-layout.ts';
import { isForeign, presentAddresses, unservedPorts } from './present.ts';
import { isServed, readRequest, type AddressRequest, type RequestSettings } from './request.ts';

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
}

/** The books that a controller would have of a cluster. */
export interface ClusterBooks {
  readonly allocator: LoadBalancerAllocator;
  /** In the order of creation, without those that another provider serves. */
  readonly served: readonly ServedService[];
}

/** Books what every Service has, as a controller does when it starts. Gives nothing. */
export function booksOf(cluster: PooledCluster, now: number): ClusterBooks {
  const allocator = new LoadBalancerAllocator();
  allocator.setPools(poolsOf(cluster.pools), cluster.forbidden, now);
  const served = ownServices(cluster, allocator);
  for (const { service, request } of served) {
    allocator.adopt(request, presentIn(allocator, service), unservedPorts(service));
  }
  return { allocator, served };
}

/** The Services that a controller with these pools would serve, oldest first. */
export function ownServices(
  { services, settings, namespaceLabels }: PooledCluster,
  allocator: LoadBalancerAllocator,
): ServedService[] {
  return services
    .filter(
      (service) =>
        isServed(service, settings) &&
        service.metadata.deletionTimestamp === undefined &&
        !isForeign(service, presentIn(allocator, service)),
    )
    .map((service) => ({
      service,
      request: readRequest(service, namespaceLabels(service.metadata.namespace ?? ''), settings),
    }))
    .sort(
      (a, b) => a.request.createdAt - b.request.createdAt || (keyOf(a.service) < keyOf(b.service) ? -1 : 1),
    );
}

/** The addresses in a Service's status that are ours; see {@link presentAddresses}. */
export function presentIn(allocator: LoadBalancerAllocator, service: Service): string[] {
  return presentAddresses(
    service,
    (family: IPFamily, value) => allocator.book.poolOf(family, value) !== undefined,
  );
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
