import { expect, test } from 'vitest';
import { dropDisabledFields } from '../../../../src/registry/generic/disabled-fields.ts';

const listed = [[['items', '*', 'mode']]];
const mapped = [['ints', 'bools'].map((list) => ['attributes', '*', list])];
const emptied = [[['lifecycle?', 'stopSignal']]];

test.each([
  ['of all items of a list', listed, { items: [{ mode: 1, a: 1 }, {}] }, { items: [{ a: 1 }, {}] }],
  [
    'of all values of a map',
    mapped,
    { attributes: { a: { ints: [1], b: 1 } } },
    { attributes: { a: { b: 1 } } },
  ],
  ['with what has no other member', emptied, { lifecycle: { stopSignal: 'SIGINT' } }, {}],
  [
    'and not with what has another',
    emptied,
    { lifecycle: { stopSignal: 'x', a: 1 } },
    { lifecycle: { a: 1 } },
  ],
  ['nor with what was empty before', emptied, { lifecycle: {} }, { lifecycle: {} }],
])('fields of a feature that is off go, %s', (_, features, object, expected) => {
  dropDisabledFields(object, undefined, features);
  expect(object).toEqual(expected);
});

test.each([
  ['a list', listed, { items: [{}, { mode: 2 }] }, { items: [{ mode: 1 }] }],
  [
    'another member of the feature',
    mapped,
    { attributes: { x: { bools: [] } } },
    { attributes: { a: { ints: [1] } } },
  ],
])('they stay where the stored object uses the feature in %s', (_, features, old, object) => {
  const before = structuredClone(object);
  dropDisabledFields(object, old, features);
  expect(object).toEqual(before);
});
