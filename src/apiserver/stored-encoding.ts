import type { KubeObject } from '../objects/meta.ts';
import type { ResourceTable } from './rest/resource-table.ts';
import { registeredSchema } from './schema/builtin.ts';
import { encodeObject, encodeSorted } from './schema/encode.ts';
import type { StructSchema } from './schema/schema.ts';

/**
 * The JSON of an object as it is stored: in the form of its own apiVersion and kind. Custom
 * objects, also those of versions that are not served (any more), have their members sorted.
 */
export function encodeStored(resources: ResourceTable, object: KubeObject): string {
  const schema = schemaOf(resources, object);
  return schema === undefined ? encodeSorted(object) : encodeObject(schema, object);
}

function schemaOf(resources: ResourceTable, object: KubeObject): StructSchema | undefined {
  const { apiVersion = '', kind = '' } = object;
  const builtin = registeredSchema(apiVersion, kind);
  if (builtin !== undefined) return builtin;
  const slash = apiVersion.indexOf('/');
  const group = slash < 0 ? '' : apiVersion.slice(0, slash);
  return resources.ofKind(group, apiVersion.slice(slash + 1), kind)?.schema;
}
