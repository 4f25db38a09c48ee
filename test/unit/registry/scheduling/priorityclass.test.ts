import { describe, expect, test } from 'vitest';
import { create, definitionOf, update } from '../decide.ts';

const kind = definitionOf('PriorityClass');

describe('a PriorityClass', () => {
  test('preempts unless it says otherwise, and counts its generation from 1', () => {
    const { object, errors } = create(kind, { value: 5 });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({
      value: 5,
      preemptionPolicy: 'PreemptLowerPriority',
      metadata: { generation: 1 },
    });
  });

  test.each([
    [
      { value: 1_000_000_001 },
      'value: Forbidden: maximum allowed value of a user defined priority is 1000000000',
    ],
    [
      { metadata: { name: 'system-mine' }, value: 1 },
      "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-mine is not a known system priority class",
    ],
    [
      { metadata: { name: 'system-node-critical' }, value: 1 },
      "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: value of system-node-critical PriorityClass must be 2000001000",
    ],
    [
      { preemptionPolicy: 'Always' },
      'preemptionPolicy: Unsupported value: "Always": supported values: "PreemptLowerPriority", "Never"',
    ],
  ])('%j is refused', (body, error) => {
    expect(create(kind, body).errors).toEqual([error]);
  });

  test('keeps its value and policy', () => {
    const { stored } = create(kind, { value: 5 });
    expect(update(kind, stored, { value: 6, preemptionPolicy: 'Never' }).errors).toEqual([
      'value: Forbidden: may not be changed in an update.',
      'preemptionPolicy: Invalid value: "Never": field is immutable',
    ]);
    expect(update(kind, stored, { value: 5, description: 'other' }).errors).toEqual([]);
  });
});
