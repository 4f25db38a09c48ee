import type { ServiceCidr } from '../allocation/address-range.ts';
import type { PortRange } from '../allocation/port-allocator.ts';
import type { Transport } from '../client/transport.ts';
import { type CatalogEntry, type CatalogOptions, clusterControllers } from './catalog.ts';
import { loadBalancerController, type LoadBalancerOptions } from './load-balancer/controller.ts';
import type { ControllerDefinition } from './runtime/context.ts';
import { serviceAllocationController } from './service-allocation/controller.ts';

/** What the controllers of servicenet's own need. */
export interface ServiceControllerOptions {
  readonly transport: Transport;
  /** Who allocates for Services: what the API server did is audited, or the controller does it. */
  readonly allocation: 'server' | 'controller';
  /** The ranges of Services where the server has no ServiceCIDRs, and the cluster's families, primary first. */
  readonly serviceCidrs?: readonly ServiceCidr[];
  readonly nodePorts: PortRange;
  readonly loadBalancer?: LoadBalancerOptions;
}

/** The controllers that Kubernetes leaves to others: `service-allocation` and `load-balancer`, both on by default. */
export function serviceControllers(options: ServiceControllerOptions): readonly CatalogEntry[] {
  const entry = (name: string, definition: ControllerDefinition): CatalogEntry => ({
    name,
    start: (context) => definition.start(context),
    onByDefault: true,
    eventSource: `servicenet-${name}`,
  });
  return [
    entry('service-allocation', serviceAllocationController(options)),
    entry('load-balancer', loadBalancerController(options.loadBalancer)),
  ];
}

/**
 * All controllers, for a real cluster: on by default are only those that nobody else runs there. Those of
 * kube-controller-manager are for clusters that switch it off, or for chosen Services.
 */
export function controllersBesideACluster(
  own: ServiceControllerOptions,
  cluster: CatalogOptions,
): readonly CatalogEntry[] {
  const others = clusterControllers(cluster).map((entry) => ({ ...entry, onByDefault: false }));
  return [...serviceControllers(own), ...others];
}
