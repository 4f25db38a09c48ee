import { goQuote } from '../../objects/formats/go-text.ts';
import { isRecord, type JsonRecord, isStringList } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { renderValue } from '../../registry/validation/field-errors.ts';
import { builtinSchema } from './builtin.ts';
import { withoutRawNumbers } from './decode-leaf.ts';
import { DecodeError, decodeStruct } from './decode.ts';
import { type ParsedJson, RawNumber } from './json.ts';
import { repeatedFields } from './decode-walk.ts';
import {
  anySchema,
  type Schema,
  setMember,
  type StructSchema,
  undeclaredSchema,
  type Field,
  type LeafType,
} from './schema.ts';

/**
 * - Reads custom resources: pruning of undeclared fields, and metadata read as the typed ObjectMeta
 *   (apiextensions-apiserver `apiserver/customresource_handler.go` unstructuredSchemaCoercer, `schema/pruning`,
 *   `schema/objectmeta`). Values of a wrong type stay, without undeclared fields: validation refuses them.
 * - Builds schemas from the structural schemas of CustomResourceDefinitions (apiextensions-apiserver
 *   `apiserver/schema/structural.go`).
 */

/** The depth below which nothing is declared. */
const maxDepth = 1_000;

/**
 * The object without undeclared fields, and the errors of Strict mode: metadata first, then the rest in path order,
 * then metadata of embedded objects.
 *
 * @param schema undefined for an object of another kind than the endpoint's, of which only metadata is read.
 * @throws {DecodeError} when metadata is not an ObjectMeta, here or in an embedded object.
 */
export function pruneCustomObject(
  schema: StructSchema | undefined,
  parsed: ParsedJson,
): { object: KubeObject; strictErrors: readonly string[] } {
  if (parsed.hasRawNumbers) checkNumbers(parsed.value, 0);
  const value = isRecord(parsed.value) ? parsed.value : {};
  const { object: metadata, strictErrors } = readObjectMeta(value['metadata']);
  const { metadata: _metadata, ...rest } = value;
  const plain = parsed.hasRawNumbers ? withoutRawNumbers(rest) : rest;
  const pruning = new Pruning();
  const object = pruning.prune(schema ?? anySchema, plain);
  const unknown = [...pruning.unknown.sort(), ...pruning.unknownMetadata.sort()];
  return {
    object: { ...(isRecord(object) ? object : {}), metadata },
    strictErrors: [
      ...repeatedFields(parsed),
      ...strictErrors.map((text) => text.replace('field "', 'field "metadata.')),
      ...unknown.map((path) => `unknown field ${goQuote(path)}`),
    ],
  };
}

/** Go reads what is no int64 into a float64, and has nothing for what is greater than all of these. */
function checkNumbers(value: unknown, depth: number): void {
  if (value instanceof RawNumber) {
    if (Number.isFinite(Number(value.literal))) return;
    throw new DecodeError(`json: cannot unmarshal number ${value.literal} into Go value of type float64`);
  }
  if (depth > maxDepth || typeof value !== 'object' || value === null) return;
  for (const member of Object.values(value)) checkNumbers(member, depth + 1);
}

/**
 * Metadata goes through text on its way into Go's type, which puts its members in order: errors come in that order.
 *
 * @throws {DecodeError}
 */
function readObjectMeta(value: unknown): ReturnType<typeof decodeStruct> {
  const schema = builtinSchema('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta');
  const parsed = { value: value ?? {}, repeated: undefined, hasRawNumbers: true };
  let decoded: ReturnType<typeof decodeStruct> | undefined;
  try {
    decoded = decodeStruct(schema, parsed);
    if (decoded.strictErrors.length < 2) return decoded;
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
  }
  return decodeStruct(schema, { ...parsed, value: sorted(parsed.value, 0) });
}

function sorted(value: unknown, depth: number): unknown {
  if (depth > maxDepth || value instanceof RawNumber) return value;
  if (Array.isArray(value)) return value.map((item) => sorted(item, depth + 1));
  if (!isRecord(value)) return value;
  const copy: JsonRecord = {};
  for (const key of Object.keys(value).sort()) setMember(copy, key, sorted(value[key], depth + 1));
  return copy;
}

