import type { Informer, InformerOptions } from '../client/informers/informer.ts';
import type { ResourceType } from '../client/resources.ts';
import { keyOf, type ObjectKey } from '../objects/key.ts';
import type { KubeObject } from '../objects/meta.ts';
import type { ControllerContext, Runnable } from './context.ts';
import { Controller, type ControllerOptions, type ReconcileResult, type SyncedSource } from './controller.ts';

/**
 * The base of reconcilers: a queue of keys, and informers that must have synced before the first key is taken. A
 * subclass gets its informers, adds handlers that enqueue keys, and implements {@link reconcile}.
 */
export abstract class Reconciler implements Runnable {
  protected readonly context: ControllerContext;
  protected readonly queue: Controller;
  readonly #sources: SyncedSource[] = [];

  /** @param name of the queue, in metrics and logs. */
  constructor(
    context: ControllerContext,
    name: string,
    options: Pick<ControllerOptions, 'workers' | 'backoff' | 'maxRetries'> = {},
  ) {
    this.context = context;
    this.queue = new Controller({
      ...options,
      name,
      context,
      waitFor: this.#sources,
      reconcile: (key, signal) => this.reconcile(key, signal),
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.queue.run(signal);
  }

  /** See `Reconcile` for the contract. */
  protected abstract reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined>;

  /** The informer of a resource; no key is taken before it has synced. */
  protected informer<T extends KubeObject>(
    resource: ResourceType<T>,
    options?: InformerOptions<T>,
  ): Informer<T> {
    const informer = this.context.informers.informer(resource, options);
    this.#sources.push(informer);
    return informer;
  }

  /** No key is taken before this has synced either. Call in the constructor. */
  protected waitFor(source: SyncedSource): void {
    this.#sources.push(source);
  }

  /** Enqueues the key of every object that comes or changes. */
  protected enqueueChanges(informer: Informer<KubeObject>): void {
    const enqueue = (object: KubeObject): void => this.queue.enqueue(keyOf(object));
    informer.addHandler({ added: enqueue, updated: enqueue });
  }
}
