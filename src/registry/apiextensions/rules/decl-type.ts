import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import * as types from '../../../cel/types.ts';
import { itemSchemaOf, valuesOf } from '../schema/json-schema.ts';
import { maxOf } from '../../../objects/lists.ts';

/**
 * - Names of properties as CEL's identifiers (`apiserver/pkg/cel/escaping.go`).
 * - CEL types of structural schemas (`apiserver/pkg/cel/common/schemas.go` SchemaDeclType).
 * - The largest size of values with a schema in one request (`apiserver/pkg/cel/common/schemas.go` SchemaDeclType).
 */

const keywords = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);
const escapes: ReadonlyMap<string, string> = new Map([
  ['__', '__underscores__'],
  ['.', '__dot__'],
  ['-', '__dash__'],
  ['/', '__slash__'],
]);
const unescapes: ReadonlyMap<string, string> = new Map(
  [...escapes].map(([plain, escaped]) => [escaped, plain]),
);

/** The identifier of a property; undefined for one that has none. */
export function escapeName(name: string): string | undefined {
  if (keywords.has(name)) return `__${name}__`;
  if (!/^[A-Za-z_./-][A-Za-z0-9_./-]*$/.test(name)) return undefined;
  return name.replace(/__|[./-]/g, (part) => escapes.get(part) ?? part);
}

/** The property of an identifier; undefined when it is not a valid escape. Keywords are allowed after a dot. */
export function unescapeName(identifier: string): string | undefined {
  if (keywords.has(identifier)) return identifier;
  const keyword = /^__(.+)__$/.exec(identifier)?.[1];
  if (keyword !== undefined && keywords.has(keyword)) return keyword;
  const name = identifier.replace(
    /__(?:underscores|dot|dash|slash)__/g,
    (part) => unescapes.get(part) ?? part,
  );
  return escapeName(name) === identifier ? name : undefined;
}

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
/** The longest name of an object, in bytes (a DNS subdomain); what is generated adds at least one. */
const maxName = 253;

/** The longest names count in estimates, where the schema has no shorter ones. */
function metadataSchema({ properties = {} }: JSONSchemaProps): JSONSchemaProps {
  const upTo = (name: string, most: number): JSONSchemaProps => {
    const own = Object.hasOwn(properties, name) ? properties[name]?.maxLength : undefined;
    return { type: 'string', maxLength: Math.min(own ?? most, most) };
  };
  const names = { name: upTo('name', maxName), generateName: upTo('generateName', maxName - 1) };
  return { type: 'object', properties: names };
}

/** The fields of every resource, declared or not; expressions see only the names in metadata. */
export function withTypeMeta(schema: JSONSchemaProps): JSONSchemaProps {
  const known = completed.get(schema);
  if (known !== undefined) return known;
  const metadata = metadataSchema(schema.properties?.['metadata'] ?? {});
  const properties = { ...schema.properties, kind: text, apiVersion: text, metadata };
  const full: JSONSchemaProps = { ...schema, properties };
  completed.set(schema, full);
  return full;
}

const completed = new WeakMap<JSONSchemaProps, JSONSchemaProps>();

/** Bytes of the largest request in estimates (`apiserver/pkg/apis/cel/config.go`). */
const maxRequest = 3 * 1024 * 1024;
/** A character has at most four bytes. */
const bytesPerCharacter = 4;
/** Sizes of values in JSON, in bytes: the shortest one, and the longest of types with a bound. */
const shortest = { text: 2, bool: 4, number: 1, intOrString: 1, duration: 3, date: 12, dateTime: 21 };
const longest = { duration: 32, date: 12, dateTime: 32, any: maxRequest - 2 };
const braces = 2;

/** Bounds of a value and of its parts. */
export interface DeclSize {
  /** Characters, bytes, items or members; 0 for scalars. */
  readonly maxElements: number;
  /** The least number of bytes in JSON. */
  readonly minSerialized: number;
  /** For a list's items or a map's values. */
  readonly element?: DeclSize;
  readonly fields?: ReadonlyMap<string, DeclSize>;
}

