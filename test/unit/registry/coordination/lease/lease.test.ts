import { expect, it } from 'vitest';
import { create, definitionOf, update } from '../../decide.ts';

const leases = definitionOf('Lease');

it('drops what belongs to coordinated leader election, unless it was stored before', () => {
  const spec = { holderIdentity: 'h', strategy: 'OldestEmulationVersion', preferredHolder: 'p' };
  const { stored } = create(leases, { spec });
  expect(stored).toMatchObject({ spec: { holderIdentity: 'h' } });
  expect(stored).not.toHaveProperty('spec.strategy');
  expect(update(leases, stored, { spec }).stored).not.toHaveProperty('spec.preferredHolder');
  const before = { ...stored, spec };
  expect(update(leases, before, { spec: { ...spec, strategy: 'Other' } }).stored).toHaveProperty(
    'spec.strategy',
    'Other',
  );
});

it('lasts for some time and has not changed hands less than never', () => {
  expect(create(leases, { spec: { leaseDurationSeconds: 0, leaseTransitions: -1 } }).errors).toEqual([
    'spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0',
    'spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0',
  ]);
});
