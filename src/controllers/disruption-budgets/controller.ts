import { byNamespace, indexByNamespace } from '../../client/informers/cache.ts';
import type { Informer } from '../../client/informers/informer.ts';
import {
  deployments as deploymentsResource,
  podDisruptionBudgets as budgetsResource,
  pods as podsResource,
  replicaSets as replicaSetsResource,
  replicationControllers as replicationControllersResource,
  statefulSets as statefulSetsResource,
} from '../../client/resources.ts';
import { jsonEqual } from '../../objects/json.ts';
import { compileLabelSelector, matchesLabels } from '../../objects/selectors/labels.ts';
import { joinKey, keyOf, type ObjectKey } from '../../objects/meta.ts';
import { controllerOf, isPodReady } from '../../objects/pods.ts';
import type { Deployment, ReplicaSet, StatefulSet } from '../../objects/types/apps.generated.ts';
import type { Pod, ReplicationController } from '../../objects/types/core.generated.ts';
import type { PodDisruptionBudget } from '../../objects/types/policy.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import {
  type Change,
  type ControllerSpec,
  type KeyLoop,
  ownKey,
  type ReconcileResult,
} from '../../runtime/key-loop.ts';
import { NewEvents } from '../../runtime/new-events.ts';
import { StatusWriter } from '../../runtime/status-writer.ts';
import { type ControllerScale, expectedScale, planBudgetEvent, planBudgetStatus } from './plan.ts';

/** Milliseconds over which changes of Pods are batched. */
const batchMs = 5;
/** Milliseconds between checks of evictions whose Pods still exist: they expire after a while. */
const disruptedCheckMs = 30_000;

/** Writes how many Pods `kubectl drain` may evict (kube-controller-manager's `disruption-controller`). */
export const disruptionController: ControllerSpec = {
  name: 'disruption-controller',
  eventSource: 'controllermanager',
  queue: 'disruption',
  build(loop) {
    const reconciler = new DisruptionReconciler(loop);
    return (key, signal) => reconciler.reconcile(key, signal);
  },
};

class DisruptionReconciler {
  readonly #context: ControllerContext;
  readonly #budgets: Informer<PodDisruptionBudget>;
  readonly #pods: Informer<Pod>;
  readonly #deployments: Informer<Deployment>;
  readonly #replicaSets: Informer<ReplicaSet>;
  readonly #statefulSets: Informer<StatefulSet>;
  readonly #replicationControllers: Informer<ReplicationController>;
  readonly #status: StatusWriter<PodDisruptionBudget>;
  readonly #events: NewEvents;

  constructor(loop: KeyLoop) {
    this.#context = loop.context;

    const indexes = { [byNamespace]: indexByNamespace };
    this.#budgets = loop.cache(budgetsResource, { indexes });
    this.#pods = loop.cache(podsResource, { indexes });
    this.#deployments = loop.cache(deploymentsResource);
    this.#replicaSets = loop.cache(replicaSetsResource);
    this.#statefulSets = loop.cache(statefulSetsResource);
    this.#replicationControllers = loop.cache(replicationControllersResource);

    this.#status = new StatusWriter(loop, this.#budgets);
    this.#events = new NewEvents(loop.context);

    const enqueueBatched = (budgets: readonly PodDisruptionBudget[]): readonly ObjectKey[] => {
      for (const budget of budgets) loop.enqueue(keyOf(budget), { afterMs: batchMs });
      return [];
    };
    loop.on(this.#budgets, ownKey);
    loop.on(this.#pods, (change) => enqueueBatched(this.#budgetsOfChange(change)));
    const onScale = (change: Change<Scaled>): readonly ObjectKey[] => {
      const isScaled = change.kind === 'updated' && change.object.spec.replicas !== change.old.spec.replicas;
      return isScaled ? enqueueBatched(this.#budgetsIn(change.object.metadata.namespace ?? '')) : [];
    };
    loop.on(this.#deployments, onScale);
    loop.on(this.#replicaSets, onScale);
    loop.on(this.#replicationControllers, onScale);
    loop.on(this.#statefulSets, onScale);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const budget = this.#budgets.cache.get(key);
    if (budget === undefined) {
      this.#events.forget(key);
      return undefined;
    }
    const waitMs = this.#status.pendingMs(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };

    const all = this.#pods.cache.byIndex(byNamespace, budget.metadata.namespace ?? '');
    const pods = all.filter((pod) => covers(budget, pod));
    const event = planBudgetEvent(budget, pods);
    this.#events.record(key, budget, event === undefined ? [] : [event]);
    const now = this.#context.clock.now();
    const expected = expectedScale(pods, (pod) => this.#scaleOf(pod));
    const status = planBudgetStatus(budget, pods, expected, now);
    await this.#status.write(budget, status, signal);
    return status.disruptedPods === undefined ? undefined : { requeueAfterMs: disruptedCheckMs };
  }

  #budgetsOfChange(change: Change<Pod>): readonly PodDisruptionBudget[] {
    const pod = change.object;
    // At the start every budget is enqueued anyway.
    if (change.kind === 'added' && change.initial) return [];
    if (change.kind !== 'updated') return this.#budgetsOf(pod);
    if (!changes(pod, change.old)) return [];
    const isMoved = !jsonEqual(pod.metadata.labels, change.old.metadata.labels);
    return isMoved ? [...this.#budgetsOf(pod), ...this.#budgetsOf(change.old)] : this.#budgetsOf(pod);
  }

  #budgetsOf(pod: Pod): readonly PodDisruptionBudget[] {
    return this.#budgetsIn(pod.metadata.namespace ?? '').filter((budget) => covers(budget, pod));
  }

  #budgetsIn(namespace: string): readonly PodDisruptionBudget[] {
    return this.#budgets.cache.byIndex(byNamespace, namespace);
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
