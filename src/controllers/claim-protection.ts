import { type KubeObject, keyOf, type ObjectKey } from '../objects/meta.ts';
import type { Pod } from '../objects/types/core.generated.ts';
import { controllerOf } from '../objects/pods.ts';
import { isNotFound } from '../client/errors.ts';
import { byNamespace, indexByNamespace } from '../client/informers/cache.ts';
import { pods as podsResource, persistentVolumeClaims } from '../client/resources.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../runtime/context.ts';
import { Controller } from '../runtime/key-loop.ts';

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
  return volumes.some(
    ({ name, persistentVolumeClaim, ephemeral }) =>
      persistentVolumeClaim?.claimName === claim.metadata.name ||
      (ephemeral !== undefined &&
        !isShutDown(pod) &&
        claim.metadata.name === `${pod.metadata.name ?? ''}-${name}` &&
        controllerOf(claim)?.uid === pod.metadata.uid),
  );
}

/** True for a Pod that the kubelet has ended, or that was deleted with grace period 0. */
function isShutDown({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.deletionGracePeriodSeconds === 0;
}

/**
 * Removes the finalizer of PersistentVolumeClaims that are being deleted and that no Pod uses
 * (kube-controller-manager's `persistentvolumeclaim-protection-controller`). Without it they and their namespaces would
 * stay.
 */
export const claimProtectionController: ControllerDefinition = {
  name: 'persistentvolumeclaim-protection-controller',
  start,
};

function start(context: ControllerContext): readonly Runnable[] {
  const claims = context.informers.informer(persistentVolumeClaims);
  const pods = context.informers.informer(podsResource);
  const claimClient = context.clients.for(persistentVolumeClaims);
  const podClient = context.clients.for(podsResource);
  claims.addIndex(byNamespace, indexByNamespace);

  const controller = new Controller({
    name: 'pvc_protection',
    context,
    waitFor: [claims, pods],
    reconcile: async (key: ObjectKey, signal: AbortSignal) => {
      const claim = claims.cache.get(key);
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
    },
  });
  const enqueue = (claim: KubeObject): void => {
    if (isWaiting(claim)) controller.enqueue(keyOf(claim));
  };
  claims.addHandler({ added: enqueue, updated: enqueue });
  const lookAgain = ({ metadata }: Pod): void => {
    for (const claim of claims.cache.byIndex(byNamespace, metadata.namespace ?? '')) enqueue(claim);
  };
  pods.addHandler({
    updated: (pod) => {
      if (pod.metadata.deletionTimestamp !== undefined) lookAgain(pod);
    },
    deleted: lookAgain,
  });
  return [controller];
}
