import type { KubeObject, ListMeta, ObjectMeta } from '../../objects/meta.ts';

export interface PartialObjectMetadata {
  kind: 'PartialObjectMetadata';
  apiVersion: 'meta.k8s.io/v1';
  metadata: ObjectMeta;
}

export function partialMetadata(object: KubeObject): PartialObjectMetadata {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata };
}

export interface PartialObjectMetadataList {
  kind: 'PartialObjectMetadataList';
  apiVersion: 'meta.k8s.io/v1';
  metadata: ListMeta;
  items: PartialObjectMetadata[];
}

export function partialMetadataList(
  objects: readonly KubeObject[],
  metadata: ListMeta,
): PartialObjectMetadataList {
  return {
    kind: 'PartialObjectMetadataList',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    items: objects.map(partialMetadata),
  };
}
