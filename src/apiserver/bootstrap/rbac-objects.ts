import type { ClusterRole, PolicyRule, RoleBinding, Subject } from '../../objects/types/rbac.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { KubeObject, ObjectMeta } from '../../objects/meta.ts';
import { type WholeRule, policyRulesOf } from '../authorization/rbac.ts';
import { missingRules } from '../authorization/rule-cover.ts';
import type { ServerCore } from '../rest/server-core.ts';
import {
  type BootstrapBinding,
  type BootstrapRole,
  componentBindings,
  componentRoles,
  delegatedReviews,
  everything,
  namespaceBindings,
  namespaceRoles,
  read,
  type Row,
  ruleOf,
} from './component-roles.ts';
import { controllerBindings, controllerRoles } from './controller-roles.ts';
import { objectKey, PreconditionError, type StoredObject } from '../storage/storage.ts';
import { ensureObject } from './system-objects.ts';
import { rbacGroup } from '../../registry/rbac/roles.ts';

/** The default roles and bindings of a cluster with RBAC (`bootstrappolicy`), without those of features that are off. */

const write = 'create delete deletecollection patch update';
const certificates = 'certificates.k8s.io';
const aggregateTo = 'rbac.authorization.k8s.io/aggregate-to-';
const toAdmin = `${aggregateTo}admin`;
const toEdit = `${aggregateTo}edit`;
const toView = `${aggregateTo}view`;

function rulesOf(...rows: readonly Row[]): PolicyRule[] {
  return rows.map(ruleOf);
}

/** The rule to get URLs without resources, separated by spaces. */
function paths(urls: string): PolicyRule {
  return { verbs: ['get'], nonResourceURLs: urls.split(' ') };
}

