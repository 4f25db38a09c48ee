import type { CacheHandler } from '../../client/informers/cache.ts';
import { isUnreached } from '../../client/errors.ts';
import { Reflector, type ReflectorSink } from '../../client/informers/reflector.ts';
import { resourceName } from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import type { KubeObject, OwnerReference } from '../../objects/meta.ts';
import { describeDiscoveryFailure, discover, type DiscoveredType } from '../../client/discovery.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { parseGroupVersion, type NodeType } from './plan.ts';

/** Receives every object of a server. */
export interface ObjectListener {
  upsert(object: KubeObject, type: NodeType): void;
  remove(object: KubeObject, type: NodeType): void;
  /** Called when a resource is no longer served: its objects are gone. */
  dropped(resource: string): void;
}

/** Resources with many objects that neither own nor are owned (`DefaultIgnoredResources`). */
const ignored = new Set(['events', 'events.events.k8s.io']);
const customResources = 'customresourcedefinitions.apiextensions.k8s.io';
/** From a change of custom resources to the next discovery. */
const discoveryDelayMs = 500;
/** To the next discovery while some groups cannot be read: doubling, up to kube-controller-manager's period. */
const unread = { firstMs: 500, maxMs: 30_000 };
/** As many failures, in 7.5 s, are no news: an extension API server begins behind its APIService, and ends before it. */
const quietFailures = 4;
/**
 * Milliseconds after which the work begins or goes on although some resources are unknown, so that one broken extension
 * API server does not stop it (`initialSyncTimeout`). Waiting is needed because orphaning and foreground deletion are
 * only right when all dependents are known.
 */
const timeoutMs = 30_000;

/**
 * Follows all deletable objects, of built-in and custom resources. Objects that other controllers follow come from
 * their caches; every other resource gets one watch, about 0.25 MiB.
 */
export class Monitors {
  readonly #context: ControllerContext;
  readonly #transport: Transport;
  readonly #listener: ObjectListener;
  readonly #running = new Map<string, AbortController>();
  readonly #ended = new Set<Promise<void>>();
  readonly #ready = Promise.withResolvers<undefined>();
  #served: ReadonlyMap<string, DiscoveredType> = new Map();
  #stale = Promise.withResolvers<undefined>();

  constructor(context: ControllerContext, transport: Transport, listener: ObjectListener) {
    this.#context = context;
    this.#transport = transport;
    this.#listener = listener;
  }

  /** The resource of a kind; undefined when it is not served in that version. */
  resourceOf({ apiVersion, kind }: Pick<OwnerReference, 'apiVersion' | 'kind'>): DiscoveredType | undefined {
    const { group, version } = parseGroupVersion(apiVersion);
    for (const resource of this.#served.values()) {
      if (resource.group === group && resource.kind === kind && resource.versions.includes(version)) {
        return resource;
      }
    }
    return undefined;
  }

  /** A resource by its `plural.group`. */
  resourceNamed(name: string): DiscoveredType | undefined {
    return this.#served.get(name);
  }

