import type { MutatingAdmissionPolicy } from '../../objects/types/admissionregistration.generated.ts';
import { isRecord, jsonEqual, type JsonRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { textAt } from '../../objects/json.ts';
import { forbidden } from '../../objects/status.ts';
import { StatusError } from '../../objects/status.ts';
import {
  evaluateMutations,
  type Patch,
  patchOf,
} from '../../registry/admissionregistration/policy/mutate.ts';
import type { PolicyBinding } from '../../registry/admissionregistration/policy/evaluate.ts';
import { mergeValues } from '../patch/apply/typed-value.ts';
import { joinErrors, validateConfig } from '../patch/apply/config.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { PatchOperationError } from '../patch/json-patch.ts';
import { patchObject } from '../patch/patch.ts';
import type { AdmissionAttributes, AdmissionPlugin, AdmissionReply, BodyKind } from '../rest/admission.ts';
import type { Reinvocation } from '../rest/admission.ts';
import type { ServedResource } from '../rest/served-resource.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { runInSlices, TimeSlice } from '../../telemetry/time-slice.ts';
import { builtinSchema } from '../schema/builtin.ts';
import type { StructSchema, Schema } from '../schema/schema.ts';
import { requestedForm, servedObject, versionedFor } from './webhooks/review.ts';
import {
  mayMatch,
  type PolicyInvocation,
  invocationsOf,
  policyInput,
  policyKind,
} from './validating-policies.ts';
import { listItemsOf, membersOf, memberSchema } from '../patch/apply/typed-value.ts';

const policies = policyKind<MutatingAdmissionPolicy>('MutatingAdmissionPolicy', 'mutatingadmissionpolicies');

/** A policy that could not be evaluated, or whose patch could not be applied: `failurePolicy` decides. */
interface Failure {
  readonly policy: MutatingAdmissionPolicy;
  readonly binding: PolicyBinding;
  readonly why: string;
}

/** The plugin MutatingAdmissionPolicy: applies the bound policies to objects (KEP 3962). */
export class MutatingPolicies implements AdmissionPlugin {
  readonly name = 'MutatingAdmissionPolicy';
  readonly #core: ServerCore;
  readonly #authorizer: Authorizer;

  constructor(core: ServerCore, authorizer: Authorizer) {
    this.#core = core;
    this.#authorizer = authorizer;
  }

  handles(attributes: AdmissionAttributes): boolean {
    return mayMatch(this.#core, policies, attributes);
  }

  /**
   * Applies the policies in the order of their names.
   *
   * @throws {StatusError} 403 when one fails whose failurePolicy is Fail.
   */
  async mutate(
    attributes: AdmissionAttributes,
    _reply: AdmissionReply,
    rounds: Reinvocation,
  ): Promise<KubeObject | undefined> {
    const { invocations, misconfigured } = await invocationsOf(this.#core, policies, attributes);
    const failures: Failure[] = misconfigured.map((found) => ({
      ...found,
      why: `failed to configure binding: ${found.why}`,
    }));
    let { object } = attributes;
    const calls = rounds.of(this.name);
    calls.begin(object);
    const slice = new TimeSlice();
    for (const invocation of invocations) {
      const id = idOf(invocation);
      if (!calls.shouldCall(id)) continue;
      const versioned = await versionedFor(invocation.resource, { ...attributes, object });
      const next = await runInSlices(this.#apply(invocation, versioned, failures));
      if (next !== undefined && !jsonEqual(next, versioned.object)) {
        object = await requestedForm(attributes, next);
        calls.recordChange();
      }
      if (invocation.policy.spec.reinvocationPolicy === 'IfNeeded') calls.recordCall(id);
      if (slice.isOver) await slice.yield();
    }
    calls.end(object);
    const fatal = failures.filter(({ policy }) => policy.spec.failurePolicy !== 'Ignore');
    if (fatal.length > 0) throw refused(attributes, fatal);
    return object;
  }

  /** The object after all mutations of a policy; undefined when it does not match. Yields between mutations. */
  *#apply(
    invocation: PolicyInvocation<MutatingAdmissionPolicy>,
    attributes: AdmissionAttributes,
    failures: Failure[],
  ): Generator<undefined, KubeObject | undefined, undefined> {
    const { policy, binding, resource } = invocation;
    const spec = policy.spec;
    let { object } = attributes;
    const input = () => policyInput(this.#core, invocation, { ...attributes, object }, this.#authorizer);
    const meant = evaluateMutations(spec, input());
    if (typeof meant === 'string') failures.push({ policy, binding, why: meant });
    if (meant !== true) return undefined;
    for (const index of (spec.mutations ?? []).keys()) {
      if (object === undefined) break;
      yield;
      const patch = patchOf(spec, index, input());
      const next =
        typeof patch === 'string' ? patch : patchedObject(resource, object, patch, attributes.body);
      if (typeof next === 'string') failures.push({ policy, binding, why: next });
      else object = next;
    }
    return object;
  }
}

/** Identifies an invocation by policy, binding and parameters. */
function idOf({ policy, binding, params }: PolicyInvocation<MutatingAdmissionPolicy>): string {
  const paramsKey = [textAt(params, 'metadata', 'namespace'), textAt(params, 'metadata', 'name')];
  return JSON.stringify([policy.metadata.name, binding.metadata.name, ...paramsKey]);
}

/** The object with the patch, decoded and defaulted again; a string says why it cannot be applied. */
function patchedObject(
  resource: ServedResource,
  object: KubeObject,
  patch: Patch,
  body: BodyKind | undefined,
): KubeObject | string {
  if (body !== undefined && body.schema === undefined) return 'the object of a connection cannot be changed';
  const schema = body?.schema === undefined ? resource.schema : builtinSchema(body.schema);
  const served = servedObject(resource, object, body);
  const merged = patch.type === 'JSONPatch' ? served : mergedObject(schema, served, patch.config);
  if (typeof merged === 'string') return `error applying patch: ${merged}`;
  const operations = patch.type === 'JSONPatch' ? patch.operations : [];
  const { group, version, kind } = body ?? resource.definition;
  try {
    const { object: patched } = patchObject({
      type: 'json',
      bytes: Buffer.from(JSON.stringify(operations)),
      live: merged,
      expected: { group, version, kind, schema },
      fieldValidation: 'Strict',
    });
    if (body !== undefined) return patched;
    resource.definition.strategy.setDefaults(patched);
    return resource.shared === undefined ? patched : resource.shared.toStored(patched);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    const { cause } = error;
    // A failed test of a patch leaves the object unchanged.
    if (cause instanceof PatchOperationError && cause.message.startsWith('testing')) return object;
    return `JSONPath: ${cause instanceof Error ? cause.message : error.message}`;
  }
}

/** The object with the fields of an apply configuration, without field ownership. */
function mergedObject(schema: StructSchema, served: KubeObject, patch: JsonRecord): KubeObject | string {
  const config = { ...patch, apiVersion: served.apiVersion, kind: served.kind };
  const faults = validateConfig(schema, config);
  if (faults.length > 0) return `failed to convert patch object to typed object: ${joinErrors(faults)}`;
  const atomics = findAtomics(schema, config);
  if (atomics.length > 0) {
    return `invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ${atomics.join(', ')}`;
  }
  const merged = mergeValues(schema, served, config);
  return isRecord(merged) ? { ...served, ...merged } : 'the result is no object';
}

function refused({ resource, name }: AdmissionAttributes, failures: readonly Failure[]): StatusError {
  const texts = failures.map(
    ({ policy, binding, why }) =>
      `policy '${policy.metadata.name ?? ''}' with binding '${binding.metadata.name ?? ''}' denied request: ${why}`,
  );
  const causes = texts.map((message) => ({ message }));
  const { details = {} } = forbidden(resource.groupResource, name, '', causes);
  return new StatusError(403, 'Invalid', texts[0] ?? '', { details });
}

/**
 * The paths at which a configuration sets an atomic list, map or object, such as `.spec.selector`. Patches of policies
 * may set none, since that would remove members that they do not name (apiserver `policy/mutating/patch/smd.go`
 * findAtomics).
 */
function findAtomics(schema: Schema, value: unknown, path = ''): string[] {
  if (schema.type === 'list') {
    if (!Array.isArray(value)) return [];
    const own = schema.listType === 'atomic' ? [path] : [];
    return [
      ...own,
      ...listItemsOf(value).flatMap((item, i) => findAtomics(schema.items, item, `${path}[${i}]`)),
    ];
  }
  if ((schema.type !== 'struct' && schema.type !== 'map') || typeof value !== 'object' || value === null) {
    return [];
  }
  const own = schema.atomic ? [path] : [];
  const members = Object.entries(membersOf(value)).flatMap(([name, member]) => {
    const type = schema.type === 'struct' ? memberSchema(schema, name) : undefined;
    return type === undefined ? [] : findAtomics(type, member, `${path}.${name}`);
  });
  return [...own, ...members];
}
