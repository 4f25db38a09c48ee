import { isConflict } from '../../../client/errors.ts';
import type { PlannedEvent } from '../../../client/events/events.ts';
import { indexByLabel } from '../../../client/informers/cache.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import { endpointSlices, nodes, pods, services } from '../../../client/resources.ts';
import { keyOf, type ObjectKey } from '../../../objects/meta.ts';
import { isNodeReady } from '../../../objects/pods.ts';
import { errorMessage } from '../../../objects/status.ts';
import type { Node, Pod, Service } from '../../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../objects/types/discovery.generated.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import {
  type ControllerSpec,
  type KeyLoop,
  ownKey,
  type ReconcileResult,
} from '../../../runtime/key-loop.ts';
import { NewEvents } from '../../../runtime/new-events.ts';
import { OwnWrites } from '../../../runtime/own-writes.ts';
import { SelectorIndex, trimPod } from '../backing-pods.ts';
import { managedSelector } from '../service.ts';
import { AllocationGrace, TriggerTimes } from '../timing.ts';
import { type HintsByZone, isOverloaded, zoneOf, type ZoneShares, zoneShares } from './plan-hints.ts';
import type { NodePlace } from './plan-packing.ts';
import { planSlices, type SlicesPlan } from './plan.ts';
import {
  endpointSliceController,
  managedByLabel,
  servicesOfForeignChange,
  SliceWriter,
} from './slice-writer.ts';
import { serviceNameLabel } from '../../../objects/endpoints.ts';

const nodesKey = 'nodes';

/**
 * Follows the zones of the Nodes and the hints given by their capacity, and enqueues the Services whose hints no longer
 * fit.
 */
class TopologyHints {
  /** Checks the Services after the Nodes changed; one key stands for all of them. */
  readonly #checks: KeyLoop;
  readonly #nodes: Informer<Node>;
  readonly #hints = new Map<ObjectKey, ReadonlyMap<string, HintsByZone>>();
  #shares: { zones: ZoneShares | undefined } | undefined;

  constructor(loop: KeyLoop, nodes: Informer<Node>) {
    this.#nodes = nodes;
    this.#checks = loop.beside('endpoint_slice_topology', { workers: 1 }, () => () => {
      for (const [key, families] of this.#hints) {
        if ([...families.values()].some((hints) => isOverloaded(hints, this.zones()))) loop.enqueue(key);
      }
      return Promise.resolve(undefined);
    });
    nodes.addHandler({
      added: (_node, initial) => this.#changed(!initial),
      updated: (node, old) => {
        if (isNodeReady(node) !== isNodeReady(old) || zoneOf(node) !== zoneOf(old)) this.#changed(true);
      },
      deleted: () => this.#changed(true),
    });
  }

  /** The zones' shares of the CPU, computed on first use after a change. */
  zones(): ZoneShares | undefined {
    this.#shares ??= { zones: zoneShares(this.#nodes.cache.values()) };
    return this.#shares.zones;
  }

  /** True when the last plan for a Service gave hints by capacity. */
  has(key: ObjectKey): boolean {
    return this.#hints.has(key);
  }

  /** Records the hints of a plan, per address family; none removes the Service. */
  note(key: ObjectKey, hints: ReadonlyMap<string, HintsByZone>): void {
    if (hints.size === 0) this.#hints.delete(key);
    else this.#hints.set(key, hints);
  }

  #changed(check: boolean): void {
    this.#shares = undefined;
    if (check && this.#hints.size > 0) this.#checks.enqueue(nodesKey);
  }
}

/** The Services that leave out Pods because a Node is missing. */
class PodsWithoutNode {
  readonly #services = new Map<string, Set<ObjectKey>>();
  readonly #nodes = new Map<ObjectKey, Set<string>>();

