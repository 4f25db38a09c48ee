import type { KnownController } from './run.ts';

/** Controllers of kube-controller-manager that run in `up` and can run beside a cluster (`catalog.ts`). */
const clusterNames = [
  'endpoints-controller',
  'endpointslice-controller',
  'endpointslice-mirroring-controller',
  'namespace-controller',
  'serviceaccount-controller',
  'persistentvolumeclaim-protection-controller',
  'service-cidr-controller',
  'garbage-collector-controller',
] as const;
/** Those that only make sense in the process of the API server, whose authority and engine of CEL they use. */
const serverNames = [
  'root-ca-certificate-publisher-controller',
  'validatingadmissionpolicy-status-controller',
] as const;
/** Controllers of simulated nodes and workloads (`simulation.ts`). */
const simulationNames = [
  'node-lifecycle-controller',
  'default-scheduler',
  'kubelet',
  'taint-eviction-controller',
  'deployment-controller',
  'replicaset-controller',
  'replicationcontroller-controller',
  'statefulset-controller',
  'daemonset-controller',
  'job-controller',
  'cronjob-controller',
  'disruption-controller',
] as const;
/** Makes the checks of PodNetworkConnectivityChecks: in a cluster network, from Pods of it. */
export const checkerName = 'check-endpoints-controller';
/** Attaches Pods' further networks: the containers of Pods that ask for some wait for it. */
export const attachmentsName = 'network-attachment-controller';
/** Controllers of kinds of OpenShift's network, which run where these are served (`network-kinds.ts`). */
const networkKindNames = [
  'egress-ip-controller',
  'egress-firewall-controller',
  'egress-qos-controller',
  'egress-router-controller',
  checkerName,
  'connectivity-check-controller',
  attachmentsName,
] as const;
/** Works with a cloud in memory, so that it is for local clusters alone. */
const cloudPrivateIP = 'cloud-private-ip-controller';
/** For servers that have OpenShift's Routes of their own. */
const ingressToRoute = 'ingress-to-route-controller';
const loadBalancer = 'load-balancer-controller';
const serviceAllocation = 'service-allocation-controller';

/**
 * The controllers that `up` and `servicenet/testing` know. This table exists so that `--controllers` can be checked
 * before any of them is loaded.
 */
export function localControllers(cluster: {
  readonly nodes: number;
  readonly allocation: 'server' | 'controller';
  readonly platform: 'kubernetes' | 'openshift';
}): readonly KnownController[] {
  const simulation = cluster.nodes === 0 ? [] : simulationNames;
  return [
    ...[
      ...simulation,
      ...clusterNames,
      ...serverNames,
      ...networkKindNames,
      cloudPrivateIP,
      ...(cluster.platform === 'openshift' ? [ingressToRoute] : []),
      loadBalancer,
    ].map(on),
    // Our own server needs no audit.
    { name: serviceAllocation, onByDefault: cluster.allocation === 'controller' },
  ];
}

/** The controllers of `servicenet controller`. On by default are those that a cluster does not have. */
export function remoteControllers(): readonly KnownController[] {
  return [...[serviceAllocation, loadBalancer].map(on), ...[...clusterNames, ...networkKindNames].map(off)];
}

function on(name: string): KnownController {
  return { name, onByDefault: true };
}

function off(name: string): KnownController {
  return { name, onByDefault: false };
}
