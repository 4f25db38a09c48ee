import { byOwner, indexByOwner } from '../../../client/informers/cache.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import { pods as podsResource, type ResourceType } from '../../../client/resources.ts';
import type { ObjectKey } from '../../../objects/meta.ts';
import type { ReplicaSet } from '../../../objects/types/apps.generated.ts';
import type { Pod } from '../../../objects/types/core.generated.ts';
import type { LabelSelector } from '../../../objects/meta.ts';
import type { Replicated } from '../../../objects/types/workloads.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../../runtime/context.ts';
import type { ReconcileResult } from '../../../runtime/key-loop.ts';
import { Reconciler } from '../../../runtime/key-loop.ts';
import { Ownership } from '../ownership.ts';
import { controllerOf, isActive, nextAvailable } from '../../../objects/pods.ts';
import { PodControl } from '../pod-control.ts';
import { replicaSets, replicationControllers } from '../../../client/resources.ts';
import { lookAgain, StatusWriter } from '../../../runtime/own-writes.ts';
import { planReplicas, planReplicaSetStatus } from './plan.ts';

/** Milliseconds over which changes of Pods are batched: many become ready at once. */
const gather = 20;

/** Maintains the Pods of each ReplicaSet (kube-controller-manager's `replicaset-controller`). */
export const replicaSetsController: ControllerDefinition = {
  name: 'replicaset-controller',
  start(context: ControllerContext): readonly Runnable[] {
    return [
      new ReplicaSetReconciler(context, {
        name: 'replicaset',
        resource: replicaSets,
        selector: ({ spec }) => spec.selector,
        statusOf: (status) => status,
      }),
    ];
  },
};

/**
 * Maintains the Pods of each ReplicationController, by the rules of ReplicaSets (kube-controller-manager's
 * `replicationcontroller-controller`, `pkg/controller/replication/conversion.go`).
 */
export const replicationControllersController: ControllerDefinition = {
  name: 'replicationcontroller-controller',
  start(context: ControllerContext): readonly Runnable[] {
    return [
      new ReplicaSetReconciler(context, {
        name: 'replicationcontroller',
        resource: replicationControllers,
        selector: ({ spec }) => (spec.selector === undefined ? undefined : { matchLabels: spec.selector }),
        statusOf: ({ terminatingReplicas: _terminating, ...status }) => status,
      }),
    ];
  },
};

/** The differences of the two kinds. */
interface ReplicasOptions<T extends Replicated> {
  /** The controller's name in metrics and logs. */
  readonly name: string;
  readonly resource: ResourceType<T>;
  readonly selector: (owner: T) => LabelSelector | undefined;
  readonly statusOf: (status: ReplicaSet['status']) => T['status'];
}

class ReplicaSetReconciler<T extends Replicated> extends Reconciler {
  readonly #options: ReplicasOptions<T>;
  readonly #replicaSets: Informer<T>;
  readonly #ownership: Ownership<T, Pod>;
  readonly #podControl: PodControl;
  readonly #status: StatusWriter<T>;

  constructor(context: ControllerContext, options: ReplicasOptions<T>) {
    super(context, options.name);
    this.#options = options;
    this.#replicaSets = this.informer(options.resource);
    const pods = this.informer(podsResource);
    this.#podControl = new PodControl(context, pods);
    this.#status = new StatusWriter(context, this.#replicaSets);
    this.#ownership = new Ownership({
      selector: options.selector,
      owners: this.#replicaSets,
      children: pods,
      client: context.clients.for(podsResource),
      enqueue: (key) => this.queue.enqueue(key, { after: gather }),
    });
    this.#replicaSets.addIndex(byOwner, indexByOwner);
    this.enqueueChanges(this.#replicaSets);
  }

  protected override async reconcile(
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const replicaSet = this.#replicaSets.cache.get(key);
    if (replicaSet === undefined) return undefined;
    if (!this.#podControl.settled(key) || !this.#status.settled(key)) return { requeueAfter: lookAgain };
    const { clock } = this.context;
    const owned = await this.#ownership.claim(replicaSet, signal);
    let failure: { reason: string; message: string } | undefined;
    let cause: Error | undefined;
    if (replicaSet.metadata.deletionTimestamp === undefined) {
      const { create, remove } = planReplicas(
        replicaSet,
        owned,
        this.#related(replicaSet, owned),
        clock.now(),
      );
      cause = await this.#podControl.create(key, replicaSet, create, signal);
      if (cause !== undefined) failure = { reason: 'FailedCreate', message: cause.message };
      try {
        await this.#podControl.delete(key, replicaSet, remove, signal);
      } catch (error) {
        if (!(error instanceof Error)) throw error;
        cause = error;
        failure = { reason: 'FailedDelete', message: error.message };
      }
    }
    const now = clock.now();
    const status = planReplicaSetStatus(replicaSet, owned, failure, now);
    await this.#status.write(replicaSet, this.#options.statusOf(status), signal);
    if (cause !== undefined) throw cause;
    const soon = nextAvailable(owned, replicaSet.spec.minReadySeconds ?? 0, now);
    return soon === undefined ? undefined : { requeueAfter: soon };
  }

  /** Active Pods of all ReplicaSets of the same Deployment. */
  #related(replicaSet: T, owned: readonly Pod[]): Pod[] {
    const deployment = controllerOf(replicaSet);
    const siblings = deployment === undefined ? [] : this.#replicaSets.cache.byIndex(byOwner, deployment.uid);
    if (siblings.length < 2) return owned.filter(isActive);
    return siblings.flatMap((sibling) => this.#ownership.owned(sibling)).filter(isActive);
  }
}
