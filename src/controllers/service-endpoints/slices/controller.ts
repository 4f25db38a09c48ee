import type { Informer } from '../../../client/informers/informer.ts';
import { type ObjectKey, joinKey, keyOf } from '../../../objects/meta.ts';
import { isNodeReady } from '../../../objects/pods.ts';
import type { Node, Service, Pod } from '../../../objects/types/core.generated.ts';
import type { ControllerContext, ControllerDefinition } from '../../../runtime/context.ts';
import { Controller, Priority, type ReconcileResult, Reconciler } from '../../../runtime/key-loop.ts';
import { type HintsByZone, isOverloaded, zoneOf, type ZoneShares, zoneShares } from './plan-hints.ts';
import { isConflict } from '../../../client/errors.ts';
import { indexByLabel } from '../../../client/informers/cache.ts';
import { endpointSlices, services, nodes } from '../../../client/resources.ts';
import type { EndpointSlice } from '../../../objects/types/discovery.generated.ts';
import { AllocationGrace, TriggerTimes } from '../timing.ts';
import { Membership, podInformer } from '../backing-pods.ts';
import { managedSelector } from '../service.ts';
import type { NodePlace } from './plan-packing.ts';
import { planSlices, type SlicesPlan } from './plan.ts';
import {
  followSlices,
  endpointSliceController,
  managedByLabel,
  serviceNameLabel,
  SliceWriter,
} from './slice-writer.ts';
import { SliceTracker } from '../../../runtime/own-writes.ts';
import { errorMessage } from '../../../objects/status.ts';

const nodesKey = 'nodes';

/**
 * Follows the zones of the Nodes and the hints given by their capacity, and enqueues the Services whose hints no longer
 * fit.
 */
class TopologyHints {
  /** Checks the Services after the Nodes changed; one key stands for all of them. */
  readonly controller: Controller;
  readonly #nodes: Informer<Node>;
  readonly #hints = new Map<ObjectKey, ReadonlyMap<string, HintsByZone>>();
  #shares: { zones: ZoneShares | undefined } | undefined;

