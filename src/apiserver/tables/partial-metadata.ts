import type { JsonRecord } from '../../objects/json.ts';
import type { KubeObject, ListMeta, ObjectMeta } from '../../objects/meta.ts';
import { builtinSchema } from '../schema/builtin.ts';

export interface PartialObjectMetadata {
  kind: 'PartialObjectMetadata';
  apiVersion: 'meta.k8s.io/v1';
  metadata: ObjectMeta;
}

export function partialMetadata(object: KubeObject): PartialObjectMetadata {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: inOrder(object.metadata) };
}

/** The metadata with its members in the order of Go's ObjectMeta: stored objects have them as they were set. */
function inOrder(metadata: ObjectMeta): ObjectMeta {
  const ordered: ObjectMeta = {};
  const from: JsonRecord = { ...metadata };
  const into: JsonRecord = {};
  for (const { name } of builtinSchema('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta').fields) {
    if (from[name] !== undefined) into[name] = from[name];
  }
  return Object.assign(ordered, into);
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
