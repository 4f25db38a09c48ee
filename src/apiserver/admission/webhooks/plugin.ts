import { isRecord, type JsonRecord, textAt, jsonEqual } from '../../../objects/json.ts';
import {
  StatusError,
  type StatusCause,
  type StatusDetails,
  badRequest,
  forbidden,
  internalError,
  errorMessage,
} from '../../../objects/status.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { matchConditions } from '../../../registry/admissionregistration/expressions.ts';
import type { Authorizer } from '../../authorization/authorizer.ts';
import { patchObject } from '../../patch/patch.ts';
import {
  admissionInput,
  admissionReview,
  requestedForm,
  reviewOf,
  servedObject,
  type ReviewResponse,
  reviewResponseOf,
  versionedFor,
} from './review.ts';
import type {
  AdmissionAttributes,
  AdmissionPlugin,
  AdmissionReply,
  BodyKind,
  Reinvocation,
} from '../../rest/admission.ts';
import type { ServedResource } from '../../rest/served-resource.ts';
import type { ServerCore } from '../../rest/server-core.ts';
import { builtinSchema } from '../../schema/builtin.ts';
import { readAnswer, createWebhookClient, UnusableWebhook, type WebhookNetwork } from './client.ts';
import {
  WebhookConfigurations,
  type Hook,
  type WebhookInvocation,
  isExempt,
  matchRules,
  matchSelectors,
} from './hooks.ts';

/** The error of a write that a webhook denied: the webhook's Status, with a valid code (`webhookerrors.ToStatusErr`). */
function deniedBy(webhook: string, result: JsonRecord): StatusError {
  const { code, reason, message, details } = result;
  const denied = `admission webhook ${JSON.stringify(webhook)} denied the request`;
  const why = textAt(message) || textAt(reason);
  // A denial is never a success, and clients accept no code above 599.
  const status = typeof code === 'number' && code >= 400 && code <= 599 ? Math.trunc(code) : 400;
  return new StatusError(
    status,
    textAt(reason),
    why === '' ? `${denied} without explanation` : `${denied}: ${why}`,
    isRecord(details) ? { details: detailsOf(details) } : {},
  );
}

function detailsOf(details: JsonRecord): StatusDetails {
  const { name, group, kind, uid, causes, retryAfterSeconds } = details;
  return {
    ...(textAt(name) === '' ? {} : { name: textAt(name) }),
    ...(textAt(group) === '' ? {} : { group: textAt(group) }),
    ...(textAt(kind) === '' ? {} : { kind: textAt(kind) }),
    ...(textAt(uid) === '' ? {} : { uid: textAt(uid) }),
    ...(Array.isArray(causes) ? { causes: causes.filter(isRecord).map(causeOf) } : {}),
    ...(typeof retryAfterSeconds === 'number' ? { retryAfterSeconds } : {}),
  };
}

function causeOf({ reason, message, field }: JsonRecord): StatusCause {
  return {
    ...(textAt(reason) === '' ? {} : { reason: textAt(reason) }),
    ...(textAt(message) === '' ? {} : { message: textAt(message) }),
    ...(textAt(field) === '' ? {} : { field: textAt(field) }),
  };
}

/** A webhook could not be called, or its answer is invalid: `failurePolicy` decides. */
class WebhookFailure extends Error {
  override readonly name = 'WebhookFailure';
}

/** A webhook to call, with the write in the version that it gets. */
interface VersionedInvocation extends WebhookInvocation {
  readonly attributes: AdmissionAttributes;
}

/** The two plugins that call webhooks; between them, validating policies are evaluated. */
export class AdmissionWebhooks {
  readonly mutating: MutatingWebhooks;
  readonly validating: ValidatingWebhooks;

  constructor(core: ServerCore, network: WebhookNetwork, authorizer: Authorizer) {
    this.mutating = new MutatingWebhooks(new WebhookCalls(core, network, authorizer, 'mutating'));
    this.validating = new ValidatingWebhooks(new WebhookCalls(core, network, authorizer, 'validating'));
  }

