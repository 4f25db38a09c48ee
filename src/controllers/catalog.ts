import { type CatalogEntry, specEntry } from './run.ts';
import type { Transport } from '../client/transport.ts';
import { claimProtectionController } from './claim-protection.ts';
import { endpointSliceMirroringController } from './service-endpoints/endpoint-slice-mirroring/controller.ts';
import { endpointSlicesController } from './service-endpoints/slices/controller.ts';
import { endpointsController } from './service-endpoints/endpoints/controller.ts';
import { garbageCollectorController } from './garbage-collection/controller.ts';
import { loadBalancerController, type LoadBalancerOptions } from './load-balancer/controller.ts';
import { namespacesController } from './namespaces/controller.ts';
import { policyStatusController, type PolicyStatusOptions } from './policy-status/controller.ts';
import { rootCaPublisherController } from './root-ca-publisher.ts';
import { serviceAccountsController } from './service-accounts.ts';
import type { KubeletSettings } from './kubelet/controller.ts';
import type { NodesOptions } from './nodes/controller.ts';
import { simulationControllers } from './simulation.ts';
import { serviceCidrController } from './service-cidr/controller.ts';
import {
  type ServiceAllocationOptions,
  serviceAllocationController,
} from './service-allocation/controller.ts';

/** Settings of some controllers, beside their context. */
export interface CatalogSettings {
  readonly transport: Transport;
  /** PEM of the API server's CA; without it the root CA is not published. */
  readonly rootCa?: string;
  /** The most endpoints per slice, 1 to 1000; default 100 (`--max-endpoints-per-slice`). */
  readonly maxEndpointsPerSlice?: number;
  /** The most addresses to mirror per subset, 1 to 1000; default 1000 (`--mirroring-max-endpoints-per-subset`). */
  readonly mirroringMaxEndpointsPerSubset?: number;
  /** Milliseconds between the deletion of a namespace and the first pass over its content; default 5000. */
  readonly namespaceGracePeriod?: number;
  /** Checks the types of expressions; without it the status of policies is not written. */
  readonly checkPolicyTypes?: PolicyStatusOptions['checkTypes'];
  /** Simulated nodes and the controllers of workloads; absent: none. Never used next to a real cluster's. */
  readonly simulation?: NodesOptions & KubeletSettings;
  /** Which Services of type LoadBalancer are served, and how they are read. */
  readonly loadBalancer?: LoadBalancerOptions;
}

/**
 * The controllers of kube-controller-manager that service networking needs, by their names there. All are on by
 * default: this is the set that `servicenet up` runs.
 */
export function clusterControllers(options: CatalogSettings): readonly CatalogEntry[] {
  const { transport, rootCa, maxEndpointsPerSlice, mirroringMaxEndpointsPerSubset, simulation } = options;
  const { namespaceGracePeriod, checkPolicyTypes: checkTypes } = options;
  return [
    ...(simulation === undefined ? [] : simulationControllers(simulation)),
    specEntry(endpointsController),
    specEntry(endpointSlicesController(maxEndpointsPerSlice === undefined ? {} : { maxEndpointsPerSlice })),
    specEntry(
      endpointSliceMirroringController(
        mirroringMaxEndpointsPerSubset === undefined
          ? {}
          : { maxEndpointsPerSubset: mirroringMaxEndpointsPerSubset },
      ),
    ),
    specEntry(
      namespacesController({
        transport,
        ...(namespaceGracePeriod === undefined ? {} : { gracePeriodMs: namespaceGracePeriod }),
      }),
    ),
    specEntry(serviceAccountsController),
    ...(rootCa === undefined ? [] : [specEntry(rootCaPublisherController(rootCa))]),
    ...(checkTypes === undefined ? [] : [specEntry(policyStatusController({ transport, checkTypes }))]),
    specEntry(claimProtectionController),
    specEntry(serviceCidrController),
    specEntry(garbageCollectorController({ transport })),
    {
      // Off by default: it needs the AddressPool CRD (deploy/crds), which not every cluster has.
      ...specEntry(loadBalancerController(options.loadBalancer)),
      onByDefault: false,
    },
  ];
}

/** `service-allocation-controller`: on by default where it allocates, or where there is no other audit. */
export function serviceAllocation(options: ServiceAllocationOptions, onByDefault: boolean): CatalogEntry {
  return { ...specEntry(serviceAllocationController(options)), onByDefault };
}
