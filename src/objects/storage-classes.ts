import type { KubeObject } from './meta.ts';
import type { PersistentVolume, PersistentVolumeClaim } from './types/core.generated.ts';

/** The annotation that named the class before `storageClassName` did, and beats it. */
export const classAnnotation = 'volume.beta.kubernetes.io/storage-class';

const defaultAnnotations = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];

/** The class of a claim or a volume; empty: none (`GetPersistentVolumeClaimClass`). */
export function classOf({ metadata, spec }: PersistentVolumeClaim | PersistentVolume): string {
  return metadata.annotations?.[classAnnotation] ?? spec.storageClassName ?? '';
}

/**
 * The newest default StorageClass, of equal times the first by name (`pkg/volume/util` GetDefaultClass); undefined: there is
 * none.
 */
export function defaultStorageClass(classes: Iterable<Pick<KubeObject, 'metadata'>>): string | undefined {
  const [newest] = [...classes]
    .map(({ metadata }) => metadata)
    .filter(({ annotations }) => defaultAnnotations.some((name) => annotations?.[name] === 'true'))
    .sort((a, b) => {
      const [of = '', than = ''] = [a.creationTimestamp, b.creationTimestamp];
      if (of === than) return (a.name ?? '') < (b.name ?? '') ? -1 : 1;
      return of > than ? -1 : 1;
    });
  return newest?.name;
}
