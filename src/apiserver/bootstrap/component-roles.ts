import type { PolicyRule } from '../../objects/types/rbac.generated.ts';

/**
 * - The roles of the components of a cluster other than controllers (`bootstrappolicy/policy.go`).
 * - Roles and RoleBindings in the system's namespaces (`bootstrappolicy/namespace_policy.go`).
 */

/** A policy rule: verbs, API groups (`core` for ""), resources and resource names, each separated by spaces. */
export type Row = readonly [verbs: string, groups: string, resources: string, names?: string];

/** The rule to write Events. */
export const eventWriters: Row = ['create patch update', 'core events.k8s.io', 'events'];
/** The verbs of a reader. */
export const read = 'get list watch';

/** The rule of a row. */
export function ruleOf([verbs, groups, resources, names]: Row): PolicyRule {
  return {
    verbs: verbs.split(' '),
    apiGroups: groups.split(' ').map((group) => (group === 'core' ? '' : group)),
    resources: resources.split(' '),
    ...(names === undefined ? {} : { resourceNames: names.split(' ') }),
  };
}

/** A default Role or ClusterRole. */
export interface BootstrapRole {
  readonly name: string;
  /** Absent for a ClusterRole. */
  readonly namespace?: string;
  readonly rules: readonly PolicyRule[];
  /** The label of the roles that are aggregated to this one. */
  readonly aggregates?: string;
  /** The label by which this role is aggregated to another one. */
  readonly partOf?: string;
}

/** A default RoleBinding or ClusterRoleBinding. */
export interface BootstrapBinding {
  readonly name: string;
  /** The name of the role; absent where it is that of the binding. */
  readonly role?: string;
  /** The namespace of the binding and the role; absent where both are cluster-scoped. */
  readonly namespace?: string;
  readonly groups?: readonly string[];
  readonly users?: readonly string[];
  /** ServiceAccounts in kube-system. */
  readonly accounts?: readonly string[];
}

/** To review tokens, and the access of their users. */
export const delegatedReviews: readonly Row[] = [
  ['create', 'authentication.k8s.io', 'tokenreviews'],
  ['create', 'authorization.k8s.io', 'subjectaccessreviews'],
];
/** All verbs. */
export const everything = 'create delete deletecollection get list patch update watch';
const readUpdate = 'get list patch update watch';

