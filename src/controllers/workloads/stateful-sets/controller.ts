import { isAlreadyExists, isNotFound } from '../../../client/errors.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import type { ResourceClient } from '../../../client/resource-client.ts';
import {
  persistentVolumeClaims,
  pods as podsResource,
  statefulSets as statefulSetsResource,
} from '../../../client/resources.ts';
import { joinKey, keyOf, type ObjectKey } from '../../../objects/meta.ts';
import { isPodTerminating, nextAvailable } from '../../../objects/pods.ts';
import { errorMessage } from '../../../objects/status.ts';
import type { StatefulSet } from '../../../objects/types/apps.generated.ts';
import type { PersistentVolumeClaim, Pod } from '../../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import {
  type ControllerSpec,
  type KeyLoop,
  ownKey,
  type ReconcileResult,
} from '../../../runtime/key-loop.ts';
import { StatusWriter } from '../../../runtime/status-writer.ts';
import { History, type Revisions } from '../history.ts';
import { Ownership } from '../ownership.ts';
import { hashOfData } from '../plan-history.ts';
import { PodControl, type PodEventTexts } from '../pod-control.ts';
import {
  claimOwners,
  claimsOf,
  draftClaims,
  draftPod,
  isMember,
  isStale,
  ordinalOf,
  planStatefulSet,
  planStatefulSetStatus,
  podName,
  revisionNameOf,
  type StatefulSetInput,
} from './plan.ts';

/** Runs the Pods of StatefulSets one after another (kube-controller-manager's `statefulset-controller`). */
export const statefulSetsController: ControllerSpec = {
  name: 'statefulset-controller',
  eventSource: 'statefulset-controller',
  queue: 'statefulset',
  build(loop) {
    const reconciler = new StatefulSetReconciler(loop);
    return (key, signal) => reconciler.reconcile(key, signal);
  },
};

/** The messages of Events about Pods (`recordPodEvent`). */
const podEventTexts: PodEventTexts = {
  created: (pod, set) => `create Pod ${pod} in StatefulSet ${set} successful`,
  deleted: (pod, set) => `delete Pod ${pod} in StatefulSet ${set} successful`,
  notCreated: (pod, set, why) => `create Pod ${pod} in StatefulSet ${set} failed error: ${why}`,
  notDeleted: (pod, set, why) => `delete Pod ${pod} in StatefulSet ${set} failed error: ${why}`,
};

class StatefulSetReconciler {
  readonly #context: ControllerContext;
  readonly #claimClient: ResourceClient<PersistentVolumeClaim>;
  readonly #claims: Informer<PersistentVolumeClaim>;
  readonly #sets: Informer<StatefulSet>;
  readonly #podControl: PodControl;
  readonly #status: StatusWriter<StatefulSet>;
  readonly #history: History<StatefulSet>;
  readonly #ownership: Ownership<StatefulSet, Pod>;

  constructor(loop: KeyLoop) {
    this.#context = loop.context;
    this.#claimClient = loop.context.clients.for(persistentVolumeClaims);

    this.#sets = loop.cache(statefulSetsResource);
    const pods = loop.cache(podsResource);
    this.#claims = loop.cache(persistentVolumeClaims);

    this.#podControl = new PodControl(loop, pods, podEventTexts);
    this.#status = new StatusWriter(loop, this.#sets);
    this.#history = new History(loop, this.#sets, hashOfData);

    this.#ownership = new Ownership(loop, {
      selector: ({ spec }) => spec.selector,
      isMember,
      owners: this.#sets,
      children: pods,
    });
    loop.on(this.#sets, ownKey);
    // A Pod may wait until the claim of the one before it is gone.
    loop.on(this.#claims, ({ kind, object }) => (kind === 'deleted' ? this.#setsOf(object) : []));
  }

  #setsOf({ metadata: { namespace, name = '' } }: PersistentVolumeClaim): readonly ObjectKey[] {
    const isOf = ({ metadata, spec }: StatefulSet): boolean =>
      metadata.namespace === namespace &&
      (spec.volumeClaimTemplates ?? []).some((template) =>
        name.startsWith(`${template.metadata.name ?? ''}-${metadata.name ?? ''}-`),
      );
    return [...this.#sets.cache.values()].filter(isOf).map(keyOf);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const set = this.#sets.cache.get(key);
    if (set === undefined) return undefined;
    const podsMs = this.#podControl.pendingMs(key);
    const waitMs = Math.max(podsMs, this.#status.pendingMs(key), this.#history.pendingMs(key));
    if (waitMs > 0) return { requeueAfterMs: waitMs };

    const pods = await this.#ownership.claim(set, signal);
    const collisions = set.status.collisionCount ?? 0;
    const revisions = await this.#history.sync(key, set, set.spec.template, collisions, signal);
    if (revisions === undefined) {
      await this.#status.write(set, { ...set.status, collisionCount: collisions + 1 }, signal);
      return undefined;
    }
    const { update, all } = revisions;
    const current = all.find(({ metadata }) => metadata.name === set.status.currentRevision) ?? update;
    const input = { set, pods, current, update, now: this.#context.clock.now() };
    const failure =
      set.metadata.deletionTimestamp === undefined ? await this.#act(key, input, signal) : undefined;
    const status = planStatefulSetStatus(input);
    await this.#status.write(set, status, signal);
    if (failure !== undefined) throw failure;
    await this.#truncate(key, set, pods, revisions, signal);
    const soon = nextAvailable(pods, set.spec.minReadySeconds ?? 0, input.now);
    return soon === undefined ? undefined : { requeueAfterMs: soon };
  }

  async #act(key: ObjectKey, input: StatefulSetInput, signal: AbortSignal): Promise<Error | undefined> {
    const { set } = input;
    await this.#keepClaims(input, signal);
    const { create: planned, remove } = planStatefulSet(input);
    const create = planned.filter(
      ({ ordinal }) => !this.#claimsOf(set, ordinal).some((claim) => isStale(set, ordinal, claim)),
    );
    for (const { ordinal } of create) await this.#createClaims(set, ordinal, signal);
    const drafts = create.map(({ ordinal, revision }) => draftPod(set, revision, ordinal));
    const failure = await this.#podControl.create(key, set, drafts, signal);
    await this.#podControl.delete(key, set, remove, signal);
    return failure;
  }

  #claimsOf(set: StatefulSet, ordinal: number): readonly PersistentVolumeClaim[] {
    const { namespace = '' } = set.metadata;
    return claimsOf(set, ordinal).flatMap((name) => this.#claims.cache.get(joinKey(namespace, name)) ?? []);
  }

  /** Gives claims the owners with which they are deleted. */
  async #keepClaims({ set, pods }: StatefulSetInput, signal: AbortSignal): Promise<void> {
    for (const pod of pods) {
      const ordinal = ordinalOf(set, pod);
      if (ordinal === undefined || isPodTerminating(pod)) continue;
      for (const { metadata } of this.#claimsOf(set, ordinal)) {
        const ownerReferences = claimOwners(set, pod, metadata);
        if (ownerReferences === undefined || metadata.deletionTimestamp !== undefined) continue;
        const { namespace = '', name = '', uid, resourceVersion } = metadata;
        const patch = { metadata: { uid, resourceVersion, ownerReferences } };
        try {
          await this.#claimClient.mergePatch(namespace, name, patch, { signal });
        } catch (error) {
          if (!isNotFound(error)) throw error;
        }
      }
    }
  }

  async #createClaims(set: StatefulSet, ordinal: number, signal: AbortSignal): Promise<void> {
    const { events } = this.#context;
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
