import { apiServiceStrategy } from './apiregistration/apiservice.ts';
import type { CertificateReader } from './certificates/certificate-reader.ts';
import { certificateSigningRequestStrategy } from './certificates/certificatesigningrequest.ts';
import { clusterTrustBundleStrategy } from './certificates/clustertrustbundle.ts';
import { podCertificateRequestStrategy, type MaySign } from './certificates/podcertificaterequest.ts';
import { csiDriverStrategy } from './storage/csidriver.ts';
import { csiNodeStrategy } from './storage/csinode.ts';
import { csiStorageCapacityStrategy } from './storage/csistoragecapacity.ts';
import { flowSchemaStrategy } from './flowcontrol/flowschema.ts';
import { sharedWithHpaV2 } from './autoscaling/horizontalpodautoscaler/conversion.ts';
import { horizontalPodAutoscalerStrategy } from './autoscaling/horizontalpodautoscaler/strategy.ts';
import { priorityClassStrategy } from './scheduling/priorityclass.ts';
import { priorityLevelStrategy, flowcontrolGroup } from './flowcontrol/prioritylevelconfiguration.ts';
import { rowsOf, type ResourceDefinition, allVerbs, type Strategy } from './generic/strategy.ts';
import { deviceClassStrategy } from './resource/deviceclass.ts';
import { deviceTaintRuleStrategy } from './resource/devicetaintrule.ts';
import { resourceClaimStrategy, type RefusalOf } from './resource/resourceclaim.ts';
import { resourceClaimTemplateStrategy } from './resource/resourceclaimtemplate.ts';
import { resourceSliceStrategy } from './resource/resourceslice.ts';
import { runtimeClassStrategy } from './node/runtimeclass.ts';
import { storageClassStrategy, volumeAttributesClassStrategy } from './storage/storageclass.ts';
import { storageVersionMigrationStrategy } from './storagemigration/storageversionmigration.ts';
import { volumeAttachmentStrategy } from './storage/volumeattachment.ts';
import type { Service } from '../objects/types/core.generated.ts';
import {
  mutatingBindingStrategy,
  mutatingPolicyStrategy,
  validatingBindingStrategy,
  validatingPolicyStrategy,
} from './admissionregistration/policy/strategy.ts';
import { configMapStrategy } from './core/configmap.ts';
import { controllerRevisionStrategy } from './apps/controllerrevision.ts';
import { cronJobStrategy } from './batch/cronjob.ts';
import { daemonSetStrategy } from './apps/daemonset.ts';
import { deploymentStrategy } from './apps/deployment.ts';
import { endpointsStrategy } from './core/endpoints.ts';
import { endpointSliceStrategy } from './discovery/endpointslice.ts';
import { eventFieldLabels, sharedWithCoreEvents, coreEventStrategy, newEventStrategy } from './core/event.ts';
import { ingressStrategy } from './networking/ingress.ts';
import { ingressClassStrategy } from './networking/ingressclass.ts';
import { type AddressBook, ipAddressStrategy } from './networking/ipaddress.ts';
import { jobStrategy } from './batch/job.ts';
import { leaseStrategy } from './coordination/lease.ts';
import { limitRangeStrategy } from './core/limitrange.ts';
import { namespaceStrategy } from './core/namespace.ts';
import { networkPolicyStrategy } from './networking/networkpolicy.ts';
import { nodeStrategy } from './core/node.ts';
import { persistentVolumeStrategy } from './core/persistentvolume.ts';
import { persistentVolumeClaimStrategy } from './core/persistentvolumeclaim.ts';
import { podStrategy } from './core/pod/strategy.ts';
import { podDisruptionBudgetStrategy } from './policy/poddisruptionbudget.ts';
import { podTemplateStrategy } from './core/podtemplate.ts';
import { type GrantChecks, roleBindingStrategy, roleStrategy } from './rbac/roles.ts';
import { replicaSetStrategy } from './apps/replicaset.ts';
import { replicationControllerStrategy } from './core/replicationcontroller.ts';
import { resourceQuotaStrategy } from './core/resourcequota/strategy.ts';
import { secretStrategy } from './core/secret.ts';
import type { ReviewAccess } from './route/custom-host.ts';
import { routeStrategy } from './route/strategy.ts';
import { serviceAccountStrategy } from './core/serviceaccount.ts';
import { serviceCidrStrategy } from './networking/servicecidr.ts';
import { statefulSetStrategy } from './apps/statefulset.ts';
import {
  mutatingWebhookStrategy,
  validatingWebhookStrategy,
} from './admissionregistration/webhookconfiguration.ts';

/** The kinds of nodes, scheduling, storage and clients, without Services and workloads. */

const cluster = { namespaced: false };

