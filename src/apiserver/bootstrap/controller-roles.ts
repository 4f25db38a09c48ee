/**
 * The roles of kube-controller-manager's controllers whose features are on by default, each bound to its ServiceAccount
 * in kube-system (`bootstrappolicy/controller_policy.go`).
 */
import {
  type BootstrapBinding,
  type BootstrapRole,
  eventWriters,
  read,
  type Row,
  ruleOf,
} from './component-roles.ts';

const apps = 'apps extensions';

const rows: Readonly<Record<string, readonly Row[]>> = {
  'attachdetach-controller': [
    ['list watch', 'core', 'persistentvolumeclaims persistentvolumes'],
    [read, 'core', 'nodes'],
    ['patch update', 'core', 'nodes/status'],
    ['list watch', 'core', 'pods'],
    eventWriters,
    ['create delete get list watch', 'storage.k8s.io', 'volumeattachments'],
    [read, 'storage.k8s.io', 'csidrivers'],
    [read, 'storage.k8s.io', 'csinodes'],
  ],
  'certificate-controller': [
    ['delete get list watch', 'certificates.k8s.io', 'certificatesigningrequests'],
    [
      'update',
      'certificates.k8s.io',
      'certificatesigningrequests/approval certificatesigningrequests/status',
    ],
    ['approve', 'certificates.k8s.io', 'signers', 'kubernetes.io/kube-apiserver-client-kubelet'],
    [
      'sign',
      'certificates.k8s.io',
      'signers',
      'kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown',
    ],
    ['create', 'authorization.k8s.io', 'subjectaccessreviews'],
    eventWriters,
  ],
  'clusterrole-aggregation-controller': [
    ['escalate get list patch update watch', 'rbac.authorization.k8s.io', 'clusterroles'],
  ],
  'cronjob-controller': [
    ['get list update watch', 'batch', 'cronjobs'],
    ['create delete get list patch update watch', 'batch', 'jobs'],
    ['update', 'batch', 'cronjobs/status'],
    ['update', 'batch', 'cronjobs/finalizers'],
    ['delete list watch', 'core', 'pods'],
    eventWriters,
  ],
  'daemon-set-controller': [
    [read, apps, 'daemonsets'],
    ['update', apps, 'daemonsets/status'],
    ['update', apps, 'daemonsets/finalizers'],
    ['list watch', 'core', 'nodes'],
    ['create delete list patch watch', 'core', 'pods'],
    ['create', 'core', 'pods/binding'],
    ['create delete get list patch update watch', 'apps', 'controllerrevisions'],
    eventWriters,
  ],
  'deployment-controller': [
    ['get list update watch', apps, 'deployments'],
    ['update', apps, 'deployments/status'],
    ['update', apps, 'deployments/finalizers'],
    ['create delete get list patch update watch', apps, 'replicasets'],
    ['get list update watch', 'core', 'pods'],
    eventWriters,
  ],
  'disruption-controller': [
    [read, apps, 'deployments'],
    [read, apps, 'replicasets'],
    [read, 'core', 'replicationcontrollers'],
    [read, 'policy', 'poddisruptionbudgets'],
    [read, 'apps', 'statefulsets'],
    ['update', 'policy', 'poddisruptionbudgets/status'],
    ['patch update', 'core', 'pods/status'],
    ['get', '*', '*/scale'],
    eventWriters,
  ],
  'endpoint-controller': [
    [read, 'core', 'pods services'],
    ['create delete get list update watch', 'core', 'endpoints'],
    ['create', 'core', 'endpoints/restricted'],
    eventWriters,
  ],
  'endpointslice-controller': [
    [read, 'core', 'nodes pods services'],
    ['update', 'core', 'services/finalizers'],
    ['create delete get list update watch', 'discovery.k8s.io', 'endpointslices'],
    eventWriters,
  ],
  'endpointslicemirroring-controller': [
    [read, 'core', 'endpoints services'],
    ['update', 'core', 'services/finalizers'],
    ['update', 'core', 'endpoints/finalizers'],
    ['create delete get list update watch', 'discovery.k8s.io', 'endpointslices'],
    eventWriters,
  ],
  'ephemeral-volume-controller': [
    [read, 'core', 'pods'],
    ['update', 'core', 'pods/finalizers'],
    ['create get list watch', 'core', 'persistentvolumeclaims'],
    eventWriters,
  ],
  'expand-controller': [
    ['get list patch update watch', 'core', 'persistentvolumes'],
    ['patch update', 'core', 'persistentvolumeclaims/status'],
    [read, 'core', 'persistentvolumeclaims'],
    eventWriters,
    ['get', 'core', 'services'],
  ],
  'generic-garbage-collector': [['delete get list patch update watch', '*', '*'], eventWriters],
  'horizontal-pod-autoscaler': [
    [read, 'autoscaling', 'horizontalpodautoscalers'],
    ['update', 'autoscaling', 'horizontalpodautoscalers/status'],
    ['get update', '*', '*/scale'],
    ['list watch', 'core', 'pods'],
    ['list watch', 'metrics.k8s.io', 'pods'],
    [read, 'custom.metrics.k8s.io', '*'],
    [read, 'external.metrics.k8s.io', '*'],
    eventWriters,
  ],
  'job-controller': [
    ['get list patch update watch', 'batch', 'jobs'],
    ['update', 'batch', 'jobs/status'],
    ['update', 'batch', 'jobs/finalizers'],
    ['create delete list patch watch', 'core', 'pods'],
    eventWriters,
  ],
  'legacy-service-account-token-cleaner': [
    ['get', 'core', 'configmaps', 'kube-apiserver-legacy-service-account-token-tracking'],
    ['delete patch', 'core', 'secrets'],
  ],
  'namespace-controller': [
    ['delete get list watch', 'core', 'namespaces'],
    ['update', 'core', 'namespaces/finalize namespaces/status'],
    ['delete deletecollection get list watch', '*', '*'],
  ],
  'node-controller': [
    ['delete get list patch update watch', 'core', 'nodes'],
    ['patch update', 'core', 'nodes/status'],
    ['patch update', 'core', 'pods/status'],
    ['delete get list watch', 'core', 'pods'],
    [read, 'coordination.k8s.io', 'leases'],
    eventWriters,
  ],
  'persistent-volume-binder': [
    ['create delete get list update watch', 'core', 'persistentvolumes'],
    ['update', 'core', 'persistentvolumes/status'],
    ['get list update watch', 'core', 'persistentvolumeclaims'],
    ['update', 'core', 'persistentvolumeclaims/status'],
    ['create delete get list watch', 'core', 'pods'],
    [read, 'storage.k8s.io', 'storageclasses'],
    ['list watch', 'core', 'nodes'],
    eventWriters,
    ['watch', 'core', 'events'],
    ['get', 'core', 'services'],
  ],
  'kube-apiserver-serving-clustertrustbundle-publisher': [
    ['attest', 'certificates.k8s.io', 'signers', 'kubernetes.io/kube-apiserver-serving'],
    ['create delete list update watch', 'certificates.k8s.io', 'clustertrustbundles'],
    eventWriters,
  ],
  podcertificaterequestcleaner: [['delete get list watch', 'certificates.k8s.io', 'podcertificaterequests']],
  'storage-version-migrator-controller': [
    ['list patch', '*', '*'],
    ['get', 'apiextensions.k8s.io', 'customresourcedefinitions'],
    ['patch', 'apiextensions.k8s.io', 'customresourcedefinitions/status'],
    ['update', 'storagemigration.k8s.io', 'storageversionmigrations/status'],
  ],
  'pod-garbage-collector': [
    ['delete list watch', 'core', 'pods'],
    [read, 'core', 'nodes'],
    ['patch', 'core', 'pods/status'],
  ],
  'pv-protection-controller': [['get list update watch', 'core', 'persistentvolumes'], eventWriters],
  'pvc-protection-controller': [
    ['get list update watch', 'core', 'persistentvolumeclaims'],
    ['update', 'core', 'persistentvolumeclaims/status'],
    [read, 'core', 'pods'],
    eventWriters,
  ],
  'replicaset-controller': [
    ['get list update watch', apps, 'replicasets'],
    ['update', apps, 'replicasets/status'],
    ['update', apps, 'replicasets/finalizers'],
    ['create delete list patch watch', 'core', 'pods'],
    eventWriters,
  ],
  'replication-controller': [
    ['get list update watch', 'core', 'replicationcontrollers'],
    ['update', 'core', 'replicationcontrollers/status'],
    ['update', 'core', 'replicationcontrollers/finalizers'],
    ['create delete list patch watch', 'core', 'pods'],
    eventWriters,
  ],
  'resource-claim-controller': [
    [read, 'core', 'pods'],
    ['update', 'core', 'pods/finalizers'],
    ['create delete get list watch', 'resource.k8s.io', 'resourceclaims'],
    ['patch update', 'resource.k8s.io', 'resourceclaims resourceclaims/status'],
    ['patch update', 'core', 'pods/status'],
    eventWriters,
  ],
  'resourcequota-controller': [
    ['list watch', '*', '*'],
    ['update', 'core', 'resourcequotas/status'],
    eventWriters,
  ],
  'root-ca-cert-publisher': [['create update', 'core', 'configmaps'], eventWriters],
  'route-controller': [['list watch', 'core', 'nodes'], ['patch', 'core', 'nodes/status'], eventWriters],
  'selinux-warning-controller': [
    eventWriters,
    [read, 'core', 'persistentvolumes'],
    [read, 'core', 'persistentvolumeclaims'],
    [read, 'core', 'pods'],
    [read, 'storage.k8s.io', 'csidrivers'],
  ],
  'service-account-controller': [['create', 'core', 'serviceaccounts'], eventWriters],
  'service-cidrs-controller': [
    ['get list patch update watch', 'networking.k8s.io', 'servicecidrs'],
    ['patch update', 'networking.k8s.io', 'servicecidrs/finalizers'],
    ['patch update', 'networking.k8s.io', 'servicecidrs/status'],
    [read, 'networking.k8s.io', 'ipaddresses'],
    eventWriters,
  ],
  'service-controller': [
    [read, 'core', 'services'],
    ['patch update', 'core', 'services/status'],
    ['list watch', 'core', 'nodes'],
    eventWriters,
  ],
  'statefulset-controller': [
    ['list watch', 'core', 'pods'],
    [read, 'apps', 'statefulsets'],
    ['update', 'apps', 'statefulsets/status'],
    ['update', 'apps', 'statefulsets/finalizers'],
    ['create delete get patch update', 'core', 'pods'],
    ['create delete get list patch update watch', 'apps', 'controllerrevisions'],
    ['create get list watch', 'core', 'persistentvolumeclaims'],
    ['delete update', 'core', 'persistentvolumeclaims'],
    ['update', 'core', 'pods/finalizers'],
    eventWriters,
  ],
  'ttl-after-finished-controller': [['delete get list watch', 'batch', 'jobs'], eventWriters],
  'ttl-controller': [['list patch update watch', 'core', 'nodes'], eventWriters],
  'validatingadmissionpolicy-status-controller': [
    [read, 'admissionregistration.k8s.io', 'validatingadmissionpolicies'],
    ['get patch update', 'admissionregistration.k8s.io', 'validatingadmissionpolicies/status'],
    eventWriters,
  ],
  'volumeattributesclass-protection-controller': [
    [read, 'core', 'persistentvolumeclaims'],
    [read, 'core', 'persistentvolumes'],
    ['get list update watch', 'storage.k8s.io', 'volumeattributesclasses'],
    eventWriters,
  ],
};

const prefix = 'system:controller:';

/** A ClusterRole for each controller. */
export const controllerRoles: readonly BootstrapRole[] = Object.entries(rows).map(([name, rules]) => ({
  name: prefix + name,
  rules: rules.map(ruleOf),
}));

/** Binds each role to the ServiceAccount of its controller. */
export const controllerBindings: readonly BootstrapBinding[] = Object.keys(rows).map((name) => ({
  name: prefix + name,
  accounts: [name],
}));
