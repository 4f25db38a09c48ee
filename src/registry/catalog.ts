import type { Service } from '../objects/service.ts';
import { configMapStrategy } from './configmap/strategy.ts';
import { endpointsStrategy } from './endpoints/strategy.ts';
import { endpointSliceStrategy } from './endpointslice/strategy.ts';
import { eventFieldAliases, sharedWithCoreEvents } from './event/event.ts';
import { coreEventStrategy, newEventStrategy } from './event/strategy.ts';
import { genericStrategy, specChanges } from './generic.ts';
import { ingressStrategy } from './ingress/strategy.ts';
import { ingressClassStrategy } from './ingressclass/strategy.ts';
import { type AddressBook, ipAddressStrategy } from './ipaddress/strategy.ts';
import { leaseStrategy } from './lease/strategy.ts';
import { nameIsDNSSubdomain, nameIsPathSegment } from './names.ts';
import { namespaceStrategy } from './namespace/strategy.ts';
import { networkPolicyStrategy } from './networkpolicy/strategy.ts';
import { nodeStrategy } from './node/strategy.ts';
import { podStrategy } from './pod/strategy.ts';
import { secretStrategy } from './secret/strategy.ts';
import { serviceAccountStrategy } from './serviceaccount/strategy.ts';
import { serviceCidrStrategy } from './servicecidr/strategy.ts';
import type { ResourceDefinition, Strategy } from './strategy.ts';

/** What the catalog cannot make itself. */
export interface CatalogOptions {
  readonly service: Strategy<Service>;
  readonly addresses: AddressBook;
}

/** What differs from a plain namespaced kind of the core group. */
interface Row {
  group?: string;
  kind: string;
  plural: string;
  shortNames?: readonly string[];
  categories?: readonly string[];
  verbs?: readonly string[];
  clusterScoped?: boolean;
  /** First 8 bytes of SHA-256 over `<group>/<storage version>/<Kind>`, base64. */
  hash: string;
  strategy: Strategy;
  more?: Partial<ResourceDefinition>;
}

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const;
const namespaceVerbs = verbs.filter((verb) => verb !== 'deletecollection');

const apps = 'apps';
const batch = 'batch';
const networking = 'networking.k8s.io';
const rbac = 'rbac.authorization.k8s.io';
const admission = 'admissionregistration.k8s.io';
const all = ['all'];
const extensions = ['api-extensions'];

const namespaced = genericStrategy({ namespaced: true, nameRule: nameIsDNSSubdomain });
const withStatus = genericStrategy({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  hasStatus: true,
  generationChanges: specChanges,
});
const clusterWide = genericStrategy({ namespaced: false, nameRule: nameIsDNSSubdomain });
const role = genericStrategy({ namespaced: true, nameRule: nameIsPathSegment });
const clusterRole = genericStrategy({ namespaced: false, nameRule: nameIsPathSegment });

/** Every built-in resource with objects of its own; custom resources and reviews are elsewhere. */
export function builtInResources(options: CatalogOptions): ResourceDefinition[] {
  return [...coreRows(options), ...groupRows(options)].map(definition);
}

