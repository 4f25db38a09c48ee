import { isAlreadyExists, isNamespaceTerminating, isNotFound } from '../../../client/errors.ts';
import { byOwner, indexByOwner } from '../../../client/informers/cache.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import type { Draft, ResourceClient } from '../../../client/resource-client.ts';
import {
  deployments as deploymentsResource,
  pods as podsResource,
  replicaSets as replicaSetsResource,
} from '../../../client/resources.ts';
import { joinKey, type ObjectKey } from '../../../objects/meta.ts';
import { controllerOf, isFinished } from '../../../objects/pods.ts';
import { errorMessage } from '../../../objects/status.ts';
import type { Deployment, ReplicaSet } from '../../../objects/types/apps.generated.ts';
import type { Pod } from '../../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import {
  type ControllerSpec,
  type KeyLoop,
  ownKey,
  type ReconcileResult,
} from '../../../runtime/key-loop.ts';
import { OwnWrites } from '../../../runtime/own-writes.ts';
import { StatusWriter } from '../../../runtime/status-writer.ts';
import { Ownership } from '../ownership.ts';
import { sameTemplate } from '../plan-template.ts';
import { planDeployment, type ReplicaSetChange } from './plan.ts';
import { progressDeadline, revisionAnnotation, statusOfRefusal } from './plan-status.ts';

/** Milliseconds over which changes of ReplicaSets are batched. */
const batchMs = 5;

/** Rolls Deployments out by ReplicaSets (kube-controller-manager's `deployment-controller`). */
export const deploymentsController: ControllerSpec = {
  name: 'deployment-controller',
  eventSource: 'deployment-controller',
  queue: 'deployment',
  build(loop) {
    const reconciler = new DeploymentReconciler(loop);
    return (key, signal) => reconciler.reconcile(key, signal);
  },
};

class DeploymentReconciler {
  readonly #context: ControllerContext;
  readonly #client: ResourceClient<ReplicaSet>;
  readonly #deployments: Informer<Deployment>;
  readonly #replicaSets: Informer<ReplicaSet>;
  readonly #pods: Informer<Pod>;
  readonly #writes: OwnWrites<ReplicaSet>;
  readonly #status: StatusWriter<Deployment>;
  readonly #ownership: Ownership<Deployment, ReplicaSet>;

