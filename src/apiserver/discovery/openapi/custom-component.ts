import { isRecord, isStringList, jsonEqual, type JsonRecord } from '../../../objects/json.ts';

const metaReference = '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
const intOrString = [{ type: 'integer' }, { type: 'string' }];
const preservesUnknown = 'x-kubernetes-preserve-unknown-fields';
/** Deeper schemas are left as they are. */
const maxDepth = 100;

/** `apiVersion` and `kind` of any object. */
export function typeMembers(): JsonRecord {
  return {
    apiVersion: {
      description: 'APIVersion defines the group and version that the object is written in.',
      type: 'string',
    },
    kind: { description: 'Kind is the type of the object, in CamelCase.', type: 'string' },
  };
}

/** `metadata` of any object. */
export function metadataMember(): JsonRecord {
  return {
    metadata: {
      description: "Standard object's metadata: name, labels and other things that all objects have.",
      allOf: [{ $ref: metaReference }],
    },
  };
}

/**
 * A definition's schema as OpenAPI shows it: embedded resources have the properties of all resources
 * (apiextensions-apiserver `pkg/controller/openapi/builder` addEmbeddedProperties), and IntOrString is written with
 * standard keywords (`schema/unfold.go`).
 *
 * @param v2 for OpenAPI v2, which lacks these keywords, and in which objects that preserve unknown fields list no
 *   properties.
 */
export function publishedSchema(schema: JsonRecord, v2: boolean, depth = 0): JsonRecord {
  if (depth > maxDepth) return schema;
  const nested = (value: unknown) => (isRecord(value) ? publishedSchema(value, v2, depth + 1) : value);
  const { properties, items, additionalProperties, ...others } = schema;
  const { [preservesUnknown]: preserves, ...rest } = others;
  const result: JsonRecord = preserves === false ? rest : others;
  if (isRecord(properties)) {
    const members = Object.entries(properties).map(([name, property]) => [name, nested(property)] as const);
    result['properties'] = Object.fromEntries(members);
  }
  if (items !== undefined) result['items'] = nested(items);
  if (additionalProperties !== undefined) result['additionalProperties'] = nested(additionalProperties);
  if (!v2) unfoldIntOrString(result);
  const open = v2 && preserves === true;
  if (result['x-kubernetes-embedded-resource'] === true && !open) addEmbeddedProperties(result);
  return result;
}

function addEmbeddedProperties(schema: JsonRecord): void {
  const { properties, required } = schema;
  schema['properties'] = {
    ...(isRecord(properties) ? properties : {}),
    ...typeMembers(),
    ...metadataMember(),
  };
  const named = isStringList(required) ? required : [];
  schema['required'] = [...named, ...['kind', 'apiVersion'].filter((name) => !named.includes(name))];
}

function unfoldIntOrString(schema: JsonRecord): void {
  if (schema['x-kubernetes-int-or-string'] !== true) return;
  const { anyOf } = schema;
  const parts: unknown[] = Array.isArray(schema['allOf']) ? schema['allOf'] : [];
  const [first] = parts;
  if (jsonEqual(anyOf, intOrString) || (isRecord(first) && jsonEqual(first['anyOf'], intOrString))) return;
  if (anyOf === undefined) schema['anyOf'] = intOrString;
  else schema['allOf'] = [{ anyOf: intOrString }, ...parts];
}
