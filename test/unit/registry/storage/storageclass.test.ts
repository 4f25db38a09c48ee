import { describe, expect, test } from 'vitest';
import { create, definitionOf, update } from '../decide.ts';

const kind = definitionOf('StorageClass');
const good = { provisioner: 'example.com/fast' };

describe('a StorageClass', () => {
  test('has a reclaim policy and a binding mode', () => {
    expect(create(kind, good).object).toMatchObject({
      reclaimPolicy: 'Delete',
      volumeBindingMode: 'Immediate',
    });
  });

  test.each([
    [{}, ['provisioner: Required value']],
    [
      { ...good, reclaimPolicy: 'Recycle' },
      ['reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"'],
    ],
    [
      { ...good, volumeBindingMode: 'Later' },
      [
        'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"',
      ],
    ],
    [{ ...good, parameters: { '': 'a' } }, ['parameters: Invalid value: "": field can not be empty.']],
    [
      { ...good, parameters: Object.fromEntries(Array.from({ length: 513 }, (_, i) => [`p${i}`, ''])) },
      ['parameters: Too long: may not be more than 512 bytes'],
    ],
    [
      { ...good, allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['a', 'a'] }] }] },
      ['allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"'],
    ],
    [
      {
        ...good,
        allowedTopologies: [
          { matchLabelExpressions: [{ key: 'zone', values: ['a', 'b'] }] },
          { matchLabelExpressions: [{ key: 'zone', values: ['b', 'a'] }] },
        ],
      },
      ['allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'],
    ],
  ])('%j is refused', (body, errors) => {
    expect(create(kind, body).errors).toEqual(errors);
  });

  test('stays what it is', () => {
    const { stored } = create(kind, good);
    const other = {
      provisioner: 'example.com/slow',
      parameters: { a: 'b' },
      reclaimPolicy: 'Retain',
      volumeBindingMode: 'WaitForFirstConsumer',
    };
    expect(update(kind, stored, other).errors).toEqual([
      'provisioner: Invalid value: null: field is immutable',
      'parameters: Invalid value: null: field is immutable',
      'reclaimPolicy: Invalid value: null: field is immutable',
      'volumeBindingMode: Invalid value: null: field is immutable',
    ]);
    expect(update(kind, stored, { ...good, allowVolumeExpansion: true }).errors).toEqual([]);
  });
});
