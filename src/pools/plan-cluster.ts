import type { Service } from '../objects/types/core.generated.ts';
import { type ServedService, isForeign, statusAddresses } from '../controllers/load-balancer/status.ts';
import { LoadBalancerAllocator } from '../controllers/load-balancer/allocator.ts';
import type { AddressPool } from '../objects/types/servicenet.ts';
import { readPool, type Pool } from '../controllers/load-balancer/pool.ts';
import { layOut, type ForbiddenRange } from '../controllers/load-balancer/pool-addresses.ts';
import { readQuarantined } from '../controllers/load-balancer/quarantine.ts';
import {
  byServiceAge,
  isServed,
  readRequest,
  type RequestSettings,
} from '../controllers/load-balancer/request.ts';

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

/** The state of a controller that has just started in a cluster. */
export interface StartedController {
  readonly allocator: LoadBalancerAllocator;
  /** Oldest first, without Services that another load balancer serves. */
  readonly served: readonly PooledService[];
}

/** Adopts the addresses of all Services, as a controller does when it starts. Assigns no new ones. */
export function startController(cluster: PooledCluster, now: number): StartedController {
  const allocator = new LoadBalancerAllocator();
  allocator.setPools(poolsOf(cluster.pools), cluster.forbidden);
  const served = servedServices(cluster, allocator);
  Array.from(allocator.adopt(served));
  for (const pool of cluster.pools) {
    for (const entry of readQuarantined(pool, now)) allocator.allocations.quarantine(entry);
  }
  return { allocator, served };
}

/** The Services that a controller with these pools would serve, oldest first. */
export function servedServices(
  { services, settings, namespaceLabels }: PooledCluster,
  allocator: LoadBalancerAllocator,
): PooledService[] {
  return services
    .filter((service) => isServed(service, settings) && service.metadata.deletionTimestamp === undefined)
    .map((service) => ({
      service,
      request: readRequest(service, namespaceLabels(service.metadata.namespace ?? ''), settings),
      inStatus: statusAddresses(service, allocator.isPooled),
    }))
    .filter(({ service, inStatus }) => !isForeign(service, inStatus))
    .sort((a, b) => byServiceAge(a.request, b.request));
}

export function poolsOf(objects: readonly AddressPool[]): Pool[] {
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
