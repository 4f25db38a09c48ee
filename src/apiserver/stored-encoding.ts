import type { KubeObject } from '../objects/meta.ts';
import type { ResourceTable } from './rest/resource-table.ts';
import { builtinSchema, registeredKind } from './schema/builtin.ts';
import { encodeObject, encodePlain } from './schema/encode.ts';
import type { StructSchema } from './schema/schema.ts';

/**
 * The JSON of an object as it is stored: in the form of its own apiVersion and kind. A custom object whose
 * definition is gone, as a watch that resumes may still have to tell of, is written as it is.
 */
export function encodeStored(resources: ResourceTable, object: KubeObject): Buffer {
  const schema = schemaOf(resources, object);
  return ownBytes(schema === undefined ? encodePlain(object) : encodeObject(schema, object));
}

/** Bytes that live long get memory of their own: a slice of Buffer's pool would keep 64 KiB of neighbours alive. */
function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

function schemaOf(resources: ResourceTable, object: KubeObject): StructSchema | undefined {
  const { apiVersion = '', kind = '' } = object;
  const slash = apiVersion.indexOf('/');
  const group = slash < 0 ? '' : apiVersion.slice(0, slash);
  const version = apiVersion.slice(slash + 1);
  const registered = registeredKind(group, version, kind);
  if (registered?.schema !== undefined) return builtinSchema(registered.schema);
  return resources.ofKind(group, version, kind)?.schema;
}
