import { isAlreadyExists, isNotFound, isNamespaceTerminating } from '../../../client/errors.ts';
import { byOwner, indexByOwner } from '../../../client/informers/cache.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import type { Draft, ResourceClient } from '../../../client/resource-client.ts';
import { pods as podsResource } from '../../../client/resources.ts';
import { joinKey, type ObjectKey } from '../../../objects/meta.ts';
import type { Deployment, ReplicaSet } from '../../../objects/types/apps.generated.ts';
import type { Pod } from '../../../objects/types/core.generated.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../../runtime/context.ts';
import type { ReconcileResult } from '../../../runtime/key-loop.ts';
import { Reconciler } from '../../../runtime/key-loop.ts';
import { Expectations } from '../../../runtime/own-writes.ts';
import { Ownership } from '../ownership.ts';
import { controllerOf, isFinished } from '../../../objects/pods.ts';
import { sameTemplate } from '../plan-template.ts';
import {
  deployments as deploymentsResource,
  replicaSets as replicaSetsResource,
} from '../../../client/resources.ts';
import { lookAgain, StatusWriter } from '../../../runtime/own-writes.ts';
import { planDeployment, type ReplicaSetChange } from './plan.ts';
import { revisionAnnotation } from './plan-status.ts';
import { progressDeadline, statusOfRefusal } from './plan-status.ts';
import { errorMessage } from '../../../objects/status.ts';

/** Milliseconds over which changes of ReplicaSets are batched. */
const gather = 5;

/** Rolls Deployments out by ReplicaSets (kube-controller-manager's `deployment-controller`). */
export const deploymentsController: ControllerDefinition = {
  name: 'deployment-controller',
  start(context: ControllerContext): readonly Runnable[] {
    return [new DeploymentReconciler(context)];
  },
};

class DeploymentReconciler extends Reconciler {
  readonly #deployments: Informer<Deployment>;
  readonly #pods: Informer<Pod>;
  readonly #replicaSets: Informer<ReplicaSet>;
  readonly #client: ResourceClient<ReplicaSet>;
  readonly #ownership: Ownership<Deployment, ReplicaSet>;
  readonly #expectations: Expectations<ReplicaSet>;
  readonly #status: StatusWriter<Deployment>;

  constructor(context: ControllerContext) {
    super(context, 'deployment');
    this.#deployments = this.informer(deploymentsResource);
    this.#replicaSets = this.informer(replicaSetsResource);
    this.#pods = this.informer(podsResource);
    this.#client = context.clients.for(replicaSetsResource);
    this.#expectations = new Expectations(this.#replicaSets, context.clock);
    this.#status = new StatusWriter(context, this.#deployments);
    this.#ownership = new Ownership({
      selector: ({ spec }) => spec.selector,
      owners: this.#deployments,
      children: this.#replicaSets,
      client: this.#client,
      enqueue: (key) => this.queue.enqueue(key, { after: gather }),
    });
    this.enqueueChanges(this.#deployments);
    this.#pods.addIndex(byOwner, indexByOwner);
    // Recreate waits for the last old Pod.
    this.#pods.addHandler({ deleted: (pod) => this.#podGone(pod) });
  }

  #podGone(pod: Pod): void {
    const namespace = pod.metadata.namespace ?? '';
    const replicaSet = this.#replicaSets.cache.get(joinKey(namespace, controllerOf(pod)?.name ?? ''));
    const deployment = replicaSet && controllerOf(replicaSet);
    if (deployment?.kind === 'Deployment') this.queue.enqueue(joinKey(namespace, deployment.name));
  }

  protected override async reconcile(
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const deployment = this.#deployments.cache.get(key);
    if (deployment === undefined) return undefined;
    if (!this.#expectations.settled(key) || !this.#status.settled(key)) return { requeueAfter: lookAgain };
    const replicaSets = await this.#ownership.claim(deployment, signal);
    const now = this.context.clock.now();
    const plan = planDeployment(deployment, replicaSets, (old) => this.#havePods(old), now);
    if (plan.create !== undefined && !(await this.#create(key, deployment, plan.create, signal))) {
      return { requeueAfter: lookAgain };
    }
    for (const change of plan.change) await this.#change(key, deployment, change, signal);
    for (const replicaSet of plan.remove) await this.#remove(key, replicaSet, signal);
    const { revision } = plan;
    // Written with the status, as by kube-controller-manager: it does not change the generation of the Deployment.
    const annotations = revision === undefined ? undefined : { [revisionAnnotation]: revision };
    await this.#status.write(deployment, plan.status, signal, annotations);
    const deadline = progressDeadline({ ...deployment, status: plan.status });
    return deadline === undefined || deadline < now ? undefined : { requeueAfter: deadline - now + 1000 };
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
    const { events } = this.context;
    const { namespace = '', name = '' } = draft.metadata;
    try {
      const made = await this.#client.create(draft, { signal });
      this.#expectations.written(key, made);
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
        const refused = statusOfRefusal(deployment, message, this.context.clock.now());
        await this.#status.write(deployment, refused, signal);
        throw error;
      }
    }
    const present = await this.#client.get(namespace, name, { signal });
    const own = controllerOf(present)?.uid === deployment.metadata.uid;
    if (own && sameTemplate(present.spec.template, deployment.spec.template)) {
      this.#expectations.written(key, present);
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
    this.#expectations.written(key, changed);
    if (replicas === before) return;
    const direction = replicas > before ? 'up' : 'down';
    const message = `Scaled ${direction} replica set ${name} from ${before} to ${replicas}`;
    this.context.events.event(deployment, 'Normal', 'ScalingReplicaSet', message);
  }

  async #remove(key: ObjectKey, replicaSet: ReplicaSet, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '' } = replicaSet.metadata;
    try {
      await this.#client.delete(namespace, name, { preconditions: { uid }, signal });
      this.#expectations.deleted(key, replicaSet);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
