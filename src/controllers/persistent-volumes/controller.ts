import { isAlreadyExists, isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { persistentVolumeClaims, persistentVolumes, pods, storageClasses } from '../../client/resources.ts';
import { jsonEqual } from '../../objects/json.ts';
import { compareQuantities } from '../../objects/formats/quantity.ts';
import { conditionOf, joinKey, keyOf, type ObjectKey } from '../../objects/meta.ts';
import { claimKeysOf, isFinished } from '../../objects/pods.ts';
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '../../objects/types/core.generated.ts';
import type { StorageClass } from '../../objects/types/storage.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { ControllerSpec, KeyLoop, ReconcileResult } from '../../runtime/key-loop.ts';
import { OwnWrites } from '../../runtime/own-writes.ts';
import {
  annotations,
  folderProvisioner,
  isBindCompleted,
  planClaim,
  planVolume,
  releaseOf,
  reservationOf,
  type VolumePlan,
} from './plan.ts';

/** Binds claims to volumes, and makes the volumes of the provisioner of `up` (`persistentvolume-binder-controller`). */
export const persistentVolumesController: ControllerSpec = {
  name: 'persistentvolume-binder-controller',
  eventSource: 'persistentvolume-controller',
  queue: 'persistent_volumes',
  // A volume is given to one claim after another.
  workers: 1,
  build(loop) {
    const reconciler = new VolumesReconciler(loop);
    return (key, signal) => reconciler.reconcile(key, signal);
  },
};

class VolumesReconciler {
  readonly #context: ControllerContext;
  readonly #claimClient: ResourceClient<PersistentVolumeClaim>;
  readonly #volumeClient: ResourceClient<PersistentVolume>;
  readonly #claims: Informer<PersistentVolumeClaim>;
  readonly #volumes: Informer<PersistentVolume>;
  readonly #classes: Informer<StorageClass>;
  readonly #pods: Informer<Pod>;
  readonly #claimWrites: OwnWrites<PersistentVolumeClaim>;
  readonly #volumeWrites: OwnWrites<PersistentVolume>;

  constructor(loop: KeyLoop) {
    this.#context = loop.context;
    this.#claimClient = loop.context.clients.for(persistentVolumeClaims);
    this.#volumeClient = loop.context.clients.for(persistentVolumes);

    this.#claims = loop.cache(persistentVolumeClaims);
    this.#volumes = loop.cache(persistentVolumes);
    this.#classes = loop.cache(storageClasses);
    this.#pods = loop.cache(pods);

    this.#claimWrites = new OwnWrites(loop, this.#claims);
    this.#volumeWrites = new OwnWrites(loop, this.#volumes);

    loop.on(this.#claims, ({ kind, object }) => {
      const volume = object.spec.volumeName ?? '';
      const ofVolume = volume === '' ? [] : [joinKey('', volume)];
      return kind === 'deleted' ? [...ofVolume, ...this.#reserved(object)] : [keyOf(object), ...ofVolume];
    });
    loop.on(this.#volumes, ({ kind, object }) => [
      ...(kind === 'deleted' ? [] : [keyOf(object)]),
      ...this.#claimsOf(object),
    ]);
    loop.on(this.#classes, () => this.#waitingClaims());
    loop.on(this.#pods, ({ object }) => (isUnplaced(object) ? claimKeysOf(object) : []));
  }

  /** The volumes of a claim that has gone. */
  #reserved({ metadata }: PersistentVolumeClaim): readonly ObjectKey[] {
    return [...this.#volumes.cache.values()]
      .filter(({ spec }) => spec.claimRef?.uid === metadata.uid)
      .map(keyOf);
  }

  /** The claims that a volume concerns: those that name it, and the one that it names, or all that wait for one. */
  #claimsOf({ metadata, spec: { claimRef } }: PersistentVolume): readonly ObjectKey[] {
    const { namespace = '', name = '' } = claimRef ?? {};
    return [...this.#claims.cache.values()]
      .filter((claim) => {
        if (claim.spec.volumeName === metadata.name) return true;
        if (claimRef === undefined) return !isBindCompleted(claim);
        return claim.metadata.name === name && claim.metadata.namespace === namespace;
      })
      .map(keyOf);
  }

  #waitingClaims(): readonly ObjectKey[] {
    return [...this.#claims.cache.values()].filter((claim) => !isBindCompleted(claim)).map(keyOf);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const waitMs = Math.max(this.#claimWrites.pendingMs(key), this.#volumeWrites.pendingMs(key));
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const claim = this.#claims.cache.get(key);
    const volume = this.#volumes.cache.get(key);
    try {
      if (claim !== undefined) await this.#syncClaim(key, claim, signal);
      if (volume !== undefined) await this.#syncVolume(key, volume, signal);
    } catch (error) {
      // It is being deleted: the event of that comes.
      if (!isNotFound(error)) throw error;
    }
    return undefined;
  }

  async #syncClaim(key: ObjectKey, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<void> {
    if (claim.metadata.deletionTimestamp !== undefined && !isBindCompleted(claim)) return;
    const { events } = this.#context;
    const unplaced = (): readonly string[] =>
      [...this.#pods.cache.values()]
        .filter((pod) => isUnplaced(pod) && claimKeysOf(pod).includes(key))
        .map(({ metadata: { name = '' } }) => name);
    const plan = planClaim(
      claim,
      [...this.#volumes.cache.values()],
      [...this.#classes.cache.values()],
      unplaced,
    );
    switch (plan.kind) {
      case 'bind':
        await this.#bind(key, claim, plan.volume, signal);
        if (plan.event !== undefined) {
          events.event(claim, plan.event.type, plan.event.reason, plan.event.message);
        }
        return;
      case 'resize':
        await this.#resize(key, claim, plan.volume, plan.storage, signal);
        return;
      case 'classify': {
        const { storageClassName } = plan;
        await this.#patchClaim(key, claim, { spec: { storageClassName } }, signal);
        return;
      }
      case 'provision':
        await this.#nameProvisioner(key, claim, folderProvisioner, signal);
        try {
          this.#volumeWrites.written(key, await this.#volumeClient.create(plan.volume, { signal }));
          const message = `Successfully provisioned volume ${plan.volume.metadata.name ?? ''}`;
          events.event(claim, 'Normal', 'ProvisioningSucceeded', message);
        } catch (error) {
          if (!isAlreadyExists(error)) throw error;
        }
        return;
      case 'lost': {
        if (claim.status.phase === 'Lost') return;
        const status = { phase: 'Lost', accessModes: null, capacity: null };
        await this.#writeClaimStatus(key, claim, status, signal);
        events.event(claim, plan.event.type, plan.event.reason, plan.event.message);
        return;
      }
      case 'wait': {
        const { event, provisioner } = plan;
        if (provisioner !== undefined) await this.#nameProvisioner(key, claim, provisioner, signal);
        if (event !== undefined) events.event(claim, event.type, event.reason, event.message);
      }
    }
  }

  /** Volume first: the write that two claims may want. */
  async #bind(
    key: ObjectKey,
    claim: PersistentVolumeClaim,
    volume: PersistentVolume,
    signal: AbortSignal,
  ): Promise<void> {
    const name = volume.metadata.name ?? '';
    const reservation = reservationOf(volume, claim);
    if (reservation !== undefined) {
      const written = await this.#volumeClient.mergePatch('', name, reservation, { signal });
      this.#volumeWrites.written(key, written);
    }
    if (!isBindCompleted(claim)) {
      const byUs = (claim.spec.volumeName ?? '') === '' ? { [annotations.boundByController]: 'yes' } : {};
      const patch = {
        metadata: { annotations: { [annotations.bindCompleted]: 'yes', ...byUs } },
        spec: { volumeName: name },
      };
      await this.#patchClaim(key, claim, patch, signal);
    }
    const { accessModes = [], capacity = {} } = volume.spec;
    // Of the size, only the binding decides: what a resize gives later is another's.
    const isBound = claim.status.phase === 'Bound';
    const status = isBound ? { phase: 'Bound' } : { phase: 'Bound', accessModes, capacity };
    await this.#writeClaimStatus(key, claim, status, signal);
  }

  /** The volume first: the claim says when it is done. */
  async #resize(
    key: ObjectKey,
    claim: PersistentVolumeClaim,
    { metadata, spec }: PersistentVolume,
    storage: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { name = '', uid } = metadata;
    if (compareQuantities(spec.capacity?.['storage'] ?? '0', storage) < 0) {
      const patch = { metadata: { uid }, spec: { capacity: { storage } } };
      this.#volumeWrites.written(key, await this.#volumeClient.mergePatch('', name, patch, { signal }));
    }
    await this.#writeClaimStatus(key, claim, { capacity: { storage } }, signal);
    this.#context.events.event(claim, 'Normal', 'VolumeResizeSuccessful', 'Resize volume succeeded');
  }

  /** For provisioners beside this cluster, which look for their name (`setClaimProvisioner`). */
  async #nameProvisioner(
    key: ObjectKey,
    claim: PersistentVolumeClaim,
    provisioner: string,
    signal: AbortSignal,
  ): Promise<void> {
    if (claim.metadata.annotations?.[annotations.provisioner] === provisioner) return;
    const names = { [annotations.provisioner]: provisioner, [annotations.betaProvisioner]: provisioner };
    await this.#patchClaim(key, claim, { metadata: { annotations: names } }, signal);
  }

  async #patchClaim(
    key: ObjectKey,
    { metadata }: PersistentVolumeClaim,
    patch: { readonly metadata?: object; readonly spec?: object },
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace = '', name = '', uid } = metadata;
    const whole = { ...patch, metadata: { uid, ...patch.metadata } };
    this.#claimWrites.written(key, await this.#claimClient.mergePatch(namespace, name, whole, { signal }));
  }

  async #writeClaimStatus(
    key: ObjectKey,
    { metadata, status }: PersistentVolumeClaim,
    wanted: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<void> {
    if (jsonEqual({ ...status, ...wanted }, status)) return;
    const { namespace = '', name = '', uid } = metadata;
    const patch = { metadata: { uid }, status: wanted };
    const options = { subresource: 'status', signal };
    this.#claimWrites.written(key, await this.#claimClient.mergePatch(namespace, name, patch, options));
  }

  async #syncVolume(key: ObjectKey, volume: PersistentVolume, signal: AbortSignal): Promise<void> {
    const { claimRef } = volume.spec;
    const cached = this.#claims.cache.get(joinKey(claimRef?.namespace ?? '', claimRef?.name ?? ''));
    let plan = planVolume(volume, cached);
    if (isReclaim(plan, volume)) plan = planVolume(volume, await this.#presentClaim(volume, signal));
    if (plan === undefined) return;
    const { name = '', uid, deletionTimestamp } = volume.metadata;
    if (plan === 'delete') {
      if (deletionTimestamp !== undefined) return;
      this.#volumeWrites.deleting(key, volume);
      try {
        await this.#volumeClient.delete('', name, { preconditions: { uid: uid ?? '' }, signal });
      } catch (error) {
        this.#volumeWrites.notDeleted(volume);
        throw error;
      }
      return;
    }
    if (plan === 'unbind') {
      const written = await this.#volumeClient.mergePatch('', name, releaseOf(volume), { signal });
      this.#volumeWrites.written(key, written);
      return;
    }
    if (plan.phase === volume.status.phase) return;
    const message = plan.phase === 'Failed' ? plan.message : null;
    const patch = { metadata: { uid }, status: { phase: plan.phase, message } };
    const options = { subresource: 'status', signal };
    this.#volumeWrites.written(key, await this.#volumeClient.mergePatch('', name, patch, options));
    if (plan.phase === 'Failed') this.#context.events.event(volume, 'Warning', plan.reason, plan.message);
  }

  /** The claim of a volume by the server: before data is given up, the cache does not count. */
  async #presentClaim(
    { spec: { claimRef } }: PersistentVolume,
    signal: AbortSignal,
  ): Promise<PersistentVolumeClaim | undefined> {
    try {
      return await this.#claimClient.get(claimRef?.namespace ?? '', claimRef?.name ?? '', { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

/** True for a Pod for which the scheduler found no node. */
function isUnplaced(pod: Pod): boolean {
  const isPlaced = (pod.spec.nodeName ?? '') !== '' || isFinished(pod);
  return !isPlaced && conditionOf(pod.status.conditions, 'PodScheduled')?.status === 'False';
}

function isReclaim(plan: VolumePlan | undefined, { status }: PersistentVolume): boolean {
  return (
    plan === 'delete' ||
    (typeof plan === 'object' && plan.phase !== status.phase && plan.phase === 'Released')
  );
}