  /** Records the Pods that the last plan for a Service left out; an empty list removes the Service. */
  note(key: ObjectKey, pods: readonly Pod[]): void {
    for (const node of this.#nodes.get(key) ?? []) {
      const waiting = this.#services.get(node);
      waiting?.delete(key);
      if (waiting?.size === 0) this.#services.delete(node);
    }
    const nodes = new Set(pods.flatMap(({ spec }) => spec.nodeName ?? []));
    if (nodes.size === 0) this.#nodes.delete(key);
    else this.#nodes.set(key, nodes);
    for (const node of nodes) {
      const waiting = this.#services.get(node);
      if (waiting === undefined) this.#services.set(node, new Set([key]));
      else waiting.add(key);
    }
  }

  /** The Services that leave out Pods of a Node. */
  waitingFor(nodeName: string): readonly ObjectKey[] {
    return [...(this.#services.get(nodeName) ?? [])];
  }
}

/** Changes of slices by other clients come in bursts: they are reconciled together. */
const foreignChangeDelayMs = 1000;

/**
 * Writes the EndpointSlices of Services with a selector (kube-controller-manager's `endpointslice-controller`).
 *
 * @param maxEndpointsPerSlice 1 to 1000 (`--max-endpoints-per-slice`).
 */
export function endpointSlicesController(maxEndpointsPerSlice = 100): ControllerSpec {
  return {
    name: 'endpointslice-controller',
    eventSource: 'endpoint-slice-controller',
    queue: 'endpoint_slice',
    workers: 10,
    build(loop) {
      const reconciler = new EndpointSliceReconciler(loop, maxEndpointsPerSlice);
      return (key, signal) => reconciler.reconcile(key, signal);
    },
  };
}

class EndpointSliceReconciler {
  readonly #context: ControllerContext;
  readonly #maxPerSlice: number;
  // The caches.
  readonly #services: Informer<Service>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #nodes: Informer<Node>;
  // What no cache shows.
  readonly #selectorIndex: SelectorIndex;
  readonly #writes: OwnWrites<EndpointSlice>;
  readonly #writer: SliceWriter;
  readonly #topology: TopologyHints;
  readonly #grace: AllocationGrace;
  readonly #withoutNode = new PodsWithoutNode();
  readonly #triggerTimes = new TriggerTimes();
  readonly #events: NewEvents;

  constructor(loop: KeyLoop, maxPerSlice: number) {
    const { clock } = loop.context;
    this.#context = loop.context;
    this.#maxPerSlice = maxPerSlice;

    this.#services = loop.cache(services);
    this.#slices = loop.cache(endpointSlices, {
      indexes: { [serviceNameLabel]: indexByLabel(serviceNameLabel) },
    });
    this.#nodes = loop.cache(nodes, { transform: trimNode });
    const podCache = loop.cache(pods, { transform: trimPod });

    this.#selectorIndex = new SelectorIndex(this.#services, podCache);
    this.#writes = new OwnWrites(loop, this.#slices);
    this.#writer = new SliceWriter(loop.context, this.#slices, this.#writes);
    this.#topology = new TopologyHints(loop, this.#nodes);
    this.#grace = new AllocationGrace(() => clock.monotonic());
    this.#events = new NewEvents(loop.context);

    loop.on(this.#services, ownKey);
    loop.on(podCache, (change) => {
      if (change.kind === 'updated') return this.#selectorIndex.servicesOfChange(change.object, change.old);
      // At the start every Service is enqueued anyway.
      const isInitial = change.kind === 'added' && change.initial;
      return isInitial ? [] : this.#selectorIndex.servicesOf(change.object);
    });
    loop.on(this.#nodes, ({ kind, object: { metadata } }) =>
      kind === 'added' ? this.#withoutNode.waitingFor(metadata.name ?? '') : [],
    );
    loop.on(this.#slices, (change) => {
      if (change.kind === 'added' && change.initial) return [];
      for (const key of servicesOfForeignChange(change, endpointSliceController, this.#writes)) {
        loop.enqueue(key, { afterMs: foreignChangeDelayMs });
      }
      return [];
    });
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const service = this.#services.cache.get(key);
    if (service === undefined) {
      // Its slices are left to the garbage collector.
      this.#forget(key);
      return undefined;
    }
    const selector = managedSelector(service);
    if (selector === undefined || !this.#context.serves(service)) return undefined;
    const existing = this.#ownSlices(key);
    const waitMs = Math.max(
      this.#grace.left(key, service),
      this.#writes.pendingMs(key),
      this.#writer.hiddenMs(key, service.metadata.uid ?? '', existing),
    );
    if (waitMs > 0) return { requeueAfterMs: waitMs };

    const backing = this.#selectorIndex.podsOf(service, selector);
    const plan = planSlices({
      service,
      pods: backing,
      existing,
      placeOf: (nodeName) => this.#placeOf(nodeName),
      zones: this.#topology.zones(),
      hadTopologyHints: this.#topology.has(key),
      triggerTime: this.#triggerTimes.observe(key, service, backing),
      maxPerSlice: this.#maxPerSlice,
    });
    this.#topology.note(key, plan.topologyHints);
    this.#withoutNode.note(key, plan.withoutNode);
    await this.#write(key, service, plan, signal);
    this.#events.record(key, service, [...this.#skipped(service, plan), ...plan.events]);
    return undefined;
  }

  async #write(key: ObjectKey, service: Service, plan: SlicesPlan, signal: AbortSignal): Promise<void> {
    if (plan.create.length + plan.update.length + plan.delete.length === 0) return;
    const { counts, failures } = await this.#writer.write(plan, key, signal);
    if (failures.length === 0) this.#context.log.info({ key, ...counts }, 'endpoint slices written');
    // A conflict is expected when the cache is behind.
    const reported = failures.filter(({ error }) => !isConflict(error));
    if (reported.length > 0) {
      const why = reported.map(
        ({ attempt, error }) => `${attempt} for Service ${keyOf(service)}: ${errorMessage(error)}`,
      );
      this.#events.record(key, service, [notUpdated(service, why)]);
    }
    const [first] = reported.length > 0 ? reported : failures;
    if (first !== undefined) throw first.error;
  }

  #ownSlices(key: ObjectKey): readonly EndpointSlice[] {
    return this.#slices.cache
      .byIndex(serviceNameLabel, key)
      .filter(
        ({ metadata }) =>
          metadata.labels?.[managedByLabel] === endpointSliceController &&
          metadata.deletionTimestamp === undefined,
      );
  }

