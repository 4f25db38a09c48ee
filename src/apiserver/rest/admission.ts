import { jsonEqual } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { forbidden, type StatusCause, type StatusError } from '../../objects/status.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';
import type { ServedResource } from './served-resource.ts';

/** Admission as the verbs call it: its plugins, what they get, and who is called twice. The plugins are in `../admission`. */

/** A write as admission sees it (`admission/v1` AdmissionRequest). */
export interface AdmissionAttributes {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  readonly resource: ServedResource;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  /** The kind of `object`, where it is not that of the resource: what is posted to a subresource. */
  readonly body?: BodyKind;
  /** The options object (CreateOptions …) as JSON. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** A kind that only subresources read. */
export interface BodyKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** The name of its schema; undefined for options in path and query (PodExecOptions). */
  readonly schema: string | undefined;
}

/** What an admission plugin can return besides a refusal. */
export interface AdmissionReply {
  warn(text: string): void;
}

/** An answer at once, or later. */
export type MaybePromise<T> = T | Promise<T>;

/** A plugin of admission. Named as in kube-apiserver, so that its documentation applies. */
export interface AdmissionPlugin {
  readonly name: string;
  /** Whether the plugin has anything to say about this write. Cheap: it is asked about every write. */
  handles(attributes: AdmissionAttributes): boolean;
  /**
   * Runs before allocation and validation. Changes `attributes.object` in place and returns undefined, or returns another
   * object. Returns a promise only where it must wait: other writes stay within one turn. Called again when a later
   * plugin requests a second round.
   *
   * @throws {StatusError} refuses the write.
   */
  mutate?(
    attributes: AdmissionAttributes,
    reply: AdmissionReply,
    rounds: Reinvocation,
  ): MaybePromise<KubeObject | undefined>;
  /** Runs after validation, before the store. @throws {StatusError} refuses the write. */
  validate?(attributes: AdmissionAttributes, reply: AdmissionReply): MaybePromise<void>;
}

/** Calls the plugins for a write, in order. */
export class Admission {
  readonly #plugins: readonly AdmissionPlugin[];

  constructor(plugins: readonly AdmissionPlugin[]) {
    this.#plugins = plugins;
  }

  /**
   * The object after all mutating plugins, which are called twice when a policy or a webhook has changed it.
   *
   * @throws {StatusError}
   */
  mutate(attributes: AdmissionAttributes, reply: AdmissionReply): MaybePromise<KubeObject | undefined> {
    const rounds = new Reinvocation();
    const first = this.#mutateFrom(0, attributes, reply, rounds);
    const second = (object: KubeObject | undefined): MaybePromise<KubeObject | undefined> => {
      if (!rounds.isRequested) return object;
      rounds.startSecond();
      // A copy: plugins compare it with their result, and some write into it.
      return this.#mutateFrom(0, { ...attributes, object: structuredClone(object) }, reply, rounds);
    };
    return first instanceof Promise ? first.then(second) : second(first);
  }

  #mutateFrom(
    index: number,
    attributes: AdmissionAttributes,
    reply: AdmissionReply,
    rounds: Reinvocation,
  ): MaybePromise<KubeObject | undefined> {
    let seen = attributes;
    for (const [i, plugin] of this.#plugins.entries()) {
      if (i < index || plugin.mutate === undefined || !plugin.handles(seen)) continue;
      const mutated = plugin.mutate(seen, reply, rounds);
      if (mutated instanceof Promise) {
        const before = seen;
        return mutated.then((object) => this.#mutateFrom(i + 1, withObject(before, object), reply, rounds));
      }
      seen = withObject(seen, mutated);
    }
    return seen.object;
  }

  /** @throws {StatusError} */
  validate(attributes: AdmissionAttributes, reply: AdmissionReply): MaybePromise<void> {
    return this.#validateFrom(0, attributes, reply);
  }

  #validateFrom(index: number, attributes: AdmissionAttributes, reply: AdmissionReply): MaybePromise<void> {
    for (const [i, plugin] of this.#plugins.entries()) {
      if (i < index || plugin.validate === undefined || !plugin.handles(attributes)) continue;
      const validated = plugin.validate(attributes, reply);
      if (validated instanceof Promise) {
        return validated.then(() => this.#validateFrom(i + 1, attributes, reply));
      }
    }
    return undefined;
  }
}

function withObject(attributes: AdmissionAttributes, object: KubeObject | undefined): AdmissionAttributes {
  return object === undefined || object === attributes.object ? attributes : { ...attributes, object };
}

/** A plugin's refusal (apiserver `admission.NewForbidden`). The object may have no name yet. */
export function refusal(
  { resource, name, object }: AdmissionAttributes,
  why: string,
  causes?: StatusCause[],
): StatusError {
  const { name: own, generateName } = object?.metadata ?? {};
  return forbidden(resource.groupResource, name || own || generateName || 'Unknown', why, causes);
}

/**
 * The rounds of the mutating plugins on one write (apiserver `admission/reinvocation.go`): a second one when a policy or
 * a webhook changed the object in the first.
 */
export class Reinvocation {
  #isSecond = false;
  #isRequested = false;
  readonly #plugins = new Map<string, PluginRounds>();

  get isSecond(): boolean {
    return this.#isSecond;
  }

  /** True when the first round changed the object and some plugin must be called again. */
  get isRequested(): boolean {
    return this.#isRequested;
  }

  /** Requests a second round. */
  request(): void {
    this.#isRequested = true;
  }

  startSecond(): void {
    this.#isSecond = true;
  }

  /** What a plugin keeps from one round to the next. */
  of(plugin: string): PluginRounds {
    const known = this.#plugins.get(plugin) ?? new PluginRounds(this);
    this.#plugins.set(plugin, known);
    return known;
  }
}

/**
 * Which webhooks or policies of a plugin are called (`plugin/webhook/mutating/reinvocationcontext.go` and
 * `plugin/policy/mutating/reinvocationcontext.go`): all in the first round; in the second those with IfNeeded that were
 * called before another one changed the object.
 */
class PluginRounds {
  readonly #rounds: Reinvocation;
  /** Called in this round, with IfNeeded, since the last change. */
  #called = new Set<string>();
  /** To be called in the second round. */
  readonly #again = new Set<string>();
  #output: KubeObject | undefined;

  constructor(rounds: Reinvocation) {
    this.#rounds = rounds;
  }

  /** Begins a round. A change that other plugins have made since concerns all webhooks that were called. */
  begin(object: KubeObject | undefined): void {
    if (this.#rounds.isSecond && !jsonEqual(object, this.#output)) this.#callAgain();
  }

  /** Webhooks that were not called in the first round are not called in the second. */
  shouldCall(id: string): boolean {
    return !this.#rounds.isSecond || this.#again.has(id);
  }

  /** Records that a webhook has changed the object, before {@link recordCall} records that it was called. */
  recordChange(): void {
    this.#callAgain();
    this.#rounds.request();
  }

  /** Records a call of a webhook with IfNeeded. */
  recordCall(id: string): void {
    this.#called.add(id);
  }

  end(object: KubeObject | undefined): void {
    this.#output = object;
  }

  #callAgain(): void {
    for (const id of this.#called) this.#again.add(id);
    this.#called = new Set();
  }
}
