/** The users of a PersistentVolumeClaim (`pkg/controller/volume/pvcprotection`). */
import type { KubeObject } from '../../objects/meta.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { controllerOf } from '../../objects/pods.ts';

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
