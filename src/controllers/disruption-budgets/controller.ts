import { byNamespace, indexByNamespace } from '../../client/informers/cache.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { pods as podsResource } from '../../client/resources.ts';
import { jsonEqual } from '../../objects/json.ts';
import { joinKey, keyOf, type ObjectKey } from '../../objects/meta.ts';
import { compileLabelSelector, matchesLabels } from '../../objects/labels/labels.ts';
import type { Deployment, ReplicaSet, StatefulSet } from '../../objects/types/apps.generated.ts';
import type { Pod, ReplicationController } from '../../objects/types/core.generated.ts';
import type { PodDisruptionBudget } from '../../objects/types/policy.generated.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import type { ReconcileResult } from '../../runtime/key-loop.ts';
import { Reconciler } from '../../runtime/key-loop.ts';
import { controllerOf, isPodReady } from '../../objects/pods.ts';
import {
  deployments as deploymentsResource,
  podDisruptionBudgets as budgetsResource,
  replicaSets as replicaSetsResource,
  replicationControllers as replicationControllersResource,
  statefulSets as statefulSetsResource,
} from '../../client/resources.ts';
import { lookAgain, StatusWriter } from '../../runtime/own-writes.ts';
import { expectedScale, planBudgetEvent, planBudgetStatus, type ControllerScale } from './plan.ts';

/** Milliseconds over which changes of Pods are batched. */
const gather = 5;

/** Writes how many Pods `kubectl drain` may evict (kube-controller-manager's `disruption-controller`). */
export const disruptionController: ControllerDefinition = {
  name: 'disruption-controller',
  start(context: ControllerContext): readonly Runnable[] {
    return [new DisruptionReconciler(context)];
  },
};

class DisruptionReconciler extends Reconciler {
  readonly #budgets: Informer<PodDisruptionBudget>;
  readonly #pods: Informer<Pod>;
  readonly #deployments: Informer<Deployment>;
  readonly #replicaSets: Informer<ReplicaSet>;
  readonly #statefulSets: Informer<StatefulSet>;
  readonly #replicationControllers: Informer<ReplicationController>;
  readonly #status: StatusWriter<PodDisruptionBudget>;
  /** The last message of Events by budget: an Event is recorded only for a new one. */
  readonly #lastMessages = new Map<ObjectKey, string>();

  constructor(context: ControllerContext) {
    super(context, 'disruption');
    this.#budgets = this.informer(budgetsResource);
    this.#pods = this.informer(podsResource);
    this.#deployments = this.informer(deploymentsResource);
    this.#replicaSets = this.informer(replicaSetsResource);
    this.#statefulSets = this.informer(statefulSetsResource);
    this.#replicationControllers = this.informer(replicationControllersResource);
    this.#status = new StatusWriter(context, this.#budgets);
    this.#budgets.addIndex(byNamespace, indexByNamespace);
    this.#pods.addIndex(byNamespace, indexByNamespace);
    this.enqueueChanges(this.#budgets);
    this.#pods.addHandler({
      added: (pod, initial) => {
        if (!initial) this.#enqueueBudgetsOf(pod);
      },
      updated: (pod, old) => {
        if (!changes(pod, old)) return;
        this.#enqueueBudgetsOf(pod);
        if (!jsonEqual(pod.metadata.labels, old.metadata.labels)) this.#enqueueBudgetsOf(old);
      },
      deleted: (pod) => this.#enqueueBudgetsOf(pod),
    });
    const scaled = {
      updated: (object: Scaled, old: Scaled): void => {
        if (object.spec.replicas !== old.spec.replicas)
          this.#enqueueNamespace(object.metadata.namespace ?? '');
      },
    };
    this.#deployments.addHandler(scaled);
    this.#replicaSets.addHandler(scaled);
    this.#replicationControllers.addHandler(scaled);
    this.#statefulSets.addHandler(scaled);
  }

  #enqueueNamespace(namespace: string): void {
    for (const budget of this.#budgets.cache.byIndex(byNamespace, namespace)) {
      this.queue.enqueue(keyOf(budget), { after: gather });
    }
  }

  #enqueueBudgetsOf(pod: Pod): void {
    for (const budget of this.#budgets.cache.byIndex(byNamespace, pod.metadata.namespace ?? '')) {
      if (covers(budget, pod)) this.queue.enqueue(keyOf(budget), { after: gather });
    }
  }

  protected override async reconcile(
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const budget = this.#budgets.cache.get(key);
    if (budget === undefined) {
      this.#lastMessages.delete(key);
      return undefined;
    }
    if (!this.#status.settled(key)) return { requeueAfter: lookAgain };
    const all = this.#pods.cache.byIndex(byNamespace, budget.metadata.namespace ?? '');
    const pods = all.filter((pod) => covers(budget, pod));
    this.#sendEvents(key, budget, pods);
    const now = this.context.clock.now();
    const expected = expectedScale(pods, (pod) => this.#scaleOf(pod));
    const status = planBudgetStatus(budget, pods, expected, now);
    await this.#status.write(budget, status, signal);
    // Evictions whose Pods still exist expire after a while.
    return status.disruptedPods === undefined ? undefined : { requeueAfter: 30_000 };
  }

  #sendEvents(key: ObjectKey, budget: PodDisruptionBudget, pods: readonly Pod[]): void {
    const event = planBudgetEvent(budget, pods);
    if (event === undefined) {
      this.#lastMessages.delete(key);
      return;
    }
    const { type, reason, message } = event;
    if (this.#lastMessages.get(key) === message) return;
    this.#lastMessages.set(key, message);
    this.context.events.event(budget, type, reason, message);
  }

  #scaleOf(pod: Pod): ControllerScale | undefined {
    const namespace = pod.metadata.namespace ?? '';
    const owner = controllerOf(pod);
    if (owner?.kind === 'StatefulSet') {
      return sizeOf(this.#statefulSets.cache.get(joinKey(namespace, owner.name)));
    }
    if (owner?.kind === 'ReplicationController') {
      return sizeOf(this.#replicationControllers.cache.get(joinKey(namespace, owner.name)));
    }
    if (owner?.kind !== 'ReplicaSet') return undefined;
    const replicaSet = this.#replicaSets.cache.get(joinKey(namespace, owner.name));
    const above = replicaSet && controllerOf(replicaSet);
    if (above?.kind !== 'Deployment') return sizeOf(replicaSet);
    return sizeOf(this.#deployments.cache.get(joinKey(namespace, above.name))) ?? sizeOf(replicaSet);
  }
}

/** The workloads that expected counts may come from. */
type Scaled = Deployment | ReplicaSet | ReplicationController | StatefulSet;

function sizeOf(object: Scaled | undefined): ControllerScale | undefined {
  return object && { uid: object.metadata.uid ?? '', replicas: object.spec.replicas ?? 0 };
}

/** In policy/v1 an empty selector covers the whole namespace, an absent one nothing. */
function covers({ spec }: PodDisruptionBudget, pod: Pod): boolean {
  return matchesLabels(compileLabelSelector(spec.selector), pod.metadata.labels);
}

function changes(pod: Pod, old: Pod): boolean {
  return (
    isPodReady(pod) !== isPodReady(old) ||
    pod.status.phase !== old.status.phase ||
    pod.metadata.deletionTimestamp !== old.metadata.deletionTimestamp ||
    !jsonEqual(pod.metadata.labels, old.metadata.labels)
  );
}
