import { conditionOf, type KubeObject, keyOf, type ObjectKey, replacedCondition } from '../objects/meta.ts';
import type {
  PersistentVolumeClaim,
  PersistentVolumeClaimCondition,
  Pod,
  Volume,
} from '../objects/types/core.generated.ts';
import { formatTime } from '../objects/formats/time.ts';
import { claimKeysOf, claimOf, foreignClaim, isFinished } from '../objects/pods.ts';
import { isNotFound, isAlreadyExists } from '../client/errors.ts';
import { byNamespace, indexByNamespace } from '../client/informers/cache.ts';
import { pods as podsResource, persistentVolumeClaims, persistentVolumes } from '../client/resources.ts';
import type { ControllerSpec } from '../runtime/key-loop.ts';
import { errorMessage } from '../objects/status.ts';

/** The users of a PersistentVolumeClaim (`pkg/controller/volume/pvcprotection`). */

/** The finalizer of claims, which the server adds to every claim (admission StorageObjectInUseProtection). */
export const protection = 'kubernetes.io/pvc-protection';

/** True for a claim that is being deleted and has the finalizer. */
export function isWaiting({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).includes(protection);
}

/**
 * True when a Pod on a node names the claim, whether it still runs or not. A Pod without a node does not count: no
 * kubelet starts it with a claim that is being deleted.
 */
export function uses(pod: Pod, claim: KubeObject): boolean {
  const { nodeName = '', volumes = [] } = pod.spec;
  if (nodeName === '') return false;
  return volumes.some((volume) => {
    const { name, isEphemeral } = claimOf(pod, volume) ?? {};
    if (name !== claim.metadata.name) return false;
    return isEphemeral !== true || (!isShutDown(pod) && foreignClaim(pod, claim) === undefined);
  });
}

/** True when a Pod that has not ended names the claim (`podUsesPVCForUnusedSince`). */
function references(pod: Pod, claim: KubeObject): boolean {
  if (isFinished(pod)) return false;
  return (pod.spec.volumes ?? []).some((volume) => {
    const { name, isEphemeral } = claimOf(pod, volume) ?? {};
    return name === claim.metadata.name && (isEphemeral !== true || foreignClaim(pod, claim) === undefined);
  });
}

const unused = 'Unused';

/**
 * The condition `Unused` that a claim gets; undefined: it stays as it is. A claim that was always used has none
 * (`updateUnusedCondition`).
 *
 * @param now milliseconds since 1970.
 */
export function unusedCondition(
  claim: PersistentVolumeClaim,
  pods: readonly Pod[],
  now: number,
): PersistentVolumeClaimCondition | undefined {
  if (claim.metadata.deletionTimestamp !== undefined || claim.status.phase !== 'Bound') return undefined;
  const present = conditionOf(claim.status.conditions, unused);
  const isUsed = pods.some((pod) => references(pod, claim));
  if (isUsed ? present === undefined || present.status === 'False' : present?.status === 'True')
    return undefined;
  return {
    type: unused,
    status: isUsed ? 'False' : 'True',
    lastTransitionTime: formatTime(now),
    reason: isUsed ? 'PodUsingPVC' : 'NoPodsUsingPVC',
    message: isUsed
      ? 'A pod is currently referencing this PVC'
      : 'No pods are currently referencing this PVC',
  };
}

