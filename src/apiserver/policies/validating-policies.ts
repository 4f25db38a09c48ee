import type { KubeObject } from '../../objects/meta.ts';
import { compileLabelSelector, matchesLabels } from '../../objects/labels.ts';
import { forbidden } from '../../objects/status-errors.ts';
import { StatusError } from '../../objects/status.ts';
import { judgePolicy, type PolicyInput, type Refusal } from '../../registry/admissionpolicy/judge.ts';
import type {
  PolicySpec,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
} from '../../registry/admissionpolicy/policy.ts';
import { loadRuleEngine } from '../../registry/cel/on-demand.ts';
import type { AdmissionAttributes, AdmissionPlugin, AdmissionReply } from '../rest/admission.ts';
import type { ServedResource } from '../rest/served-resource.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { listPrefix, objectKey } from '../storage/storage.ts';
import { isExempt } from '../webhooks/matching.ts';
import { requestOf, restOf, servedObject } from '../webhooks/review.ts';
import { matchResources } from './policy-match.ts';

const group = 'admissionregistration.k8s.io';
const policies = listPrefix(group, 'validatingadmissionpolicies');
const bindings = listPrefix(group, 'validatingadmissionpolicybindings');

/** Codes of the reasons that a validation may name. */
const codes: ReadonlyMap<string, number> = new Map([
  ['Forbidden', 403],
  ['Unauthorized', 401],
  ['RequestEntityTooLarge', 413],
  ['Invalid', 422],
]);

/**
 * The plugin ValidatingAdmissionPolicy: asks the policies that are bound about writes, and does with what they
 * refuse what the bindings say (apiserver `admission/plugin/policy/validating`).
 */
export class ValidatingPolicies implements AdmissionPlugin {
  readonly #core: ServerCore;

  constructor(core: ServerCore) {
    this.#core = core;
  }

  handles(attributes: AdmissionAttributes): boolean {
    return this.#core.storage.count(bindings) > 0 && !isExempt(attributes);
  }

  /** @throws {StatusError} for the first refusal of a binding with the action Deny. */
  async validate(attributes: AdmissionAttributes, reply: AdmissionReply): Promise<void> {
    await loadRuleEngine();
    const { storage } = this.#core;
    const bound = storage
      .list(bindings)
      .items.map(({ object }) => object)
      .filter(isBinding);
    const denied: StatusError[] = [];
    for (const { object: policy } of storage.list(policies).items) {
      if (!isPolicy(policy) || policy.spec === undefined) continue;
      const { name = '' } = policy.metadata;
      const resource = matchResources(this.#core, policy.spec.matchConstraints ?? {}, attributes);
      if (resource === undefined) continue;
      for (const binding of bound.filter(({ spec }) => spec?.policyName === name)) {
        const actions = binding.spec?.validationActions ?? [];
        for (const refusal of this.#judge(policy.spec, binding, resource, attributes)) {
          const who = `ValidatingAdmissionPolicy '${name}' with binding '${binding.metadata.name ?? ''}'`;
          if (actions.includes('Deny')) denied.push(refuse(attributes, who, refusal));
          if (actions.includes('Warn')) reply.warn(`Validation failed for ${who}: ${refusal.message}`);
        }
      }
    }
    const [first] = denied;
    if (first !== undefined) throw first;
  }

  #judge(
    spec: PolicySpec,
    binding: ValidatingAdmissionPolicyBinding,
    resource: ServedResource,
    attributes: AdmissionAttributes,
  ): Refusal[] {
    const match = binding.spec?.matchResources;
    if (match !== undefined && matchResources(this.#core, match, attributes) === undefined) return [];
    const input = this.#inputOf(resource, attributes);
    if (spec.paramKind === undefined) return judgePolicy(spec, input);
    const params = this.#params(spec.paramKind, binding, attributes.namespace);
    if (typeof params === 'string')
      return spec.failurePolicy === 'Ignore' ? [] : [{ message: params, reason: '' }];
    return params.flatMap((one) => judgePolicy(spec, { ...input, params: one }));
  }

  #inputOf(resource: ServedResource, attributes: AdmissionAttributes): PolicyInput {
    const { object, oldObject, body, namespace } = attributes;
    const isNamespaced = resource.definition.namespaced && namespace !== '';
    const stored = isNamespaced
      ? this.#core.storage.getForUpdate(objectKey('', 'namespaces', '', namespace))?.object
      : undefined;
    return {
      object: object === undefined ? null : servedObject(resource, object, body),
      oldObject: oldObject === undefined ? null : servedObject(resource, oldObject),
      request: { ...requestOf(resource, attributes), ...restOf(attributes) },
      params: null,
      namespaceObject: stored ?? null,
    };
  }

  /** The objects that a binding gives to its policy, or why there are none. */
  #params(
    { apiVersion = '', kind = '' }: NonNullable<PolicySpec['paramKind']>,
    { spec }: ValidatingAdmissionPolicyBinding,
    requestNamespace: string,
  ): readonly unknown[] | string {
    const reference = spec?.paramRef;
    if (reference === undefined) return [null];
    const resource = this.#core.resources
      .all()
      .find((served) => served.apiVersion === apiVersion && served.definition.kind === kind);
    if (resource === undefined) {
      return `failed to find resource referenced by paramKind: '${apiVersion}, Kind=${kind}'`;
    }
    const { definition } = resource;
    const { group: of, plural } = definition.storedAs ?? definition;
    const namespace = definition.namespaced ? (reference.namespace ?? requestNamespace) : '';
    const { name = '', selector } = reference;
    const found =
      name === ''
        ? this.#core.storage.list(listPrefix(of, plural, namespace)).items.map(({ object }) => object)
        : [this.#core.storage.getForUpdate(objectKey(of, plural, namespace, name))?.object];
    const labels = compileLabelSelector(selector ?? {});
    const params = found.flatMap((object) =>
      object !== undefined && (name !== '' || matchesLabels(labels, object.metadata.labels))
        ? [servedObject(resource, object)]
        : [],
    );
    if (params.length > 0) return params;
    if (reference.parameterNotFoundAction === 'Allow') return [];
    return 'failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction';
  }
}

function refuse(
  { resource, name }: AdmissionAttributes,
  who: string,
  { message, reason }: Refusal,
): StatusError {
  const text = `${who} denied request: ${message}`;
  const { message: whole, details = {} } = forbidden(resource.groupResource, name, text, [{ message: text }]);
  const named = reason === '' ? 'Invalid' : reason;
  return new StatusError(codes.get(named) ?? 422, named, whole, { details });
}

function isPolicy(object: KubeObject): object is ValidatingAdmissionPolicy {
  return object.kind === 'ValidatingAdmissionPolicy';
}

function isBinding(object: KubeObject): object is ValidatingAdmissionPolicyBinding {
  return object.kind === 'ValidatingAdmissionPolicyBinding';
}
