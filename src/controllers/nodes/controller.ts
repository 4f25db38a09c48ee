import { isAborted, whenAborted } from '../../client/clock.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../client/errors.ts';
import { byNode, indexByNode } from '../../client/informers/cache.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { nodes as nodesResource, pods as podsResource } from '../../client/resources.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Node, Pod, PodCondition } from '../../objects/types/core.generated.ts';
import { formatTime } from '../../objects/time.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import type { ReconcileResult } from '../../runtime/key-loop.ts';
import { Reconciler } from '../../runtime/key-loop.ts';
import { isFinished, isNodeReady, isPodReady } from '../../objects/pods.ts';
import { lookAgain, StatusWriter } from '../../runtime/own-writes.ts';
import { draftNode, hasTaints, isDown, isSimulated, planNodeStatus, planTaints } from './plan.ts';
import { NodeCidrs } from './plan.ts';

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
export function nodesController(options: NodesOptions): ControllerDefinition {
  return {
    name: 'node-lifecycle-controller',
    start(context: ControllerContext): readonly Runnable[] {
      const reconciler = new NodeReconciler(context, options);
      return [reconciler.registration, reconciler];
    },
  };
}

class NodeReconciler extends Reconciler {
  readonly registration: Runnable;
  readonly #options: NodesOptions;
  readonly #nodes: Informer<Node>;
  readonly #pods: Informer<Pod>;
  readonly #nodeClient: ResourceClient<Node>;
  readonly #podClient: ResourceClient<Pod>;
  readonly #status: StatusWriter<Node>;
  readonly #cidrs: readonly NodeCidrs[];

  constructor(context: ControllerContext, options: NodesOptions) {
    super(context, 'node_lifecycle');
    this.#options = options;
    this.#cidrs = options.clusterCidrs.map((cidr) => new NodeCidrs(cidr));
    this.#nodes = this.informer(nodesResource);
    this.#pods = this.informer(podsResource);
    this.#nodeClient = context.clients.for(nodesResource);
    this.#podClient = context.clients.for(podsResource);
    this.#status = new StatusWriter(context, this.#nodes);
    this.#pods.addIndex(byNode, indexByNode);
    this.registration = { run: (signal) => this.#register(signal) };
    this.#nodes.addHandler({
      added: (node) => {
        this.#occupy(node);
        this.queue.enqueue(keyOf(node));
      },
      updated: (node) => {
        this.#occupy(node);
        this.queue.enqueue(keyOf(node));
      },
      deleted: (node) => {
        for (const cidr of node.spec.podCIDRs ?? []) for (const cidrs of this.#cidrs) cidrs.release(cidr);
        for (const other of this.#nodes.cache.values()) {
          if ((other.spec.podCIDRs ?? []).length === 0) this.queue.enqueue(keyOf(other));
        }
      },
    });
    this.#pods.addHandler({
      // A kubelet may have reported the Pod as ready just when its node stopped.
      updated: (pod) => {
        if (isPodReady(pod) && pod.spec.nodeName !== undefined) this.#checkNodeOf(pod.spec.nodeName);
      },
    });
  }

  #checkNodeOf(name: string): void {
    const node = this.#nodes.cache.get(name);
    if (node !== undefined && isDown(node)) this.queue.enqueue(name);
  }

  #occupy(node: Node): void {
    for (const cidr of node.spec.podCIDRs ?? []) for (const cidrs of this.#cidrs) cidrs.occupy(cidr);
  }

  async #register(signal: AbortSignal): Promise<void> {
    const { log } = this.context;
    if (!(await this.#nodes.synced(signal))) return;
    for (let number = 1; number <= this.#options.count && !signal.aborted; number++) {
      const draft = draftNode(number);
      if (this.#nodes.cache.has(keyOf(draft))) continue;
      try {
        await this.#nodeClient.create(draft, { signal });
      } catch (error) {
        if (!isAlreadyExists(error) && !isAborted(signal))
          log.error({ err: error, node: draft.metadata.name }, 'could not register a node');
      }
    }
    await whenAborted(signal);
  }

  protected override async reconcile(
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const node = this.#nodes.cache.get(key);
    if (node === undefined || !isSimulated(node) || node.metadata.deletionTimestamp !== undefined)
      return undefined;
    if (!this.#status.settled(key)) return { requeueAfter: lookAgain };
    const now = this.context.clock.now();
    const taints = planTaints(node, now);
    const lacksCidr = (node.spec.podCIDRs ?? []).length === 0;
    if (lacksCidr || !hasTaints(node, taints)) {
      const podCIDRs = lacksCidr ? this.#takeCidrs(node) : undefined;
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
          if (isConflict(error) || isNotFound(error)) {
            for (const cidr of podCIDRs ?? []) for (const cidrs of this.#cidrs) cidrs.release(cidr);
          }
          throw error;
        });
      this.#status.noteWritten(written);
      await this.#status.write(written, planNodeStatus(written, now), signal);
    } else {
      await this.#status.write(node, planNodeStatus(node, now), signal);
    }
    if (isDown(node)) await this.#markPods(node, now, signal);
    return undefined;
  }

  #takeCidrs(node: Node): string[] | undefined {
    const taken = this.#cidrs.map((cidrs) => cidrs.next());
    const complete = taken.filter((cidr) => cidr !== undefined);
    if (complete.length === taken.length) return complete;
    for (const cidr of complete) for (const cidrs of this.#cidrs) cidrs.release(cidr);
    const name = node.metadata.name ?? '';
    this.context.events.event(
      node,
      'Normal',
      'CIDRNotAvailable',
      `Node ${name} status is now: CIDRNotAvailable`,
    );
    return undefined;
  }

  /** Sets the Pods of a node without heartbeat to not ready (`MarkPodsNotReady`). */
  async #markPods(node: Node, now: number, signal: AbortSignal): Promise<void> {
    const { events } = this.context;
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
