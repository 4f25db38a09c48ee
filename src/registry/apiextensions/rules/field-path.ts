import type { JSONSchemaProps } from '../../../objects/types/apiextensions.generated.ts';
import { valuesOf } from '../schema/json-schema.ts';

/** Delimiters, quoted keys with the closing quote, and the text between. */
const token = /[.[\]]|'(?:[^'\\]|\\[\s\S])*'|'[\s\S]*|[^.[\]]+/g;
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

/** The target of a path, or the error. */
interface FieldPath {
  /** As errors name the field. */
  readonly field: string;
  /** The schema of the field; undefined where any value is allowed. */
  readonly schema: JSONSchemaProps | undefined;
  readonly fault?: string;
}

/**
 * Resolves a path such as `.spec.labels['a']` in a schema (apiextensions `schema/cel/validation.go` ValidFieldPath).
 *
 * @param brackets whether keys in brackets are allowed.
 */
export function readFieldPath(path: string, root: JSONSchemaProps, brackets = true): FieldPath {
  const tokens = path.match(token) ?? [];
  let schema: JSONSchemaProps | undefined = root;
  let field = '';
  const fail = (fault: string): FieldPath => ({ field: '', schema: undefined, fault });
  for (let at = 0; at < tokens.length; at++) {
    const opener = tokens[at];
    if (opener === '[' && !brackets) return fail('array notation is not allowed');
    if (opener !== '[' && opener !== '.') return fail(`expected [ or . but got: ${opener ?? ''}`);
    const next = tokens[++at];
    if (next === undefined) return fail('unexpected end of JSON path');
    let name: string | undefined = next;
    if (opener === '[') {
      if (!/^'[\s\S]*'$/.test(next)) return fail(`expected single quoted string but got ${next}`);
      name = unquoted(next);
      if (name === undefined) return fail('invalid string literal');
    }
    const here: JSONSchemaProps = schema ?? {};
    const { properties } = here;
    const declared = properties !== undefined;
    const known = declared ? Object.hasOwn(properties, name) : here.additionalProperties !== undefined;
    if (!known) return fail('does not refer to a valid field');
    schema = declared ? properties[name] : valuesOf(here);
    field += declared ? `${field === '' ? '' : '.'}${name}` : `[${name}]`;
    if (opener !== '[') continue;
    const end = tokens[++at];
    if (end === undefined) return fail('unexpected end of JSON path');
    if (end !== ']') return fail(`expected ] but got ${end}`);
  }
  return { field, schema };
}

function unquoted(text: string): string | undefined {
  const body = text.slice(1, -1);
  const letters = Array.from(body.matchAll(/\\(.)/gs), ([, letter = '']) => letter);
  if (letters.some((letter) => !escapes.has(letter))) return undefined;
  return body.replace(/\\(.)/gs, (_, letter: string) => escapes.get(letter) ?? '');
}
