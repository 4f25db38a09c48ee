import type { KubeObject, ObjectMeta } from '../../objects/meta.ts';
import { type Role, type RoleBinding, rbacGroup, type Subject } from '../../registry/rbac/rbac.ts';
import type { ServerCore } from '../rest/server-core.ts';
import {
  type BootstrapBinding,
  type BootstrapRole,
  bootstrapBindings,
  bootstrapRoles,
} from './rbac-rules.ts';
import { ensureObject } from './system-objects.ts';

/**
 * Makes the roles and bindings that RBAC starts with (kube-apiserver's poststarthook/rbac/bootstrap-roles). Those
 * that exist are left as they are.
 */
export async function ensureRbacObjects(core: ServerCore): Promise<void> {
  await Promise.all([
    ...bootstrapRoles.map(async (role) =>
      ensureObject(core, rbacGroup, 'clusterroles', '', roleObject(role)),
    ),
    ...bootstrapBindings.map(async (binding) =>
      ensureObject(core, rbacGroup, 'clusterrolebindings', '', bindingObject(binding)),
    ),
  ]);
}

function metadataOf(name: string, label?: string): ObjectMeta {
  return {
    name,
    labels: {
      'kubernetes.io/bootstrapping': 'rbac-defaults',
      ...(label === undefined ? {} : { [label]: 'true' }),
    },
    annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'true' },
  };
}

function roleObject({ name, rules, aggregates, partOf }: BootstrapRole): Role {
  const metadata = metadataOf(name, partOf);
  if (aggregates === undefined) return { metadata, rules: structuredClone([...rules]) };
  return {
    metadata,
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [aggregates]: 'true' } }] },
    rules: null,
  };
}

function bindingObject({
  name,
  groups = [],
  users = [],
  accounts = [],
}: BootstrapBinding): KubeObject & RoleBinding {
  const subjects: Subject[] = [
    ...groups.map((group) => ({ kind: 'Group', apiGroup: rbacGroup, name: group })),
    ...users.map((user) => ({ kind: 'User', apiGroup: rbacGroup, name: user })),
    ...accounts.map((account) => ({ kind: 'ServiceAccount', name: account, namespace: 'kube-system' })),
  ];
  return {
    metadata: metadataOf(name),
    roleRef: { apiGroup: rbacGroup, kind: 'ClusterRole', name },
    subjects,
  };
}
