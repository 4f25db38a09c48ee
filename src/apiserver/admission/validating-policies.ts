import { isRecord } from '../../objects/json.ts';
import { compileLabelSelector, matchesLabels } from '../../objects/selectors/labels.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { PolicyInput } from '../../registry/admissionregistration/expressions.ts';
import {
  type CommonPolicySpec,
  type PolicyBinding,
  evaluatePolicy,
  type PolicyRefusal,
} from '../../registry/admissionregistration/policy/evaluate.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import type { AdmissionAttributes, AdmissionPlugin, AdmissionReply } from '../rest/admission.ts';
import type { ServedResource } from '../rest/served-resource.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { listPrefix, objectKey, type StoredObject } from '../storage/storage.ts';
import { admissionInput, servedObject, versionedFor } from './webhooks/review.ts';
import { isExempt, type Matching, matchRules, matchSelectors } from './webhooks/hooks.ts';
import type {
  MatchResources,
  NamedRuleWithOperations,
  ValidatingAdmissionPolicy,
} from '../../objects/types/admissionregistration.generated.ts';
import { forbidden, StatusError } from '../../objects/status.ts';
import { runInSlices, TimeSlice } from '../../telemetry/time-slice.ts';

/** The policies that are bound to a write, their parameters and their input (apiserver `admission/plugin/policy/generic`). */

/** A binding that matches the write, with one of its parameters. */
export interface PolicyInvocation<P> {
  readonly policy: P;
  readonly binding: PolicyBinding;
  readonly resource: ServedResource;
  readonly params: unknown;
}

/** A policy that cannot be evaluated: its binding names no valid parameters. */
export interface Misconfigured<P> extends Omit<PolicyInvocation<P>, 'params' | 'resource'> {
  readonly why: string;
}

type Policy = KubeObject & { readonly spec?: CommonPolicySpec };

/** One of the two kinds of policies, with its bindings. */
export interface PolicyKind<P extends Policy> {
  /** Storage prefixes of the policies and of their bindings. */
  readonly policies: string;
  readonly bindings: string;
  isPolicy(object: KubeObject): object is P;
}

/** The kind of the policies (`MutatingAdmissionPolicy`), and its plural in paths. */
export function policyKind<P extends Policy>(kind: string, plural: string): PolicyKind<P> {
  const group = 'admissionregistration.k8s.io';
  return {
    policies: listPrefix(group, plural),
    bindings: listPrefix(group, `${kind.toLowerCase()}bindings`),
    isPolicy: (object): object is P => object.kind === kind,
  };
}

/**
 * Whether a write may match policies of a kind, by their rules alone. Every write is asked here, and `up` has a policy from
 * the start, that of Gateway API.
 */
export function mayMatch(
  core: ServerCore,
  { bindings, policies: prefix }: PolicyKind<Policy>,
  attributes: AdmissionAttributes,
): boolean {
  if (core.storage.count(bindings) === 0 || isExempt(attributes)) return false;
  return storedObjects(core, prefix).some((policy: Policy) => {
    const { resourceRules: rules = [], matchPolicy } = policy.spec?.matchConstraints ?? {};
    const matchesEquivalents = matchPolicy !== 'Exact';
    return rules.length === 0 || matchRules(core, { rules, matchesEquivalents }, attributes) !== undefined;
  });
}

/** What is stored is parsed whenever it is asked for; policies and bindings are kept, version by version. */
const parsed = new WeakMap<StoredObject, KubeObject>();

function storedObjects(core: ServerCore, prefix: string): KubeObject[] {
  return core.storage.list(prefix).items.map((stored) => {
    let object = parsed.get(stored);
    if (object === undefined) parsed.set(stored, (object = stored.object));
    return object;
  });
}