function clusterKinds(options: CatalogOptions): ResourceDefinition[] {
  return [
    ...autoscaling(),
    ...storage(),
    ...storageMigration(),
    ...classes(),
    ...flowcontrol(),
    ...certificates(options),
    ...devices(options),
    ...extension(),
  ];
}

function autoscaling(): ResourceDefinition[] {
  const about = { categories: ['all'], shortNames: ['hpa'] };
  const strategy = horizontalPodAutoscalerStrategy;
  const hash = 'qwQve8ut294=';
  const row = (version: string) => rowsOf('autoscaling', 'autoscaling', version);
  return [
    row('v2')('HorizontalPodAutoscaler', 'horizontalpodautoscalers', hash, strategy, about),
    row('v1')('HorizontalPodAutoscaler', 'horizontalpodautoscalers', hash, strategy, {
      ...about,
      storedAs: sharedWithHpaV2,
    }),
  ];
}

function storage(): ResourceDefinition[] {
  const row = rowsOf('storage.k8s.io', 'storage');
  const capacity = csiStorageCapacityStrategy;
  const attributes = volumeAttributesClassStrategy;
  return [
    row('CSIDriver', 'csidrivers', 'hL6j/rwBV5w=', csiDriverStrategy, cluster),
    row('CSINode', 'csinodes', 'Pe62DkZtjuo=', csiNodeStrategy, cluster),
    row('CSIStorageCapacity', 'csistoragecapacities', 'xeVl+2Ly1kE=', capacity),
    row('StorageClass', 'storageclasses', 'K+m6uJwbjGY=', storageClassStrategy, {
      ...cluster,
      shortNames: ['sc'],
    }),
    row('VolumeAttachment', 'volumeattachments', 'tJx/ezt6UDU=', volumeAttachmentStrategy, cluster),
    row('VolumeAttributesClass', 'volumeattributesclasses', 'tIjydgKBC5w=', attributes, {
      ...cluster,
      shortNames: ['vac'],
    }),
  ];
}

function storageMigration(): ResourceDefinition[] {
  const strategy = storageVersionMigrationStrategy;
  const row = rowsOf('storagemigration.k8s.io', 'storagemigration');
  return [row('StorageVersionMigration', 'storageversionmigrations', 'pCjmmKOkLy4=', strategy, cluster)];
}

function classes(): ResourceDefinition[] {
  return [
    rowsOf('scheduling.k8s.io', 'scheduling')(
      'PriorityClass',
      'priorityclasses',
      '1QwjyaZjj3Y=',
      priorityClassStrategy,
      { ...cluster, shortNames: ['pc'] },
    ),
    rowsOf('node.k8s.io', 'node')(
      'RuntimeClass',
      'runtimeclasses',
      'WQTu1GL3T2Q=',
      runtimeClassStrategy,
      cluster,
    ),
  ];
}

function flowcontrol(): ResourceDefinition[] {
  const row = rowsOf(flowcontrolGroup, 'flowcontrol');
  const plural = 'prioritylevelconfigurations';
  return [
    row('FlowSchema', 'flowschemas', 'GJVAJZSZBIw=', flowSchemaStrategy, cluster),
    row('PriorityLevelConfiguration', plural, 'Kir5PVfvNeI=', priorityLevelStrategy, cluster),
  ];
}

function certificates({ certificates: reader, maySign }: CatalogOptions): ResourceDefinition[] {
  const row = rowsOf('certificates.k8s.io', 'certificates');
  const requests = podCertificateRequestStrategy(reader, maySign);
  return [
    row(
      'CertificateSigningRequest',
      'certificatesigningrequests',
      '95fRKMXA+00=',
      certificateSigningRequestStrategy(reader),
      { ...cluster, shortNames: ['csr'] },
    ),
    row(
      'ClusterTrustBundle',
      'clustertrustbundles',
      'v5yhuVertL4=',
      clusterTrustBundleStrategy(reader),
      cluster,
    ),
    row('PodCertificateRequest', 'podcertificaterequests', 'wYA9yXQH8fg=', requests),
  ];
}

function devices({ refusalOf }: CatalogOptions): ResourceDefinition[] {
  const row = rowsOf('resource.k8s.io', 'resource');
  return [
    row('DeviceClass', 'deviceclasses', 'Yk2PTc1Ybxk=', deviceClassStrategy, cluster),
    row('DeviceTaintRule', 'devicetaintrules', 'i+85+TcIKpA=', deviceTaintRuleStrategy, cluster),
    row('ResourceClaim', 'resourceclaims', 'wgAZaHcZxUg=', resourceClaimStrategy(refusalOf)),
    row('ResourceClaimTemplate', 'resourceclaimtemplates', 'TuzjC49aUfM=', resourceClaimTemplateStrategy),
    row('ResourceSlice', 'resourceslices', 'KsC072WgaEY=', resourceSliceStrategy, cluster),
  ];
}

