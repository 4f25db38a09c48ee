/** The roles of the components of a cluster other than controllers (`bootstrappolicy/policy.go`). */
import {
  type BootstrapBinding,
  type BootstrapRole,
  eventWriters,
  read,
  type Row,
  ruleOf,
} from './rule-rows.ts';

const reviews: readonly Row[] = [
  ['create', 'authentication.k8s.io', 'tokenreviews'],
  ['create', 'authorization.k8s.io', 'subjectaccessreviews'],
];
const everything = 'create delete deletecollection get list patch update watch';
const readUpdate = 'get list patch update watch';

const rows: Readonly<Record<string, readonly Row[]>> = {
  'system:heapster': [
    [read, 'core', 'events namespaces nodes pods'],
    [read, 'extensions', 'deployments'],
  ],
  'system:kube-aggregator': [[read, 'core', 'endpoints services']],
  'system:kube-controller-manager': [
    eventWriters,
    ['create', 'coordination.k8s.io', 'leases'],
    ['get update', 'coordination.k8s.io', 'leases', 'kube-controller-manager'],
    ['create', 'core', 'secrets serviceaccounts'],
    ['delete', 'core', 'secrets'],
    ['get', 'core', 'configmaps namespaces secrets serviceaccounts'],
    ['update', 'core', 'secrets serviceaccounts'],
    ...reviews,
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
    ...reviews,
    [read, 'storage.k8s.io', 'csinodes'],
    [read, 'storage.k8s.io', 'volumeattachments'],
    [read, 'core', 'namespaces'],
    [read, 'storage.k8s.io', 'csidrivers'],
    [read, 'storage.k8s.io', 'csistoragecapacities'],
    [read, 'resource.k8s.io', 'deviceclasses'],
    [readUpdate, 'resource.k8s.io', 'resourceclaims'],
    [readUpdate, 'resource.k8s.io', 'resourceclaims/status'],
    [readUpdate, 'core', 'pods/finalizers'],
    [read, 'resource.k8s.io', 'resourceslices'],
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
    ['create patch update', 'core', 'events'],
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
    ['get', 'core', 'serviceaccounts'],
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
  { name: 'system:kube-dns', accounts: ['kube-dns'] },
  { name: 'system:node-proxier', users: ['system:kube-proxy'] },
  { name: 'system:volume-scheduler', users: ['system:kube-scheduler'] },
  { name: 'system:kube-controller-manager', users: ['system:kube-controller-manager'] },
  { name: 'system:kube-scheduler', users: ['system:kube-scheduler'] },
  // Without subjects: the Node authorizer authorizes nodes.
  { name: 'system:node' },
];