  /** @param overloaded called with the key of each Service that must be planned again. */
  constructor(context: ControllerContext, nodes: Informer<Node>, overloaded: (key: ObjectKey) => void) {
    this.#nodes = nodes;
    this.controller = new Controller({
      name: 'endpoint_slice_topology',
      context,
      workers: 1,
      waitFor: [nodes],
      reconcile: () => {
        for (const [key, families] of this.#hints) {
          for (const hints of families.values()) {
            if (!isOverloaded(hints, this.zones())) continue;
            overloaded(key);
            break;
          }
        }
        return Promise.resolve(undefined);
      },
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
    if (check && this.#hints.size > 0) this.controller.enqueue(nodesKey);
  }
}

/** The informer of Nodes that all controllers of service networking share. */
function nodeInformer(context: Pick<ControllerContext, 'informers'>): Informer<Node> {
  return context.informers.informer(nodes, { transform: slimNode });
}

/** Drops the large parts of Nodes that are not read here: images, volumes and managed fields. */
function slimNode(node: Node): Node {
  Reflect.deleteProperty(node.metadata, 'managedFields');
  for (const member of ['images', 'volumesInUse', 'volumesAttached']) {
    Reflect.deleteProperty(node.status, member);
  }
  return node;
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

/** Milliseconds by which a reconcile after changes of slices by others is delayed, to batch them. */
const sliceChangeDelay = 1000;

/** Options of {@link endpointSlicesController}. */
export interface EndpointSlicesOptions {
  /** The most endpoints per slice, 1 to 1000; default 100 (`--max-endpoints-per-slice`). */
  readonly maxEndpointsPerSlice?: number;
}

/** Writes the EndpointSlices of Services with a selector (kube-controller-manager's `endpointslice-controller`). */
export function endpointSlicesController(options: EndpointSlicesOptions = {}): ControllerDefinition {
  return {
    name: 'endpointslice-controller',
    start(context) {
      const reconciler = new EndpointSliceReconciler(context, options.maxEndpointsPerSlice ?? 100);
      return [reconciler, reconciler.topology.controller];
    },
  };
}

class EndpointSliceReconciler extends Reconciler {
  readonly topology: TopologyHints;
  readonly #maxPerSlice: number;
  readonly #services: Informer<Service>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #nodes: Informer<Node>;
  readonly #membership: Membership;
  readonly #tracker: SliceTracker;
  readonly #writer: SliceWriter;
  readonly #grace: AllocationGrace;
  readonly #withoutNode = new PodsWithoutNode();
  readonly #times = new TriggerTimes();
  /** The last message of Events by Service: an Event is recorded only for a new one. */
  readonly #lastMessages = new Map<ObjectKey, string>();

  constructor(context: ControllerContext, maxPerSlice: number) {
    super(context, 'endpoint_slice', { workers: 10 });
    this.#maxPerSlice = maxPerSlice;
    this.#services = this.informer(services);
    this.#slices = this.informer(endpointSlices);
    this.#slices.addIndex(serviceNameLabel, indexByLabel(serviceNameLabel));
    this.#nodes = nodeInformer(context);
    const pods = podInformer(context);
    this.#membership = new Membership(this.#services, pods);
    this.#tracker = new SliceTracker(() => context.clock.monotonic());
    this.#grace = new AllocationGrace(() => context.clock.monotonic());
    this.#writer = new SliceWriter(context.clients.for(endpointSlices), this.#tracker);
    this.topology = new TopologyHints(context, this.#nodes, (key) => this.queue.enqueue(key));
    const enqueue = (keys: Iterable<ObjectKey>): void => {
      for (const key of keys) this.queue.enqueue(key);
    };
    this.waitFor(pods);
    this.waitFor(this.#nodes);
    this.#services.addHandler({
      added: (service, initial) => {
        this.queue.enqueue(keyOf(service), initial ? { priority: Priority.resync } : {});
      },
      updated: (service) => this.queue.enqueue(keyOf(service)),
      deleted: (service) => this.queue.enqueue(keyOf(service)),
    });
    pods.addHandler({
      // At the start every Service is enqueued anyway.
      added: (pod, initial) => enqueue(initial ? [] : this.#membership.servicesOf(pod)),
      updated: (pod, old) => enqueue(this.#membership.servicesOfChange(pod, old)),
      deleted: (pod) => enqueue(this.#membership.servicesOf(pod)),
    });
    this.#nodes.addHandler({
      added: (node) => enqueue(this.#withoutNode.waitingFor(node.metadata.name ?? '')),
    });
    followSlices({
      slices: this.#slices,
      managedBy: endpointSliceController,
      tracker: this.#tracker,
      delay: sliceChangeDelay,
      // Every Service is enqueued then, which covers its slices.
      fromStart: false,
      enqueue: (key, how) => this.queue.enqueue(key, how),
    });
  }

  protected override async reconcile(
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const service = this.#services.cache.get(key);
    const selector = service === undefined ? undefined : managedSelector(service);
    if (service === undefined || selector === undefined) {
      // The slices of a deleted Service are left to the garbage collector; other slices are not touched.
      if (service === undefined) this.#forget(key);
      return undefined;
    }
    if (!this.context.serves(service)) return undefined;
    const left = this.#grace.left(key, service);
    if (left > 0) return { requeueAfter: left };
    const existing = this.#slices.cache
      .byIndex(serviceNameLabel, key)
      .filter(
        ({ metadata }) =>
          metadata.labels?.[managedByLabel] === endpointSliceController &&
          metadata.deletionTimestamp === undefined,
      );
    const uid = service.metadata.uid ?? '';
    const lag = this.#tracker.lag(key, uid, existing);
    if (lag > 0) return { requeueAfter: lag };

    const pods = this.#membership.podsOf(service, selector);
    const plan = planSlices({
      service,
      pods,
      existing,
      placeOf: (nodeName) => this.#placeOf(nodeName),
      zones: this.topology.zones(),
      hadTopologyHints: this.topology.has(key),
      triggerTime: this.#times.observe(key, service, pods),
      maxPerSlice: this.#maxPerSlice,
    });
    this.topology.note(key, plan.topologyHints);
    this.#withoutNode.note(key, plan.withoutNode);
    await this.#write(key, service, plan, signal);
    this.#sendEvents(key, service, plan);
    return undefined;
  }

  async #write(key: ObjectKey, service: Service, plan: SlicesPlan, signal: AbortSignal): Promise<void> {
    if (plan.create.length + plan.update.length + plan.delete.length === 0) return;
    const owner = { key, uid: service.metadata.uid ?? '' };
    const { counts, failures } = await this.#writer.write(plan, owner, signal);
    if (failures.length === 0) this.context.log.info({ key, ...counts }, 'endpoint slices written');
    // A conflict is expected when the cache is behind.
    const reported = failures.filter(({ error }) => !isConflict(error));
    if (reported.length > 0) {
      const { namespace = '', name = '' } = service.metadata;
      const reasons = reported.map(({ attempt, error }) => {
        const why = errorMessage(error);
        return `${attempt} for Service ${joinKey(namespace, name)}: ${why}`;
      });
      this.#fail(key, service, reasons);
    }
    const [first] = reported.length > 0 ? reported : failures;
    if (first !== undefined) throw first.error;
  }

  #sendEvents(key: ObjectKey, service: Service, plan: SlicesPlan): void {
    const { namespace = '', name = '' } = service.metadata;
    if (plan.withoutNode.length > 0) {
      const reasons = plan.withoutNode.map(
        ({ metadata, spec }) =>
          `skipping Pod ${metadata.name ?? ''} for Service ${joinKey(namespace, name)}: Node ${spec.nodeName ?? ''} Not Found`,
      );
      this.#fail(key, service, reasons);
    }
    if (plan.events.length === 0) {
      if (plan.withoutNode.length === 0) this.#lastMessages.delete(key);
      return;
    }
    const all = plan.events.map(({ message }) => message).join('\n');
    if (this.#lastMessages.get(key) === all) return;
    this.#lastMessages.set(key, all);
    for (const { type, reason, message } of plan.events) {
      this.context.events.event(service, type, reason, message);
    }
  }

  #fail(key: ObjectKey, service: Service, reasons: readonly string[]): void {
    const why = reasons.length === 1 ? reasons.join('') : `[${reasons.join(', ')}]`;
    if (this.#lastMessages.get(key) === why) return;
    this.#lastMessages.set(key, why);
    const { namespace = '', name = '' } = service.metadata;
    const message = `Error updating Endpoint Slices for Service ${joinKey(namespace, name)}: ${why}`;
    this.context.events.event(service, 'Warning', 'FailedToUpdateEndpointSlices', message);
  }

  #placeOf(nodeName: string): NodePlace | undefined {
    const node = this.#nodes.cache.get(nodeName);
    if (node === undefined) return undefined;
    const zone = zoneOf(node);
    return zone === undefined ? {} : { zone };
  }

  #forget(key: ObjectKey): void {
    this.#tracker.forget(key);
    this.#times.forget(key);
    this.#grace.forget(key);
    this.#lastMessages.delete(key);
    this.#withoutNode.note(key, []);
    this.topology.note(key, new Map());
  }
}