/** The bounds of values with a schema; undefined where expressions cannot use them (see `declType`). */
export function declSize(schema: JSONSchemaProps, resourceRoot: boolean): DeclSize | undefined {
  if (schema['x-kubernetes-int-or-string'] === true) {
    return { maxElements: textLength(schema), minSerialized: shortest.intOrString };
  }
  switch (schema.type) {
    case 'array': {
      const items = itemSchemaOf(schema);
      const element = items === undefined ? undefined : declSize(items, isEmbedded(items));
      if (element === undefined) return undefined;
      const fitting = Math.floor((maxRequest - braces) / (element.minSerialized + 1));
      return { maxElements: bound(schema.maxItems) ?? fitting, minSerialized: braces, element };
    }
    case 'object':
      return objectSize(resourceRoot ? withTypeMeta(schema) : schema);
    case 'string':
      return textSize(schema);
    case 'boolean':
      return { maxElements: 0, minSerialized: shortest.bool };
    case 'number':
    case 'integer':
      return { maxElements: 0, minSerialized: shortest.number };
    default:
      return undefined;
  }
}

function objectSize(schema: JSONSchemaProps): DeclSize | undefined {
  const values = valuesOf(schema);
  if (values !== undefined) {
    const element = declSize(values, isEmbedded(values));
    if (element === undefined) return undefined;
    // A key of two bytes, its quotes, a colon and a comma.
    const fitting = Math.floor((maxRequest - braces) / (element.minSerialized + 6));
    return { maxElements: bound(schema.maxProperties) ?? fitting, minSerialized: braces, element };
  }
  const fields = new Map<string, DeclSize>();
  const { properties = {}, required = [] } = schema;
  let minSerialized = braces;
  for (const [name, property] of Object.entries(properties)) {
    const size = declSize(property, isEmbedded(property));
    if (size === undefined) continue;
    const identifier = escapeName(name);
    if (identifier !== undefined) fields.set(identifier, size);
    if (!required.includes(name) || property.default !== undefined) continue;
    minSerialized += Buffer.byteLength(name) + size.minSerialized + 4;
  }
  return { maxElements: 0, minSerialized, fields };
}

function textSize(schema: JSONSchemaProps): DeclSize {
  switch (schema.format) {
    case 'byte':
      return { maxElements: bound(schema.maxLength) ?? longest.any, minSerialized: shortest.text };
    case 'duration':
      return { maxElements: longest.duration, minSerialized: shortest.duration };
    case 'date':
      return { maxElements: longest.date, minSerialized: shortest.date };
    case 'date-time':
      return { maxElements: longest.dateTime, minSerialized: shortest.dateTime };
    default:
      return { maxElements: textLength(schema), minSerialized: shortest.text };
  }
}

function textLength({ maxLength, enum: words = [], type }: JSONSchemaProps): number {
  const most = bound(maxLength);
  if (most !== undefined) return most * bytesPerCharacter;
  if (type !== 'string' || words.length === 0) return longest.any;
  return maxOf(words.map((word) => (typeof word === 'string' ? Buffer.byteLength(word) : 0)));
}

function bound(limit: number | undefined): number | undefined {
  return limit === undefined ? undefined : Math.max(0, limit);
}

/** The largest size of the value at a path whose first step is a variable (`sizeEstimator`). */
export function maxElementsAt(root: DeclSize, path: readonly string[]): number | undefined {
  let size: DeclSize | undefined = root;
  for (const step of path.slice(1)) {
    // The length of map keys is unknown, and counts as 0.
    if (step === '@keys') size = size.element === undefined ? undefined : keySize;
    else if (step === '@items' || step === '@values') size = size.element;
    else size = size.fields?.get(step);
    if (size === undefined) return undefined;
  }
  return size.maxElements;
}

const keySize: DeclSize = { maxElements: 0, minSerialized: shortest.text };

/** The number of values with these bounds that fit into one request (`schema/cel/compilation.go` maxCardinality). */
export function maxCardinality({ minSerialized }: DeclSize): number {
  return Math.floor(maxRequest / (minSerialized + 1));
}
