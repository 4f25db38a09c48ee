import type { Informer } from '../../client/informer.ts';
import type { ObjectKey } from '../../objects/key.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { ControllerContext, Runnable } from './context.ts';

/** What a reconcile wants next. */
export interface ReconcileResult {
  /** Milliseconds until the key shall be looked at again, without an error and without back-off. */
  readonly requeueAfter?: number;
}

/**
 * Brings the world from what is to what should be, for one key.
 *
 * The contract is level-based. A key says that something about an object may have changed: not what, not how often,
 * not whether it still exists. A reconcile reads the present state from caches, plans the whole desired state, and
 * writes the difference; with no difference it writes nothing. It may be called at any time, again and again, after
 * any crash, and must come to the same end.
 *
 * One key never runs twice at once; different keys do. A key that is added while it runs is run once more afterwards.
 *
 * - Returning: the key is done and its back-off is forgotten.
 * - Returning `requeueAfter`: the same, and the key comes back after that time.
 * - Throwing: logged, counted, and retried with exponential back-off and jitter, for ever or `maxRetries` times.
 * - Throwing {@link TerminalError}: logged and counted, not retried until something changes.
 *
 * `signal` aborts when the process gives up waiting for a graceful end: pass it on to requests.
 */
export type Reconcile = (key: ObjectKey, signal: AbortSignal) => Promise<ReconcileResult | undefined>;

/** An error that trying again cannot mend. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
}

/** What makes up one queue and its workers. A controller with two queues has two loops. */
export interface ControllerOptions {
  /** Of the queue, in metrics and logs. */
  readonly name: string;
  readonly context: ControllerContext;
  readonly reconcile: Reconcile;
  /** Keys at once; default 5, as kube-controller-manager's `--concurrent-…-syncs`. */
  readonly workers?: number;
  /** Nothing runs before these have synced. */
  readonly waitFor: readonly SyncedSource[];
  /** Milliseconds before the first retry of a key, doubling up to the second number; default 5 and 1,000,000. */
  readonly backoff?: { readonly base: number; readonly max: number };
  /** Retries before a key is dropped until it is added again; default: no limit. */
  readonly maxRetries?: number;
}

/** The part of an informer that a start waits for. */
export type SyncedSource = Pick<Informer<KubeObject>, 'synced'>;

/** How urgent a key is: changes that users wait for before what is only checked again. */
export const Priority = { change: 0, resync: -100 } as const;

export interface EnqueueOptions {
  /** Higher runs first; default {@link Priority.change}. A waiting key keeps the higher of two. */
  readonly priority?: number;
  /** Milliseconds to wait first. A key that waits already keeps the earlier of two. */
  readonly after?: number;
}

export interface Enqueue {
  (key: ObjectKey, options?: EnqueueOptions): void;
}

/** One queue with its workers; see {@link Reconcile} for the contract. Handlers call {@link enqueue}. */
export declare class Controller implements Runnable {
  constructor(options: ControllerOptions);
  /** Asks for a reconcile of the key. Usable before `run`. */
  enqueue(key: ObjectKey, options?: EnqueueOptions): void;
  run(signal: AbortSignal): Promise<void>;
}
