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
  return Buffer.from(schema === undefined ? encodePlain(object) : encodeObject(schema, object));
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
