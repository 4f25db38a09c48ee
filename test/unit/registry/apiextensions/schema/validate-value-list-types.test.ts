import type { JSONSchemaProps } from '../../../../../src/objects/types/apiextensions.generated.ts';
import { expect, test } from 'vitest';
import { validateListTypes } from '../../../../../src/registry/apiextensions/schema/validate-value.ts';

const set: JSONSchemaProps = { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' };
function map(...keys: string[]): JSONSchemaProps {
  const items: JSONSchemaProps = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  return {
    type: 'array',
    items,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': keys,
  };
}

test.each<[string, JSONSchemaProps, unknown, string[]]>([
  ['a set without repetition', set, ['a', 'b'], []],
  ['a set with one value three times', set, ['a', 'a', 'a'], ['list[1]: Duplicate value: "a"']],
  ['a map', map('k'), [{ k: 1 }, { k: 2 }], []],
  ['a map with a key twice', map('k'), [{ k: 1 }, { k: 2 }, { k: 1 }], ['list[2]: Duplicate value: {"k":1}']],
  [
    'keys that are missing',
    map('k', 'l'),
    [{ k: 1 }, { k: 1, l: 2 }, { k: 1 }],
    ['list[2]: Duplicate value: {"k":1}'],
  ],
  ['items without any key', map('k'), [{}, {}], ['list[1]: Duplicate value: {}']],
  ['a list of anything', { type: 'array', items: { type: 'string' } }, ['a', 'a'], []],
])('%s', (_name, schema, list, expected) => {
  const errors = validateListTypes({ type: 'object', properties: { list: schema } }, { list });
  expect(errors.map(({ field, body }) => `${field}: ${body}`)).toEqual(expected);
});

test('lists are found in maps and lists', () => {
  const schema: JSONSchemaProps = {
    type: 'object',
    properties: { a: { type: 'object', additionalProperties: { type: 'array', items: set } } },
  };
  expect(validateListTypes(schema, { a: { b: [[], ['x', 'x']] } }).map(({ field }) => field)).toEqual([
    'a[b][1][1]',
  ]);
});