function extension(): ResourceDefinition[] {
  return [
    rowsOf('apiregistration.k8s.io', 'kube-aggregator.pkg.apis.apiregistration')(
      'APIService',
      'apiservices',
      'InPBPD7+PqM=',
      apiServiceStrategy,
      { ...cluster, categories: ['api-extensions'] },
    ),
  ];
}

/** The dependencies of the catalog. */
export interface CatalogOptions {
  readonly service: Strategy<Service>;
  readonly addresses: AddressBook;
  readonly certificates: CertificateReader;
  /** Whether a user may sign for a signer; without it anybody may. */
  readonly maySign?: MaySign | undefined;
  /** Who may allocate and report devices; without it anybody may. */
  readonly refusalOf?: RefusalOf | undefined;
  /** What writers of roles and bindings may grant; without it anything. */
  readonly grants?: GrantChecks | undefined;
  /** Asked by the rules of OpenShift's own kinds; without it they are not served. */
  readonly openshift?: ReviewAccess | undefined;
}

const inAll = { categories: ['all'] };
const inApiExtensions = { ...cluster, categories: ['api-extensions'] };

/** Every built-in resource with objects of its own; custom resources and reviews are elsewhere. */
export function builtInResources(options: CatalogOptions): ResourceDefinition[] {
  return [
    ...core(options),
    ...workloads(),
    ...networking(options),
    ...security(options),
    ...others(),
    ...clusterKinds(options),
    ...(options.openshift === undefined ? [] : openshift(options.openshift)),
  ];
}

/** The kinds that OpenShift's own API server has, without definitions. */
function openshift(review: ReviewAccess): ResourceDefinition[] {
  return [
    rowsOf('route.openshift.io', 'route')('Route', 'routes', 'jo1F7GfnXH4=', routeStrategy(review), {
      ...inAll,
      schema: 'com.github.openshift.api.route.v1.Route',
    }),
  ];
}

function core({ service }: CatalogOptions): ResourceDefinition[] {
  const row = rowsOf('', 'core');
  return [
    row('ConfigMap', 'configmaps', 'qFsyl6wFWjQ=', configMapStrategy, { shortNames: ['cm'] }),
    row('Endpoints', 'endpoints', 'fWeeMqaN/OA=', endpointsStrategy, {
      shortNames: ['ep'],
      deprecationWarning: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
    }),
    row('Event', 'events', 'r2yiGXH7wu8=', coreEventStrategy, { shortNames: ['ev'], uncached: true }),
    row('LimitRange', 'limitranges', 'EBKMFVe6cwo=', limitRangeStrategy, { shortNames: ['limits'] }),
    row('Namespace', 'namespaces', 'Q3oi5N2YM8M=', namespaceStrategy, {
      ...cluster,
      shortNames: ['ns'],
      verbs: allVerbs.filter((verb) => verb !== 'deletecollection'),
    }),
    row('Node', 'nodes', 'XwShjMxG9Fs=', nodeStrategy, { ...cluster, shortNames: ['no'] }),
    row('PersistentVolume', 'persistentvolumes', 'HN/zwEC+JgM=', persistentVolumeStrategy, {
      ...cluster,
      shortNames: ['pv'],
    }),
    row('PersistentVolumeClaim', 'persistentvolumeclaims', 'QWTyNDq0dC4=', persistentVolumeClaimStrategy, {
      shortNames: ['pvc'],
    }),
    row('Pod', 'pods', 'xPOwRZ+Yhw8=', podStrategy, {
      ...inAll,
      shortNames: ['po'],
      fieldAliases: new Map([['spec.host', 'spec.nodeName']]),
    }),
    row('PodTemplate', 'podtemplates', 'LIXB2x4IFpk=', podTemplateStrategy),
    row('ReplicationController', 'replicationcontrollers', 'Jond2If31h0=', replicationControllerStrategy, {
      ...inAll,
      shortNames: ['rc'],
    }),
    row('ResourceQuota', 'resourcequotas', '8uhSgffRX6w=', resourceQuotaStrategy, { shortNames: ['quota'] }),
    row('Secret', 'secrets', 'S6u1pOWzb84=', secretStrategy),
    row('ServiceAccount', 'serviceaccounts', 'pbx9ZvyFpBE=', serviceAccountStrategy, { shortNames: ['sa'] }),
    row('Service', 'services', '0/CO1lhkEBI=', service, { ...inAll, shortNames: ['svc'] }),
  ];
}