/** ClusterRoles of users, of everybody, and of what asks a server about others. */
const userRoles: readonly BootstrapRole[] = [
  { name: 'cluster-admin', rules: [...rulesOf(['*', '*', '*']), { verbs: ['*'], nonResourceURLs: ['*'] }] },
  { name: 'admin', rules: [], aggregates: toAdmin },
  { name: 'edit', rules: [], aggregates: toEdit, partOf: toAdmin },
  { name: 'view', rules: [], aggregates: toView, partOf: toEdit },
  {
    name: 'system:aggregate-to-admin',
    partOf: toAdmin,
    rules: rulesOf(
      ['create', 'authorization.k8s.io', 'localsubjectaccessreviews'],
      [everything, 'rbac.authorization.k8s.io', 'rolebindings roles'],
    ),
  },
  {
    name: 'system:aggregate-to-edit',
    partOf: toEdit,
    rules: rulesOf(
      [read, 'core', 'pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy'],
      ['impersonate', 'core', 'serviceaccounts'],
      [write, 'core', 'pods pods/attach pods/exec pods/portforward pods/proxy'],
      ['create', 'core', 'pods/eviction'],
      [
        write,
        'core',
        'configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale ' +
          'secrets serviceaccounts services services/proxy',
      ],
      ['create', 'core', 'serviceaccounts/token'],
      [write, 'core events.k8s.io', 'events'],
      [
        write,
        'apps',
        'daemonsets deployments deployments/rollback deployments/scale ' +
          'replicasets replicasets/scale statefulsets statefulsets/scale',
      ],
      [write, 'autoscaling', 'horizontalpodautoscalers'],
      [write, 'batch', 'cronjobs jobs'],
      [
        write,
        'extensions',
        'daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies ' +
          'replicasets replicasets/scale replicationcontrollers/scale',
      ],
      [write, 'policy', 'poddisruptionbudgets'],
      [write, 'networking.k8s.io', 'ingresses networkpolicies'],
      [everything, 'coordination.k8s.io', 'leases'],
      [write, 'resource.k8s.io', 'resourceclaims resourceclaimtemplates'],
    ),
  },
  {
    name: 'system:aggregate-to-view',
    partOf: toView,
    rules: rulesOf(
      [
        read,
        'core',
        'configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods ' +
          'replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status',
      ],
      [
        read,
        'core',
        'bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status ' +
          'resourcequotas resourcequotas/status',
      ],
      [read, 'core', 'namespaces'],
      [read, 'core events.k8s.io', 'events'],
      [read, 'discovery.k8s.io', 'endpointslices'],
      [
        read,
        'apps',
        'controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status ' +
          'replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status',
      ],
      [read, 'autoscaling', 'horizontalpodautoscalers horizontalpodautoscalers/status'],
      [read, 'batch', 'cronjobs cronjobs/status jobs jobs/status'],
      [
        read,
        'extensions',
        'daemonsets daemonsets/status deployments deployments/scale deployments/status ' +
          'ingresses ingresses/status networkpolicies ' +
          'replicasets replicasets/scale replicasets/status replicationcontrollers/scale',
      ],
      [read, 'policy', 'poddisruptionbudgets poddisruptionbudgets/status'],
      [read, 'networking.k8s.io', 'ingresses ingresses/status networkpolicies'],
      [read, 'resource.k8s.io', 'resourceclaims resourceclaims/status resourceclaimtemplates'],
    ),
  },
  {
    name: 'system:discovery',
    rules: [
      paths('/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/'),
    ],
  },
  {
    name: 'system:basic-user',
    rules: rulesOf(
      ['create', 'authorization.k8s.io', 'selfsubjectaccessreviews selfsubjectrulesreviews'],
      ['create', 'authentication.k8s.io', 'selfsubjectreviews'],
    ),
  },
  { name: 'system:public-info-viewer', rules: [paths('/healthz /livez /readyz /version /version/')] },
  {
    name: 'system:monitoring',
    rules: [
      paths('/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz'),
      ...rulesOf(['get', 'core', 'nodes/metrics']),
    ],
  },
  { name: 'system:auth-delegator', rules: rulesOf(...delegatedReviews) },
  {
    name: 'system:service-account-issuer-discovery',
    rules: [
      paths(
        '/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/',
      ),
    ],
  },
  ...['nodeclient', 'selfnodeclient'].map((subresource) => ({
    name: `system:certificates.k8s.io:certificatesigningrequests:${subresource}`,
    rules: rulesOf(['create', certificates, `certificatesigningrequests/${subresource}`]),
  })),
  ...['kube-apiserver-client', 'kube-apiserver-client-kubelet', 'kubelet-serving', 'legacy-unknown'].map(
    (signer) => ({
      name: `system:certificates.k8s.io:${signer}-approver`,
      rules: rulesOf(['approve', certificates, 'signers', `kubernetes.io/${signer}`]),
    }),
  ),
];

const authenticated = 'system:authenticated';

const userBindings: readonly BootstrapBinding[] = [
  { name: 'cluster-admin', groups: ['system:masters'] },
  { name: 'system:discovery', groups: [authenticated] },
  { name: 'system:basic-user', groups: [authenticated] },
  { name: 'system:public-info-viewer', groups: [authenticated, 'system:unauthenticated'] },
  { name: 'system:monitoring', groups: ['system:monitoring'] },
  { name: 'system:service-account-issuer-discovery', groups: ['system:serviceaccounts'] },
];

const bootstrapRoles = [...userRoles, ...componentRoles, ...controllerRoles, ...namespaceRoles];
const bootstrapBindings = [
  ...userBindings,
  ...componentBindings,
  ...controllerBindings,
  ...namespaceBindings,
];

const routes = 'route.openshift.io';

/** The permissions for Routes that OpenShift adds to admin, edit and view (openshift-apiserver, `bootstrappolicy`). */
export const openshiftRoles: readonly BootstrapRole[] = [
  {
    name: 'system:openshift:aggregate-to-admin',
    partOf: toAdmin,
    rules: rulesOf(['update', routes, 'routes/status']),
  },
  {
    name: 'system:openshift:aggregate-to-edit',
    partOf: toEdit,
    rules: rulesOf([everything, routes, 'routes'], ['create', routes, 'routes/custom-host']),
  },
  {
    name: 'system:openshift:aggregate-to-view',
    partOf: toView,
    rules: rulesOf([read, routes, 'routes'], [read, routes, 'routes/status']),
  },
];

