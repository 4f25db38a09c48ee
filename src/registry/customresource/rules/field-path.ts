import { type JsonSchema, valuesOf } from '../../customresourcedefinition/json-schema.ts';

/** Names between dots, and quoted keys in brackets; `rest` is what is neither. */
const step = /\.([^.[\]]+)|\[('(?:[^'\\]|\\.)*')\]|([\s\S])/gy;
const escapes: ReadonlyMap<string, string> = new Map([
  ['a', '\x07'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
  ["'", "'"],
  ['\\', '\\'],
]);

/** A rule's `fieldPath`: the field as errors name it, or why it is none (apiextensions `schema/cel/validation.go` ValidFieldPath). */
export function readFieldPath(path: string, root: JsonSchema): { field?: string; fault?: string } {
  let schema = root;
  let field = '';
  for (const [, name, quoted, odd] of path.matchAll(step)) {
    if (odd !== undefined) {
      if (odd === '[') return { fault: 'expected single quoted string' };
      return { fault: odd === '.' ? 'unexpected end of JSON path' : `expected [ or . but got: ${path}` };
    }
    const wanted = name ?? unquoted(quoted ?? '');
    if (wanted === undefined) return { fault: 'invalid string literal' };
    const { properties } = schema;
    const next = properties === undefined ? valuesOf(schema) : own(properties, wanted);
    if (next === undefined) return { fault: 'does not refer to a valid field' };
    field += properties === undefined ? `[${wanted}]` : `${field === '' ? '' : '.'}${wanted}`;
    schema = next;
  }
  return { field };
}

function own(properties: Readonly<Record<string, JsonSchema>>, name: string): JsonSchema | undefined {
  return Object.hasOwn(properties, name) ? properties[name] : undefined;
}

function unquoted(text: string): string | undefined {
  const body = text.slice(1, -1);
  const letters = Array.from(body.matchAll(/\\(.)/gs), ([, letter = '']) => letter);
  if (letters.some((letter) => !escapes.has(letter))) return undefined;
  return body.replace(/\\(.)/gs, (_, letter: string) => escapes.get(letter) ?? '');
}
