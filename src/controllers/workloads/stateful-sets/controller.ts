import { isAlreadyExists } from '../../../client/errors.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import type { ResourceClient } from '../../../client/resource-client.ts';
import { pods as podsResource } from '../../../client/resources.ts';
import type { ObjectKey } from '../../../objects/meta.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import type { StatefulSet } from '../../../objects/types/apps.generated.ts';
import type { Pod } from '../../../objects/types/core.generated.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../../runtime/context.ts';
import type { ReconcileResult } from '../../../runtime/key-loop.ts';
import { Reconciler } from '../../../runtime/key-loop.ts';
import { History, type Revisions } from '../history.ts';
import { Ownership } from '../ownership.ts';
import { hashOfData } from '../plan-history.ts';
import { nextAvailable } from '../../../objects/pods.ts';
import { PodControl, type PodWords } from '../pod-control.ts';
import { persistentVolumeClaims, statefulSets as statefulSetsResource } from '../../../client/resources.ts';
import { lookAgain, StatusWriter } from '../../../runtime/own-writes.ts';
import { planStatefulSet, planStatefulSetStatus, type StatefulSetInput } from './plan.ts';
import { draftClaims, draftPod, isMember, podName, revisionNameOf } from './plan.ts';
import { errorMessage } from '../../../objects/status.ts';

/** Runs the Pods of StatefulSets one after another (kube-controller-manager's `statefulset-controller`). */
export const statefulSetsController: ControllerDefinition = {
  name: 'statefulset-controller',
  start(context: ControllerContext): readonly Runnable[] {
    return [new StatefulSetReconciler(context)];
  },
};

/** The messages of Events about Pods (`recordPodEvent`). */
const podWords: PodWords = {
  created: (pod, set) => `create Pod ${pod} in StatefulSet ${set} successful`,
  deleted: (pod, set) => `delete Pod ${pod} in StatefulSet ${set} successful`,
  notCreated: (pod, set, why) => `create Pod ${pod} in StatefulSet ${set} failed error: ${why}`,
  notDeleted: (pod, set, why) => `delete Pod ${pod} in StatefulSet ${set} failed error: ${why}`,
};

class StatefulSetReconciler extends Reconciler {
  readonly #sets: Informer<StatefulSet>;
  readonly #ownership: Ownership<StatefulSet, Pod>;
  readonly #podControl: PodControl;
  readonly #status: StatusWriter<StatefulSet>;
  readonly #history: History<StatefulSet>;
  readonly #claimClient: ResourceClient<KubeObject>;

  constructor(context: ControllerContext) {
    super(context, 'statefulset');
    this.#sets = this.informer(statefulSetsResource);
    const pods = this.informer(podsResource);
    this.#claimClient = context.clients.for(persistentVolumeClaims);
    this.#podControl = new PodControl(context, pods, podWords);
    this.#status = new StatusWriter(context, this.#sets);
    const enqueue = (key: ObjectKey): void => this.queue.enqueue(key);
    this.#history = new History(context, this.#sets, hashOfData, enqueue);
    this.#ownership = new Ownership({
      selector: ({ spec }) => spec.selector,
      isMember,
      owners: this.#sets,
      children: pods,
      client: context.clients.for(podsResource),
      enqueue,
    });
    this.waitFor(this.#history.informer);
    this.enqueueChanges(this.#sets);
  }

  protected override async reconcile(
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const set = this.#sets.cache.get(key);
    if (set === undefined) return undefined;
    const settled = this.#podControl.settled(key) && this.#status.settled(key) && this.#history.settled(key);
    if (!settled) return { requeueAfter: lookAgain };
    const pods = await this.#ownership.claim(set, signal);
    const collisions = set.status.collisionCount ?? 0;
    const revisions = await this.#history.sync(key, set, set.spec.template, collisions, signal);
    if (revisions === undefined) {
      await this.#status.write(set, { ...set.status, collisionCount: collisions + 1 }, signal);
      return undefined;
    }
    const { update, all } = revisions;
    const current = all.find(({ metadata }) => metadata.name === set.status.currentRevision) ?? update;
    const input = { set, pods, current, update, now: this.context.clock.now() };
    const failure =
      set.metadata.deletionTimestamp === undefined ? await this.#act(key, input, signal) : undefined;
    const status = planStatefulSetStatus(input);
    await this.#status.write(set, status, signal);
    if (failure !== undefined) throw failure;
    await this.#truncate(key, set, pods, revisions, signal);
    const soon = nextAvailable(pods, set.spec.minReadySeconds ?? 0, input.now);
    return soon === undefined ? undefined : { requeueAfter: soon };
  }

  async #act(key: ObjectKey, input: StatefulSetInput, signal: AbortSignal): Promise<Error | undefined> {
    const { set } = input;
    const { create, remove } = planStatefulSet(input);
    for (const { ordinal } of create) await this.#createClaims(set, ordinal, signal);
    const drafts = create.map(({ ordinal, revision }) => draftPod(set, revision, ordinal));
    const failure = await this.#podControl.create(key, set, drafts, signal);
    await this.#podControl.delete(key, set, remove, signal);
    return failure;
  }

  async #createClaims(set: StatefulSet, ordinal: number, signal: AbortSignal): Promise<void> {
    const { events } = this.context;
    const name = set.metadata.name ?? '';
    const pod = podName(set, ordinal);
    for (const claim of draftClaims(set, ordinal)) {
      const claimName = claim.metadata.name ?? '';
      try {
        await this.#claimClient.create(claim, { signal });
        const message = `create Claim ${claimName} Pod ${pod} in StatefulSet ${name} success`;
        events.event(set, 'Normal', 'SuccessfulCreate', message);
      } catch (error) {
        // A claim exists longer than its Pod, and than the StatefulSet.
        if (isAlreadyExists(error)) continue;
        const why = errorMessage(error);
        const message = `create Claim ${claimName} for Pod ${pod} in StatefulSet ${name} failed error: ${why}`;
        events.event(set, 'Warning', 'FailedCreate', message);
        throw error;
      }
    }
  }

  async #truncate(
    key: ObjectKey,
    set: StatefulSet,
    pods: readonly Pod[],
    { all, update }: Revisions,
    signal: AbortSignal,
  ): Promise<void> {
    const live = new Set([...pods.map(revisionNameOf), update.metadata.name, set.status.currentRevision]);
    const limit = set.spec.revisionHistoryLimit ?? 10;
    await this.#history.truncate(key, all, ({ metadata }) => live.has(metadata.name), limit, signal);
  }
}
