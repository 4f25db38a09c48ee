import { indexByLabel } from '../../../client/informers/cache.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import { endpoints as endpointsResource, endpointSlices, services } from '../../../client/resources.ts';
import type { Endpoints, Service } from '../../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../objects/types/discovery.generated.ts';
import { keyOf, type ObjectKey } from '../../../objects/meta.ts';
import { followSlices } from '../slices/slice-writer.ts';
import { managedByLabel, serviceNameLabel } from '../slices/slice-writer.ts';
import { SliceTracker } from '../../../runtime/own-writes.ts';
import { SliceWriter } from '../slices/slice-writer.ts';
import type { ControllerContext, ControllerDefinition } from '../../../runtime/context.ts';
import { Priority, type ReconcileResult } from '../../../runtime/key-loop.ts';
import { Reconciler } from '../../../runtime/key-loop.ts';
import { selectorOf } from '../service.ts';
import { isMirrored, mirroringController, planMirror } from './plan.ts';

/** Options of {@link endpointSliceMirroringController}. */
export interface MirroringOptions {
  /** The most addresses to mirror per subset, 1 to 1000; default 1000 (`--mirroring-max-endpoints-per-subset`). */
  readonly maxEndpointsPerSubset?: number;
}

/**
 * Mirrors hand-made Endpoints of Services without selector into EndpointSlices (kube-controller-manager's
 * `endpointslice-mirroring-controller`).
 */
export function endpointSliceMirroringController(options: MirroringOptions = {}): ControllerDefinition {
  return {
    name: 'endpointslice-mirroring-controller',
    start: (context) => [new MirroringReconciler(context, options.maxEndpointsPerSubset ?? 1000)],
  };
}

class MirroringReconciler extends Reconciler {
  readonly #maxPerSubset: number;
  readonly #services: Informer<Service>;
  readonly #endpoints: Informer<Endpoints>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #tracker: SliceTracker;
  readonly #writer: SliceWriter;
  /** Deleted Services that matched the selector of Services. */
  readonly #departed = new Set<ObjectKey>();
  /** The last messages of Events by Endpoints: Events are recorded only for new ones. */
  readonly #lastMessages = new Map<ObjectKey, string>();

  constructor(context: ControllerContext, maxPerSubset: number) {
    super(context, 'endpoint_slice_mirroring');
    this.#maxPerSubset = maxPerSubset;
    this.#services = this.informer(services);
    this.#endpoints = this.informer(endpointsResource);
    this.#slices = this.informer(endpointSlices);
    this.#slices.addIndex(serviceNameLabel, indexByLabel(serviceNameLabel));
    this.#tracker = new SliceTracker(() => context.clock.monotonic());
    this.#writer = new SliceWriter(context.clients.for(endpointSlices), this.#tracker);
    this.#services.addHandler({
      added: (service, initial) => {
        if (!hasSelector(service) && !initial) this.queue.enqueue(keyOf(service));
      },
      updated: (service, old) => {
        if (hasSelector(service) !== hasSelector(old)) this.queue.enqueue(keyOf(service));
      },
      deleted: (service) => {
        if (hasSelector(service)) return;
        if (context.serves(service)) this.#departed.add(keyOf(service));
        this.queue.enqueue(keyOf(service));
      },
    });
    this.#endpoints.addHandler({
      added: (object, initial) => {
        if (!isMirrored(object)) return;
        this.queue.enqueue(keyOf(object), initial ? { priority: Priority.resync } : {});
      },
      updated: (object, old) => {
        if (isMirrored(object) || isMirrored(old)) this.queue.enqueue(keyOf(object));
      },
      deleted: (object) => {
        if (isMirrored(object)) this.queue.enqueue(keyOf(object));
      },
    });
    followSlices({
      slices: this.#slices,
      managedBy: mirroringController,
      tracker: this.#tracker,
      delay: 0,
      // Finds mirrors whose Endpoints were deleted, or opted out, while no controller ran.
      fromStart: true,
      enqueue: (key, how) => this.queue.enqueue(key, how),
    });
  }

  protected override async reconcile(
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const endpoints = this.#endpoints.cache.get(key);
    const service = this.#services.cache.get(key);
    if (service !== undefined) {
      this.#departed.delete(key);
      if (!this.context.serves(service)) return undefined;
    }
    const existing = this.#slices.cache
      .byIndex(serviceNameLabel, key)
      .filter(({ metadata }) => metadata.labels?.[managedByLabel] === mirroringController);
    if (endpoints === undefined || !isMirrored(endpoints) || service === undefined || hasSelector(service)) {
      this.#tracker.forget(key);
      this.#lastMessages.delete(key);
      // Without a Service, only the labels of the mirror (those of the Endpoints) show whether it matches the selector
      // of Services.
      const ours = (slice: EndpointSlice): boolean =>
        service !== undefined || this.#departed.has(key) || this.context.serves(slice);
      const surplus = existing.filter(
        (slice) => slice.metadata.deletionTimestamp === undefined && ours(slice),
      );
      await this.#write(key, '', { create: [], update: [], delete: surplus }, signal);
      this.#departed.delete(key);
      return undefined;
    }
    const uid = endpoints.metadata.uid ?? '';
    const lag = this.#tracker.lag(key, uid, existing);
    if (lag > 0) return { requeueAfter: lag };
    const plan = planMirror({ endpoints, existing, maxPerSubset: this.#maxPerSubset });
    this.#sendEvents(key, endpoints, plan.events);
    await this.#write(key, uid, plan, signal);
    return undefined;
  }

  async #write(
    key: ObjectKey,
    uid: string,
    writes: Pick<ReturnType<typeof planMirror>, 'create' | 'update' | 'delete'>,
    signal: AbortSignal,
  ): Promise<void> {
    if (writes.create.length + writes.update.length + writes.delete.length === 0) return;
    const { counts, failures } = await this.#writer.write(writes, { key, uid }, signal);
    const [first] = failures;
    if (first !== undefined) throw first.error;
    this.context.log.info({ key, ...counts }, 'mirrored endpoint slices written');
  }

  #sendEvents(key: ObjectKey, endpoints: Endpoints, events: ReturnType<typeof planMirror>['events']): void {
    const all = events.map(({ message }) => message).join('\n');
    if (this.#lastMessages.get(key) === all) return;
    if (all === '') this.#lastMessages.delete(key);
    else this.#lastMessages.set(key, all);
    for (const { type, reason, message } of events) {
      this.context.events.event(endpoints, type, reason, message);
    }
  }
}

function hasSelector(service: Service): boolean {
  return selectorOf(service) !== undefined;
}