function coreRows({ service }: CatalogOptions): Row[] {
  return [
    {
      kind: 'ConfigMap',
      plural: 'configmaps',
      shortNames: ['cm'],
      hash: 'qFsyl6wFWjQ=',
      strategy: configMapStrategy,
    },
    {
      kind: 'Endpoints',
      plural: 'endpoints',
      shortNames: ['ep'],
      hash: 'fWeeMqaN/OA=',
      strategy: endpointsStrategy,
      more: {
        singular: 'endpoints',
        deprecationWarning: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
      },
    },
    {
      kind: 'Event',
      plural: 'events',
      shortNames: ['ev'],
      hash: 'r2yiGXH7wu8=',
      strategy: coreEventStrategy,
    },
    {
      kind: 'LimitRange',
      plural: 'limitranges',
      shortNames: ['limits'],
      hash: 'EBKMFVe6cwo=',
      strategy: namespaced,
    },
    {
      kind: 'Namespace',
      plural: 'namespaces',
      shortNames: ['ns'],
      verbs: namespaceVerbs,
      clusterScoped: true,
      hash: 'Q3oi5N2YM8M=',
      strategy: namespaceStrategy,
    },
    {
      kind: 'Node',
      plural: 'nodes',
      shortNames: ['no'],
      clusterScoped: true,
      hash: 'XwShjMxG9Fs=',
      strategy: nodeStrategy,
    },
    {
      kind: 'PersistentVolumeClaim',
      plural: 'persistentvolumeclaims',
      shortNames: ['pvc'],
      hash: 'QWTyNDq0dC4=',
      strategy: withStatus,
    },
    {
      kind: 'Pod',
      plural: 'pods',
      shortNames: ['po'],
      categories: all,
      hash: 'xPOwRZ+Yhw8=',
      strategy: podStrategy,
      more: { fieldAliases: new Map([['spec.host', 'spec.nodeName']]) },
    },
    { kind: 'PodTemplate', plural: 'podtemplates', hash: 'LIXB2x4IFpk=', strategy: namespaced },
    {
      kind: 'ReplicationController',
      plural: 'replicationcontrollers',
      shortNames: ['rc'],
      categories: all,
      hash: 'Jond2If31h0=',
      strategy: withStatus,
    },
    {
      kind: 'ResourceQuota',
      plural: 'resourcequotas',
      shortNames: ['quota'],
      hash: '8uhSgffRX6w=',
      strategy: withStatus,
    },
    { kind: 'Secret', plural: 'secrets', hash: 'S6u1pOWzb84=', strategy: secretStrategy },
    {
      kind: 'ServiceAccount',
      plural: 'serviceaccounts',
      shortNames: ['sa'],
      hash: 'pbx9ZvyFpBE=',
      strategy: serviceAccountStrategy,
    },
    {
      kind: 'Service',
      plural: 'services',
      shortNames: ['svc'],
      categories: all,
      hash: '0/CO1lhkEBI=',
      strategy: service,
    },
  ];
}