/** A member of a map, which paths of fields show in brackets. */
class MapKey {
  readonly key: string;
  constructor(key: string) {
    this.key = key;
  }
}

type Segment = string | number | MapKey;

/** One walk along an object and its schema. */
class Pruning {
  /** The paths of undeclared fields, and of unknown fields in metadata of embedded objects. */
  readonly unknown: string[] = [];
  readonly unknownMetadata: string[] = [];
  readonly #path: Segment[] = [];

  /** A copy of a value without what its schema does not declare; undefined declares nothing. */
  prune(schema: Schema | undefined, value: unknown): unknown {
    if (typeof value !== 'object' || value === null || this.#path.length > maxDepth) return value;
    if (schema?.type === 'any') return schema === undeclaredSchema ? this.prune(undefined, value) : value;
    if (Array.isArray(value)) {
      if (schema?.type === 'struct' && schema.custom?.keepUnknown === true) return value;
      const items = schema?.type === 'list' ? schema.items : undefined;
      return value.map((item, i) => this.#member(i, items, item));
    }
    if (!isRecord(value)) return value;
    const kept: JsonRecord = {};
    for (const [key, member] of Object.entries(value)) {
      if (schema?.type === 'map') setMember(kept, key, this.#member(new MapKey(key), schema.values, member));
      else if (schema?.type === 'struct') this.#field(schema, kept, key, member);
      else this.#drop(key);
    }
    return kept;
  }

  #field(schema: StructSchema, kept: JsonRecord, key: string, value: unknown): void {
    const { custom } = schema;
    if (custom?.embedded === true && implied.has(key)) {
      setMember(kept, key, this.#path.length === 0 ? value : this.#readImplied(key, value));
      return;
    }
    const field = schema.byName.get(key);
    if (field !== undefined) setMember(kept, key, this.#member(key, field.schema, value));
    else if (custom?.keepUnknown === true)
      setMember(kept, key, this.#member(new MapKey(key), custom.unknownFields, value));
    else this.#drop(key);
  }

  #member(segment: Segment, schema: Schema | undefined, value: unknown): unknown {
    this.#path.push(segment);
    const kept = this.prune(schema, value);
    this.#path.pop();
    return kept;
  }

  #drop(key: string): void {
    this.unknown.push(pathText([...this.#path, key], false));
  }

  /** The members of every object. @throws {DecodeError} */
  #readImplied(key: string, value: unknown): unknown {
    const path = pathText([...this.#path, key], true);
    if (key !== 'metadata') {
      if (typeof value === 'string') return value;
      throw new DecodeError(`${path}: Invalid value: ${renderValue(sorted(value, 0))}: must be a string`);
    }
    try {
      const { object, strictErrors } = readObjectMeta(value);
      for (const text of strictErrors) {
        const [, field] = /"(.*)"/.exec(text) ?? [];
        if (field !== undefined) this.unknownMetadata.push(`${path}.${field}`);
      }
      return object;
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      throw new DecodeError(`${path}: Invalid value: ${renderValue(sorted(value, 0))}: ${error.message}`);
    }
  }
}

const implied: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

/** `spec.list[0].map.key`, or, as errors of fields have it, `spec.list[0].map[key]`. */
function pathText(path: readonly Segment[], brackets: boolean): string {
  let text = '';
  for (const segment of path) {
    if (typeof segment === 'number') text += `[${segment}]`;
    else if (typeof segment !== 'string' && brackets) text += `[${segment.key}]`;
    else {
      const name = typeof segment === 'string' ? segment : segment.key;
      text += text === '' ? name : `.${name}`;
    }
  }
  return text;
}

/** Nesting that a definition may have; deeper parts take any value. */
const maxSchemaDepth = 200;

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
  if (!isRecord(value) || depth > maxSchemaDepth) return anySchema;
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