function workloads(): ResourceDefinition[] {
  const apps = rowsOf('apps', 'apps');
  const batch = rowsOf('batch', 'batch');
  return [
    apps('ControllerRevision', 'controllerrevisions', '85nkx63pcBU=', controllerRevisionStrategy),
    apps('DaemonSet', 'daemonsets', 'dd7pWHUlMKQ=', daemonSetStrategy, { ...inAll, shortNames: ['ds'] }),
    apps('Deployment', 'deployments', '8aSe+NMegvE=', deploymentStrategy, {
      ...inAll,
      shortNames: ['deploy'],
    }),
    apps('ReplicaSet', 'replicasets', 'P1RzHs8/mWQ=', replicaSetStrategy, { ...inAll, shortNames: ['rs'] }),
    apps('StatefulSet', 'statefulsets', 'H+vl74LkKdo=', statefulSetStrategy, {
      ...inAll,
      shortNames: ['sts'],
    }),
    batch('CronJob', 'cronjobs', 'sd5LIXh4Fjs=', cronJobStrategy, { ...inAll, shortNames: ['cj'] }),
    batch('Job', 'jobs', 'mudhfqk/qZY=', jobStrategy, inAll),
  ];
}

function networking({ addresses }: CatalogOptions): ResourceDefinition[] {
  const row = rowsOf('networking.k8s.io', 'networking');
  const discovery = rowsOf('discovery.k8s.io', 'discovery');
  return [
    discovery('EndpointSlice', 'endpointslices', 'qgS0xkrxYAI=', endpointSliceStrategy),
    row('IngressClass', 'ingressclasses', 'l/iqIbDgFyQ=', ingressClassStrategy, cluster),
    row('Ingress', 'ingresses', '39NQlfNR+bo=', ingressStrategy, { shortNames: ['ing'] }),
    row('IPAddress', 'ipaddresses', '3f/plJFChNE=', ipAddressStrategy(addresses), {
      ...cluster,
      shortNames: ['ip'],
    }),
    row('NetworkPolicy', 'networkpolicies', 'YpfwF18m1G8=', networkPolicyStrategy, {
      shortNames: ['netpol'],
    }),
    row('ServiceCIDR', 'servicecidrs', 'gNLvruQhW2g=', serviceCidrStrategy, cluster),
  ];
}

function security({ grants }: CatalogOptions): ResourceDefinition[] {
  const rbac = rowsOf('rbac.authorization.k8s.io', 'rbac');
  const row = rowsOf('admissionregistration.k8s.io', 'admissionregistration');
  return [
    rbac(
      'ClusterRoleBinding',
      'clusterrolebindings',
      '48tpQ8gZHFc=',
      roleBindingStrategy('clusterrolebindings', grants),
      cluster,
    ),
    rbac('ClusterRole', 'clusterroles', 'bYE5ZWDrJ44=', roleStrategy('clusterroles', grants), cluster),
    rbac('RoleBinding', 'rolebindings', 'eGsCzGH6b1g=', roleBindingStrategy('rolebindings', grants)),
    rbac('Role', 'roles', '7FuwZcIIItM=', roleStrategy('roles', grants)),
    row(
      'MutatingAdmissionPolicy',
      'mutatingadmissionpolicies',
      'mHCkTKpUTrE=',
      mutatingPolicyStrategy,
      inApiExtensions,
    ),
    row(
      'MutatingAdmissionPolicyBinding',
      'mutatingadmissionpolicybindings',
      'ZKgZT1uTmZ0=',
      mutatingBindingStrategy,
      inApiExtensions,
    ),
    row(
      'MutatingWebhookConfiguration',
      'mutatingwebhookconfigurations',
      'Sqi0GUgDaX0=',
      mutatingWebhookStrategy,
      inApiExtensions,
    ),
    row(
      'ValidatingAdmissionPolicy',
      'validatingadmissionpolicies',
      '6OxvlMmQ6is=',
      validatingPolicyStrategy,
      inApiExtensions,
    ),
    row(
      'ValidatingAdmissionPolicyBinding',
      'validatingadmissionpolicybindings',
      'v9715VZqakg=',
      validatingBindingStrategy,
      inApiExtensions,
    ),
    row(
      'ValidatingWebhookConfiguration',
      'validatingwebhookconfigurations',
      'B0wHjQmsGNk=',
      validatingWebhookStrategy,
      inApiExtensions,
    ),
  ];
}

function others(): ResourceDefinition[] {
  return [
    rowsOf('coordination.k8s.io', 'coordination')('Lease', 'leases', 'gqkMMb/YqFM=', leaseStrategy),
    rowsOf('events.k8s.io', 'events')('Event', 'events', 'r2yiGXH7wu8=', newEventStrategy, {
      shortNames: ['ev'],
      storedAs: sharedWithCoreEvents,
      uncached: true,
      fieldLabels: eventFieldLabels,
    }),
    rowsOf('policy', 'policy')(
      'PodDisruptionBudget',
      'poddisruptionbudgets',
      'EVWiDmWqyJw=',
      podDisruptionBudgetStrategy,
      { shortNames: ['pdb'] },
    ),
  ];
}