/** The policies that are bound to a write, in the order of their names, and those whose parameters are not found. */
export async function invocationsOf<P extends Policy>(
  core: ServerCore,
  kind: PolicyKind<P>,
  attributes: AdmissionAttributes,
): Promise<{ readonly invocations: PolicyInvocation<P>[]; readonly misconfigured: Misconfigured<P>[] }> {
  const policies = storedObjects(core, kind.policies).filter((object) => kind.isPolicy(object));
  const bindings = storedObjects(core, kind.bindings).filter(isBinding);
  const invocations: PolicyInvocation<P>[] = [];
  const misconfigured: Misconfigured<P>[] = [];
  for (const policy of policies) {
    const { spec } = policy;
    if (spec === undefined) continue;
    const resource = matchResources(core, spec.matchConstraints ?? {}, attributes);
    if (resource === undefined) continue;
    for (const binding of bindings) {
      if (binding.spec.policyName !== policy.metadata.name) continue;
      const match = binding.spec.matchResources;
      if (match !== undefined && matchResources(core, match, attributes) === undefined) continue;
      const params = await paramsOf(core, spec.paramKind, binding, attributes.namespace);
      if (typeof params === 'string') misconfigured.push({ policy, binding, why: params });
      else for (const param of params) invocations.push({ policy, binding, resource, params: param });
    }
  }
  return { invocations, misconfigured };
}

function isBinding(object: KubeObject): object is PolicyBinding {
  return isRecord(Reflect.get(object, 'spec'));
}

/** The variables of a policy's expressions. */
export function policyInput(
  core: ServerCore,
  { resource, params }: Pick<PolicyInvocation<unknown>, 'resource' | 'params'>,
  attributes: AdmissionAttributes,
  authorizer: Authorizer,
): PolicyInput {
  const { namespace } = attributes;
  const isNamespaced = resource.definition.namespaced && namespace !== '';
  const stored = isNamespaced
    ? core.storage.getForUpdate(objectKey('', 'namespaces', '', namespace))?.object
    : undefined;
  return {
    ...admissionInput(resource, attributes, authorizer),
    params,
    namespaceObject: stored ?? null,
  };
}

/** The parameters that a binding gives to its policy ([null] where it names none); a string says why there are none. */
async function paramsOf(
  core: ServerCore,
  paramKind: CommonPolicySpec['paramKind'],
  { spec }: PolicyBinding,
  requestNamespace: string,
): Promise<readonly unknown[] | string> {
  const reference = spec.paramRef;
  if (paramKind === undefined || reference === undefined) return [null];
  const { apiVersion = '', kind = '' } = paramKind;
  const resource = core.resources
    .all()
    .find((served) => served.apiVersion === apiVersion && served.definition.kind === kind);
  if (resource === undefined) {
    return `failed to find resource referenced by paramKind: '${apiVersion}, Kind=${kind}'`;
  }
  const { definition } = resource;
  const { group, plural } = definition.storedAs ?? definition;
  const { name = '', selector, namespace: named = '' } = reference;
  if (!definition.namespaced && named !== '') {
    return 'paramRef.namespace must not be provided for a cluster-scoped `paramKind`';
  }
  const namespace = definition.namespaced ? named || requestNamespace : '';
  if (definition.namespaced && namespace === '') {
    return 'cannot use namespaced paramRef in policy binding that matches cluster-scoped resources';
  }
  const stored =
    name === ''
      ? core.storage.list(listPrefix(group, plural, namespace)).items
      : [core.storage.getForUpdate(objectKey(group, plural, namespace, name)) ?? []].flat();
  const { conversion } = resource;
  const found = conversion === undefined ? stored : await conversion.read(stored);
  const labels = compileLabelSelector(selector ?? {});
  const params = found
    .filter(({ object }) => name !== '' || matchesLabels(labels, object.metadata.labels))
    .map(({ object }) => servedObject(resource, object));
  if (params.length > 0 || reference.parameterNotFoundAction === 'Allow') return params;
  return 'no params found for policy binding with `Deny` parameterNotFoundAction';
}

/**
 * The resource as which `matchConstraints` or `matchResources` match a request (apiserver
 * `admission/plugin/policy/matching`); undefined when they do not. `matchResources` without rules match everything.
 */