  constructor(loop: KeyLoop) {
    this.#context = loop.context;
    this.#client = loop.context.clients.for(replicaSetsResource);

    this.#deployments = loop.cache(deploymentsResource);
    this.#replicaSets = loop.cache(replicaSetsResource);
    this.#pods = loop.cache(podsResource, { indexes: { [byOwner]: indexByOwner } });

    this.#writes = new OwnWrites(loop, this.#replicaSets);
    this.#status = new StatusWriter(loop, this.#deployments);

    this.#ownership = new Ownership(loop, {
      selector: ({ spec }) => spec.selector,
      owners: this.#deployments,
      children: this.#replicaSets,
      batchMs,
    });
    loop.on(this.#deployments, ownKey);
    // Recreate waits for the last old Pod.
    loop.on(this.#pods, ({ kind, object }) => (kind === 'deleted' ? this.#deploymentOf(object) : []));
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const deployment = this.#deployments.cache.get(key);
    if (deployment === undefined) return undefined;
    const waitMs = Math.max(this.#writes.pendingMs(key), this.#status.pendingMs(key));
    if (waitMs > 0) return { requeueAfterMs: waitMs };

    const replicaSets = await this.#ownership.claim(deployment, signal);
    const now = this.#context.clock.now();
    const plan = planDeployment(deployment, replicaSets, (old) => this.#havePods(old), now);
    const isMade = plan.create === undefined || (await this.#create(key, deployment, plan.create, signal));
    // The status that counts the collision brings the key back.
    if (!isMade) return undefined;
    for (const change of plan.change) await this.#change(key, deployment, change, signal);
    for (const replicaSet of plan.remove) await this.#remove(key, replicaSet, signal);
    const { revision } = plan;
    // Written with the status, as by kube-controller-manager: it does not change the generation of the Deployment.
    const annotations = revision === undefined ? undefined : { [revisionAnnotation]: revision };
    await this.#status.write(deployment, plan.status, signal, annotations);
    const deadline = progressDeadline({ ...deployment, status: plan.status });
    return deadline === undefined || deadline < now ? undefined : { requeueAfterMs: deadline - now + 1000 };
  }

  #deploymentOf(pod: Pod): readonly ObjectKey[] {
    const namespace = pod.metadata.namespace ?? '';
    const replicaSet = this.#replicaSets.cache.get(joinKey(namespace, controllerOf(pod)?.name ?? ''));
    const deployment = replicaSet && controllerOf(replicaSet);
    return deployment?.kind === 'Deployment' ? [joinKey(namespace, deployment.name)] : [];
  }

  #havePods(old: readonly ReplicaSet[]): boolean {
    return old.some(({ metadata }) =>
      this.#pods.cache.byIndex(byOwner, metadata.uid ?? '').some((pod) => !isFinished(pod)),
    );
  }

  /** False when another template has the name: the next try counts the collision. */
  async #create(
    key: ObjectKey,
    deployment: Deployment,
    draft: Draft<ReplicaSet>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { events } = this.#context;
    const { namespace = '', name = '' } = draft.metadata;
    try {
      const made = await this.#client.create(draft, { signal });
      this.#writes.written(key, made);
      const replicas = draft.spec?.replicas ?? 0;
      if (replicas > 0) {
        const message = `Scaled up replica set ${name} from 0 to ${replicas}`;
        events.event(deployment, 'Normal', 'ScalingReplicaSet', message);
      }
      return true;
    } catch (error) {
      if (isNamespaceTerminating(error)) return true;
      if (!isAlreadyExists(error)) {
        const why = errorMessage(error);
        const message = `Failed to create new replica set "${name}": ${why}`;
        events.event(deployment, 'Warning', 'ReplicaSetCreateError', message);
        const refused = statusOfRefusal(deployment, message, this.#context.clock.now());
        await this.#status.write(deployment, refused, signal);
        throw error;
      }
    }
    const present = await this.#client.get(namespace, name, { signal });
    const own = controllerOf(present)?.uid === deployment.metadata.uid;
    if (own && sameTemplate(present.spec.template, deployment.spec.template)) {
      this.#writes.written(key, present);
      return true;
    }
    const collisionCount = (deployment.status.collisionCount ?? 0) + 1;
    await this.#status.write(deployment, { ...deployment.status, collisionCount }, signal);
    return false;
  }

  async #change(
    key: ObjectKey,
    deployment: Deployment,
    { replicaSet, replicas, annotations, minReadySeconds }: ReplicaSetChange,
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace = '', name = '', uid, resourceVersion } = replicaSet.metadata;
    const before = replicaSet.spec.replicas ?? 0;
    const changed = await this.#client.mergePatch(
      namespace,
      name,
      { metadata: { uid, resourceVersion, annotations }, spec: { replicas, minReadySeconds } },
      { signal },
    );
    this.#writes.written(key, changed);
    if (replicas === before) return;
    const direction = replicas > before ? 'up' : 'down';
    const message = `Scaled ${direction} replica set ${name} from ${before} to ${replicas}`;
    this.#context.events.event(deployment, 'Normal', 'ScalingReplicaSet', message);
  }

  async #remove(key: ObjectKey, replicaSet: ReplicaSet, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '' } = replicaSet.metadata;
    this.#writes.deleting(key, replicaSet);
    try {
      await this.#client.delete(namespace, name, { preconditions: { uid }, signal });
    } catch (error) {
      this.#writes.notDeleted(replicaSet);
      if (!isNotFound(error)) throw error;
    }
  }
}
