import { indexByLabel } from '../../../client/informers/cache.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import { endpoints as endpointsResource, endpointSlices, services } from '../../../client/resources.ts';
import { keyOf, type ObjectKey } from '../../../objects/meta.ts';
import type { Endpoints, Service } from '../../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../objects/types/discovery.generated.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import type { ControllerSpec, KeyLoop, ReconcileResult } from '../../../runtime/key-loop.ts';
import { NewEvents } from '../../../runtime/new-events.ts';
import { OwnWrites } from '../../../runtime/own-writes.ts';
import { selectorOf } from '../service.ts';
import {
  managedByLabel,
  servicesOfForeignChange,
  SliceWriter,
  type SliceWrites,
} from '../slices/slice-writer.ts';
import { isMirrored, mirroringController, planMirror } from './plan.ts';
import { serviceNameLabel } from '../../../objects/endpoints.ts';

/**
 * Mirrors hand-made Endpoints of Services without selector into EndpointSlices (kube-controller-manager's
 * `endpointslice-mirroring-controller`).
 *
 * @param maxEndpointsPerSubset the most addresses to mirror per subset, 1 to 1000
 *   (`--mirroring-max-endpoints-per-subset`).
 */
export function endpointSliceMirroringController(maxEndpointsPerSubset = 1000): ControllerSpec {
  return {
    name: 'endpointslice-mirroring-controller',
    eventSource: 'endpoint-slice-mirroring-controller',
    queue: 'endpoint_slice_mirroring',
    build(loop) {
      const reconciler = new MirroringReconciler(loop, maxEndpointsPerSubset);
      return (key, signal) => reconciler.reconcile(key, signal);
    },
  };
}

class MirroringReconciler {
  readonly #context: ControllerContext;
  readonly #maxPerSubset: number;
  readonly #services: Informer<Service>;
  readonly #endpoints: Informer<Endpoints>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #writes: OwnWrites<EndpointSlice>;
  readonly #writer: SliceWriter;
  /** Deleted Services that matched the selector of Services. */
  readonly #deletedServices = new Set<ObjectKey>();
  readonly #events: NewEvents;

  constructor(loop: KeyLoop, maxPerSubset: number) {
    const { context } = loop;
    this.#context = context;
    this.#maxPerSubset = maxPerSubset;

    this.#services = loop.cache(services);
    this.#endpoints = loop.cache(endpointsResource);
    this.#slices = loop.cache(endpointSlices, {
      indexes: { [serviceNameLabel]: indexByLabel(serviceNameLabel) },
    });

    this.#writes = new OwnWrites(loop, this.#slices);
    this.#writer = new SliceWriter(context, this.#slices, this.#writes);
    this.#events = new NewEvents(context);

    loop.on(this.#services, (change) => {
      const { object: service } = change;
      const own = [keyOf(service)];
      if (change.kind === 'updated') return hasSelector(service) === hasSelector(change.old) ? [] : own;
      if (hasSelector(service) || (change.kind === 'added' && change.initial)) return [];
      if (change.kind === 'deleted' && context.serves(service)) this.#deletedServices.add(keyOf(service));
      return own;
    });
    loop.on(this.#endpoints, (change) => {
      const isConcerned = isMirrored(change.object) || (change.kind === 'updated' && isMirrored(change.old));
      return isConcerned ? [keyOf(change.object)] : [];
    });
    // From the start: mirrors whose Endpoints were deleted, or opted out, while no controller ran.
    loop.on(this.#slices, (change) => servicesOfForeignChange(change, mirroringController, this.#writes));
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const endpoints = this.#endpoints.cache.get(key);
    const service = this.#services.cache.get(key);
    if (service !== undefined) {
      this.#deletedServices.delete(key);
      if (!this.#context.serves(service)) return undefined;
    }
    const waitMs = this.#writes.pendingMs(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const existing = this.#slices.cache
      .byIndex(serviceNameLabel, key)
      .filter(({ metadata }) => metadata.labels?.[managedByLabel] === mirroringController);
    if (endpoints === undefined || !isMirrored(endpoints) || service === undefined || hasSelector(service)) {
      this.#events.forget(key);
      this.#writer.forget(key);
      // Without a Service, only the labels of the mirror (those of the Endpoints) show whether it matches the selector
      // of Services.
      const ours = (slice: EndpointSlice): boolean =>
        service !== undefined || this.#deletedServices.has(key) || this.#context.serves(slice);
      const surplus = existing.filter(
        (slice) => slice.metadata.deletionTimestamp === undefined && ours(slice),
      );
      await this.#write(key, { create: [], update: [], delete: surplus }, signal);
      this.#deletedServices.delete(key);
      return undefined;
    }
    const hiddenMs = this.#writer.hiddenMs(key, endpoints.metadata.uid ?? '', existing);
    if (hiddenMs > 0) return { requeueAfterMs: hiddenMs };
    const plan = planMirror({ endpoints, existing, maxPerSubset: this.#maxPerSubset });
    this.#events.record(key, endpoints, plan.events);
    await this.#write(key, plan, signal);
    return undefined;
  }

  async #write(key: ObjectKey, writes: SliceWrites, signal: AbortSignal): Promise<void> {
    if (writes.create.length + writes.update.length + writes.delete.length === 0) return;
    const { counts, failures } = await this.#writer.write(writes, key, signal);
    const [first] = failures;
    if (first !== undefined) throw first.error;
    this.#context.log.info({ key, ...counts }, 'mirrored endpoint slices written');
  }
}

function hasSelector(service: Service): boolean {
  return selectorOf(service) !== undefined;
}