/**
 * Adds default rules and subjects to stored roles and bindings that lack them
 * (`component-helpers/auth/rbac/reconciliation`). PURE.
 */

/** Stored objects, read without validation. */
type StoredRole = KubeObject & Partial<ClusterRole>;
type StoredBinding = KubeObject & Partial<RoleBinding>;

const autoupdate = 'rbac.authorization.kubernetes.io/autoupdate';

/** True unless the object has `rbac.authorization.kubernetes.io/autoupdate: "false"`. */
function mayUpdate({ annotations = {} }: ObjectMeta): boolean {
  return !Object.hasOwn(annotations, autoupdate) || annotations[autoupdate] !== 'false';
}

/** The stored role with the rules, selectors, labels and annotations that it lacks; undefined when it lacks none. */
export function reconciledRole(stored: StoredRole, wanted: ClusterRole): StoredRole | undefined {
  if (!mayUpdate(stored.metadata)) return undefined;
  const missing = missingRules(policyRulesOf(stored), policyRulesOf(wanted)).map(storedRule);
  const selectors = stored.aggregationRule?.clusterRoleSelectors ?? [];
  const missingSelectors = (wanted.aggregationRule?.clusterRoleSelectors ?? []).filter(
    (selector) => !selectors.some((known) => jsonEqual(known, selector)),
  );
  const next: StoredRole = {
    ...stored,
    metadata: mergedMetadata(stored.metadata, wanted.metadata),
    ...(missing.length === 0 ? {} : { rules: [...(stored.rules ?? []), ...missing] }),
    ...(missingSelectors.length === 0
      ? {}
      : { aggregationRule: { clusterRoleSelectors: [...selectors, ...missingSelectors] } }),
  };
  return jsonEqual(next, stored) ? undefined : next;
}

/**
 * The stored binding with the subjects, labels and annotations that it lacks; undefined when it lacks none.
 * `recreate` when it binds another role, since a roleRef cannot be changed.
 */
export function reconciledBinding(
  stored: StoredBinding,
  wanted: RoleBinding,
): StoredBinding | 'recreate' | undefined {
  if (!mayUpdate(stored.metadata)) return undefined;
  if (!jsonEqual(stored.roleRef, wanted.roleRef)) return 'recreate';
  const subjects = stored.subjects ?? [];
  const missing = (wanted.subjects ?? []).filter(
    (subject) => !subjects.some((known) => isSameSubject(known, subject)),
  );
  const next: StoredBinding = {
    ...stored,
    metadata: mergedMetadata(stored.metadata, wanted.metadata),
    ...(missing.length === 0 ? {} : { subjects: [...subjects, ...missing] }),
  };
  return jsonEqual(next, stored) ? undefined : next;
}

function isSameSubject(a: Subject, b: Subject): boolean {
  return a.kind === b.kind && a.name === b.name && (a.namespace ?? '') === (b.namespace ?? '');
}

/** Stored values win over the defaults. */
function mergedMetadata(stored: ObjectMeta, wanted: ObjectMeta): ObjectMeta {
  return {
    ...stored,
    labels: { ...wanted.labels, ...stored.labels },
    annotations: { ...wanted.annotations, ...stored.annotations },
  };
}

