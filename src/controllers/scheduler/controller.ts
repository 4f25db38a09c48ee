import { isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { nodes as nodesResource, pods as podsResource } from '../../client/resources.ts';
import { jsonEqual } from '../../objects/json.ts';
import { conditionOf, keyOf, type ObjectKey, transitionTime } from '../../objects/meta.ts';
import { isFinished } from '../../objects/pods.ts';
import type { Node, Pod, PodCondition } from '../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { Change, ControllerSpec, KeyLoop } from '../../runtime/key-loop.ts';
import { Occupancy, placePod } from './plan.ts';

/** Binds pending Pods to nodes (kube-scheduler, without preemption). */
export const schedulerController: ControllerSpec = {
  name: 'default-scheduler',
  eventSource: 'default-scheduler',
  queue: 'scheduler',
  workers: 16,
  build(loop) {
    const reconciler = new SchedulerReconciler(loop);
    return async (key, signal) => {
      await reconciler.reconcile(key, signal);
      return undefined;
    };
  },
};

class SchedulerReconciler {
  readonly #context: ControllerContext;
  readonly #client: ResourceClient<Pod>;
  readonly #nodes: Informer<Node>;
  readonly #pods: Informer<Pod>;
  readonly #occupancy = new Occupancy();
  /** Pods that fit no node, kept until a node changes, or a Pod is gone or has finished. */
  readonly #unschedulable = new Set<ObjectKey>();

  constructor(loop: KeyLoop) {
    this.#context = loop.context;
    this.#client = loop.context.clients.for(podsResource);

    this.#nodes = loop.cache(nodesResource);
    this.#pods = loop.cache(podsResource);

    loop.on(this.#pods, (change) => this.#podsToPlace(change));
    loop.on(this.#nodes, (change) => {
      const isSame =
        change.kind === 'deleted' ||
        (change.kind === 'updated' && !changesPlacement(change.object, change.old));
      return isSame ? [] : this.#takeUnschedulable();
    });
  }

  #podsToPlace(change: Change<Pod>): readonly ObjectKey[] {
    const pod = change.object;
    if (change.kind === 'deleted') {
      this.#occupancy.leave(pod.metadata.uid ?? '');
      this.#unschedulable.delete(keyOf(pod));
      return this.#takeUnschedulable();
    }
    this.#occupancy.observe(pod);
    const own = isWaiting(pod) ? [keyOf(pod)] : [];
    const hasFinished = change.kind === 'updated' && isFinished(pod) && !isFinished(change.old);
    return hasFinished ? [...own, ...this.#takeUnschedulable()] : own;
  }

  /** Pods that may fit now. */
  #takeUnschedulable(): readonly ObjectKey[] {
    const keys = [...this.#unschedulable];
    this.#unschedulable.clear();
    return keys;
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const pod = this.#pods.cache.get(key);
    // The Pod was bound just now, and the cache does not show it yet.
    if (pod === undefined || !isWaiting(pod) || this.#occupancy.has(pod.metadata.uid ?? '')) return;
    const candidates = [...this.#nodes.cache.values()].map((node) => this.#occupancy.candidate(node));
    const placement = placePod(pod, candidates, (node) => this.#occupancy.podsOn(node));
    if ('message' in placement) {
      this.#unschedulable.add(key);
      await this.#report(pod, placement.message, signal);
      return;
    }
    const { namespace = '', name = '', uid = '' } = pod.metadata;
    this.#occupancy.take(pod, placement.node);
    try {
      const binding = {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { namespace, name, uid },
        target: { kind: 'Node', name: placement.node },
      };
      await this.#client.post(namespace, name, 'binding', binding, { signal });
    } catch (error) {
      this.#occupancy.leave(uid);
      if (isNotFound(error)) return;
      // Another client may have bound it: then the cache will show the node.
      throw error;
    }
    const message = `Successfully assigned ${namespace}/${name} to ${placement.node}`;
    this.#context.events.event(pod, 'Normal', 'Scheduled', message);
  }

  /** Records once why a Pod stays pending. */
  async #report(pod: Pod, message: string, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid, resourceVersion, generation } = pod.metadata;
    const present = conditionOf(pod.status.conditions, 'PodScheduled');
    if (present?.status === 'False' && present.message === message) return;
    const unscheduled = { type: 'PodScheduled', status: 'False' };
    const condition: PodCondition = {
      ...unscheduled,
      ...(generation === undefined ? {} : { observedGeneration: generation }),
      lastProbeTime: null,
      lastTransitionTime: transitionTime(pod.status.conditions, unscheduled, this.#context.clock.now()),
      reason: 'Unschedulable',
      message,
    };
    const others = (pod.status.conditions ?? []).filter(({ type }) => type !== condition.type);
    const patch = { metadata: { uid, resourceVersion }, status: { conditions: [...others, condition] } };
    try {
      await this.#client.mergePatch(namespace, name, patch, { subresource: 'status', signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    this.#context.events.event(pod, 'Warning', 'FailedScheduling', message);
  }
}

/** True for a Pod that this scheduler must place. */
function isWaiting({ spec, metadata, status }: Pod): boolean {
  return (
    (spec.nodeName ?? '') === '' &&
    (spec.schedulerName ?? 'default-scheduler') === 'default-scheduler' &&
    (spec.schedulingGates ?? []).length === 0 &&
    metadata.deletionTimestamp === undefined &&
    status.phase === 'Pending'
  );
}

function changesPlacement(node: Node, old: Node): boolean {
  return (
    !jsonEqual(node.spec, old.spec) ||
    !jsonEqual(node.metadata.labels, old.metadata.labels) ||
    !jsonEqual(node.status.allocatable, old.status.allocatable) ||
    conditionOf(node.status.conditions, 'Ready')?.status !==
      conditionOf(old.status.conditions, 'Ready')?.status
  );
}
