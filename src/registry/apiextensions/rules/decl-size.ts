/** The largest size of values with a schema in one request (`apiserver/pkg/cel/common/schemas.go` SchemaDeclType). */
import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { maxOf } from '../../../objects/lists.ts';
import { itemSchemaOf, valuesOf } from '../schema/json-schema.ts';
import { isEmbedded, withTypeMeta } from './decl-type.ts';
import { escapeName } from './escape.ts';

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
