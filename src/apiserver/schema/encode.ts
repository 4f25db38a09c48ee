/**
 * JSON text as Go's encoder writes it: struct fields in struct order, map keys sorted, `<`, `>`, `&`, U+2028 and
 * U+2029 escaped. The writer of a type is compiled once, from its schema.
 */
import { isRecord } from '../../objects/json.ts';
import { type Schema, type StructSchema, zeroValue } from './schema.ts';

/** Appends the text of a value to `text`. */
type Writer = (text: string, value: unknown) => string;

/**
 * The JSON text of an object, without a newline at the end. Fields of the value that the schema does not know are
 * left out; `apiVersion` and `kind` are written when present. Custom resources are maps to Go: all their keys are
 * sorted.
 */
export function encodeObject(schema: StructSchema, object: object): string {
  if (schema.custom !== undefined) return encodeSorted(object);
  return writerOf(schema)('', object);
}

/** Any JSON value with all keys sorted, as Go encodes a `map[string]interface{}`. */
export function encodeSorted(value: unknown): string {
  return writeSorted('', value);
}

/** Any JSON value with its members in the order they have. */
export function encodePlain(value: unknown): string {
  return escapeHtml(JSON.stringify(value));
}

/** Escapes in a JSON text what Go's encoder escapes in strings besides: it is nowhere else. */
function escapeHtml(text: string): string {
  return text.replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const needsEscape = /["\\<>&\u0000-\u001f\u2028\u2029\ud800-\udfff]/;

function quote(text: string): string {
  return needsEscape.test(text) ? escapeHtml(JSON.stringify(text.toWellFormed())) : `"${text}"`;
}

const writers = new WeakMap<Schema, Writer>();

function writerOf(schema: Schema): Writer {
  let writer = writers.get(schema);
  if (writer === undefined) {
    writer = compile(schema);
    writers.set(schema, writer);
  }
  return writer;
}

/** The writer of a part of a type; a struct's is made on first use, since a type may hold itself. */
function partWriter(schema: Schema): Writer {
  if (schema.type !== 'struct') return writerOf(schema);
  let writer: Writer | undefined;
  return (text, value) => {
    writer ??= writerOf(schema);
    return writer(text, value);
  };
}

function compile(schema: Schema): Writer {
  switch (schema.type) {
    case 'struct':
      return compileStruct(schema);
    case 'map':
      return compileMap(partWriter(schema.values));
    case 'list':
      return compileList(partWriter(schema.items));
    case 'union': {
      const object = partWriter(schema.object);
      const list = compileList(object);
      return (text, value) => {
        if (isRecord(value)) return object(text, value);
        return schema.other === 'structs' && Array.isArray(value)
          ? list(text, value)
          : writePlain(text, value);
      };
    }
    case 'string':
    case 'bytes':
    case 'time':
    case 'microTime':
    case 'quantity':
      return (text, value) => text + (typeof value === 'string' ? quote(value) : 'null');
    case 'int32':
    case 'int64':
    case 'number':
      return (text, value) => text + String(value);
    default:
      return writePlain;
  }
}

function compileStruct(schema: StructSchema): Writer {
  const fields = schema.fields.map((field) => {
    const { schema: type } = field;
    return {
      name: field.name,
      first: `{${JSON.stringify(field.name)}:`,
      next: `,${JSON.stringify(field.name)}:`,
      write: partWriter(type),
      dropsEmpty: field.dropZero && type.type === 'list',
      // The text of a missing value; undefined leaves the field out.
      absent:
        field.absent === 'omit'
          ? undefined
          : field.absent === 'null'
            ? 'null'
            : JSON.stringify(zeroValue(type)),
    };
  });
  return (text, value) => {
    if (!isRecord(value)) return `${text}null`;
    let empty = true;
    for (const field of fields) {
      const member = value[field.name];
      const absent = member === undefined || member === null || (field.dropsEmpty && isEmptyList(member));
      if (absent && field.absent === undefined) continue;
      text += empty ? field.first : field.next;
      text = absent ? text + (field.absent ?? '') : field.write(text, member);
      empty = false;
    }
    return text + (empty ? '{}' : '}');
  };
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function compileMap(write: Writer): Writer {
  return (text, value) => {
    if (!isRecord(value)) return `${text}null`;
    let separator = '{';
    for (const key of sortedKeys(value)) {
      text = write(`${text}${separator}${quote(key)}:`, value[key]);
      separator = ',';
    }
    return text + (separator === '{' ? '{}' : '}');
  };
}

function compileList(write: Writer): Writer {
  return (text, value) => {
    if (!Array.isArray(value)) return `${text}null`;
    text += '[';
    for (let i = 0; i < value.length; i++) text = write(i === 0 ? text : `${text},`, value[i]);
    return `${text}]`;
  };
}

function writePlain(text: string, value: unknown): string {
  if (value === undefined) return `${text}null`;
  if (typeof value === 'string') return text + quote(value);
  if (typeof value !== 'object' || value === null) return text + JSON.stringify(value);
  return text + (shared.get(value) ?? escapeHtml(JSON.stringify(value)));
}

const shared = new WeakMap<object, string>();

/** Encodes values without a schema, which are immutable and shared by many objects. */
export function shareJson(value: Readonly<object>, json: string): void {
  shared.set(value, escapeHtml(json));
}

function writeSorted(text: string, value: unknown): string {
  if (typeof value === 'string') return text + quote(value);
  if (Array.isArray(value)) {
    text += '[';
    for (let i = 0; i < value.length; i++) text = writeSorted(i === 0 ? text : `${text},`, value[i]);
    return `${text}]`;
  }
  if (!isRecord(value)) return writePlain(text, value);
  let separator = '{';
  for (const key of sortedKeys(value)) {
    if (value[key] === undefined) continue;
    text = writeSorted(`${text}${separator}${quote(key)}:`, value[key]);
    separator = ',';
  }
  return text + (separator === '{' ? '{}' : '}');
}

/** Keys in the order of their UTF-8 bytes, which is Go's. */
function sortedKeys(value: Record<string, unknown>): string[] {
  const keys = Object.keys(value);
  for (let i = 1; i < keys.length; i++) {
    const before = keys[i - 1] ?? '';
    const key = keys[i] ?? '';
    if (compareCodePoints(before, key) > 0) return keys.sort(compareCodePoints);
  }
  return keys;
}

/** Code point order: differs from UTF-16 order only where surrogates meet U+E000 to U+FFFF. */
function compareCodePoints(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    let x = a.charCodeAt(i);
    let y = b.charCodeAt(i);
    if (x === y) continue;
    if (x >= 0xd800 && y >= 0xd800) {
      if (x >= 0xe000) x -= 0x800;
      else x += 0x2000;
      if (y >= 0xe000) y -= 0x800;
      else y += 0x2000;
    }
    return x - y;
  }
  return a.length - b.length;
}
