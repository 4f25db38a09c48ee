import { jsonEqual } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { forbidden, notFound } from '../../objects/status.ts';
import type { Namespace } from '../../objects/types/core.generated.ts';
import { objectKey, type Storage } from '../storage/storage.ts';
import type { ServedResource } from './served-resource.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

/** Which plugins are called again for a write that others have changed (apiserver `admission/reinvocation.go`). */

/** The rounds of the mutating plugins on one write: a second one when a policy or a webhook changed the object in the first. */
export class Reinvocation {
  #isSecond = false;
  #isWanted = false;
  readonly #plugins = new Map<string, PluginRounds>();

  get isSecond(): boolean {
    return this.#isSecond;
  }

  /** True when the first round changed the object and some plugin must be called again. */
  get isWanted(): boolean {
    return this.#isWanted;
  }

  want(): void {
    this.#isWanted = true;
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
  #asked = new Set<string>();
  readonly #again = new Set<string>();
  #output: KubeObject | undefined;

  constructor(rounds: Reinvocation) {
    this.#rounds = rounds;
  }

  /** Begins a round. What other plugins have changed since is news to all. */
  begin(object: KubeObject | undefined): void {
    if (this.#rounds.isSecond && !jsonEqual(object, this.#output)) this.#askAgain();
  }

  /** Webhooks that were not called in the first round are not called in the second. */
  asks(id: string): boolean {
    return !this.#rounds.isSecond || this.#again.has(id);
  }

  /** Records that a plugin has changed the object, before {@link asked} records that it was called. */
  changed(): void {
    this.#askAgain();
    this.#rounds.want();
  }

  /** Records a call of a webhook with IfNeeded. */
  asked(id: string): void {
    this.#asked.add(id);
  }

  end(object: KubeObject | undefined): void {
    this.#output = object;
  }

  #askAgain(): void {
    for (const id of this.#asked) this.#again.add(id);
    this.#asked = new Set();
  }
}

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

/** An admission plugin: throws a StatusError to refuse. */
export interface AdmissionPlugin {
  /** May replace the object; runs before allocation and validation. */
  mutate?(
    attributes: AdmissionAttributes,
    reply: AdmissionReply,
    rounds: Reinvocation,
  ): Promise<KubeObject | undefined>;
  /** Runs after validation, before the store. */
  validate?(attributes: AdmissionAttributes, reply: AdmissionReply): Promise<void>;
  /** False when the plugin does not handle the resource: no promise is made then. */
  handles(attributes: AdmissionAttributes): boolean;
}

/** The chain of plugins, in order. */
export class Admission {
  readonly #plugins: AdmissionPlugin[];

  constructor(plugins: readonly AdmissionPlugin[]) {
    this.#plugins = [...plugins];
  }

  add(plugin: AdmissionPlugin): void {
    this.#plugins.push(plugin);
  }

  /** True when a plugin handles the write: without one, callers stay synchronous. */
  handles(attributes: AdmissionAttributes): boolean {
    return this.#plugins.some((plugin) => plugin.handles(attributes));
  }

  /** The object after all mutating plugins, which are called twice when a policy or a webhook has changed it. */
  async mutate(attributes: AdmissionAttributes, reply: AdmissionReply): Promise<KubeObject | undefined> {
    const rounds = new Reinvocation();
    const object = await this.#round(attributes, reply, rounds);
    if (!rounds.isWanted) return object;
    rounds.startSecond();
    // A copy: plugins compare it with their result, and some write into it.
    return this.#round({ ...attributes, object: structuredClone(object) }, reply, rounds);
  }

  async #round(
    attributes: AdmissionAttributes,
    reply: AdmissionReply,
    rounds: Reinvocation,
  ): Promise<KubeObject | undefined> {
    let { object } = attributes;
    for (const plugin of this.#plugins) {
      if (plugin.mutate === undefined || !plugin.handles(attributes)) continue;
      object = (await plugin.mutate({ ...attributes, object }, reply, rounds)) ?? object;
    }
    return object;
  }

  async validate(attributes: AdmissionAttributes, reply: AdmissionReply): Promise<void> {
    for (const plugin of this.#plugins) {
      if (plugin.validate !== undefined && plugin.handles(attributes))
        await plugin.validate(attributes, reply);
    }
  }
}

/** Namespaces that cannot be deleted (`NamespaceLifecycle`). */
const immortal = new Set(['default', 'kube-system', 'kube-public']);

/**
 * The NamespaceLifecycle plugin: nothing is created or updated in a namespace that does not exist, nothing is
 * created in one that terminates, no eviction either, and the system's namespaces cannot be deleted.
 *
 * @throws {StatusError} 404 or 403
 */
export function checkNamespaceLifecycle(storage: Storage, attributes: AdmissionAttributes): void {
  const { operation, resource, namespace, name } = attributes;
  const { definition, groupResource } = resource;
  if (definition.group === '' && definition.plural === 'namespaces') {
    if (operation === 'DELETE' && immortal.has(name)) {
      throw forbidden(groupResource, name, 'this namespace may not be deleted');
    }
    return;
  }
  if (!definition.namespaced || operation === 'DELETE' || namespace === '') return;
  // Access reviews work in namespaces that do not exist.
  if (definition.plural === 'localsubjectaccessreviews') return;
  const stored = storage.getForUpdate(objectKey('', 'namespaces', '', namespace));
  if (stored === undefined) throw notFound({ group: '', resource: 'namespaces' }, namespace);
  if (operation !== 'CREATE' || !isTerminating(stored.object)) return;
  throw forbidden(
    groupResource,
    shownName(attributes),
    `unable to create new content in namespace ${namespace} because it is being terminated`,
    [
      {
        reason: 'NamespaceTerminating',
        message: `namespace ${namespace} is being terminated`,
        field: 'metadata.namespace',
      },
    ],
  );
}

/** The name of an object in a refusal; it may have none yet (apiserver `admission/errors.go` extractResourceName). */
function shownName({ name, object }: AdmissionAttributes): string {
  return name || object?.metadata.name || object?.metadata.generateName || 'Unknown';
}

function isTerminating(namespace: KubeObject): boolean {
  return isNamespace(namespace) && namespace.status.phase === 'Terminating';
}

function isNamespace(object: KubeObject): object is Namespace {
  return object.kind === 'Namespace' && 'status' in object;
}
