import { forbidden, notFound, type StatusError } from '../../objects/status.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';
import { type GrantChecks, rbacGroup } from '../../registry/rbac/roles.ts';
import type { ClusterRole, RoleBinding } from '../../objects/types/rbac.generated.ts';
import type { AdmissionAttributes } from '../rest/admission.ts';
import { isSuperuser, type RbacAuthorizer, type WholeRule, policyRulesOf } from '../authorization/rbac.ts';
import { jsonEqual, listAt } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { describeRule, missingRules, quoted } from '../authorization/rule-cover.ts';

/**
 * Permissions that a write needs besides that of its verb. They are no plugins of admission: verbs and strategies call
 * them.
 */

/**
 * An update or an apply that creates its object also needs the right to create (apiserver
 * `endpoints/handlers/update.go`, withAuthorization).
 *
 * @throws {StatusError} 403
 */
export function checkCreateOnUpdate(
  rbac: RbacAuthorizer,
  { resource, subresource, namespace, name, user }: AdmissionAttributes,
): void {
  const { group, plural } = resource.definition;
  const access = { group, resource: plural, subresource, namespace, name };
  const { allowed, reason } = rbac.authorize(user, { verb: 'create', path: '', resource: access });
  if (!allowed) throw forbidden(resource.groupResource, name, reason);
}

/** Who deletes an object that cannot be read needs a verb of its own (apiserver `authorizeUnsafeDelete`). */
export function checkUnsafeDelete(
  rbac: RbacAuthorizer,
  { resource, namespace, name, user }: AdmissionAttributes,
): void {
  const { group, plural } = resource.definition;
  const access = { group, resource: plural, subresource: '', namespace, name };
  const verb = 'unsafe-delete-ignore-read-errors';
  const { allowed, reason } = rbac.authorize(user, { verb, path: '', resource: access });
  if (!allowed) {
    const why = `not permitted to do ${JSON.stringify(verb)}, reason: ${reason}`;
    throw forbidden(resource.groupResource, name, why);
  }
}

const everything: readonly WholeRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'], resourceNames: [], nonResourceURLs: [] },
  { verbs: ['*'], apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: ['*'] },
];

/** A write of a role or a binding, and who makes it. */
interface Grant {
  /** Plural of the written kind. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly user: UserInfo;
}

/**
 * Users may only grant permissions that they have (`pkg/registry/rbac/{role,rolebinding}/policybased`), unless they
 * have the verb `escalate` on the role, or `bind` for a binding to it.
 */
export class EscalationCheck implements GrantChecks {
  readonly #rbac: RbacAuthorizer;

  constructor(rbac: RbacAuthorizer) {
    this.#rbac = rbac;
  }

  checkRole(
    resource: string,
    role: ClusterRole,
    old: ClusterRole | undefined,
    user: UserInfo | undefined,
  ): void {
    if (user === undefined || isSuperuser(user) || changesOnlyGCFields(role, old)) return;
    const grant = grantOf(resource, role, old, user);
    // The path of a POST has no name.
    if (this.#isAllowed('escalate', grant, resource, old === undefined ? '' : grant.name)) return;
    this.#confirmNoEscalation(grant, policyRulesOf(role));
    // Users who can label a role can add any rule to an aggregating role.
    if (!aggregates(role) && !aggregates(old)) return;
    if (missingRules(this.#rbac.rulesOf(user, ''), everything).length > 0) {
      throw refused(grant, 'must have cluster-admin privileges to use the aggregationRule');
    }
  }

  checkBinding(
    resource: string,
    binding: RoleBinding,
    old: RoleBinding | undefined,
    user: UserInfo | undefined,
  ): void {
    if (user === undefined || isSuperuser(user) || changesOnlyGCFields(binding, old)) return;
    const grant = grantOf(resource, binding, old, user);
    const { kind, name } = binding.roleRef;
    const plural = kind === 'ClusterRole' ? 'clusterroles' : 'roles';
    if (this.#isAllowed('bind', grant, plural, name)) return;
    const rules = this.#rbac.rulesOfRole(kind, name, grant.namespace);
    if (rules === undefined) throw notFound({ group: rbacGroup, resource: kind.toLowerCase() }, name);
    this.#confirmNoEscalation(grant, rules);
  }

  #isAllowed(verb: string, { user, namespace }: Grant, resource: string, name: string): boolean {
    const access = { group: rbacGroup, resource, subresource: '', namespace, name };
    return this.#rbac.authorize(user, { verb, path: '', resource: access }).allowed;
  }

  #confirmNoEscalation(grant: Grant, wanted: readonly WholeRule[]): void {
    const { user, namespace } = grant;
    const missing = missingRules(this.#rbac.rulesOf(user, namespace), wanted);
    if (missing.length === 0) return;
    const lines = [...new Set(missing.map(describeRule))].sort();
    const subject = `user ${JSON.stringify(user.name)} (groups=${quoted(user.groups)})`;
    const why = `${subject} is attempting to grant RBAC permissions not currently held:\n${lines.join('\n')}`;
    throw refused(grant, why);
  }
}

/** Admission may have changed the namespace and the name of an object, which is refused later. */
function grantOf(
  resource: string,
  { metadata }: KubeObject,
  old: KubeObject | undefined,
  user: UserInfo,
): Grant {
  const { namespace = '', name = '' } = old?.metadata ?? metadata;
  return { resource, namespace, name, user };
}

function refused({ resource, name }: Grant, why: string): StatusError {
  return forbidden({ group: rbacGroup, resource }, name, why);
}

function aggregates(object: KubeObject | undefined): boolean {
  return listAt(object, 'aggregationRule', 'clusterRoleSelectors').length > 0;
}

/**
 * True when an update changes only owner references, finalizers and managed fields, as the garbage collector does
 * (`pkg/registry/rbac/helpers.go`, IsOnlyMutatingGCFields). Not labels: a label can add the rules of a role to one that
 * aggregates them.
 */
export function changesOnlyGCFields(object: KubeObject, oldObject: KubeObject | undefined): boolean {
  return oldObject !== undefined && jsonEqual(withoutGCFields(object), withoutGCFields(oldObject));
}

function withoutGCFields(object: KubeObject): unknown {
  const {
    ownerReferences: _owners,
    finalizers: _finalizers,
    managedFields: _fields,
    ...metadata
  } = object.metadata;
  return { ...object, metadata };
}
