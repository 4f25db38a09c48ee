import PQueue from 'p-queue';
import type { Logger } from 'pino';
import { whenAborted, type BackoffLimits } from '../client/clock.ts';
import { isConflict, isForbidden, isUnreached, retryAfterOf } from '../client/errors.ts';
import { LeaseLost } from '../client/leases.ts';
import { type ObjectKey, keyOf, type KubeObject } from '../objects/meta.ts';
import type { ControllerContext, Runnable } from './context.ts';
import { recordQueue, RateLimitedQueue } from './work-queue.ts';
import type { CacheHandler, IndexFunction } from '../client/informers/cache.ts';
import type { Informer, InformerOptions } from '../client/informers/informer.ts';
import { type NetworkWork, whereServed } from './other-implementations.ts';
import type { ResourceType } from '../client/resources.ts';

/** The result of a reconcile. */
export interface ReconcileResult {
  /** Milliseconds after which the key is reconciled again, without an error and without back-off. */
  readonly requeueAfterMs?: number;
}

/**
 * Reconciles one key: makes the actual state equal to the desired state.
 *
 * The contract is level-based. A key says that something about an object may have changed: not what, not how often, not
 * whether it still exists. A reconcile reads the present state from caches, plans the whole desired state, and writes
 * the difference; with no difference it writes nothing. It may be called at any time, again and again, after any crash,
 * and must come to the same result.
 *
 * One key never runs twice at once; different keys do. A key that is added while it runs is run once more afterwards.
 *
 * - Returning: the key is done and its back-off is forgotten.
 * - Returning `requeueAfterMs`: the same, and the key comes back after that time.
 * - Throwing: logged, counted, and retried with exponential back-off and jitter, without limit or `maxRetries` times.
 *   A server's Retry-After is respected; after 403 the key is retried slowly.
 * - Throwing {@link NotYetError}: the same, but the first retries are logged with `debug` alone.
 * - Throwing {@link TerminalError}: logged and counted, not retried until something changes.
 *
 * `signal` aborts when the time for a graceful stop is over: pass it on to requests.
 */
export type Reconcile = (key: ObjectKey, signal: AbortSignal) => Promise<ReconcileResult | undefined>;

/** An error that a retry cannot fix. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
}

/** An object that a reconcile needs is missing, as is usual for a moment. */
export class NotYetError extends Error {
  override readonly name = 'NotYetError';
}

/** Retries after {@link NotYetError} that are no reason for a warning: some five seconds by the default back-off. */
const usualRetries = 10;

/** The part of an informer that the start of a loop waits for. */
export interface SyncedSource {
  synced(signal: AbortSignal): Promise<boolean>;
}

/** Priorities of keys: changes that users wait for come before periodic checks. */
export const Priority = { change: 0, resync: -100 } as const;

export interface EnqueueOptions {
  /** Higher runs first; default {@link Priority.change}. A waiting key keeps the higher of two. */
  readonly priority?: number;
  /** Milliseconds to wait first. Of two times for one key the earlier applies. */
  readonly afterMs?: number;
}

const defaultBackoff: BackoffLimits = { base: 5, max: 1_000_000 };
/** Between retries after 403: the permission must be granted first. */
const refusedDelayMs = 30_000;
/** An aborted key has this time to return. */
const abortGraceMs = 5000;

/** What happened to an object in a cache. Objects are frozen. */
export type Change<T extends KubeObject> =
  /** `initial`: it was there before the controller. */
  | { readonly kind: 'added'; readonly object: T; readonly initial: boolean }
  /** `old` may have another uid: the object was deleted and created again between two reads. */
  | { readonly kind: 'updated'; readonly object: T; readonly old: T }
  /** The last state that was seen. */
  | { readonly kind: 'deleted'; readonly object: T };

/** The keys to reconcile after a change. Runs inside the read loop: it looks up keys, and does no work. */
export type KeysOf<T extends KubeObject> = (change: Change<T>) => Iterable<ObjectKey>;

/** The object's own key. */
export const ownKey: KeysOf<KubeObject> = ({ object }) => [keyOf(object)];

export interface CacheOptions<T extends KubeObject> extends InformerOptions<T> {
  /** Index functions by name. */
  readonly indexes?: Readonly<Record<string, IndexFunction<T>>>;
}

/** How a queue is worked off. */
export interface LoopOptions {
  /** Keys that run at once; default 5, as kube-controller-manager's `--concurrent-…-syncs`. */
  readonly workers?: number;
  /** Milliseconds between the retries of a key; default from 5 to 1,000,000, as client-go's default limiter. */
  readonly backoff?: BackoffLimits;
  /** Retries before a key is dropped until it is added again; default: no limit. */
  readonly maxRetries?: number;
  /** That running keys have to finish after a stop, before their signal aborts; default 20,000. */
  readonly drainTimeoutMs?: number;
}

