import { describe, expect, test } from 'vitest';
import { create, definitionOf, update } from '../decide.ts';

const kind = definitionOf('CSIDriver');

describe('a CSIDriver', () => {
  test('says everything about itself', () => {
    const { object, stored } = create(kind, { spec: { preventPodSchedulingIfMissing: true } });
    expect(object).toMatchObject({
      spec: {
        attachRequired: true,
        podInfoOnMount: false,
        volumeLifecycleModes: ['Persistent'],
        storageCapacity: false,
        fsGroupPolicy: 'ReadWriteOnceWithFSType',
        requiresRepublish: false,
        seLinuxMount: false,
      },
    });
    expect(object).toHaveProperty('spec.preventPodSchedulingIfMissing', true);
    expect(stored.metadata.generation).toBeUndefined();
  });

  test.each([
    [
      { fsGroupPolicy: 'Any' },
      'spec.fsGroupPolicy: Unsupported value: "Any": supported values: "File", "None", "ReadWriteOnceWithFSType"',
    ],
    [
      { volumeLifecycleModes: ['Once'] },
      'spec.volumeLifecycleModes: Unsupported value: "Once": supported values: "Persistent", "Ephemeral"',
    ],
    [
      { tokenRequests: [{ audience: 'a' }, { audience: 'a' }] },
      'spec.tokenRequests[1].audience: Duplicate value: "a"',
    ],
    [
      { tokenRequests: [{ audience: 'a', expirationSeconds: 599 }] },
      'spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
    ],
    [
      { nodeAllocatableUpdatePeriodSeconds: 9 },
      'spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds',
    ],
  ])('with %j is refused', (spec, error) => {
    expect(create(kind, { spec }).errors).toEqual([error]);
  });

  test('may change but for how it is attached and what volumes it makes', () => {
    const { stored } = create(kind, { spec: {} });
    const changed = update(kind, stored, { spec: { podInfoOnMount: true } });
    expect([changed.errors, changed.stored.metadata.generation]).toEqual([[], 1]);
    const spec = { attachRequired: false, volumeLifecycleModes: ['Ephemeral'] };
    expect(update(kind, stored, { spec }).errors).toEqual([
      'spec.attachedRequired: Invalid value: false: field is immutable',
      'spec.volumeLifecycleModes: Invalid value: ["Ephemeral"]: field is immutable',
    ]);
  });
});
