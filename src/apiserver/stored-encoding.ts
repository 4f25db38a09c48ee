import type { KubeObject } from '../objects/meta.ts';
import type { ResourceTable } from './rest/resource-table.ts';
import { builtinSchema, registeredKind } from './schema/builtin.ts';
import { encodeObject } from './schema/encode.ts';
import type { StructSchema } from './schema/schema.ts';

/**
 * The JSON of an object as it is stored: in the form of its own apiVersion and kind.
 * @throws {Error} for a kind that nobody serves: a fault of the program.
 */
export function encodeStored(resources: ResourceTable, object: KubeObject): Buffer {
  return Buffer.from(encodeObject(schemaOf(resources, object), object));
}

function schemaOf(resources: ResourceTable, object: KubeObject): StructSchema {
  const { apiVersion = '', kind = '' } = object;
  const slash = apiVersion.indexOf('/');
  const group = slash < 0 ? '' : apiVersion.slice(0, slash);
  const version = apiVersion.slice(slash + 1);
  const registered = registeredKind(group, version, kind);
  if (registered?.schema !== undefined) return builtinSchema(registered.schema);
  const custom = resources.ofKind(group, version, kind);
  if (custom === undefined) throw new Error(`no schema for ${apiVersion} ${kind}`);
  return custom.schema;
}
