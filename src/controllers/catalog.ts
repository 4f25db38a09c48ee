import type { Transport } from '../client/transport.ts';
import type { ControllerSpec } from '../runtime/key-loop.ts';
import type { KubeletSettings } from './kubelet/controller.ts';
import type { LoadBalancerOptions } from './load-balancer/controller.ts';
import type { NodesOptions } from './nodes/controller.ts';
import type { PolicyStatusOptions } from './policy-status/controller.ts';
import type { ServiceAllocationOptions } from './service-allocation/controller.ts';

/** Settings of some controllers, beside their context. */
export interface CatalogSettings {
  readonly transport: Transport;
  /** PEM of the API server's CA; without it the root CA is not published. */
  readonly rootCa?: string;
  /** The most endpoints per slice, 1 to 1000; default 100 (`--max-endpoints-per-slice`). */
  readonly maxEndpointsPerSlice?: number;
  /** The most addresses to mirror per subset, 1 to 1000; default 1000 (`--mirroring-max-endpoints-per-subset`). */
  readonly mirroringMaxEndpointsPerSubset?: number;
  /** Between the deletion of a namespace and the first pass over its content; default 5000. */
  readonly namespaceGracePeriodMs?: number;
  /** Checks the types of expressions; without it the status of policies is not written. */
  readonly checkPolicyTypes?: PolicyStatusOptions['checkTypes'];
  /** Simulated nodes and the controllers of workloads; absent: none. Never used next to a real cluster's. */
  readonly simulation?: NodesOptions & KubeletSettings;
  /** Which Services of type LoadBalancer are served, and how they are read. */
  readonly loadBalancer?: LoadBalancerOptions;
  /** Who allocates addresses and node ports; absent: the audit does not run. */
  readonly serviceAllocation?: Omit<ServiceAllocationOptions, 'transport'>;
}

/** A controller that `--controllers` can name. Nothing of it is loaded before {@link CatalogEntry.load}. */
export interface CatalogEntry<S = CatalogSettings> {
  readonly name: string;
  /**
   * Whether it runs without being asked for. In a cluster of our own all do, but `beside` only where the API server
   * leaves its work to controllers. Beside a real cluster, which has those of kube-controller-manager, `always` and
   * `beside` do.
   */
  readonly on: 'always' | 'beside' | 'asked';
  /** The setting without which it is not there. */
  readonly needs?: keyof S;
  /** The result makes its specification; undefined without what it needs. */
  load(): Promise<(settings: S) => ControllerSpec | undefined>;
}

/**
 * Loads the modules of these controllers.
 *
 * @returns what makes their specifications, without those whose settings are missing.
 */
export async function loadControllers<S>(
  entries: readonly CatalogEntry<S>[],
): Promise<(settings: S) => readonly ControllerSpec[]> {
  const loaded = await Promise.all(
    entries.map(async (entry) => ({ needs: entry.needs, make: await entry.load() })),
  );
  return (settings) =>
    loaded.flatMap(({ needs, make }) =>
      needs === undefined || settings[needs] !== undefined ? (make(settings) ?? []) : [],
    );
}

/** Workloads cause many Events. */
function simulated(spec: ControllerSpec): ControllerSpec {
  return { ...spec, hasEventBudget: true };
}

/**
 * The controllers of simulated nodes and workloads, those of kube-controller-manager that service networking needs, by
 * their names there, and ours. Those whose names begin `root-ca`, `kube-apiserver-serving` and `validatingadmissionpolicy` use the authority and
 * the engine of CEL of an API server in the same process.
 */
