/** CEL types of structural schemas (`apiserver/pkg/cel/common/schemas.go` SchemaDeclType). */
import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import * as types from '../../../cel/types.ts';
import { itemSchemaOf, valuesOf } from '../schema/json-schema.ts';
import { escapeName } from './escape.ts';

/** The name of the type of `self`. kube-apiserver adds a number that changes with every compilation. */
const rootName = 'selfType';

/**
 * The type of values with the schema; undefined where the schema has no type for expressions.
 *
 * @param resourceRoot the schema is that of an object with apiVersion, kind and metadata.
 */
export function declType(
  schema: JSONSchemaProps,
  resourceRoot: boolean,
  name = rootName,
): types.CelType | undefined {
  if (schema['x-kubernetes-int-or-string'] === true) return types.dynType;
  switch (schema.type) {
    case 'array': {
      const items = itemSchemaOf(schema);
      const element = items === undefined ? undefined : declType(items, isEmbedded(items), `${name}.@idx`);
      return element === undefined ? undefined : types.listType(element);
    }
    case 'object':
      return objectType(resourceRoot ? withTypeMeta(schema) : schema, name);
    case 'string':
      return textType(schema.format);
    case 'boolean':
      return types.boolType;
    case 'number':
      return types.doubleType;
    case 'integer':
      return types.intType;
    default:
      return undefined;
  }
}

/** True for an embedded resource, with apiVersion, kind and metadata of its own. */
export function isEmbedded(schema: JSONSchemaProps): boolean {
  return schema['x-kubernetes-embedded-resource'] === true;
}

function objectType(schema: JSONSchemaProps, name: string): types.CelType | undefined {
  const values = valuesOf(schema);
  if (values !== undefined) {
    const value = declType(values, isEmbedded(values), `${name}.@elem`);
    return value === undefined ? undefined : types.mapType(types.stringType, value);
  }
  const fields = new Map<string, types.CelType>();
  for (const [property, part] of Object.entries(schema.properties ?? {})) {
    const identifier = escapeName(property);
    if (identifier === undefined) continue;
    const type = declType(part, isEmbedded(part), `${name}.${identifier}`);
    if (type !== undefined) fields.set(identifier, type);
  }
  return { kind: 'object', name, fields };
}

function textType(format: string | undefined): types.CelType {
  switch (format) {
    case 'byte':
      return types.bytesType;
    case 'duration':
      return types.durationType;
    case 'date':
    case 'date-time':
      return types.timestampType;
    default:
      return types.stringType;
  }
}

const text: JSONSchemaProps = { type: 'string' };
const typeMeta: Readonly<Record<string, JSONSchemaProps>> = {
  kind: text,
  apiVersion: text,
  metadata: { type: 'object', properties: { name: text, generateName: text } },
};

/** The fields of every resource, declared or not; expressions see only the names in metadata. */
export function withTypeMeta(schema: JSONSchemaProps): JSONSchemaProps {
  const known = completed.get(schema);
  if (known !== undefined) return known;
  const full: JSONSchemaProps = { ...schema, properties: { ...schema.properties, ...typeMeta } };
  completed.set(schema, full);
  return full;
}

const completed = new WeakMap<JSONSchemaProps, JSONSchemaProps>();