  /** Resolves true when all objects that existed at the start are known, or after {@link timeoutMs}. */
  async synced(signal: AbortSignal): Promise<boolean> {
    if (!(await this.#inTime(this.#ready.promise, signal)) && !signal.aborted) {
      this.#context.log.warn('not all resources are known yet, collecting garbage anyway');
    }
    return !signal.aborted;
  }

  /** Starts a new discovery, as an unknown kind was referred to. */
  refresh(): void {
    this.#stale.resolve(undefined);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#context;
    let failures = 0;
    signal.addEventListener('abort', () => this.refresh(), { once: true });
    while (!signal.aborted) {
      this.#stale = Promise.withResolvers();
      if (await this.#look(signal, failures)) {
        failures = 0;
        await this.#stale.promise;
        await clock.sleep(discoveryDelayMs, signal);
      } else {
        await clock.sleep(Math.min(unread.firstMs * 2 ** failures++, unread.maxMs), signal);
      }
    }
    for (const monitor of this.#running.values()) monitor.abort();
    await Promise.all(this.#ended);
  }

  /**
   * Follows what is served now; returns false when some of it could not be read.
   *
   * @param before how often that has failed since it last succeeded.
   */
  async #look(signal: AbortSignal, before: number): Promise<boolean> {
    const { log } = this.#context;
    try {
      const { resources, failures } = await discover(this.#transport, signal);
      // Failures caused by the stop are not reported.
      if (signal.aborted) return false;
      for (const failure of failures) {
        const level = before < quietFailures || isUnreached(failure.error) ? 'debug' : 'warn';
        log[level](
          { why: describeDiscoveryFailure(failure) },
          'a group of resources is not collected, will retry',
        );
      }
      const isComplete = failures.length === 0;
      await this.#follow(resources, isComplete, signal);
      return isComplete;
    } catch (error) {
      const level = signal.aborted || isUnreached(error) ? 'debug' : 'warn';
      log[level]({ err: error }, 'discovery failed, will retry');
      return false;
    }
  }

  async #follow(
    resources: readonly DiscoveredType[],
    isComplete: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const wanted = new Map<string, DiscoveredType>();
    for (const resource of resources) {
      const name = resourceName(resource);
      const { verbs } = resource;
      if (ignored.has(name) || !verbs.includes('delete')) continue;
      if (verbs.includes('list') && verbs.includes('watch')) wanted.set(name, resource);
    }
    const served = resources.map((resource): [string, DiscoveredType] => [resourceName(resource), resource]);
    // Resources that could not be read stay as they were.
    this.#served = new Map([...(isComplete ? [] : this.#served), ...served]);
    if (isComplete) {
      for (const [name, monitor] of this.#running) {
        if (wanted.has(name)) continue;
        monitor.abort();
        this.#running.delete(name);
        this.#listener.dropped(name);
      }
    }
    const started: Promise<unknown>[] = [];
    for (const [name, resource] of wanted) {
      if (!this.#running.has(name)) started.push(this.#start(name, resource, signal));
    }
    if ((await this.#inTime(Promise.all(started), signal)) && isComplete) this.#ready.resolve(undefined);
  }

  /** True when it is done before {@link timeoutMs} is over and before the signal aborts. */
  async #inTime(work: Promise<unknown>, signal: AbortSignal): Promise<boolean> {
    const done = new AbortController();
    const { clock } = this.#context;
    const late = clock.sleep(timeoutMs, AbortSignal.any([signal, done.signal])).then(() => false);
    try {
      return await Promise.race([work.then(() => !signal.aborted), late]);
    } finally {
      done.abort();
    }
  }

  /** Starts to follow a resource; resolves when its objects are known, or when it is no longer followed. */
  async #start(name: string, resource: DiscoveredType, signal: AbortSignal): Promise<void> {
    const monitor = new AbortController();
    const either = AbortSignal.any([signal, monitor.signal]);
    this.#running.set(name, monitor);
    const type: NodeType = { resource: name, group: resource.group, kind: resource.kind };
    const handler: CacheHandler<KubeObject> = {
      added: (object) => this.#upsert(object, type),
      updated: (object, old) => {
        if (old.metadata.uid !== object.metadata.uid) this.#listener.remove(old, type);
        this.#upsert(object, type);
      },
      deleted: (object) => this.#listener.remove(object, type),
    };
    const shared = this.#context.informers.present(name);
    // Custom resources come and go with their definitions; informers do not follow that.
    if (shared !== undefined && shared.resource.definedBy === undefined) {
      const remove = shared.addHandler(handler);
      either.addEventListener('abort', remove, { once: true });
      await shared.synced(either);
      return;
    }
    const sink = new GraphSink(handler);
    const { clock, random, log, metrics } = this.#context;
    const reflector = new Reflector({
      transport: this.#transport,
      resource,
      sink,
      clock,
      random,
      log,
      metrics,
    });
    const ended = reflector.run(either).finally(() => {
      sink.ended();
      this.#ended.delete(ended);
    });
    this.#ended.add(ended);
    await sink.filled;
  }

  #upsert(object: KubeObject, type: NodeType): void {
    if (type.resource === customResources) this.refresh();
    this.#listener.upsert(object, type);
  }
}

/** Passes a reflector's objects to a handler, and keeps only the uids. */
class GraphSink implements ReflectorSink<KubeObject> {
  readonly #handler: CacheHandler<KubeObject>;
  readonly #filled = Promise.withResolvers<undefined>();
  readonly #known = new Map<string, KubeObject>();
  #unseen: Set<string> | undefined;

  constructor(handler: CacheHandler<KubeObject>) {
    this.#handler = handler;
  }

  /** Resolves when the first list is complete. */
  get filled(): Promise<undefined> {
    return this.#filled.promise;
  }

  ended(): void {
    this.#filled.resolve(undefined);
  }

  listing(): void {
    this.#unseen = new Set(this.#known.keys());
  }

  upsert(object: KubeObject): void {
    const uid = object.metadata.uid ?? '';
    this.#unseen?.delete(uid);
    const { namespace = '', name = '' } = object.metadata;
    const identity = { metadata: { uid, namespace, name } };
    this.#known.set(uid, identity);
    this.#handler.added?.(object, false);
  }

  remove(object: KubeObject): void {
    this.#known.delete(object.metadata.uid ?? '');
    this.#handler.deleted?.(object);
  }

  listed(): Promise<void> {
    for (const uid of this.#unseen ?? []) {
      const gone = this.#known.get(uid);
      if (gone !== undefined) this.remove(gone);
    }
    this.#unseen = undefined;
    this.#filled.resolve(undefined);
    return Promise.resolve();
  }

  alive(): void {
    // The reflector's own metrics are enough.
  }
}
