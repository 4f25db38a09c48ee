import { expect, test } from 'vitest';
import type { JSONSchemaProps } from '../../../../../src/objects/types/apiextensions.generated.ts';
import {
  compileAllRules,
  compileRules,
} from '../../../../../src/registry/apiextensions/rules/compile-rules.ts';
import { maxErrorText } from '../../../../../src/registry/validation/field-errors.ts';

const rules = (count: number, rule: (i: number) => string): JSONSchemaProps => ({
  type: 'string',
  'x-kubernetes-validations': Array.from({ length: count }, (_, i) => ({ rule: rule(i) })),
});

test('compiles the rules of a schema and of its parts one at a step, and once', () => {
  const item = rules(7, (i) => `self != '${i}'`);
  const value = rules(5, (i) => `self != '${i}'`);
  const schema: JSONSchemaProps = {
    type: 'object',
    properties: {
      list: { type: 'array', items: item },
      map: { type: 'object', additionalProperties: value },
    },
    'x-kubernetes-validations': [{ rule: 'size(self.list) < 3' }],
  };
  expect([...compileAllRules(schema)]).toHaveLength(13);
  expect([...compileAllRules(schema)]).toHaveLength(0);
  for (const [part, root] of [
    [item, false],
    [value, false],
    [schema, true],
  ] as const) {
    const compiled = compileRules(part, root);
    expect(compiled?.map(({ error }) => error)).toEqual(
      part['x-kubernetes-validations']?.map(() => undefined),
    );
    expect(compileRules(part, root)).toBe(compiled);
  }
});

test('compiles no more parts once there are more errors than an answer shows', () => {
  const wrong = (n: number): JSONSchemaProps => rules(2, () => `self.${'x'.repeat(maxErrorText / 2)}${n}`);
  const schema: JSONSchemaProps = {
    type: 'object',
    properties: { a: wrong(0), b: wrong(1), c: wrong(2) },
  };
  expect([...compileAllRules(schema)]).toHaveLength(2);
});
