/**
 * Adds default rules and subjects to stored roles and bindings that lack them
 * (`component-helpers/auth/rbac/reconciliation`). PURE.
 */
import type { ClusterRole, PolicyRule, RoleBinding, Subject } from '../../objects/types/rbac.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { KubeObject, ObjectMeta } from '../../objects/meta.ts';

import { type WholeRule, policyRulesOf } from '../authorization/rbac.ts';
import { missingRules } from '../authorization/rule-cover.ts';

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