const rows: Readonly<Record<string, readonly Row[]>> = {
  'system:heapster': [
    [read, 'core', 'events namespaces nodes pods'],
    [read, 'extensions', 'deployments'],
  ],
  'system:cluster-trust-bundle-discovery': [[read, 'certificates.k8s.io', 'clustertrustbundles']],
  'system:kube-aggregator': [[read, 'core', 'endpoints services']],
  'system:kube-controller-manager': [
    eventWriters,
    ['create', 'coordination.k8s.io', 'leases'],
    ['get update', 'coordination.k8s.io', 'leases', 'kube-controller-manager'],
    ['create', 'core', 'secrets serviceaccounts'],
    ['delete', 'core', 'secrets'],
    ['get', 'core', 'configmaps namespaces secrets serviceaccounts'],
    ['update', 'core', 'secrets serviceaccounts'],
    ...delegatedReviews,
    ['list watch', '*', '*'],
    ['create', 'core', 'serviceaccounts/token'],
  ],
  'system:kube-dns': [['list watch', 'core', 'endpoints services']],
  'system:kube-scheduler': [
    eventWriters,
    ['create', 'coordination.k8s.io', 'leases'],
    ['get list update watch', 'coordination.k8s.io', 'leases', 'kube-scheduler'],
    [everything, 'coordination.k8s.io', 'leasecandidates'],
    [read, 'core', 'nodes'],
    ['delete get list watch', 'core', 'pods'],
    ['create', 'core', 'bindings pods/binding'],
    ['patch update', 'core', 'pods/status'],
    [read, 'core', 'replicationcontrollers services'],
    [read, 'apps extensions', 'replicasets'],
    [read, 'apps', 'statefulsets'],
    [read, 'policy', 'poddisruptionbudgets'],
    [read, 'core', 'persistentvolumeclaims persistentvolumes'],
    ...delegatedReviews,
    [read, 'storage.k8s.io', 'csinodes'],
    [read, 'storage.k8s.io', 'volumeattachments'],
    [read, 'core', 'namespaces'],
    [read, 'storage.k8s.io', 'csidrivers'],
    [read, 'storage.k8s.io', 'csistoragecapacities'],
    [read, 'resource.k8s.io', 'deviceclasses'],
    [readUpdate, 'resource.k8s.io', 'resourceclaims'],
    [readUpdate, 'resource.k8s.io', 'resourceclaims/status'],
    ['update', 'core', 'pods/finalizers'],
    [read, 'resource.k8s.io', 'resourceslices'],
    ['create delete', 'resource.k8s.io', 'resourceclaims'],
    [read, 'resource.k8s.io', 'devicetaintrules'],
    ['patch update', 'resource.k8s.io', 'resourceclaims/binding'],
  ],
  'system:kubelet-api-admin': [
    [read, 'core', 'nodes'],
    ['proxy', 'core', 'nodes'],
    ['*', 'core', 'nodes/log nodes/metrics nodes/proxy nodes/stats'],
    ['*', 'core', 'nodes/configz nodes/healthz nodes/pods'],
  ],
  'system:node': [
    ['create', 'authentication.k8s.io', 'tokenreviews'],
    ['create', 'authorization.k8s.io', 'localsubjectaccessreviews subjectaccessreviews'],
    [read, 'core', 'services'],
    ['create get list watch', 'core', 'nodes'],
    ['patch update', 'core', 'nodes/status'],
    ['patch update', 'core', 'nodes'],
    eventWriters,
    [read, 'core', 'pods'],
    ['create delete', 'core', 'pods'],
    ['patch update', 'core', 'pods/status'],
    ['create', 'core', 'pods/eviction'],
    [read, 'core', 'configmaps secrets'],
    ['get', 'core', 'persistentvolumeclaims persistentvolumes'],
    ['get', 'core', 'endpoints'],
    ['create get list watch', 'certificates.k8s.io', 'certificatesigningrequests'],
    ['create delete get patch update', 'coordination.k8s.io', 'leases'],
    ['get', 'storage.k8s.io', 'volumeattachments'],
    ['create', 'core', 'serviceaccounts/token'],
    ['get patch update', 'core', 'persistentvolumeclaims/status'],
    [read, 'storage.k8s.io', 'csidrivers'],
    ['create delete get patch update', 'storage.k8s.io', 'csinodes'],
    [read, 'node.k8s.io', 'runtimeclasses'],
    ['get', 'resource.k8s.io', 'resourceclaims'],
    ['deletecollection', 'resource.k8s.io', 'resourceslices'],
    [read, 'certificates.k8s.io', 'clustertrustbundles'],
    ['get', 'core', 'serviceaccounts'],
    ['create get list watch', 'certificates.k8s.io', 'podcertificaterequests'],
  ],
  'system:node-bootstrapper': [
    ['create get list watch', 'certificates.k8s.io', 'certificatesigningrequests'],
  ],
  'system:node-problem-detector': [['get', 'core', 'nodes'], ['patch', 'core', 'nodes/status'], eventWriters],
  'system:node-proxier': [
    ['list watch', 'core', 'endpoints services'],
    [read, 'core', 'nodes'],
    eventWriters,
    ['list watch', 'networking.k8s.io', 'servicecidrs'],
    ['list watch', 'discovery.k8s.io', 'endpointslices'],
  ],
  'system:persistent-volume-provisioner': [
    ['create delete get list watch', 'core', 'persistentvolumes'],
    ['get list update watch', 'core', 'persistentvolumeclaims'],
    [read, 'storage.k8s.io', 'storageclasses'],
    ['watch', 'core', 'events'],
    eventWriters,
  ],
  'system:volume-scheduler': [
    [readUpdate, 'core', 'persistentvolumes'],
    [read, 'storage.k8s.io', 'storageclasses'],
    [readUpdate, 'core', 'persistentvolumeclaims'],
  ],
};