  /** Follows the stored configurations from here on. */
  start(): void {
    this.mutating.calls.start();
    this.validating.calls.start();
  }

  /** Closes all connections to webhooks. */
  async close(): Promise<void> {
    await Promise.all([this.mutating.calls.close(), this.validating.calls.close()]);
  }
}

/** The plugin MutatingAdmissionWebhook: calls the webhooks of the stored configurations, one after the other. */
class MutatingWebhooks implements AdmissionPlugin {
  readonly name = 'MutatingAdmissionWebhook';
  readonly calls: WebhookCalls;

  constructor(calls: WebhookCalls) {
    this.calls = calls;
  }

  handles(attributes: AdmissionAttributes): boolean {
    return this.calls.matchesAny(attributes);
  }

  async mutate(
    attributes: AdmissionAttributes,
    reply: AdmissionReply,
    rounds: Reinvocation,
  ): Promise<KubeObject | undefined> {
    let { object } = attributes;
    const calls = rounds.of(this.name);
    calls.begin(object);
    for (const hook of this.calls.hooks) {
      if (!calls.shouldCall(hook.id)) continue;
      const next = await this.calls.mutate(hook, { ...attributes, object }, reply);
      if (next === undefined) continue;
      if (next.changed) {
        object = next.object;
        calls.recordChange();
      }
      if (hook.reinvokes) calls.recordCall(hook.id);
    }
    calls.end(object);
    return object;
  }
}

/** The plugin ValidatingAdmissionWebhook: calls the webhooks of the stored configurations in parallel. */
class ValidatingWebhooks implements AdmissionPlugin {
  readonly name = 'ValidatingAdmissionWebhook';
  readonly calls: WebhookCalls;

  constructor(calls: WebhookCalls) {
    this.calls = calls;
  }

  handles(attributes: AdmissionAttributes): boolean {
    return this.calls.matchesAny(attributes);
  }

  /** @throws {StatusError} the refusal of the first that refuses. */
  async validate(attributes: AdmissionAttributes, reply: AdmissionReply): Promise<void> {
    const invocations: VersionedInvocation[] = [];
    for (const hook of this.calls.hooks) {
      const invocation = await this.calls.invocation(hook, attributes);
      if (invocation !== undefined) invocations.push(invocation);
    }
    const answers = await Promise.allSettled(
      invocations.map(async (invocation) => this.calls.validate(invocation, reply)),
    );
    for (const answer of answers) if (answer.status === 'rejected') throw answer.reason;
  }
}

/** The webhooks of one kind of configuration: which of them match a write, and their calls. */
class WebhookCalls {
  readonly #core: ServerCore;
  readonly #authorizer: Authorizer;
  readonly #configurations: WebhookConfigurations;
  /** Whether any rule matches, by resource, then by operation, scope and subresource. */
  #matches = new WeakMap<ServedResource, Map<string, boolean>>();
  #resourcesVersion = -1;

