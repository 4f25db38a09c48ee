import { isNotFound } from '../client/errors.ts';
import { byNode, indexByNode } from '../client/informers/cache.ts';
import type { Informer } from '../client/informers/informer.ts';
import type { ResourceClient } from '../client/resource-client.ts';
import { nodes as nodesResource, pods as podsResource } from '../client/resources.ts';
import { jsonEqual } from '../objects/json.ts';
import { keyOf, type ObjectKey } from '../objects/meta.ts';
import { formatTime } from '../objects/time.ts';
import type { Node, Pod } from '../objects/types/core.generated.ts';
import type { ControllerContext } from '../runtime/context.ts';
import {
  type Change,
  type ControllerSpec,
  type KeyLoop,
  ownKey,
  type ReconcileResult,
} from '../runtime/key-loop.ts';
import { evictionTime } from './nodes/plan.ts';

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