function groupRows({ addresses }: CatalogOptions): Row[] {
  return [
    {
      group: apps,
      kind: 'ControllerRevision',
      plural: 'controllerrevisions',
      hash: '85nkx63pcBU=',
      strategy: namespaced,
    },
    {
      group: apps,
      kind: 'DaemonSet',
      plural: 'daemonsets',
      shortNames: ['ds'],
      categories: all,
      hash: 'dd7pWHUlMKQ=',
      strategy: withStatus,
    },
    {
      group: apps,
      kind: 'Deployment',
      plural: 'deployments',
      shortNames: ['deploy'],
      categories: all,
      hash: '8aSe+NMegvE=',
      strategy: withStatus,
    },
    {
      group: apps,
      kind: 'ReplicaSet',
      plural: 'replicasets',
      shortNames: ['rs'],
      categories: all,
      hash: 'P1RzHs8/mWQ=',
      strategy: withStatus,
    },
    {
      group: apps,
      kind: 'StatefulSet',
      plural: 'statefulsets',
      shortNames: ['sts'],
      categories: all,
      hash: 'H+vl74LkKdo=',
      strategy: withStatus,
    },
    {
      group: batch,
      kind: 'CronJob',
      plural: 'cronjobs',
      shortNames: ['cj'],
      categories: all,
      hash: 'sd5LIXh4Fjs=',
      strategy: withStatus,
    },
    {
      group: batch,
      kind: 'Job',
      plural: 'jobs',
      categories: all,
      hash: 'mudhfqk/qZY=',
      strategy: withStatus,
    },
    {
      group: 'discovery.k8s.io',
      kind: 'EndpointSlice',
      plural: 'endpointslices',
      hash: 'qgS0xkrxYAI=',
      strategy: endpointSliceStrategy,
    },
    {
      group: networking,
      kind: 'IngressClass',
      plural: 'ingressclasses',
      clusterScoped: true,
      hash: 'l/iqIbDgFyQ=',
      strategy: ingressClassStrategy,
    },
    {
      group: networking,
      kind: 'Ingress',
      plural: 'ingresses',
      shortNames: ['ing'],
      hash: '39NQlfNR+bo=',
      strategy: ingressStrategy,
    },
    {
      group: networking,
      kind: 'IPAddress',
      plural: 'ipaddresses',
      shortNames: ['ip'],
      clusterScoped: true,
      hash: '3f/plJFChNE=',
      strategy: ipAddressStrategy(addresses),
    },
    {
      group: networking,
      kind: 'NetworkPolicy',
      plural: 'networkpolicies',
      shortNames: ['netpol'],
      hash: 'YpfwF18m1G8=',
      strategy: networkPolicyStrategy,
    },
    {
      group: networking,
      kind: 'ServiceCIDR',
      plural: 'servicecidrs',
      clusterScoped: true,
      hash: 'gNLvruQhW2g=',
      strategy: serviceCidrStrategy,
    },
    {
      group: 'coordination.k8s.io',
      kind: 'Lease',
      plural: 'leases',
      hash: 'gqkMMb/YqFM=',
      strategy: leaseStrategy,
    },
    {
      group: 'events.k8s.io',
      kind: 'Event',
      plural: 'events',
      shortNames: ['ev'],
      hash: 'r2yiGXH7wu8=',
      strategy: newEventStrategy,
      more: { storedAs: sharedWithCoreEvents, fieldAliases: eventFieldAliases },
    },
    {
      group: rbac,
      kind: 'ClusterRoleBinding',
      plural: 'clusterrolebindings',
      clusterScoped: true,
      hash: '48tpQ8gZHFc=',
      strategy: clusterRole,
    },
    {
      group: rbac,
      kind: 'ClusterRole',
      plural: 'clusterroles',
      clusterScoped: true,
      hash: 'bYE5ZWDrJ44=',
      strategy: clusterRole,
    },
    { group: rbac, kind: 'RoleBinding', plural: 'rolebindings', hash: 'eGsCzGH6b1g=', strategy: role },
    { group: rbac, kind: 'Role', plural: 'roles', hash: '7FuwZcIIItM=', strategy: role },
    {
      group: admission,
      kind: 'MutatingWebhookConfiguration',
      plural: 'mutatingwebhookconfigurations',
      categories: extensions,
      clusterScoped: true,
      hash: 'Sqi0GUgDaX0=',
      strategy: clusterWide,
    },
    {
      group: admission,
      kind: 'ValidatingWebhookConfiguration',
      plural: 'validatingwebhookconfigurations',
      categories: extensions,
      clusterScoped: true,
      hash: 'B0wHjQmsGNk=',
      strategy: clusterWide,
    },
    {
      group: 'policy',
      kind: 'PodDisruptionBudget',
      plural: 'poddisruptionbudgets',
      shortNames: ['pdb'],
      hash: 'EVWiDmWqyJw=',
      strategy: withStatus,
    },
  ];
}

function definition(row: Row): ResourceDefinition {
  const group = row.group ?? '';
  const package_ = group === '' ? 'core' : (group.split('.')[0] ?? group);
  return {
    group,
    version: 'v1',
    plural: row.plural,
    singular: row.kind.toLowerCase(),
    kind: row.kind,
    namespaced: row.clusterScoped !== true,
    shortNames: row.shortNames ?? [],
    categories: row.categories ?? [],
    verbs: row.verbs ?? verbs,
    schema: `io.k8s.api.${package_}.v1.${row.kind}`,
    strategy: row.strategy,
    storageVersionHash: row.hash,
    ...row.more,
  };
}
