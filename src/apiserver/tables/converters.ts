import {
  certificateSigningRequestsTable,
  clusterTrustBundlesTable,
  podCertificateRequestsTable,
} from './certificates.ts';
import {
  deviceTaintRulesTable,
  namesAndAgesTable,
  resourceClaimsTable,
  resourceSlicesTable,
} from './devices.ts';
import { horizontalPodAutoscalersTable, scalesTable } from './workloads.ts';
import { apiServicesTable } from './cluster.ts';
import {
  csiDriversTable,
  csiNodesTable,
  csiStorageCapacitiesTable,
  priorityClassesTable,
  runtimeClassesTable,
  storageClassesTable,
  storageVersionMigrationsTable,
  volumeAttachmentsTable,
  volumeAttributesClassesTable,
} from './storage.ts';
import {
  configMapsTable,
  eventsTable,
  leasesTable,
  namespacesTable,
  nodesTable,
  otherKindsTable,
  roleBindingsTable,
  secretsTable,
  serviceAccountsTable,
  webhookConfigurationsTable,
} from './cluster.ts';
import {
  customResourceDefinitionsTable,
  flowSchemasTable,
  priorityLevelConfigurationsTable,
} from './cluster.ts';
import {
  ingressClassesTable,
  ingressesTable,
  ipAddressesTable,
  networkPoliciesTable,
  serviceCidrsTable,
} from './networking.ts';
import { podsTable } from './pods.ts';
import {
  mutatingAdmissionPoliciesTable,
  policyBindingsTable,
  validatingAdmissionPoliciesTable,
} from './cluster.ts';
import { endpointsTable, endpointSlicesTable, servicesTable } from './networking.ts';
import { componentStatusesTable, persistentVolumeClaimsTable, persistentVolumesTable } from './storage.ts';
import { routesTable } from './networking.ts';
import type { TableConverter } from './table.ts';
import {
  controllerRevisionsTable,
  cronJobsTable,
  daemonSetsTable,
  deploymentsTable,
  jobsTable,
  podDisruptionBudgetsTable,
  podTemplatesTable,
  replicaSetsTable,
  replicationControllersTable,
  resourceQuotasTable,
  statefulSetsTable,
} from './workloads.ts';

/** By `<group>/<Kind>`. */
const converters: ReadonlyMap<string, TableConverter> = new Map([
  ['/ComponentStatus', componentStatusesTable],
  ['/ConfigMap', configMapsTable],
  ['/Endpoints', endpointsTable],
  ['/Event', eventsTable],
  ['/Namespace', namespacesTable],
  ['/Node', nodesTable],
  ['/PersistentVolume', persistentVolumesTable],
  ['/PersistentVolumeClaim', persistentVolumeClaimsTable],
  ['/Pod', podsTable],
  ['/PodTemplate', podTemplatesTable],
  ['/ReplicationController', replicationControllersTable],
  ['/ResourceQuota', resourceQuotasTable],
  ['/Secret', secretsTable],
  ['/Service', servicesTable],
  ['/ServiceAccount', serviceAccountsTable],
  ['admissionregistration.k8s.io/MutatingAdmissionPolicy', mutatingAdmissionPoliciesTable],
  ['admissionregistration.k8s.io/MutatingAdmissionPolicyBinding', policyBindingsTable],
  ['admissionregistration.k8s.io/MutatingWebhookConfiguration', webhookConfigurationsTable],
  ['admissionregistration.k8s.io/ValidatingAdmissionPolicy', validatingAdmissionPoliciesTable],
  ['admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding', policyBindingsTable],
  ['admissionregistration.k8s.io/ValidatingWebhookConfiguration', webhookConfigurationsTable],
  ['apiextensions.k8s.io/CustomResourceDefinition', customResourceDefinitionsTable],
  ['apiregistration.k8s.io/APIService', apiServicesTable],
  ['apps/ControllerRevision', controllerRevisionsTable],
  ['apps/DaemonSet', daemonSetsTable],
  ['apps/Deployment', deploymentsTable],
  ['apps/ReplicaSet', replicaSetsTable],
  ['apps/StatefulSet', statefulSetsTable],
  ['autoscaling/HorizontalPodAutoscaler', horizontalPodAutoscalersTable],
  ['autoscaling/Scale', scalesTable],
  ['batch/CronJob', cronJobsTable],
  ['batch/Job', jobsTable],
  ['certificates.k8s.io/CertificateSigningRequest', certificateSigningRequestsTable],
  ['certificates.k8s.io/ClusterTrustBundle', clusterTrustBundlesTable],
  ['certificates.k8s.io/PodCertificateRequest', podCertificateRequestsTable],
  ['coordination.k8s.io/Lease', leasesTable],
  ['discovery.k8s.io/EndpointSlice', endpointSlicesTable],
  ['events.k8s.io/Event', eventsTable],
  ['flowcontrol.apiserver.k8s.io/FlowSchema', flowSchemasTable],
  ['flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration', priorityLevelConfigurationsTable],
  ['networking.k8s.io/IPAddress', ipAddressesTable],
  ['networking.k8s.io/Ingress', ingressesTable],
  ['networking.k8s.io/IngressClass', ingressClassesTable],
  ['networking.k8s.io/NetworkPolicy', networkPoliciesTable],
  ['networking.k8s.io/ServiceCIDR', serviceCidrsTable],
  ['node.k8s.io/RuntimeClass', runtimeClassesTable],
  ['policy/PodDisruptionBudget', podDisruptionBudgetsTable],
  ['rbac.authorization.k8s.io/ClusterRoleBinding', roleBindingsTable],
  ['rbac.authorization.k8s.io/RoleBinding', roleBindingsTable],
  ['resource.k8s.io/DeviceClass', namesAndAgesTable],
  ['resource.k8s.io/DeviceTaintRule', deviceTaintRulesTable],
  ['resource.k8s.io/ResourceClaim', resourceClaimsTable],
  ['resource.k8s.io/ResourceClaimTemplate', namesAndAgesTable],
  ['resource.k8s.io/ResourceSlice', resourceSlicesTable],
  ['route.openshift.io/Route', routesTable],
  ['scheduling.k8s.io/PriorityClass', priorityClassesTable],
  ['storage.k8s.io/CSIDriver', csiDriversTable],
  ['storage.k8s.io/CSINode', csiNodesTable],
  ['storage.k8s.io/CSIStorageCapacity', csiStorageCapacitiesTable],
  ['storage.k8s.io/StorageClass', storageClassesTable],
  ['storage.k8s.io/VolumeAttachment', volumeAttachmentsTable],
  ['storage.k8s.io/VolumeAttributesClass', volumeAttributesClassesTable],
  ['storagemigration.k8s.io/StorageVersionMigration', storageVersionMigrationsTable],
]);

/** The converter of a built-in kind; the default one shows Name and Created At. */
export function tableConverter(group: string, kind: string): TableConverter {
  return converters.get(`${group}/${kind}`) ?? otherKindsTable;
}