/** A kind that a controller works on, and the work, which another project may do. */
export interface ServedWork {
  readonly serves: ResourceType;
  readonly work: NetworkWork;
}

/**
 * A controller: a queue of keys, what puts keys into it, and the function that reconciles one of them.
 *
 * `build` is called once per process. In this order it names the caches, makes the state, says which changes wake which
 * keys, and returns the {@link Reconcile}, whose contract is stated there. It does no I/O. No key is reconciled before
 * every cache has synced.
 */
export interface ControllerSpec extends LoopOptions {
  /** Its name in `--controllers`: kube-controller-manager's where there is one. */
  readonly name: string;
  /** The component of its Events. */
  readonly eventSource: string;
  /** Its name in metrics and logs. */
  readonly queue: string;
  /** Its normal Events are limited. */
  readonly hasEventBudget?: boolean;
  /** Only where the API server serves these kinds, and no other project in the cluster does the work. */
  readonly where?: ServedWork | readonly ServedWork[];
  build(loop: KeyLoop): Reconcile;
}

/** What runs of a controller in this process. */
export function runnableOf(spec: ControllerSpec, context: ControllerContext): Runnable {
  const { queue, where = [] } = spec;
  const loop: Runnable = new KeyLoop(context, queue, spec, (own) => spec.build(own));
  return [where]
    .flat()
    .reduceRight(
      (runnable, { serves, work }) => whereServed(context, { resource: serves, work, runnables: [runnable] }),
      loop,
    );
}

/** What a loop needs of its context. */
export type LoopContext = Pick<ControllerContext, 'clock' | 'random' | 'log' | 'metrics' | 'informers'>;

/** The queue of a controller with its workers, and the caches that they read. */
export class KeyLoop<C extends LoopContext = ControllerContext> implements Runnable {
  readonly context: C;
  readonly #name: string;
  readonly #options: LoopOptions;
  readonly #sources: SyncedSource[] = [];
  readonly #beside: Runnable[] = [];
  readonly #queue: RateLimitedQueue;
  readonly #log: Logger;
  /** Aborts when a graceful stop takes too long. */
  readonly #giveUp = new AbortController();
  readonly #reconcile: Reconcile;

