import { isAborted } from '../../client/clock.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../client/errors.ts';
import { byNode, indexByNode } from '../../client/informers/cache.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { nodes as nodesResource, pods as podsResource } from '../../client/resources.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import { isFinished, isNodeReady, isPodReady } from '../../objects/pods.ts';
import { formatTime } from '../../objects/formats/time.ts';
import type { Node, Pod, PodCondition } from '../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import {
  type ControllerSpec,
  type KeyLoop,
  type Reconcile,
  type ReconcileResult,
  type Change,
  ownKey,
} from '../../runtime/key-loop.ts';
import { StatusWriter } from '../../runtime/status-writer.ts';
import {
  draftNode,
  hasTaints,
  isDown,
  isSimulated,
  NodeCidrs,
  nodeStatusReportMs,
  planNodeStatus,
  planTaints,
  evictionTime,
} from './plan.ts';
import { jsonEqual } from '../../objects/json.ts';

/** Options of {@link nodesController}. */
export interface NodesOptions {
  /** How many Nodes to register at the start. */
  readonly count: number;
  /** One CIDR, or two of different families, that Pods get their addresses from. */
  readonly clusterCidrs: readonly string[];
}

/**
 * Simulates Nodes: registers them, gives them pod CIDRs, and maintains addresses, conditions and taints, also for Nodes
 * that users created with the annotation `servicenet.dev/kubelet: simulated`. In a cluster, kubelet,
 * node-ipam-controller and node-lifecycle-controller do this.
 */
export function nodesController({ count, clusterCidrs }: NodesOptions): ControllerSpec {
  return {
    name: 'node-lifecycle-controller',
    eventSource: 'node-controller',
    queue: 'node_lifecycle',
    build(loop) {
      const reconciler = new NodeReconciler(loop, clusterCidrs);
      loop.beside('node_registration', { workers: 1 }, (registration) => registerNodes(registration, count));
      return (key, signal) => reconciler.reconcile(key, signal);
    },
  };
}

/** Registers the first Nodes one after another, each once: one that a user deletes does not come back. */
function registerNodes(loop: KeyLoop, count: number): Reconcile {
  const { clients, log } = loop.context;
  const client = clients.for(nodesResource);

  const nodes = loop.cache(nodesResource);

  const drafts = new Map<ObjectKey, ReturnType<typeof draftNode>>();
  for (let number = 1; number <= count; number++) {
    const draft = draftNode(number);
    drafts.set(keyOf(draft), draft);
  }

  for (const key of drafts.keys()) loop.enqueue(key);

  return async (key, signal) => {
    const draft = drafts.get(key);
    if (draft === undefined || nodes.cache.has(key)) return undefined;
    try {
      await client.create(draft, { signal });
    } catch (error) {
      if (!isAlreadyExists(error) && !isAborted(signal))
        log.error({ err: error, node: key }, 'could not register a node');
    }
    return undefined;
  };
}

class NodeReconciler {
  readonly #context: ControllerContext;
  readonly #nodeClient: ResourceClient<Node>;
  readonly #podClient: ResourceClient<Pod>;
  readonly #nodes: Informer<Node>;
  readonly #pods: Informer<Pod>;
  readonly #cidrs: readonly NodeCidrs[];
  readonly #status: StatusWriter<Node>;

  constructor(loop: KeyLoop, clusterCidrs: readonly string[]) {
    const { clients } = loop.context;
    this.#context = loop.context;
    this.#nodeClient = clients.for(nodesResource);
    this.#podClient = clients.for(podsResource);

    this.#nodes = loop.cache(nodesResource);
    this.#pods = loop.cache(podsResource, { indexes: { [byNode]: indexByNode } });

    this.#cidrs = clusterCidrs.map((cidr) => new NodeCidrs(cidr));
    this.#status = new StatusWriter(loop, this.#nodes);

    loop.on(this.#nodes, ({ kind, object: node }) => {
      const podCIDRs = node.spec.podCIDRs ?? [];
      if (kind === 'deleted') {
        this.#release(podCIDRs);
        return this.#withoutCidrs();
      }
      for (const cidr of podCIDRs) for (const cidrs of this.#cidrs) cidrs.occupy(cidr);
      return [keyOf(node)];
    });
    loop.on(this.#pods, ({ kind, object: pod }) => {
      // A kubelet may have reported the Pod as ready just when its node stopped.
      if (kind !== 'updated' || !isPodReady(pod)) return [];
      const node = this.#nodes.cache.get(pod.spec.nodeName ?? '');
      return node !== undefined && isDown(node) ? [keyOf(node)] : [];
    });
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const node = this.#nodes.cache.get(key);
    if (node === undefined || !isSimulated(node) || node.metadata.deletionTimestamp !== undefined)
      return undefined;
    const waitMs = this.#status.pendingMs(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };

