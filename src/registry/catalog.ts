import type { Service } from '../objects/types/core.generated.ts';
import {
  mutatingBindingStrategy,
  mutatingPolicyStrategy,
  validatingBindingStrategy,
  validatingPolicyStrategy,
} from './admissionregistration/admissionpolicy/strategy.ts';
import { clusterKinds } from './catalog-cluster.ts';
import { configMapStrategy } from './core/configmap/strategy.ts';
import { controllerRevisionStrategy } from './apps/controllerrevision/strategy.ts';
import { cronJobStrategy } from './batch/cronjob/strategy.ts';
import { daemonSetStrategy } from './apps/daemonset/strategy.ts';
import { deploymentStrategy } from './apps/deployment/strategy.ts';
import { endpointsStrategy } from './core/endpoints/strategy.ts';
import { endpointSliceStrategy } from './discovery/endpointslice/strategy.ts';
import { eventFieldLabels, sharedWithCoreEvents } from './core/event/event.ts';
import { coreEventStrategy, newEventStrategy } from './core/event/strategy.ts';
import { ingressStrategy } from './networking/ingress/strategy.ts';
import { ingressClassStrategy } from './networking/ingressclass/strategy.ts';
import { type AddressBook, ipAddressStrategy } from './networking/ipaddress/strategy.ts';
import { jobStrategy } from './batch/job/strategy.ts';
import { leaseStrategy } from './coordination/lease/strategy.ts';
import { limitRangeStrategy } from './core/limitrange/strategy.ts';
import { namespaceStrategy } from './core/namespace/strategy.ts';
import { networkPolicyStrategy } from './networking/networkpolicy/strategy.ts';
import { nodeStrategy } from './core/node/strategy.ts';
import { persistentVolumeClaimStrategy } from './core/persistentvolumeclaim/strategy.ts';
import { podStrategy } from './core/pod/strategy.ts';
import { podDisruptionBudgetStrategy } from './policy/poddisruptionbudget/strategy.ts';
import { podTemplateStrategy } from './core/podtemplate/strategy.ts';
import { clusterRoleBindingStrategy, roleBindingStrategy } from './rbac/binding.ts';
import { clusterRoleStrategy, roleStrategy } from './rbac/role.ts';
import { replicaSetStrategy } from './apps/replicaset/strategy.ts';
import { replicationControllerStrategy } from './core/replicationcontroller/strategy.ts';
import { resourceQuotaStrategy } from './core/resourcequota/strategy.ts';
import { secretStrategy } from './core/secret/strategy.ts';
import type { ReviewAccess } from './route/route/custom-host.ts';
import { routeStrategy } from './route/route/strategy.ts';
import { serviceAccountStrategy } from './core/serviceaccount/strategy.ts';
import { serviceCidrStrategy } from './networking/servicecidr/strategy.ts';
import { statefulSetStrategy } from './apps/statefulset/strategy.ts';
import { genericStrategy } from './generic/generic.ts';
import { nameIsDNSSubdomain } from '../objects/names.ts';
import { allVerbs, rowsOf } from './generic/resource-row.ts';
import type { ResourceDefinition, Strategy } from './generic/strategy.ts';
import {
  mutatingWebhookStrategy,
  validatingWebhookStrategy,
} from './admissionregistration/webhookconfiguration/strategy.ts';
import type { CertificateReader } from './certificates/certificatesigningrequest/strategy.ts';

/** The dependencies of the catalog. */
export interface CatalogOptions {
  readonly service: Strategy<Service>;
  readonly addresses: AddressBook;
  readonly certificates: CertificateReader;
  /** Asked by the rules of OpenShift's own kinds; without it they are not served. */
  readonly openshift?: ReviewAccess | undefined;
}

const inAll = { categories: ['all'] };
const cluster = { namespaced: false };
const persistentVolume = genericStrategy({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  hasStatus: true,
});
const extension = { ...cluster, categories: ['api-extensions'] };

/** Every built-in resource with objects of its own; custom resources and reviews are elsewhere. */
export function builtInResources(options: CatalogOptions): ResourceDefinition[] {
  return [
    ...core(options),
    ...workloads(),
    ...networking(options),
    ...security(),
    ...others(),
    ...clusterKinds(options.certificates),
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
    row('PersistentVolume', 'persistentvolumes', 'HN/zwEC+JgM=', persistentVolume, {
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

function security(): ResourceDefinition[] {
  const rbac = rowsOf('rbac.authorization.k8s.io', 'rbac');
  const row = rowsOf('admissionregistration.k8s.io', 'admissionregistration');
  return [
    rbac('ClusterRoleBinding', 'clusterrolebindings', '48tpQ8gZHFc=', clusterRoleBindingStrategy, cluster),
    rbac('ClusterRole', 'clusterroles', 'bYE5ZWDrJ44=', clusterRoleStrategy, cluster),
    rbac('RoleBinding', 'rolebindings', 'eGsCzGH6b1g=', roleBindingStrategy),
    rbac('Role', 'roles', '7FuwZcIIItM=', roleStrategy),
    row(
      'MutatingAdmissionPolicy',
      'mutatingadmissionpolicies',
      'mHCkTKpUTrE=',
      mutatingPolicyStrategy,
      extension,
    ),
    row(
      'MutatingAdmissionPolicyBinding',
      'mutatingadmissionpolicybindings',
      'ZKgZT1uTmZ0=',
      mutatingBindingStrategy,
      extension,
    ),
    row(
      'MutatingWebhookConfiguration',
      'mutatingwebhookconfigurations',
      'Sqi0GUgDaX0=',
      mutatingWebhookStrategy,
      extension,
    ),
    row(
      'ValidatingAdmissionPolicy',
      'validatingadmissionpolicies',
      '6OxvlMmQ6is=',
      validatingPolicyStrategy,
      extension,
    ),
    row(
      'ValidatingAdmissionPolicyBinding',
      'validatingadmissionpolicybindings',
      'v9715VZqakg=',
      validatingBindingStrategy,
      extension,
    ),
    row(
      'ValidatingWebhookConfiguration',
      'validatingwebhookconfigurations',
      'B0wHjQmsGNk=',
      validatingWebhookStrategy,
      extension,
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
