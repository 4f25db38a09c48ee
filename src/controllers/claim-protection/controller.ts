import { isNotFound } from '../../client/errors.ts';
import { byNamespace, indexByNamespace } from '../../client/informers/indexes.ts';
import { pods as podsResource } from '../../client/resources.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import { Controller } from '../../runtime/controller.ts';
import { persistentVolumeClaims } from '../workloads/resources.ts';
import { isWaiting, protection, uses } from './plan.ts';

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
