import type { JSONSchemaProps } from '../../../src/objects/types/apiextensions.generated.ts';
import { Program } from '../../../src/cel/program.ts';
import * as types from '../../../src/cel/types.ts';
import { toJson } from '../../../src/cel/json-values.ts';
import { isList, isMap, listItems, type Value } from '../../../src/cel/values.ts';
import { toValue } from '../../../src/registry/apiextensions/rules/schema-values.ts';
import { declType } from '../../../src/registry/apiextensions/rules/decl-type.ts';

const schema: JSONSchemaProps = {
  type: 'object',
  properties: {
    count: { type: 'integer' },
    ratio: { type: 'number' },
    name: { type: 'string' },
    port: { 'x-kubernetes-int-or-string': true },
    numbers: { type: 'array', items: { type: 'integer' } },
    names: { type: 'array', items: { type: 'string' } },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
    missing: { type: 'string' },
    since: { type: 'string', format: 'date-time' },
  },
};
const self = {
  count: 5,
  ratio: 0.5,
  name: 'héllo😀',
  port: 'http',
  numbers: [1, 2, 3],
  names: ['a', 'b'],
  labels: { app: 'web', tier: 'front' },
  since: '2024-02-29T12:30:45.5Z',
};
const selfType = declType(schema, false) ?? types.dynType;
const enough = 1_000_000;

/** The value of an expression over the object above, as JSON would show it. @throws {Error} what it fails with. */
export function valueOf(expression: string, costLimit = enough): unknown {
  const program = new Program(expression, new Map([['self', selfType]]));
  const { value, error } = program.evaluate(new Map([['self', toValue(schema, self)]]), costLimit);
  if (error !== undefined || value === undefined) throw error ?? new Error('no value');
  return plain(value);
}

/** What compiling an expression fails with; "" when it compiles. */
export function issuesOf(expression: string): string {
  try {
    new Program(expression, new Map([['self', selfType]]));
    return '';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Also what JSON has no form of. */
function plain(value: Value): unknown {
  if (value instanceof Uint8Array) return value;
  if (typeof value !== 'object' || value === null) return toJson(value);
  if (isList(value)) return listItems(value).map(plain);
  if (isMap(value)) {
    const entries = value.keys().map((key) => [String(plain(key)), plain(value.find(key) ?? null)]);
    return Object.fromEntries(entries);
  }
  if (value.kind === 'optional') return value.value === undefined ? 'none' : { of: plain(value.value) };
  return value.kind === 'type' || value.kind === 'opaque' ? value.kind : toJson(value);
}
