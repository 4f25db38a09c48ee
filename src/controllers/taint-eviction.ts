import { isNotFound } from '../client/errors.ts';
import { byNode, indexByNode } from '../client/informers/cache.ts';
import type { Informer } from '../client/informers/informer.ts';
import type { ResourceClient } from '../client/resource-client.ts';
import { nodes as nodesResource, pods as podsResource } from '../client/resources.ts';
import { jsonEqual } from '../objects/json.ts';
import { keyOf, type ObjectKey } from '../objects/meta.ts';
import type { Node, Pod } from '../objects/types/core.generated.ts';
import { formatTime } from '../objects/time.ts';
import { evictionTime } from './nodes/plan.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../runtime/context.ts';
import type { ReconcileResult } from '../runtime/key-loop.ts';
import { Reconciler } from '../runtime/key-loop.ts';

/**
 * Deletes Pods from nodes whose NoExecute taints they do not tolerate (any longer), and Pods whose node was deleted:
 * kube-controller-manager's `taint-eviction-controller` and `pod-garbage-collector-controller`.
 */
export const taintEvictionController: ControllerDefinition = {
  name: 'taint-eviction-controller',
  start(context: ControllerContext): readonly Runnable[] {
    return [new TaintEvictionReconciler(context)];
  },
};

class TaintEvictionReconciler extends Reconciler {
  readonly #nodes: Informer<Node>;
  readonly #pods: Informer<Pod>;
  readonly #client: ResourceClient<Pod>;
  /** Nodes that were seen and are gone. Pods on nodes that never existed are left alone: tests create such Pods. */
  readonly #gone = new Set<string>();

  constructor(context: ControllerContext) {
    super(context, 'taint_eviction');
    this.#nodes = this.informer(nodesResource);
    this.#pods = this.informer(podsResource);
    this.#client = context.clients.for(podsResource);
    this.#pods.addIndex(byNode, indexByNode);
    this.#nodes.addHandler({
      added: (node) => {
        this.#gone.delete(node.metadata.name ?? '');
        if (isEvicting(node)) this.#enqueuePodsOf(node);
      },
      updated: (node, old) => {
        if (!jsonEqual(node.spec.taints, old.spec.taints) && isEvicting(node)) this.#enqueuePodsOf(node);
      },
      deleted: (node) => {
        this.#gone.add(node.metadata.name ?? '');
        this.#enqueuePodsOf(node);
      },
    });
    this.#pods.addHandler({
      added: (pod) => this.#consider(pod),
      updated: (pod, old) => {
        const moved = pod.spec.nodeName !== old.spec.nodeName;
        if (moved || !jsonEqual(pod.spec.tolerations, old.spec.tolerations)) this.#consider(pod);
      },
    });
  }

  #enqueuePodsOf(node: Node): void {
    for (const pod of this.#pods.cache.byIndex(byNode, node.metadata.name ?? '')) {
      this.queue.enqueue(keyOf(pod));
    }
  }

  #consider(pod: Pod): void {
    const node = this.#nodes.cache.get(pod.spec.nodeName ?? '');
    if (node === undefined ? this.#gone.has(pod.spec.nodeName ?? '') : isEvicting(node)) {
      this.queue.enqueue(keyOf(pod));
    }
  }

  protected override async reconcile(
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const pod = this.#pods.cache.get(key);
    if (pod === undefined) return undefined;
    const nodeName = pod.spec.nodeName ?? '';
    const node = this.#nodes.cache.get(nodeName);
    if (node === undefined) {
      // There is no kubelet that could end it gracefully.
      if (this.#gone.has(nodeName)) await this.#delete(pod, 0, signal);
      return undefined;
    }
    if (pod.metadata.deletionTimestamp !== undefined) return undefined;
    const now = this.context.clock.now();
    const time = evictionTime(node.spec.taints ?? [], pod.spec.tolerations ?? [], now);
    if (time === undefined) return undefined;
    if (time > now) return { requeueAfter: time - now };
    const { namespace = '', name = '' } = pod.metadata;
    this.context.events.event(
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

function isEvicting({ spec }: Node): boolean {
  return (spec.taints ?? []).some(({ effect }) => effect === 'NoExecute');
}