/** True for a Pod that the kubelet has ended, or that was deleted with grace period 0. */
function isShutDown({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.deletionGracePeriodSeconds === 0;
}

/**
 * Removes the finalizer of PersistentVolumeClaims that are being deleted and that no Pod uses
 * (kube-controller-manager's `persistentvolumeclaim-protection-controller`), and says of bound ones since when no Pod
 * uses them. Without it they and their namespaces would stay.
 */
export const claimProtectionController: ControllerSpec = {
  name: 'persistentvolumeclaim-protection-controller',
  eventSource: 'pvc-protection-controller',
  queue: 'pvc_protection',
  build(loop) {
    const claimClient = loop.context.clients.for(persistentVolumeClaims);
    const podClient = loop.context.clients.for(podsResource);
    const claims = loop.cache(persistentVolumeClaims, { indexes: { [byNamespace]: indexByNamespace } });
    const pods = loop.cache(podsResource, { indexes: { [byNamespace]: indexByNamespace } });

    const waiting = (claim: KubeObject): ObjectKey[] => (isWaiting(claim) ? [keyOf(claim)] : []);
    loop.on(claims, ({ kind, object }) => {
      if (kind === 'deleted') return [];
      return conditionOf(object.status.conditions, unused) === undefined ? [keyOf(object)] : waiting(object);
    });
    loop.on(pods, ({ kind, object }) => {
      const { namespace = '', deletionTimestamp } = object.metadata;
      const isEnding = kind === 'updated' && deletionTimestamp !== undefined;
      const named = claimKeysOf(object);
      if (!isEnding && kind !== 'deleted') return named;
      return [...named, ...[...claims.cache.byIndex(byNamespace, namespace)].flatMap(waiting)];
    });

    const markUnused = async (claim: PersistentVolumeClaim, signal: AbortSignal): Promise<void> => {
      const { namespace = '' } = claim.metadata;
      const now = loop.context.clock.now();
      const cached = unusedCondition(claim, [...pods.cache.byIndex(byNamespace, namespace)], now);
      if (cached === undefined) return;
      // That no Pod uses it is for a live list to say.
      const condition =
        cached.status === 'False'
          ? cached
          : unusedCondition(claim, (await podClient.list({ namespace, signal })).items, now);
      if (condition === undefined) return;
      const conditions = replacedCondition(claim.status.conditions ?? [], condition);
      await claimClient.replaceStatus({ ...claim, status: { ...claim.status, conditions } }, { signal });
    };

    return async (key, signal) => {
      const claim = claims.cache.get(key);
      if (claim !== undefined) await markUnused(claim, signal);
      if (claim === undefined || !isWaiting(claim)) return undefined;
      // A live list: the cache may be behind, and may lack volumes.
      const { items } = await podClient.list({ namespace: claim.metadata.namespace ?? '', signal });
      if (items.some((pod) => uses(pod, claim))) return undefined;
      const finalizers = (claim.metadata.finalizers ?? []).filter((finalizer) => finalizer !== protection);
      try {
        await claimClient.replace({ ...claim, metadata: { ...claim.metadata, finalizers } }, { signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      return undefined;
    };
  },
};

/** The finalizer of volumes, which the server adds to every volume. */
const volumeProtection = 'kubernetes.io/pv-protection';

/**
 * Removes the finalizer of PersistentVolumes that are being deleted and that are bound to no claim
 * (kube-controller-manager's `persistentvolume-protection-controller`).
 */
export const volumeProtectionController: ControllerSpec = {
  name: 'persistentvolume-protection-controller',
  eventSource: 'pv-protection-controller',
  queue: 'pv_protection',
  build(loop) {
    const client = loop.context.clients.for(persistentVolumes);
    const volumes = loop.cache(persistentVolumes);

    loop.on(volumes, ({ kind, object }) => (kind === 'deleted' ? [] : [keyOf(object)]));

    return async (key, signal) => {
      const volume = volumes.cache.get(key);
      if (volume?.metadata.deletionTimestamp === undefined || volume.status.phase === 'Bound')
        return undefined;
      const { finalizers = [] } = volume.metadata;
      if (!finalizers.includes(volumeProtection)) return undefined;
      const left = finalizers.filter((finalizer) => finalizer !== volumeProtection);
      try {
        await client.replace({ ...volume, metadata: { ...volume.metadata, finalizers: left } }, { signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      return undefined;
    };
  },
};

/** The claim of an ephemeral volume; undefined for other volumes. It is deleted with its Pod. */
function ephemeralClaim(pod: Pod, volume: Volume): PersistentVolumeClaim | undefined {
  const template = volume.ephemeral?.volumeClaimTemplate;
  const name = claimOf(pod, volume)?.name;
  if (template === undefined || name === undefined) return undefined;
  const { namespace = '', name: podName = '', uid = '' } = pod.metadata;
  const owner = { apiVersion: 'v1', kind: 'Pod', name: podName, uid };
  const { annotations, labels } = template.metadata ?? {};
  return {
    metadata: {
      ...{ namespace, name },
      ...(annotations !== undefined && { annotations }),
      ...(labels !== undefined && { labels }),
      ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
    },
    spec: template.spec,
    status: {},
  };
}

function hasEphemeral({ spec }: Pod): boolean {
  return (spec.volumes ?? []).some(({ ephemeral }) => ephemeral !== undefined);
}

/** Makes the claims of ephemeral volumes (kube-controller-manager's `ephemeral-volume-controller`). */
export const ephemeralVolumesController: ControllerSpec = {
  name: 'ephemeral-volume-controller',
  eventSource: 'ephemeral_volume',
  queue: 'ephemeral_volume',
  build(loop) {
    const { clients, events } = loop.context;
    const client = clients.for(persistentVolumeClaims);
    const pods = loop.cache(podsResource);
    const claims = loop.cache(persistentVolumeClaims);

    loop.on(pods, ({ kind, object }) =>
      kind === 'deleted' || object.metadata.deletionTimestamp !== undefined || !hasEphemeral(object)
        ? []
        : [keyOf(object)],
    );
    // One that is deleted is made anew; one that comes may be another's.
    loop.on(claims, ({ kind, object: { metadata } }) => {
      if (kind === 'updated') return [];
      const users = [...pods.cache.values()].filter(
        (pod) =>
          pod.metadata.namespace === metadata.namespace &&
          (pod.spec.volumes ?? []).some((volume) => claimOf(pod, volume)?.name === metadata.name),
      );
      return users.map(keyOf);
    });

    return async (key, signal) => {
      const pod = pods.cache.get(key);
      if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return undefined;
      for (const volume of pod.spec.volumes ?? []) {
        const wanted = ephemeralClaim(pod, volume);
        if (wanted === undefined) continue;
        const present = claims.cache.get(keyOf(wanted));
        const failed = (why: string): void =>
          events.event(pod, 'Warning', 'FailedBinding', `ephemeral volume ${volume.name}: ${why}`);
        const foreign = present && foreignClaim(pod, present);
        if (foreign !== undefined) failed(foreign);
        if (present !== undefined) continue;
        try {
          await client.create(wanted, { signal });
        } catch (error) {
          // The cache is behind.
          if (isAlreadyExists(error)) continue;
          failed(errorMessage(error));
          throw error;
        }
      }
      return undefined;
    };
  },
};