/** The rule without empty lists. */
function storedRule({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: WholeRule): PolicyRule {
  return {
    verbs: [...verbs],
    ...(apiGroups.length === 0 ? {} : { apiGroups: [...apiGroups] }),
    ...(resources.length === 0 ? {} : { resources: [...resources] }),
    ...(resourceNames.length === 0 ? {} : { resourceNames: [...resourceNames] }),
    ...(nonResourceURLs.length === 0 ? {} : { nonResourceURLs: [...nonResourceURLs] }),
  };
}

/**
 * Creates the default roles and bindings, and adds to existing ones what they lack (kube-apiserver's
 * poststarthook/rbac/bootstrap-roles).
 *
 * @param more roles of the platform, in addition to those of Kubernetes.
 */
export async function ensureRbacObjects(core: ServerCore, more: readonly BootstrapRole[]): Promise<void> {
  await Promise.all([
    ...[...bootstrapRoles, ...more].map(async (role) => ensureRole(core, roleObject(role))),
    ...bootstrapBindings.map(async (binding) => ensureBinding(core, bindingObject(binding))),
  ]);
}

async function ensureRole(core: ServerCore, role: ClusterRole): Promise<void> {
  const { namespace = '' } = role.metadata;
  const plural = namespace === '' ? 'clusterroles' : 'roles';
  const stored = core.storage.getForUpdate(keyOf(plural, role));
  if (stored === undefined) await ensureObject(core, rbacGroup, plural, namespace, role);
  else await update(core, stored, reconciledRole(stored.object, role));
}

async function ensureBinding(core: ServerCore, binding: RoleBinding): Promise<void> {
  const { namespace = '' } = binding.metadata;
  const plural = namespace === '' ? 'clusterrolebindings' : 'rolebindings';
  const stored = core.storage.getForUpdate(keyOf(plural, binding));
  const next = stored === undefined ? undefined : reconciledBinding(stored.object, binding);
  if (stored !== undefined && next !== 'recreate') {
    await update(core, stored, next);
    return;
  }
  if (stored !== undefined) await commit(core, stored, undefined);
  await ensureObject(core, rbacGroup, plural, namespace, binding);
}

function keyOf(plural: string, { metadata: { name = '', namespace = '' } }: KubeObject): string {
  return objectKey(rbacGroup, plural, namespace, name);
}

async function update(core: ServerCore, stored: StoredObject, next: KubeObject | undefined): Promise<void> {
  if (next !== undefined) await commit(core, stored, next);
}

/** @param next undefined to delete. */
async function commit(core: ServerCore, stored: StoredObject, next: KubeObject | undefined): Promise<void> {
  try {
    await core.storage.commit([{ key: stored.key, expect: stored.revision, object: next }]);
  } catch (error) {
    // Conflict: the next start checks again.
    if (!(error instanceof PreconditionError)) throw error;
    core.log.warn({ object: stored.key }, 'cannot add to a bootstrap role or binding: it has just changed');
  }
}

function metadataOf({ name, namespace }: BootstrapRole | BootstrapBinding, label?: string): ObjectMeta {
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    labels: {
      'kubernetes.io/bootstrapping': 'rbac-defaults',
      ...(label === undefined ? {} : { [label]: 'true' }),
    },
    annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'true' },
  };
}

function roleObject(role: BootstrapRole): ClusterRole {
  const { rules, aggregates, partOf } = role;
  const metadata = metadataOf(role, partOf);
  if (aggregates === undefined) return { metadata, rules: structuredClone([...rules]) };
  return {
    metadata,
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [aggregates]: 'true' } }] },
    rules: null,
  };
}

function bindingObject(binding: BootstrapBinding): KubeObject & RoleBinding {
  const { name, role = name, namespace, groups = [], users = [], accounts = [] } = binding;
  const subjects: Subject[] = [
    ...groups.map((group) => ({ kind: 'Group', apiGroup: rbacGroup, name: group })),
    ...users.map((user) => ({ kind: 'User', apiGroup: rbacGroup, name: user })),
    ...accounts.map((account) => ({ kind: 'ServiceAccount', name: account, namespace: 'kube-system' })),
  ];
  return {
    metadata: metadataOf(binding),
    roleRef: { apiGroup: rbacGroup, kind: namespace === undefined ? 'ClusterRole' : 'Role', name: role },
    ...(subjects.length === 0 ? {} : { subjects }),
  };
}