  constructor(
    core: ServerCore,
    network: WebhookNetwork,
    authorizer: Authorizer,
    kind: 'mutating' | 'validating',
  ) {
    this.#core = core;
    this.#authorizer = authorizer;
    this.#configurations = new WebhookConfigurations(
      core.storage,
      `${kind}webhookconfigurations`,
      (webhook) => createWebhookClient(webhook, network),
      core.log,
      () => this.#forget(),
    );
  }

  start(): void {
    this.#configurations.start();
  }

  async close(): Promise<void> {
    await this.#configurations.close();
  }

  /** In the order in which they are called. */
  get hooks(): readonly Hook[] {
    return this.#configurations.hooks;
  }

  /** Whether the rules of any webhook match, without regard to selectors. */
  matchesAny(attributes: AdmissionAttributes): boolean {
    if (this.hooks.length === 0) return false;
    if (this.#resourcesVersion !== this.#core.resources.version) this.#forget();
    const { resource, operation, subresource, namespace } = attributes;
    const known = this.#matches.get(resource) ?? new Map<string, boolean>();
    this.#matches.set(resource, known);
    const key = `${operation}/${namespace === '' ? 'cluster' : 'namespace'}/${subresource}`;
    let matches = known.get(key);
    if (matches === undefined) {
      matches =
        !isExempt(attributes) &&
        this.hooks.some((hook) => matchRules(this.#core, hook, attributes) !== undefined);
      known.set(key, matches);
    }
    return matches;
  }

  /** Called when configurations or resources have changed. */
  #forget(): void {
    this.#matches = new WeakMap();
    this.#resourcesVersion = this.#core.resources.version;
  }

  /** The call of a webhook for a write; undefined where the webhook does not match. @throws {StatusError} */
  async invocation(hook: Hook, attributes: AdmissionAttributes): Promise<VersionedInvocation | undefined> {
    if (isExempt(attributes)) return undefined;
    const resource = matchRules(this.#core, hook, attributes);
    if (resource === undefined || !matchSelectors(this.#core, hook, attributes)) return undefined;
    const invocation = { hook, resource, attributes: await this.#versioned(resource, attributes) };
    return hook.conditions.length === 0 || this.#conditionsHold(invocation) ? invocation : undefined;
  }

  /** The write in the version that a webhook gets. @throws {StatusError} 500 */
  async #versioned(resource: ServedResource, attributes: AdmissionAttributes): Promise<AdmissionAttributes> {
    try {
      return await versionedFor(resource, attributes);
    } catch (error) {
      throw error instanceof StatusError ? internalError(error.message, error) : error;
    }
  }

  /** Whether the `matchConditions` hold. @throws {StatusError} 403 where one cannot be evaluated, with failurePolicy Fail. */
  #conditionsHold({ hook, resource, attributes }: VersionedInvocation): boolean {
    const input = admissionInput(resource, attributes, this.#authorizer);
    const held = matchConditions(hook.conditions, input);
    if (typeof held === 'boolean') return held;
    this.#core.log.warn(
      { webhook: hook.name, reason: held },
      'evaluating the conditions of a webhook failed',
    );
    if (hook.ignoresFailures) return false;
    throw forbidden(attributes.resource.groupResource, attributes.name, held);
  }

  /** The object after a mutating webhook; undefined where the webhook does not match. @throws {StatusError} */
  async mutate(
    hook: Hook,
    attributes: AdmissionAttributes,
    reply: AdmissionReply,
  ): Promise<{ readonly object: KubeObject | undefined; readonly changed: boolean } | undefined> {
    const invocation = await this.invocation(hook, attributes);
    if (invocation === undefined) return undefined;
    const response = await this.#call(invocation, true);
    const { object } = attributes;
    if (response === undefined) return { object, changed: false };
    throwIfDenied(hook, response, reply);
    const patched = this.#patched(invocation, response);
    return patched === undefined
      ? { object, changed: false }
      : { object: await requestedForm(attributes, patched), changed: true };
  }

  /** @throws {StatusError} when a validating webhook denies the write. */
  async validate(invocation: VersionedInvocation, reply: AdmissionReply): Promise<void> {
    const response = await this.#call(invocation, false);
    if (response !== undefined) throwIfDenied(invocation.hook, response, reply);
  }

  /** The webhook's response; undefined when the call failed and `failurePolicy` is Ignore. @throws {StatusError} */
  async #call(invocation: VersionedInvocation, mutating: boolean): Promise<ReviewResponse | undefined> {
    const { hook, attributes } = invocation;
    if (attributes.dryRun && !hook.supportsDryRun) {
      throw badRequest(`admission webhook ${JSON.stringify(hook.name)} does not support dry run`);
    }
    try {
      return await callWebhook(invocation, mutating, this.#core.newUid());
    } catch (error) {
      if (!(error instanceof WebhookFailure)) throw error;
      this.#failed(hook, error);
      return undefined;
    }
  }

  /** @throws {StatusError} 500 unless the webhook's `failurePolicy` is Ignore. */
  #failed(hook: Hook, failure: WebhookFailure): void {
    const outcome = hook.ignoresFailures ? 'ignored' : 'refused';
    this.#core.log.warn({ webhook: hook.name, outcome, err: failure }, 'calling a webhook failed');
    if (hook.ignoresFailures) return;
    throw internalError(`failed calling webhook ${JSON.stringify(hook.name)}: ${failure.message}`, failure);
  }

  /** The object after the webhook's patch, decoded and defaulted again; undefined when nothing changed. */
  #patched(
    { hook, resource, attributes: { object, body } }: VersionedInvocation,
    response: ReviewResponse,
  ): KubeObject | undefined {
    if (response.patch === '' || response.patch.trim() === '[]') return undefined;
    if (!isList(response.patch)) {
      this.#failed(
        hook,
        new WebhookFailure('received undecodable patch in webhook response: it is no list of operations'),
      );
      return undefined;
    }
    if (object === undefined || (body !== undefined && body.schema === undefined)) {
      const name = JSON.stringify(hook.name);
      throw internalError(
        `admission webhook ${name} attempted to modify the object, which is not supported for this operation`,
      );
    }
    if (response.patchType !== 'JSONPatch') {
      this.#failed(hook, new WebhookFailure(`unsupported patch type ${JSON.stringify(response.patchType)}`));
      return undefined;
    }
    const served = servedObject(resource, object, body);
    const patched = applyPatch(resource, served, Buffer.from(response.patch), body);
    if (body === undefined) resource.definition.strategy.setDefaults(patched);
    if (jsonEqual(patched, served)) return undefined;
    return resource.shared === undefined || body !== undefined ? patched : resource.shared.toStored(patched);
  }
}

