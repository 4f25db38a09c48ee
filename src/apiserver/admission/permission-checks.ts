import { forbidden, notFound } from '../../objects/status.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../rest/admission.ts';
import { isSuperuser, type RbacAuthorizer, type WholeRule, policyRulesOf } from '../authorization/rbac.ts';
import { jsonEqual, listAt, textAt } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { describeRule, missingRules, quoted } from '../authorization/rule-cover.ts';
import { rbacGroup } from '../../registry/rbac/roles.ts';

/**
 * An update or an apply that creates its object also needs the right to create (apiserver
 * `endpoints/handlers/update.go`, withAuthorization).
 */
export class CreateOnUpdateCheck implements AdmissionPlugin {
  readonly #rbac: RbacAuthorizer;

  constructor(rbac: RbacAuthorizer) {
    this.#rbac = rbac;
  }

  handles({ operation, options, user }: AdmissionAttributes): boolean {
    const kind = options?.['kind'];
    return (
      operation === 'CREATE' && (kind === 'UpdateOptions' || kind === 'PatchOptions') && !isSuperuser(user)
    );
  }

  /** Runs after the rules of the kind and before other plugins validate. @throws {StatusError} 403 */
  validate({ resource, subresource, namespace, name, user }: AdmissionAttributes): Promise<void> {
    return new Promise((resolve) => {
      const { group, plural } = resource.definition;
      const access = { group, resource: plural, subresource, namespace, name };
      const { allowed, reason } = this.#rbac.authorize(user, { verb: 'create', path: '', resource: access });
      if (!allowed) throw forbidden(resource.groupResource, name, reason);
      resolve();
    });
  }
}

const roles = new Set(['roles', 'clusterroles']);
const bindings = new Set(['rolebindings', 'clusterrolebindings']);
const everything: readonly WholeRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'], resourceNames: [], nonResourceURLs: [] },
  { verbs: ['*'], apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: ['*'] },
];

/**
 * Users may only grant permissions that they have (`pkg/registry/rbac/{role,rolebinding}/policybased`), unless they
 * have the verb `escalate` on the role, or `bind` for a binding to it.
 */
export class EscalationCheck implements AdmissionPlugin {
  readonly #rbac: RbacAuthorizer;

  constructor(rbac: RbacAuthorizer) {
    this.#rbac = rbac;
  }

  handles({ resource: { definition }, operation, user }: AdmissionAttributes): boolean {
    if (definition.group !== rbacGroup || (operation !== 'CREATE' && operation !== 'UPDATE')) return false;
    return !isSuperuser(user);
  }

  /** Runs after mutating webhooks and before the rules of the kind. @throws {StatusError} 403 */
  mutate(attributes: AdmissionAttributes): Promise<undefined> {
    return new Promise((resolve) => {
      const { plural } = attributes.resource.definition;
      if (roles.has(plural)) this.#checkRole(attributes);
      else if (bindings.has(plural)) this.#checkBinding(attributes);
      resolve(undefined);
    });
  }

  #checkRole(attributes: AdmissionAttributes): void {
    const { object, oldObject, resource, namespace, name, operation, user } = attributes;
    if (object === undefined || changesOnlyGCFields(object, oldObject)) return;
    // The path of a POST has no name.
    const pathName = operation === 'CREATE' ? '' : name;
    if (this.#isAllowed('escalate', attributes, resource.definition.plural, pathName, namespace)) return;
    this.#confirmNoEscalation(attributes, policyRulesOf(object));
    // Users who can label a role can add any rule to an aggregating role.
    if (!aggregates(object) && !aggregates(oldObject)) return;
    if (missingRules(this.#rbac.rulesOf(user, ''), everything).length > 0) {
      throw forbidden(
        resource.groupResource,
        name,
        'must have cluster-admin privileges to use the aggregationRule',
      );
    }
  }

  #checkBinding(attributes: AdmissionAttributes): void {
    const { object, oldObject, namespace } = attributes;
    if (object === undefined || changesOnlyGCFields(object, oldObject)) return;
    const kind = textAt(object, 'roleRef', 'kind');
    const name = textAt(object, 'roleRef', 'name');
    const plural = kind === 'ClusterRole' ? 'clusterroles' : 'roles';
    if (this.#isAllowed('bind', attributes, plural, name, namespace)) return;
    const rules = this.#rbac.rulesOfRole(kind, name, namespace);
    if (rules === undefined) throw notFound({ group: rbacGroup, resource: kind.toLowerCase() }, name);
    this.#confirmNoEscalation(attributes, rules);
  }

  #isAllowed(
    verb: string,
    { user }: AdmissionAttributes,
    resource: string,
    name: string,
    namespace: string,
  ): boolean {
    const attributes = { group: rbacGroup, resource, subresource: '', namespace, name };
    return this.#rbac.authorize(user, { verb, path: '', resource: attributes }).allowed;
  }

  #confirmNoEscalation(
    { user, namespace, resource, name }: AdmissionAttributes,
    wanted: readonly WholeRule[],
  ): void {
    const missing = missingRules(this.#rbac.rulesOf(user, namespace), wanted);
    if (missing.length === 0) return;
    const lines = [...new Set(missing.map(describeRule))].sort();
    const subject = `user ${JSON.stringify(user.name)} (groups=${quoted(user.groups)})`;
    const why = `${subject} is attempting to grant RBAC permissions not currently held:\n${lines.join('\n')}`;
    throw forbidden(resource.groupResource, name, why);
  }
}

function aggregates(object: KubeObject | undefined): boolean {
  return listAt(object, 'aggregationRule', 'clusterRoleSelectors').length > 0;
}

/**
 * True when an update changes only owner references, finalizers and managed fields, as the garbage collector does
 * (`pkg/registry/rbac/helpers.go`, IsOnlyMutatingGCFields). Not labels: a label can add the rules of a role to one that
 * aggregates them.
 */
function changesOnlyGCFields(object: KubeObject, oldObject: KubeObject | undefined): boolean {
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
