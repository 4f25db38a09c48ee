import { isRecord, type JsonRecord } from '../../objects/json.ts';
import type { KubeObject, ListMeta, ObjectMeta } from '../../objects/meta.ts';
import type { MetaVersion } from '../http/negotiation.ts';
import { builtinSchema } from '../schema/builtin.ts';
import type { Schema } from '../schema/schema.ts';

/** meta.k8s.io PartialObjectMetadata. */
export interface PartialObjectMetadata {
  kind: 'PartialObjectMetadata';
  apiVersion: `meta.k8s.io/${MetaVersion}`;
  metadata: ObjectMeta;
}

/** The metadata of an object. */
export function partialMetadata(object: KubeObject, version: MetaVersion): PartialObjectMetadata {
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: `meta.k8s.io/${version}`,
    metadata: orderedMetadata(object.metadata),
  };
}

/** The metadata with its members in the order of Go's ObjectMeta. */
function orderedMetadata(metadata: ObjectMeta): ObjectMeta {
  const ordered = inFieldOrder(builtinSchema('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'), metadata);
  return isRecord(ordered) ? ordered : metadata;
}

function inFieldOrder(schema: Schema, value: unknown): unknown {
  if (schema.type === 'list' && Array.isArray(value))
    return value.map((item) => inFieldOrder(schema.items, item));
  if (schema.type !== 'struct' || !isRecord(value)) return value;
  const ordered: JsonRecord = {};
  for (const { name, schema: member } of schema.fields) {
    if (value[name] !== undefined) ordered[name] = inFieldOrder(member, value[name]);
  }
  return ordered;
}

/** meta.k8s.io PartialObjectMetadataList. */
export interface PartialObjectMetadataList {
  kind: 'PartialObjectMetadataList';
  apiVersion: `meta.k8s.io/${MetaVersion}`;
  metadata: ListMeta;
  items: PartialObjectMetadata[];
}

/** The metadata of a list of objects. */
export function partialMetadataList(
  objects: readonly KubeObject[],
  metadata: ListMeta,
  version: MetaVersion,
): PartialObjectMetadataList {
  return {
    kind: 'PartialObjectMetadataList',
    apiVersion: `meta.k8s.io/${version}`,
    metadata,
    items: objects.map((object) => partialMetadata(object, version)),
  };
}
