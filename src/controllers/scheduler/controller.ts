import { isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { nodes as nodesResource, pods as podsResource } from '../../client/resources.ts';
import { jsonEqual } from '../../objects/json.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Node, Pod, PodCondition } from '../../objects/types/core.generated.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import { Reconciler } from '../../runtime/key-loop.ts';
import { conditionOf, transitionTime } from '../../objects/meta.ts';
import { isFinished } from '../../objects/pods.ts';
import { Occupancy } from './plan.ts';
import { placePod } from './plan.ts';

/** Binds pending Pods to nodes (kube-scheduler, without preemption). */
export const scheduler: ControllerDefinition = {
  name: 'default-scheduler',
  start(context: ControllerContext): readonly Runnable[] {
    return [new SchedulerReconciler(context)];
  },
};

class SchedulerReconciler extends Reconciler {
  readonly #nodes: Informer<Node>;
  readonly #pods: Informer<Pod>;
  readonly #client: ResourceClient<Pod>;
  readonly #occupancy = new Occupancy();
  /** Pods that fit no node, kept until a node changes, or a Pod is gone or has finished. */
  readonly #unschedulable = new Set<ObjectKey>();

  constructor(context: ControllerContext) {
    super(context, 'scheduler', { workers: 16 });
    this.#nodes = this.informer(nodesResource);
    this.#pods = this.informer(podsResource);
    this.#client = context.clients.for(podsResource);
    this.#pods.addHandler({
      added: (pod) => this.#observe(pod),
      updated: (pod, old) => {
        this.#observe(pod);
        if (isFinished(pod) && !isFinished(old)) this.#retry();
      },
      deleted: (pod) => {
        this.#occupancy.leave(pod.metadata.uid ?? '');
        this.#unschedulable.delete(keyOf(pod));
        this.#retry();
      },
    });
    this.#nodes.addHandler({
      added: () => this.#retry(),
      updated: (node, old) => {
        if (changesPlacement(node, old)) this.#retry();
      },
    });
  }

  #observe(pod: Pod): void {
    this.#occupancy.observe(pod);
    if (isWaiting(pod)) this.queue.enqueue(keyOf(pod));
  }

  #retry(): void {
    for (const key of this.#unschedulable) this.queue.enqueue(key);
    this.#unschedulable.clear();
  }

  protected override async reconcile(key: ObjectKey, signal: AbortSignal): Promise<undefined> {
    await this.#schedule(key, signal);
    return undefined;
  }

  async #schedule(key: ObjectKey, signal: AbortSignal): Promise<void> {
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
    this.context.events.event(pod, 'Normal', 'Scheduled', message);
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
      lastTransitionTime: transitionTime(pod.status.conditions, unscheduled, this.context.clock.now()),
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
    this.context.events.event(pod, 'Warning', 'FailedScheduling', message);
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
