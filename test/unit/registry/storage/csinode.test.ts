import { describe, expect, test } from 'vitest';
import { create, definitionOf, update } from '../decide.ts';

const kind = definitionOf('CSINode');
const driver = { name: 'example.com', nodeID: 'a', topologyKeys: ['zone'], allocatable: { count: 3 } };

describe('a CSINode', () => {
  test.each([
    [{ ...driver, nodeID: '' }, ['spec.drivers[0].nodeID: Required value']],
    [
      { ...driver, nodeID: 'a'.repeat(257) },
      [`spec.drivers[0].nodeID: Invalid value: "${'a'.repeat(257)}": must be 256 characters or less`],
    ],
    [
      { ...driver, allocatable: { count: -1 } },
      ['spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0'],
    ],
    [{ ...driver, topologyKeys: ['zone', 'zone'] }, ['spec.drivers[0]: Duplicate value: "zone"']],
  ])('with the driver %j is refused', (given, errors) => {
    expect(create(kind, { spec: { drivers: [given] } }).errors).toEqual(errors);
  });

  test('has a status of its own, without what a feature that is off would report', () => {
    const { stored } = create(kind, { spec: {}, status: { storageHealth: [{ name: 'a' }] } });
    expect(stored).toMatchObject({ status: {} });
    const written = update(kind, stored, { status: { storageHealth: [{ name: 'a' }] } }, 'status');
    expect(written.errors).toEqual([]);
    expect(written.object).toHaveProperty('status', {});
  });

  test('has each driver once', () => {
    expect(create(kind, { spec: { drivers: [driver, driver] } }).errors).toEqual([
      'spec.drivers[1].name: Duplicate value: "example.com"',
    ]);
  });

  test('may change how many volumes a driver attaches, and which drivers there are', () => {
    const { stored } = create(kind, { spec: { drivers: [driver] } });
    const more = { ...driver, allocatable: { count: 4 } };
    expect(
      update(kind, stored, { spec: { drivers: [more, { name: 'b.com', nodeID: 'b' }] } }).errors,
    ).toEqual([]);
    expect(update(kind, stored, { spec: { drivers: [{ ...driver, nodeID: 'b' }] } }).errors).toEqual([
      'spec.drivers: Invalid value: {"Name":"example.com","NodeID":"b","TopologyKeys":["zone"],"Allocatable":null}: field is immutable',
    ]);
  });
});
