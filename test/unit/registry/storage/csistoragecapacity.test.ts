import { expect, test } from 'vitest';
import { create, definitionOf, update } from '../decide.ts';

const kind = definitionOf('CSIStorageCapacity');

test('a CSIStorageCapacity is not negative, and stays that of its class and nodes', () => {
  const good = { storageClassName: 'fast', nodeTopology: {}, capacity: '1Gi' };
  const { stored, errors } = create(kind, good);
  expect(errors).toEqual([]);
  expect(create(kind, { ...good, capacity: '-1Gi' }).errors).toEqual([
    'capacity: Invalid value: "-1Gi": must be greater than or equal to 0',
  ]);
  expect(update(kind, stored, { ...good, capacity: '2Gi', maximumVolumeSize: '1Gi' }).errors).toEqual([]);
  const other = { storageClassName: 'slow', nodeTopology: { matchLabels: { zone: 'a' } } };
  expect(update(kind, stored, other).errors).toEqual([
    'nodeTopology: Invalid value: {"matchLabels":{"zone":"a"}}: field is immutable',
    'storageClassName: Invalid value: "slow": field is immutable',
  ]);
});
