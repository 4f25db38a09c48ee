import { type CatalogOptions, clusterControllers } from './catalog.ts';
import type { CatalogEntry } from './run.ts';
import {
  serviceAllocationController,
  type ServiceAllocationOptions,
} from './service-allocation/controller.ts';

/** `service-allocation-controller`: on by default where it allocates, or where there is no other audit. */
export function serviceAllocation(options: ServiceAllocationOptions, onByDefault: boolean): CatalogEntry {
  const definition = serviceAllocationController(options);
  return {
    name: definition.name,
    start: (context) => definition.start(context),
    onByDefault,
    eventSource: 'servicenet-service-allocation',
  };
}

/**
 * All controllers, for a real cluster. On by default are those that are not part of a cluster: the audit of allocations
 * and the load balancer. Those of kube-controller-manager are for clusters that switch it off, or for chosen Services.
 */
export function controllersBesideACluster(
  allocation: ServiceAllocationOptions,
  cluster: CatalogOptions,
): readonly CatalogEntry[] {
  const others = clusterControllers(cluster).map((entry) => ({
    ...entry,
    onByDefault: entry.name === 'load-balancer-controller',
  }));
  return [serviceAllocation(allocation, true), ...others];
}
