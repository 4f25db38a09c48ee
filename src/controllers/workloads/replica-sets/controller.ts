import { byOwner, indexByOwner } from '../../../client/informers/cache.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import {
  pods as podsResource,
  replicaSets,
  replicationControllers,
  type ResourceType,
} from '../../../client/resources.ts';
import type { LabelSelector, ObjectKey } from '../../../objects/meta.ts';
import { controllerOf, isActive, nextAvailable } from '../../../objects/pods.ts';
import type { ReplicaSet } from '../../../objects/types/apps.generated.ts';
import type { Pod } from '../../../objects/types/core.generated.ts';
import type { Replicated } from '../../../objects/types/workloads.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import {
  type ControllerSpec,
  type KeyLoop,
  ownKey,
  type ReconcileResult,
} from '../../../runtime/key-loop.ts';
import { StatusWriter } from '../../../runtime/status-writer.ts';
import { Ownership } from '../ownership.ts';
import { PodControl } from '../pod-control.ts';
import { planReplicas, planReplicaSetStatus } from './plan.ts';

/** Milliseconds over which changes of Pods are batched: many become ready at once. */
const batchMs = 20;

/** Maintains the Pods of each ReplicaSet (kube-controller-manager's `replicaset-controller`). */
export const replicaSetsController: ControllerSpec = {
  name: 'replicaset-controller',
  eventSource: 'replicaset-controller',
  queue: 'replicaset',
  build(loop) {
    const reconciler = new ReplicaSetReconciler(loop, {
      resource: replicaSets,
      selector: ({ spec }) => spec.selector,
      statusOf: (status) => status,
    });
    return (key, signal) => reconciler.reconcile(key, signal);
  },
};

/**
 * Maintains the Pods of each ReplicationController, by the rules of ReplicaSets (kube-controller-manager's
 * `replicationcontroller-controller`, `pkg/controller/replication/conversion.go`).
 */
export const replicationControllersController: ControllerSpec = {
  name: 'replicationcontroller-controller',
  eventSource: 'replication-controller',
  queue: 'replicationcontroller',
  build(loop) {
    const reconciler = new ReplicaSetReconciler(loop, {
      resource: replicationControllers,
      selector: ({ spec }) => (spec.selector === undefined ? undefined : { matchLabels: spec.selector }),
      statusOf: ({ terminatingReplicas: _terminating, ...status }) => status,
    });
    return (key, signal) => reconciler.reconcile(key, signal);
  },
};

/** The differences of the two kinds. */
interface ReplicasOptions<T extends Replicated> {
  readonly resource: ResourceType<T>;
  readonly selector: (owner: T) => LabelSelector | undefined;
  readonly statusOf: (status: ReplicaSet['status']) => T['status'];
}

class ReplicaSetReconciler<T extends Replicated> {
  readonly #context: ControllerContext;
  readonly #options: ReplicasOptions<T>;
  readonly #replicaSets: Informer<T>;
  readonly #podControl: PodControl;
  readonly #status: StatusWriter<T>;
  readonly #ownership: Ownership<T, Pod>;

  constructor(loop: KeyLoop, options: ReplicasOptions<T>) {
    this.#context = loop.context;
    this.#options = options;

    this.#replicaSets = loop.cache(options.resource, { indexes: { [byOwner]: indexByOwner } });
    const pods = loop.cache(podsResource);

    this.#podControl = new PodControl(loop, pods);
    this.#status = new StatusWriter(loop, this.#replicaSets);

    const { selector } = options;
    this.#ownership = new Ownership(loop, { selector, owners: this.#replicaSets, children: pods, batchMs });
    loop.on(this.#replicaSets, ownKey);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const replicaSet = this.#replicaSets.cache.get(key);
    if (replicaSet === undefined) return undefined;
    const waitMs = Math.max(this.#podControl.pendingMs(key), this.#status.pendingMs(key));
    if (waitMs > 0) return { requeueAfterMs: waitMs };

    const { clock } = this.#context;
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
    return soon === undefined ? undefined : { requeueAfterMs: soon };
  }

  /** Active Pods of all ReplicaSets of the same Deployment. */
  #related(replicaSet: T, owned: readonly Pod[]): Pod[] {
    const deployment = controllerOf(replicaSet);
    const siblings = deployment === undefined ? [] : this.#replicaSets.cache.byIndex(byOwner, deployment.uid);
    if (siblings.length < 2) return owned.filter(isActive);
    return siblings.flatMap((sibling) => this.#ownership.owned(sibling)).filter(isActive);
  }
}
