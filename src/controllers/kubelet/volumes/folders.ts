import type { ResourceClient } from '../../../client/resource-client.ts';
import { persistentVolumes } from '../../../client/resources.ts';
import { keyOf } from '../../../objects/meta.ts';
import type { PersistentVolume } from '../../../objects/types/core.generated.ts';
import type { KeyLoop, Reconcile } from '../../../runtime/key-loop.ts';
import { isNotFound } from '../../../client/errors.ts';
import { folderProvisioner } from '../../persistent-volumes/plan.ts';
import type { ContainerRuntime } from '../container-runtime.ts';

/** Keeps a PersistentVolume until its folder is removed. A Pod that uses the volume first adds it. */
const finalizer = 'folders.servicenet.dev/folder';

/** Call before the folder of a volume is made. */
export async function keepUntilRemoved(
  client: ResourceClient<PersistentVolume>,
  { metadata, spec }: PersistentVolume,
  signal: AbortSignal,
): Promise<void> {
  const { name = '', resourceVersion, finalizers = [], deletionTimestamp } = metadata;
  const isFolder = spec.csi?.driver === folderProvisioner;
  // The server refuses a new finalizer of what is being deleted.
  if (!isFolder || finalizers.includes(finalizer) || deletionTimestamp !== undefined) return;
  const patch = { metadata: { resourceVersion, finalizers: [...finalizers, finalizer] } };
  await client.mergePatch('', name, patch, { signal });
}

/** Removes the folders of volumes that are being deleted; with the policy Retain, the files stay. */
export function removeFolders(runtime: ContainerRuntime): (loop: KeyLoop) => Reconcile {
  return (loop) => {
    const client = loop.context.clients.for(persistentVolumes);
    const volumes = loop.cache(persistentVolumes);

    loop.on(volumes, ({ kind, object }) => (kind === 'deleted' ? [] : [keyOf(object)]));

    return async (key, signal) => {
      const volume = volumes.cache.get(key);
      if (volume?.metadata.deletionTimestamp === undefined || volume.status.phase === 'Bound') {
        return undefined;
      }
      const { finalizers = [] } = volume.metadata;
      const handle = volume.spec.csi?.volumeHandle;
      if (!finalizers.includes(finalizer) || handle === undefined) return undefined;
      if (volume.spec.persistentVolumeReclaimPolicy === 'Delete') await runtime.removeFolder(handle);
      const left = finalizers.filter((each) => each !== finalizer);
      try {
        await client.replace({ ...volume, metadata: { ...volume.metadata, finalizers: left } }, { signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      return undefined;
    };
  };
}
