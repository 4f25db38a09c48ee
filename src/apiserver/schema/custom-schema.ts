/**
 * Builds schemas from the structural schemas of CustomResourceDefinitions (apiextensions-apiserver
 * `apiserver/schema/structural.go`).
 */
import { isRecord, isStringList, type JsonRecord } from '../../objects/json.ts';
import { builtinSchema } from './builtin.ts';
import {
  anySchema,
  type Field,
  type LeafType,
  type Schema,
  type StructSchema,
  undeclaredSchema,
} from './schema.ts';

/** Nesting that a definition may have; deeper parts take any value. */
const maxDepth = 200;

/**
 * The schema of a version of a custom resource.
 *
 * @param openAPIV3Schema as in `spec.versions[].schema`, already accepted as structural; undefined keeps everything.
 * @param kind for error texts.
 */
export function schemaFromCustomResource(openAPIV3Schema: unknown, kind: string): StructSchema {
  const root = isRecord(openAPIV3Schema) ? openAPIV3Schema : { 'x-kubernetes-preserve-unknown-fields': true };
  return structOf({ ...root, 'x-kubernetes-embedded-resource': true }, kind, 0);
}

function schemaOf(value: unknown, depth: number): Schema {
  if (!isRecord(value) || depth > maxDepth) return anySchema;
  const nullable = value['nullable'] === true;
  if (value['x-kubernetes-int-or-string'] === true) {
    return { type: 'intOrString', goType: 'intstr.IntOrString', nullable };
  }
  switch (value['type']) {
    case 'object':
      return objectOf(value, depth);
    case 'array':
      return listOf(value, depth);
    case 'string':
      return leaf('string', 'string', nullable);
    case 'boolean':
      return leaf('boolean', 'bool', nullable);
    case 'integer':
      return leaf('int64', 'int64', nullable);
    case 'number':
      return leaf('number', 'float64', nullable);
    default:
      return value['x-kubernetes-embedded-resource'] === true || isRecord(value['properties'])
        ? structOf(value, '', depth)
        : { ...anySchema, nullable };
  }
}

function leaf(type: LeafType, goType: string, nullable: boolean): Schema {
  return { type, goType, nullable };
}

function objectOf(value: JsonRecord, depth: number): Schema {
  const extra = value['additionalProperties'];
  if ((isRecord(extra) || extra === true) && !isRecord(value['properties'])) {
    const values = extra === true ? undeclaredSchema : schemaOf(extra, depth + 1);
    return {
      type: 'map',
      goType: `map[string]${values.goType}`,
      values,
      atomic: value['x-kubernetes-map-type'] === 'atomic',
      nullable: value['nullable'] === true,
    };
  }
  return structOf(value, '', depth);
}

function listOf(value: JsonRecord, depth: number): Schema {
  const items = schemaOf(value['items'], depth + 1);
  const listType = value['x-kubernetes-list-type'];
  const keys = value['x-kubernetes-list-map-keys'];
  return {
    type: 'list',
    goType: `[]${items.goType}`,
    items,
    listType: listType === 'set' || listType === 'map' ? listType : 'atomic',
    mapKeys: isStringList(keys) ? keys : [],
    nullable: value['nullable'] === true,
  };
}

function structOf(value: JsonRecord, name: string, depth: number): StructSchema {
  const embedded = value['x-kubernetes-embedded-resource'] === true;
  const properties = isRecord(value['properties']) ? value['properties'] : {};
  const required = isStringList(value['required']) ? value['required'] : [];
  const fields: Field[] = embedded ? impliedFields() : [];
  for (const [key, property] of Object.entries(properties)) {
    if (embedded && ['apiVersion', 'kind', 'metadata'].includes(key)) continue;
    const fallback = isRecord(property) ? property['default'] : undefined;
    fields.push(customField(key, schemaOf(property, depth + 1), required.includes(key), fallback));
  }
  const extra = value['additionalProperties'];
  return {
    type: 'struct',
    name,
    goType: 'map[string]interface {}',
    fields,
    byName: new Map(fields.map((field) => [field.name, field])),
    atomic: value['x-kubernetes-map-type'] === 'atomic',
    custom: {
      keepUnknown:
        value['x-kubernetes-preserve-unknown-fields'] === true || isRecord(extra) || extra === true,
      unknownFields: schemaOf(extra, depth + 1),
      embedded,
    },
    nullable: value['nullable'] === true,
  };
}

function impliedFields(): Field[] {
  return [
    customField('apiVersion', leaf('string', 'string', false), false, undefined),
    customField('kind', leaf('string', 'string', false), false, undefined),
    customField(
      'metadata',
      builtinSchema('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'),
      false,
      undefined,
    ),
  ];
}

function customField(name: string, schema: Schema, required: boolean, fallback: unknown): Field {
  return {
    name,
    schema,
    absent: 'omit',
    dropZero: false,
    required,
    default: fallback,
    patchStrategy: [],
    patchMergeKey: undefined,
  };
}