/** Cluster-scoped roles of components. */
export const componentRoles: readonly BootstrapRole[] = Object.entries(rows).map(([name, rules]) => ({
  name,
  rules: rules.map(ruleOf),
}));

/** Cluster-scoped bindings of components. */
export const componentBindings: readonly BootstrapBinding[] = [
  { name: 'system:cluster-trust-bundle-discovery', groups: ['system:serviceaccounts'] },
  { name: 'system:kube-dns', accounts: ['kube-dns'] },
  { name: 'system:node-proxier', users: ['system:kube-proxy'] },
  { name: 'system:volume-scheduler', users: ['system:kube-scheduler'] },
  { name: 'system:kube-controller-manager', users: ['system:kube-controller-manager'] },
  { name: 'system:kube-scheduler', users: ['system:kube-scheduler'] },
  // Without subjects: the Node authorizer authorizes nodes.
  { name: 'system:node' },
];

const leaderLocking: readonly Row[] = [
  ['create get list update watch', 'coordination.k8s.io', 'leases'],
  ['create get list update watch', 'coordination.k8s.io', 'leasecandidates'],
];
const reader = 'extension-apiserver-authentication-reader';
const controllerManager = 'system:kube-controller-manager';
const scheduler = 'system:kube-scheduler';

const namespaceRows: Readonly<Record<string, Readonly<Record<string, readonly Row[]>>>> = {
  'kube-public': {
    'system:controller:bootstrap-signer': [
      [read, 'core', 'configmaps'],
      ['update', 'core', 'configmaps', 'cluster-info'],
      eventWriters,
    ],
  },
  'kube-system': {
    [reader]: [[read, 'core', 'configmaps', 'extension-apiserver-authentication']],
    'system::leader-locking-kube-controller-manager': leaderLocking,
    'system::leader-locking-kube-scheduler': leaderLocking,
    'system:controller:bootstrap-signer': [[read, 'core', 'secrets']],
    'system:controller:cloud-provider': [['create get list watch', 'core', 'configmaps']],
    'system:controller:token-cleaner': [['delete get list watch', 'core', 'secrets'], eventWriters],
  },
};

/** The roles in kube-public and kube-system. */
export const namespaceRoles: readonly BootstrapRole[] = Object.entries(namespaceRows).flatMap(
  ([namespace, roles]) =>
    Object.entries(roles).map(([name, rules]) => ({ name, namespace, rules: rules.map(ruleOf) })),
);

/** Bind the role of a controller to its ServiceAccount. */
const controllerBindings = namespaceRoles
  .filter(({ name }) => name.startsWith('system:controller:'))
  .map(({ name, namespace }) => ({
    name,
    ...(namespace === undefined ? {} : { namespace }),
    accounts: [name.slice('system:controller:'.length)],
  }));

/** The bindings in kube-public and kube-system. */
export const namespaceBindings: readonly BootstrapBinding[] = [
  {
    name: `system::${reader}`,
    role: reader,
    namespace: 'kube-system',
    users: [controllerManager, scheduler],
  },
  {
    name: 'system::leader-locking-kube-controller-manager',
    namespace: 'kube-system',
    users: [controllerManager],
    accounts: ['kube-controller-manager', 'leader-election-controller'],
  },
  {
    name: 'system::leader-locking-kube-scheduler',
    namespace: 'kube-system',
    users: [scheduler],
    accounts: ['kube-scheduler'],
  },
  ...controllerBindings,
];