export const catalog: readonly CatalogEntry[] = [
  {
    name: 'node-lifecycle-controller',
    on: 'asked',
    needs: 'simulation',
    load: async () => {
      const { nodesController } = await import('./nodes/controller.ts');
      return ({ simulation }) => simulation && simulated(nodesController(simulation));
    },
  },
  {
    name: 'default-scheduler',
    on: 'asked',
    needs: 'simulation',
    load: async () => {
      const { schedulerController } = await import('./scheduler/controller.ts');
      return () => simulated(schedulerController);
    },
  },
  {
    name: 'kubelet',
    on: 'asked',
    needs: 'simulation',
    load: async () => {
      const { kubeletController } = await import('./kubelet/controller.ts');
      return ({ simulation }) => simulated(kubeletController(simulation));
    },
  },
  {
    name: 'taint-eviction-controller',
    on: 'asked',
    needs: 'simulation',
    load: async () => {
      const { taintEvictionController } = await import('./nodes/controller.ts');
      return () => simulated(taintEvictionController);
    },
  },
  {
    name: 'deployment-controller',
    on: 'asked',
    needs: 'simulation',
    load: async () => {
      const { deploymentsController } = await import('./workloads/deployments/controller.ts');
      return () => simulated(deploymentsController);
    },
  },
  {
    name: 'replicaset-controller',
    on: 'asked',
    needs: 'simulation',
    load: async () => {
      const { replicaSetsController } = await import('./workloads/replica-sets/controller.ts');
      return () => simulated(replicaSetsController);
    },
  },
  {
    name: 'replicationcontroller-controller',
    on: 'asked',
    needs: 'simulation',
    load: async () => {
      const { replicationControllersController } = await import('./workloads/replica-sets/controller.ts');
      return () => simulated(replicationControllersController);
    },
  },
  {
    name: 'statefulset-controller',
    on: 'asked',
    needs: 'simulation',
    load: async () => {
      const { statefulSetsController } = await import('./workloads/stateful-sets/controller.ts');
      return () => simulated(statefulSetsController);
    },
  },
  {
    name: 'daemonset-controller',
    on: 'asked',
    needs: 'simulation',
    load: async () => {
      const { daemonSetsController } = await import('./workloads/daemon-sets/controller.ts');
      return () => simulated(daemonSetsController);
    },
  },
  {
    name: 'job-controller',
    on: 'asked',
    needs: 'simulation',
    load: async () => {
      const { jobsController } = await import('./workloads/jobs/controller.ts');
      return () => simulated(jobsController);
    },
  },
  {
    name: 'cronjob-controller',
    on: 'asked',
    needs: 'simulation',
    load: async () => {
      const { cronJobsController } = await import('./workloads/cron-jobs/controller.ts');
      return () => simulated(cronJobsController);
    },
  },
  {
    name: 'disruption-controller',
    on: 'asked',
    needs: 'simulation',
    load: async () => {
      const { disruptionController } = await import('./disruption-budgets/controller.ts');
      return () => simulated(disruptionController);
    },
  },
  {
    name: 'horizontal-pod-autoscaler-controller',
    on: 'asked',
    needs: 'simulation',
    load: async () => {
      const { horizontalPodAutoscalerController } = await import('./horizontal-pod-autoscaler/controller.ts');
      return ({ transport }) => simulated(horizontalPodAutoscalerController({ transport }));
    },
  },
  {
    name: 'persistentvolume-binder-controller',
    on: 'asked',
    needs: 'simulation',
    load: async () => {
      const { persistentVolumesController } = await import('./persistent-volumes/controller.ts');
      return () => simulated(persistentVolumesController);
    },
  },
  {
    name: 'endpoints-controller',
    on: 'asked',
    load: async () => {
      const { endpointsController } = await import('./service-endpoints/endpoints/controller.ts');
      return () => endpointsController;
    },
  },
  {
    name: 'endpointslice-controller',
    on: 'asked',
    load: async () => {
      const { endpointSlicesController } = await import('./service-endpoints/slices/controller.ts');
      return ({ maxEndpointsPerSlice }) => endpointSlicesController(maxEndpointsPerSlice);
    },
  },
  {
    name: 'endpointslice-mirroring-controller',
    on: 'asked',
    load: async () => {
      const { endpointSliceMirroringController } =
        await import('./service-endpoints/endpoint-slice-mirroring/controller.ts');
      return ({ mirroringMaxEndpointsPerSubset }) =>
        endpointSliceMirroringController(mirroringMaxEndpointsPerSubset);
    },
  },
  {
    name: 'namespace-controller',
    on: 'asked',
    load: async () => {
      const { namespacesController } = await import('./namespaces/controller.ts');
      return ({ transport, namespaceGracePeriodMs }) =>
        namespacesController({ transport, gracePeriodMs: namespaceGracePeriodMs });
    },
  },
  {
    name: 'serviceaccount-controller',
    on: 'asked',
    load: async () => {
      const { serviceAccountsController } = await import('./service-accounts.ts');
      return () => serviceAccountsController;
    },
  },
  {
    name: 'persistentvolumeclaim-protection-controller',
    on: 'asked',
    load: async () => {
      const { claimProtectionController } = await import('./volume-claims.ts');
      return () => claimProtectionController;
    },
  },
  {
    name: 'ephemeral-volume-controller',
    on: 'asked',
    load: async () => {
      const { ephemeralVolumesController } = await import('./volume-claims.ts');
      return () => ephemeralVolumesController;
    },
  },
  {
    name: 'persistentvolume-protection-controller',
    on: 'asked',
    load: async () => {
      const { volumeProtectionController } = await import('./volume-claims.ts');
      return () => volumeProtectionController;
    },
  },
  {
    name: 'service-cidr-controller',
    on: 'asked',
    load: async () => {
      const { serviceCidrController } = await import('./service-cidr/controller.ts');
      return () => serviceCidrController;
    },
  },
  {
    name: 'garbage-collector-controller',
    on: 'asked',
    load: async () => {
      const { garbageCollectorController } = await import('./garbage-collection/controller.ts');
      return ({ transport }) => garbageCollectorController({ transport });
    },
  },
  {
    name: 'podcertificaterequest-cleaner-controller',
    on: 'asked',
    load: async () => {
      const { podCertificateCleanerController } = await import('./certificates.ts');
      return () => podCertificateCleanerController;
    },
  },
  {
    name: 'resourceclaim-controller',
    on: 'asked',
    load: async () => {
      const { resourceClaimsController } = await import('./resource-claims.ts');
      return () => resourceClaimsController;
    },
  },
  {
    name: 'storage-version-migrator-controller',
    on: 'asked',
    load: async () => {
      const { storageVersionMigratorController } = await import('./storage-version-migrator/controller.ts');
      return ({ transport }) => storageVersionMigratorController(transport);
    },
  },
  {
    name: 'root-ca-certificate-publisher-controller',
    on: 'asked',
    needs: 'rootCa',
    load: async () => {
      const { rootCaPublisherController } = await import('./certificates.ts');
      return ({ rootCa }) => (rootCa === undefined ? undefined : rootCaPublisherController(rootCa));
    },
  },
  {
    name: 'kube-apiserver-serving-clustertrustbundle-publisher-controller',
    on: 'asked',
    needs: 'rootCa',
    load: async () => {
      const { trustBundlePublisherController } = await import('./certificates.ts');
      return ({ rootCa }) => (rootCa === undefined ? undefined : trustBundlePublisherController(rootCa));
    },
  },
  {
    name: 'validatingadmissionpolicy-status-controller',
    on: 'asked',
    needs: 'checkPolicyTypes',
    load: async () => {
      const { policyStatusController } = await import('./policy-status/controller.ts');
      return ({ transport, checkPolicyTypes: checkTypes }) =>
        checkTypes && policyStatusController({ transport, checkTypes });
    },
  },
  {
    name: 'load-balancer-controller',
    on: 'always',
    load: async () => {
      const { loadBalancerController } = await import('./load-balancer/controller.ts');
      return ({ loadBalancer }) => loadBalancerController(loadBalancer);
    },
  },
  {
    name: 'service-allocation-controller',
    on: 'beside',
    needs: 'serviceAllocation',
    load: async () => {
      const { serviceAllocationController } = await import('./service-allocation/controller.ts');
      return ({ transport, serviceAllocation }) =>
        serviceAllocation && serviceAllocationController({ transport, ...serviceAllocation });
    },
  },
];
