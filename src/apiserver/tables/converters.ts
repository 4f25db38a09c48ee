import { horizontalPodAutoscalers, scales } from './autoscaling.ts';
import { apiServices, certificateSigningRequests } from './certificates.ts';
import {
  csiDrivers,
  csiNodes,
  csiStorageCapacities,
  priorityClasses,
  runtimeClasses,
  storageClasses,
  volumeAttachments,
  volumeAttributesClasses,
} from './classes.ts';
import {
  configMaps,
  events,
  leases,
  namespaces,
  nodes,
  otherKinds,
  roleBindings,
  secrets,
  serviceAccounts,
  webhookConfigurations,
} from './cluster.ts';
import { flowSchemas, priorityLevelConfigurations } from './flowcontrol.ts';
import { ingressClasses, ingresses, ipAddresses, networkPolicies, serviceCidrs } from './networking.ts';
import { pods } from './pods.ts';
import { mutatingAdmissionPolicies, policyBindings, validatingAdmissionPolicies } from './policies.ts';
import { endpoints, endpointSlices, services } from './services.ts';
import { componentStatuses, persistentVolumeClaims, persistentVolumes } from './storage.ts';
import type { TableConverter } from './table.ts';
import {
  controllerRevisions,
  cronJobs,
  daemonSets,
  deployments,
  jobs,
  podDisruptionBudgets,
  podTemplates,
  replicaSets,
  replicationControllers,
  resourceQuotas,
  statefulSets,
} from './workloads.ts';

/** By `<group>/<Kind>`. */
const converters: ReadonlyMap<string, TableConverter> = new Map([
  ['/ComponentStatus', componentStatuses],
  ['/ConfigMap', configMaps],
  ['/Endpoints', endpoints],
  ['/Event', events],
  ['/Namespace', namespaces],
  ['/Node', nodes],
  ['/PersistentVolume', persistentVolumes],
  ['/PersistentVolumeClaim', persistentVolumeClaims],
  ['/Pod', pods],
  ['/PodTemplate', podTemplates],
  ['/ReplicationController', replicationControllers],
  ['/ResourceQuota', resourceQuotas],
  ['/Secret', secrets],
  ['/Service', services],
  ['/ServiceAccount', serviceAccounts],
  ['admissionregistration.k8s.io/MutatingAdmissionPolicy', mutatingAdmissionPolicies],
  ['admissionregistration.k8s.io/MutatingAdmissionPolicyBinding', policyBindings],
  ['admissionregistration.k8s.io/MutatingWebhookConfiguration', webhookConfigurations],
  ['admissionregistration.k8s.io/ValidatingAdmissionPolicy', validatingAdmissionPolicies],
  ['admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding', policyBindings],
  ['admissionregistration.k8s.io/ValidatingWebhookConfiguration', webhookConfigurations],
  ['apiregistration.k8s.io/APIService', apiServices],
  ['apps/ControllerRevision', controllerRevisions],
  ['apps/DaemonSet', daemonSets],
  ['apps/Deployment', deployments],
  ['apps/ReplicaSet', replicaSets],
  ['apps/StatefulSet', statefulSets],
  ['autoscaling/HorizontalPodAutoscaler', horizontalPodAutoscalers],
  ['autoscaling/Scale', scales],
  ['batch/CronJob', cronJobs],
  ['batch/Job', jobs],
  ['certificates.k8s.io/CertificateSigningRequest', certificateSigningRequests],
  ['coordination.k8s.io/Lease', leases],
  ['discovery.k8s.io/EndpointSlice', endpointSlices],
  ['events.k8s.io/Event', events],
  ['flowcontrol.apiserver.k8s.io/FlowSchema', flowSchemas],
  ['flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration', priorityLevelConfigurations],
  ['networking.k8s.io/IPAddress', ipAddresses],
  ['networking.k8s.io/Ingress', ingresses],
  ['networking.k8s.io/IngressClass', ingressClasses],
  ['networking.k8s.io/NetworkPolicy', networkPolicies],
  ['networking.k8s.io/ServiceCIDR', serviceCidrs],
  ['node.k8s.io/RuntimeClass', runtimeClasses],
  ['policy/PodDisruptionBudget', podDisruptionBudgets],
  ['rbac.authorization.k8s.io/ClusterRoleBinding', roleBindings],
  ['rbac.authorization.k8s.io/RoleBinding', roleBindings],
  ['scheduling.k8s.io/PriorityClass', priorityClasses],
  ['storage.k8s.io/CSIDriver', csiDrivers],
  ['storage.k8s.io/CSINode', csiNodes],
  ['storage.k8s.io/CSIStorageCapacity', csiStorageCapacities],
  ['storage.k8s.io/StorageClass', storageClasses],
  ['storage.k8s.io/VolumeAttachment', volumeAttachments],
  ['storage.k8s.io/VolumeAttributesClass', volumeAttributesClasses],
]);

/** The table of a built-in kind; kinds without one of their own show Name and Created At. */
export function tableConverter(group: string, kind: string): TableConverter {
  return converters.get(`${group}/${kind}`) ?? otherKinds;
}
