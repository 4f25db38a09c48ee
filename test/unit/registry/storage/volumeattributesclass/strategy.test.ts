import { describe, expect, test } from 'vitest';
import { create, definitionOf, update } from '../../decide.ts';

const kind = definitionOf('VolumeAttributesClass');
const good = { driverName: 'example.com', parameters: { iops: '10' } };

describe('a VolumeAttributesClass', () => {
  test('names a driver and at least one parameter', () => {
    expect(create(kind, good).errors).toEqual([]);
    expect(create(kind, {}).errors).toEqual([
      'driverName: Required value',
      'parameters: Required value: must contain at least one key/value pair',
    ]);
  });

  test('stays what it is', () => {
    const { stored } = create(kind, good);
    expect(update(kind, stored, { driverName: 'other.com', parameters: { iops: '20' } }).errors).toEqual([
      'driverName: Forbidden: updates to driverName are forbidden.',
      'parameters: Forbidden: updates to parameters are forbidden.',
    ]);
  });
});