    const now = this.#context.clock.now();
    const taints = planTaints(node, now);
    const lacksCidr = (node.spec.podCIDRs ?? []).length === 0;
    if (lacksCidr || !hasTaints(node, taints)) {
      const podCIDRs = lacksCidr ? this.#allocateCidrs(node) : undefined;
      const { name = '', uid, resourceVersion } = node.metadata;
      const spec = {
        taints: taints.length === 0 ? null : taints,
        ...(podCIDRs === undefined ? {} : { podCIDR: podCIDRs[0], podCIDRs }),
      };
      const patch = { metadata: { uid, resourceVersion }, spec };
      const written = await this.#nodeClient
        .mergePatch('', name, patch, { signal })
        .catch((error: unknown) => {
          // After any other failure the server may have them.
          if (isConflict(error) || isNotFound(error)) this.#release(podCIDRs ?? []);
          throw error;
        });
      this.#status.written(written);
      await this.#status.write(written, planNodeStatus(written, now), signal);
    } else {
      await this.#status.write(node, planNodeStatus(node, now), signal);
    }
    if (!isDown(node)) return { requeueAfterMs: nodeStatusReportMs };
    await this.#markPods(node, now, signal);
    return undefined;
  }

  #release(podCIDRs: readonly string[]): void {
    for (const cidr of podCIDRs) for (const cidrs of this.#cidrs) cidrs.release(cidr);
  }

  #withoutCidrs(): readonly ObjectKey[] {
    return [...this.#nodes.cache.values()]
      .filter(({ spec }) => (spec.podCIDRs ?? []).length === 0)
      .map(keyOf);
  }

  /** One of each range; undefined, after an Event, when a range has none left. */
  #allocateCidrs(node: Node): string[] | undefined {
    const podCIDRs = this.#cidrs.flatMap((cidrs) => cidrs.next() ?? []);
    if (podCIDRs.length === this.#cidrs.length) return podCIDRs;
    this.#release(podCIDRs);
    const name = node.metadata.name ?? '';
    this.#context.events.event(
      node,
      'Normal',
      'CIDRNotAvailable',
      `Node ${name} status is now: CIDRNotAvailable`,
    );
    return undefined;
  }

  /** Sets the Pods of a node without heartbeat to not ready (`MarkPodsNotReady`). */
  async #markPods(node: Node, now: number, signal: AbortSignal): Promise<void> {
    const { events } = this.#context;
    if (isNodeReady(node)) {
      const name = node.metadata.name ?? '';
      events.event(node, 'Normal', 'NodeNotReady', `Node ${name} status is now: NodeNotReady`);
    }
    for (const pod of this.#pods.cache.byIndex(byNode, node.metadata.name ?? '')) {
      if (isFinished(pod) || !isPodReady(pod)) continue;
      const { namespace = '', name = '', uid, resourceVersion } = pod.metadata;
      const conditions = (pod.status.conditions ?? []).map((condition) => unready(condition, now));
      try {
        const patch = { metadata: { uid, resourceVersion }, status: { conditions } };
        await this.#podClient.mergePatch(namespace, name, patch, { subresource: 'status', signal });
        events.event(pod, 'Warning', 'NodeNotReady', 'Node is not ready');
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
  }
}

function unready(condition: PodCondition, now: number): PodCondition {
  if (condition.type !== 'Ready') return condition;
  return { ...condition, status: 'False', lastTransitionTime: formatTime(now) };
}

/**
 * Deletes Pods from nodes whose NoExecute taints they do not tolerate (any longer), and Pods whose node was deleted:
 * kube-controller-manager's `taint-eviction-controller` and `pod-garbage-collector-controller`.
 */
export const taintEvictionController: ControllerSpec = {
  name: 'taint-eviction-controller',
  eventSource: 'taint-eviction-controller',
  queue: 'taint_eviction',
  build(loop) {
    const reconciler = new TaintEvictionReconciler(loop);
    return (key, signal) => reconciler.reconcile(key, signal);
  },
};

