import { isAlreadyExists } from '../client/errors.ts';
import { persistentVolumeClaims, pods as podsResource } from '../client/resources.ts';
import { keyOf } from '../objects/meta.ts';
import { claimOf, foreignClaim } from '../objects/pods.ts';
import { errorMessage } from '../objects/status.ts';
import type { PersistentVolumeClaim, Pod, Volume } from '../objects/types/core.generated.ts';
import type { ControllerSpec } from '../runtime/key-loop.ts';

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