  #placeOf(nodeName: string): NodePlace | undefined {
    const node = this.#nodes.cache.get(nodeName);
    if (node === undefined) return undefined;
    const zone = zoneOf(node);
    return zone === undefined ? {} : { zone };
  }

  #skipped(service: Service, { withoutNode }: SlicesPlan): readonly PlannedEvent[] {
    if (withoutNode.length === 0) return [];
    const why = withoutNode.map(
      ({ metadata, spec }) =>
        `skipping Pod ${metadata.name ?? ''} for Service ${keyOf(service)}: Node ${spec.nodeName ?? ''} Not Found`,
    );
    return [notUpdated(service, why)];
  }

  #forget(key: ObjectKey): void {
    this.#writer.forget(key);
    this.#triggerTimes.forget(key);
    this.#grace.forget(key);
    this.#events.forget(key);
    this.#withoutNode.note(key, []);
    this.#topology.note(key, new Map());
  }
}

function notUpdated(service: Service, reasons: readonly string[]): PlannedEvent {
  const why = reasons.length === 1 ? reasons.join('') : `[${reasons.join(', ')}]`;
  const message = `Error updating Endpoint Slices for Service ${keyOf(service)}: ${why}`;
  return { type: 'Warning', reason: 'FailedToUpdateEndpointSlices', message };
}

/** Without the large parts that are not read here: images, volumes and managed fields. */
function trimNode(node: Node): Node {
  Reflect.deleteProperty(node.metadata, 'managedFields');
  for (const member of ['images', 'volumesInUse', 'volumesAttached'])
    Reflect.deleteProperty(node.status, member);
  return node;
}