function matchResources(
  core: ServerCore,
  match: MatchResources,
  attributes: AdmissionAttributes,
): ServedResource | undefined {
  const common = {
    matchesEquivalents: match.matchPolicy !== 'Exact',
    namespaceSelector: compileLabelSelector(match.namespaceSelector ?? {}),
    objectSelector: compileLabelSelector(match.objectSelector ?? {}),
  };
  const matching = (rules: readonly NamedRuleWithOperations[]): Matching => ({
    ...common,
    rules: rules.filter(({ resourceNames }) => isNamed(resourceNames ?? [], attributes.name)),
  });
  const excluded = matching(match.excludeResourceRules ?? []);
  if (excluded.rules.length > 0 && matchRules(core, excluded, attributes) !== undefined) return undefined;
  const rules = match.resourceRules ?? [];
  const resource = rules.length === 0 ? attributes.resource : matchRules(core, matching(rules), attributes);
  return resource !== undefined && matchSelectors(core, matching(rules), attributes) ? resource : undefined;
}

function isNamed(names: readonly string[], name: string): boolean {
  return names.length === 0 || names.includes(name);
}

const policies = policyKind<ValidatingAdmissionPolicy>(
  'ValidatingAdmissionPolicy',
  'validatingadmissionpolicies',
);

/** HTTP codes of the reasons that a validation may name. */
const codes: ReadonlyMap<string, number> = new Map([
  ['Forbidden', 403],
  ['Unauthorized', 401],
  ['RequestEntityTooLarge', 413],
  ['Invalid', 422],
]);

/**
 * The plugin ValidatingAdmissionPolicy: evaluates the bound policies for writes; the `validationActions` of a binding
 * say what a refusal does (apiserver `admission/plugin/policy/validating`).
 */
export class ValidatingPolicies implements AdmissionPlugin {
  readonly name = 'ValidatingAdmissionPolicy';
  readonly #core: ServerCore;
  readonly #authorizer: Authorizer;

  constructor(core: ServerCore, authorizer: Authorizer) {
    this.#core = core;
    this.#authorizer = authorizer;
  }

  handles(attributes: AdmissionAttributes): boolean {
    return mayMatch(this.#core, policies, attributes);
  }

  /** @throws {StatusError} for the first refusal of a binding with the action Deny. */
  async validate(attributes: AdmissionAttributes, reply: AdmissionReply): Promise<void> {
    const { invocations, misconfigured } = await invocationsOf(this.#core, policies, attributes);
    const denied: StatusError[] = [];
    const deny = (policy: KubeObject, binding: KubeObject, refusal: PolicyRefusal) =>
      denied.push(refuse(attributes, policy, binding, refusal));
    for (const { policy, binding, why } of misconfigured) {
      if (policy.spec.failurePolicy === 'Ignore') continue;
      deny(policy, binding, { message: `failed to configure binding: ${why}`, reason: '' });
    }
    const slice = new TimeSlice();
    for (const invocation of invocations) {
      if (slice.isOver) await slice.yield();
      const { policy, binding } = invocation;
      const actions = binding.spec.validationActions ?? [];
      const versioned = await versionedFor(invocation.resource, attributes);
      const input = policyInput(this.#core, invocation, versioned, this.#authorizer);
      for (const refusal of await runInSlices(evaluatePolicy(policy.spec, input))) {
        if (refusal.always === true || actions.includes('Deny')) deny(policy, binding, refusal);
        if (refusal.always !== true && actions.includes('Warn')) {
          reply.warn(`Validation failed for ${nameOf(policy, binding)}: ${refusal.message}`);
        }
      }
    }
    const [first] = denied;
    if (first !== undefined) throw first;
  }
}

function nameOf(policy: KubeObject, binding: KubeObject): string {
  return `ValidatingAdmissionPolicy '${policy.metadata.name ?? ''}' with binding '${binding.metadata.name ?? ''}'`;
}

function refuse(
  { resource, name }: AdmissionAttributes,
  policy: KubeObject,
  binding: KubeObject,
  { message, reason }: PolicyRefusal,
): StatusError {
  const text = `${nameOf(policy, binding)} denied request: ${message}`;
  const { message: whole, details = {} } = forbidden(resource.groupResource, name, text, [{ message: text }]);
  const named = reason === '' ? 'Invalid' : reason;
  return new StatusError(codes.get(named) ?? 422, named, whole, { details });
}