/** @throws {WebhookFailure} without a valid response. */
async function callWebhook(
  invocation: VersionedInvocation,
  mutating: boolean,
  uid: string,
): Promise<ReviewResponse> {
  const { hook, attributes } = invocation;
  let review: JsonRecord;
  try {
    const answer = await hook.client.call(reviewOf(invocation, attributes, uid));
    review = readAnswer(answer, admissionReview, hook.reviewVersion);
  } catch (error) {
    const call = error instanceof UnusableWebhook ? '' : 'failed to call webhook: ';
    throw new WebhookFailure(`${call}${errorMessage(error)}`, { cause: error });
  }
  try {
    return reviewResponseOf(review, hook.reviewVersion, uid, mutating);
  } catch (error) {
    throw new WebhookFailure(`received invalid webhook response: ${errorMessage(error)}`, { cause: error });
  }
}

/** Passes the warnings on. @throws {StatusError} when the webhook denied the write. */
function throwIfDenied(
  hook: Hook,
  { allowed, result, warnings }: ReviewResponse,
  reply: AdmissionReply,
): void {
  for (const warning of warnings) reply.warn(warning);
  if (!allowed) throw deniedBy(hook.name, result);
}

function isList(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) && value.every(isRecord);
  } catch {
    return false;
  }
}

/** @throws {StatusError} 500 for a patch that cannot be applied: the client is not to blame. */
function applyPatch(
  resource: ServedResource,
  live: KubeObject,
  bytes: Buffer,
  body: BodyKind | undefined,
): KubeObject {
  const { group, version, kind } = body ?? resource.definition;
  const schema = body?.schema === undefined ? resource.schema : builtinSchema(body.schema);
  const expected = { group, version, kind, schema };
  try {
    return patchObject({ type: 'json', bytes, live, expected, fieldValidation: 'Ignore' }).object;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    throw internalError(error.cause instanceof Error ? error.cause.message : error.message, error);
  }
}
