import { isRecord, jsonEqual } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { forbidden, notFound } from '../../objects/status-errors.ts';
import { textAt } from '../../objects/read.ts';
import { rbacGroup } from '../../registry/rbac/rbac.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../rest/admission.ts';
import { isSuperuser, type PolicyRule, policyRulesOf, type RbacAuthorizer } from './rbac.ts';
import { describeRule, missingRules, quoted } from './rule-cover.ts';

const roles = new Set(['roles', 'clusterroles']);
const bindings = new Set(['rolebindings', 'clusterrolebindings']);
const everything: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'], resourceNames: [], nonResourceURLs: [] },
  { verbs: ['*'], apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: ['*'] },
];

/**
 * Nobody may grant what they do not have themselves (`pkg/registry/rbac/{role,rolebinding}/policybased`), unless
 * they have the verb `escalate` on the role, or `bind` for a binding to it.
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

  /** Checks after mutating webhooks and before the rules of the kind. @throws {StatusError} 403 */
  mutate(attributes: AdmissionAttributes): Promise<undefined> {
    return new Promise((resolve) => {
      const { plural } = attributes.resource.definition;
      if (roles.has(plural)) this.#checkRole(attributes);
      else if (bindings.has(plural)) this.#checkBinding(attributes);
      resolve(undefined);
    });
  }

  #checkRole(attributes: AdmissionAttributes): void {
    const { object, oldObject, resource, namespace, name, user } = attributes;
    if (object === undefined) return;
    const wanted = policyRulesOf(object);
    const aggregates = aggregationOf(object);
    const unchanged =
      oldObject !== undefined &&
      jsonEqual(wanted, policyRulesOf(oldObject)) &&
      jsonEqual(aggregates, aggregationOf(oldObject));
    if (unchanged || this.#may('escalate', attributes, resource.definition.plural, name, namespace)) return;
    this.#confirm(attributes, wanted);
    // Whoever labels a role may add anything to one that aggregates.
    if (aggregates === undefined || jsonEqual(aggregates, aggregationOf(oldObject))) return;
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
    if (object === undefined) return;
    if (oldObject !== undefined && jsonEqual(grantOf(object), grantOf(oldObject))) return;
    const kind = textAt(object, 'roleRef', 'kind');
    const name = textAt(object, 'roleRef', 'name');
    const plural = kind === 'ClusterRole' ? 'clusterroles' : 'roles';
    if (this.#may('bind', attributes, plural, name, namespace)) return;
    const rules = this.#rbac.rulesOfRole(kind, name, namespace);
    if (rules === undefined) throw notFound({ group: rbacGroup, resource: kind.toLowerCase() }, name);
    this.#confirm(attributes, rules);
  }

  #may(
    verb: string,
    { user }: AdmissionAttributes,
    resource: string,
    name: string,
    namespace: string,
  ): boolean {
    const attributes = { group: rbacGroup, resource, subresource: '', namespace, name };
    return this.#rbac.authorize(user, { verb, path: '', resource: attributes }).allowed;
  }

  #confirm({ user, namespace, resource, name }: AdmissionAttributes, wanted: readonly PolicyRule[]): void {
    const missing = missingRules(this.#rbac.rulesOf(user, namespace), wanted);
    if (missing.length === 0) return;
    const lines = [...new Set(missing.map(describeRule))].sort();
    const who = `user ${JSON.stringify(user.name)} (groups=${quoted(user.groups)})`;
    const why = `${who} is attempting to grant RBAC permissions not currently held:\n${lines.join('\n')}`;
    throw forbidden(resource.groupResource, name, why);
  }
}

function aggregationOf(object: KubeObject | undefined): unknown {
  const value: object = object ?? {};
  return isRecord(value) ? value['aggregationRule'] : undefined;
}

function grantOf(object: KubeObject): unknown {
  const value: object = object;
  return isRecord(value) ? [value['roleRef'], value['subjects']] : undefined;
}