  /** @param queue its name in metrics and logs. */
  constructor(context: C, queue: string, options: LoopOptions, build: (loop: KeyLoop<C>) => Reconcile) {
    this.context = context;
    this.#name = queue;
    this.#options = options;
    this.#log = context.log.child({ controller: queue });
    this.#queue = new RateLimitedQueue({
      clock: context.clock,
      random: context.random,
      limits: options.backoff ?? defaultBackoff,
      recorder: recordQueue(context.metrics, queue),
    });
    this.#reconcile = build(this);
  }

  /** The cache of a resource, shared with other controllers. No key is reconciled before it has synced. */
  cache<T extends KubeObject>(resource: ResourceType<T>, options: CacheOptions<T> = {}): Informer<T> {
    const { indexes = {}, ...rest } = options;
    const informer = this.context.informers.informer(resource, rest);
    for (const [name, index] of Object.entries(indexes)) informer.addIndex(name, index);
    this.#sources.push(informer);
    return informer;
  }

  /**
   * Enqueues keys when an object changes; those of objects that were there before with a lower priority, because a user
   * may wait for a change. Call it when everything is made that `keysOf` reads: a cache that is full calls it at once.
   */
  on<T extends KubeObject>(informer: Informer<T>, keysOf: KeysOf<T>): void {
    const wake = (change: Change<T>): void => {
      const isOld = change.kind === 'added' && change.initial;
      const options = isOld ? { priority: Priority.resync } : {};
      for (const key of keysOf(change)) this.enqueue(key, options);
    };
    const handler: CacheHandler<T> = {
      added: (object, initial) => wake({ kind: 'added', object, initial }),
      updated: (object, old) => wake({ kind: 'updated', object, old }),
      deleted: (object) => wake({ kind: 'deleted', object }),
    };
    informer.addHandler(handler);
  }

  /** Enqueues a reconcile of the key. Keys that are added before `run` wait for it. */
  enqueue(key: ObjectKey, { priority = Priority.change, afterMs = 0 }: EnqueueOptions = {}): void {
    this.#queue.addAfter(key, afterMs, priority);
  }

  /** A second queue, for work of another grain: it has workers and caches of its own, and runs with this one. */
  beside(queue: string, options: LoopOptions, build: (loop: KeyLoop<C>) => Reconcile): KeyLoop<C> {
    const loop = new KeyLoop<C>(this.context, queue, options, build);
    this.#beside.push(loop);
    return loop;
  }

  /** No key is reconciled before this has synced either. */
  waitFor(source: SyncedSource): void {
    this.#sources.push(source);
  }

  /** Runs this with the queue, until the same signal. */
  runBeside(runnable: Runnable): void {
    this.#beside.push(runnable);
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#runQueue(signal), ...this.#beside.map((part) => part.run(signal))]);
  }

  async #runQueue(signal: AbortSignal): Promise<void> {
    const { workers = 5 } = this.#options;
    const synced = await Promise.all(this.#sources.map((source) => source.synced(signal)));
    if (synced.every(Boolean) && !signal.aborted) {
      const running = new PQueue({ concurrency: workers });
      const pump = (): void => {
        while (running.pending + running.size < workers && !signal.aborted) {
          const key = this.#queue.take();
          if (key === undefined) return;
          // #work never rejects, so neither does this promise.
          void running.add(() => this.#work(key)).then(pump);
        }
      };
      // Deferred: handlers enqueue in the middle of an event, and a burst of events causes one run.
      let scheduled = false;
      this.#queue.onReady = () => {
        if (scheduled) return;
        scheduled = true;
        setImmediate(() => {
          scheduled = false;
          pump();
        });
      };
      this.#log.debug({ workers }, 'controller started');
      pump();
      await whenAborted(signal);
      this.#queue.close();
      await this.#drain(running, signal.reason instanceof LeaseLost);
      this.#log.debug('controller stopped');
    }
    this.#queue.close();
  }

  /**
   * Lets running keys finish. After a time, or at once when another process may lead already, their signal aborts; keys
   * that still run after that are abandoned.
   */
  async #drain(running: PQueue, atOnce: boolean): Promise<void> {
    const { drainTimeoutMs = 20_000 } = this.#options;
    const idle = running.onIdle().then(() => true);
    const finished = new AbortController();
    const late = async (milliseconds: number): Promise<boolean> => {
      await this.context.clock.sleep(milliseconds, finished.signal);
      return false;
    };
    try {
      if (!atOnce && (await Promise.race([idle, late(drainTimeoutMs)]))) return;
      this.#giveUp.abort();
      if (await Promise.race([idle, late(abortGraceMs)])) return;
      this.#log.error({ running: this.#queue.running }, 'stopped before every key was finished');
    } finally {
      finished.abort();
    }
  }

  async #work(key: ObjectKey): Promise<void> {
    const { context } = this;
    const started = context.clock.monotonic();
    let result = 'success';
    try {
      const wanted = await this.#reconcile(key, this.#giveUp.signal);
      this.#queue.forget(key);
      if (wanted?.requeueAfterMs !== undefined) {
        result = 'requeue_after';
        this.#queue.addAfter(key, wanted.requeueAfterMs, Priority.change);
      }
    } catch (error) {
      result = error instanceof TerminalError ? 'terminal_error' : 'error';
      this.#failed(key, error);
    } finally {
      this.#queue.done(key);
      context.metrics.reconciles.inc({ controller: this.#name, result });
      context.metrics.reconcileSeconds.observe(
        { controller: this.#name },
        (context.clock.monotonic() - started) / 1000,
      );
    }
  }

  #failed(key: ObjectKey, error: unknown): void {
    const { maxRetries = Number.POSITIVE_INFINITY } = this.#options;
    if (error instanceof TerminalError) {
      this.#queue.forget(key);
      this.#log.error({ key, err: error }, 'reconcile failed for good');
      return;
    }
    const retries = this.#queue.retries(key);
    if (retries >= maxRetries) {
      this.#queue.forget(key);
      this.#log.error({ key, err: error, retries }, 'reconcile failed too often, waiting for a change');
      return;
    }
    const refused = isForbidden(error);
    const atLeast = retryAfterOf(error) ?? (refused ? refusedDelayMs : 0);
    // A retry keeps the priority of the key: a failing resync overtakes no change that a user waits for.
    const priority = this.#queue.priorityOf(key) ?? Priority.change;
    const delay = Math.round(this.#queue.addRateLimited(key, priority, atLeast));
    // A conflict means that the cache was behind, so that the retry is expected. A missing permission (403) and an
    // unreachable server are logged once by the transport.
    const isExpected = isConflict(error) || (error instanceof NotYetError && retries < usualRetries);
    const level = isExpected || refused || isUnreached(error) ? 'debug' : 'warn';
    this.#log[level]({ key, err: error, retries, retryIn: delay }, 'reconcile failed, will retry');
  }
}