class TaintEvictionReconciler {
  readonly #context: ControllerContext;
  readonly #client: ResourceClient<Pod>;
  readonly #nodes: Informer<Node>;
  readonly #pods: Informer<Pod>;
  /** Nodes that were seen and are gone. Pods on nodes that never existed are left alone: tests create such Pods. */
  readonly #deletedNodes = new Set<string>();

  constructor(loop: KeyLoop) {
    this.#context = loop.context;
    this.#client = loop.context.clients.for(podsResource);

    this.#nodes = loop.cache(nodesResource);
    this.#pods = loop.cache(podsResource, { indexes: { [byNode]: indexByNode } });

    loop.on(this.#nodes, (change) => {
      const { metadata } = change.object;
      const name = metadata.name ?? '';
      if (change.kind === 'deleted') this.#deletedNodes.add(name);
      else this.#deletedNodes.delete(name);
      return needsEviction(change) ? this.#pods.cache.byIndex(byNode, name).map(keyOf) : [];
    });
    loop.on(this.#pods, (change) => {
      if (change.kind === 'deleted') return [];
      if (change.kind === 'updated' && !changesEviction(change.object, change.old)) return [];
      return this.#mayHaveToLeave(change.object) ? ownKey(change) : [];
    });
  }

  #mayHaveToLeave({ spec: { nodeName = '' } }: Pod): boolean {
    const node = this.#nodes.cache.get(nodeName);
    return node === undefined ? this.#deletedNodes.has(nodeName) : isEvicting(node);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const pod = this.#pods.cache.get(key);
    if (pod === undefined) return undefined;
    const nodeName = pod.spec.nodeName ?? '';
    const node = this.#nodes.cache.get(nodeName);
    if (node === undefined) {
      // There is no kubelet that could end it gracefully.
      if (this.#deletedNodes.has(nodeName)) await this.#delete(pod, 0, signal);
      return undefined;
    }
    if (pod.metadata.deletionTimestamp !== undefined) return undefined;
    const now = this.#context.clock.now();
    const time = evictionTime(node.spec.taints ?? [], pod.spec.tolerations ?? [], now);
    if (time === undefined) return undefined;
    if (time > now) return { requeueAfterMs: time - now };
    const { namespace = '', name = '' } = pod.metadata;
    this.#context.events.event(
      pod,
      'Normal',
      'TaintManagerEviction',
      `Marking for deletion Pod ${namespace}/${name}`,
    );
    await this.#markDisrupted(pod, now, signal);
    await this.#delete(pod, undefined, signal);
    return undefined;
  }

  async #markDisrupted(pod: Pod, now: number, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid, resourceVersion, generation } = pod.metadata;
    const target = {
      type: 'DisruptionTarget',
      ...(generation === undefined ? {} : { observedGeneration: generation }),
      status: 'True',
      lastProbeTime: null,
      lastTransitionTime: formatTime(now),
      reason: 'DeletionByTaintManager',
      message: 'Taint manager: deleting due to NoExecute taint',
    };
    const others = (pod.status.conditions ?? []).filter(({ type }) => type !== target.type);
    const patch = { metadata: { uid, resourceVersion }, status: { conditions: [...others, target] } };
    try {
      await this.#client.mergePatch(namespace, name, patch, { subresource: 'status', signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async #delete(pod: Pod, gracePeriodSeconds: number | undefined, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '' } = pod.metadata;
    const grace = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
    try {
      await this.#client.delete(namespace, name, { preconditions: { uid }, ...grace, signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

/** Whether Pods on this node may have to leave, or may stay no longer. */
function needsEviction(change: Change<Node>): boolean {
  if (change.kind === 'deleted') return true;
  const isSame = change.kind === 'updated' && jsonEqual(change.object.spec.taints, change.old.spec.taints);
  return !isSame && isEvicting(change.object);
}

/** Whether a change of a Pod can decide whether it may stay. */
function changesEviction(pod: Pod, old: Pod): boolean {
  return pod.spec.nodeName !== old.spec.nodeName || !jsonEqual(pod.spec.tolerations, old.spec.tolerations);
}

function isEvicting({ spec }: Node): boolean {
  return (spec.taints ?? []).some(({ effect }) => effect === 'NoExecute');
}
