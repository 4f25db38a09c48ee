import { describe, expect, test } from 'vitest';
import type { PodSpec } from '../../../../../src/objects/types/core.generated.ts';
import { keepPriority, setPriority } from '../../../../../src/registry/core/pod/admission.ts';
import type { ClusterReader } from '../../../../../src/registry/generic/strategy.ts';

const high = { metadata: { name: 'high' }, value: 1000, preemptionPolicy: 'Never' };

function clusterOf(...classes: { metadata: { name: string } }[]): ClusterReader {
  return {
    list: () => classes,
    get: (_group, _plural, _namespace, name) => classes.find(({ metadata }) => metadata.name === name),
  };
}

describe('a new Pod', () => {
  test.each([
    ['no class has none', {}, { priority: 0, preemptionPolicy: 'PreemptLowerPriority' }],
    [
      'a class has that of its class',
      { priorityClassName: 'high' },
      { priority: 1000, preemptionPolicy: 'Never' },
    ],
    [
      'a class of the system needs no object',
      { priorityClassName: 'system-node-critical' },
      { priority: 2_000_001_000, preemptionPolicy: 'PreemptLowerPriority' },
    ],
    ['the same priority may say so', { priorityClassName: 'high', priority: 1000 }, { priority: 1000 }],
  ])('with %s', (_, given: PodSpec, expected) => {
    const spec = { ...given };
    expect(setPriority(spec, clusterOf(high))).toBeUndefined();
    expect(spec).toMatchObject({ ...given, ...expected });
  });

  test('without a class gets the default one', () => {
    const spec: PodSpec = {};
    expect(setPriority(spec, clusterOf({ ...high, ...{ globalDefault: true } }))).toBeUndefined();
    expect(spec).toEqual({ priorityClassName: 'high', priority: 1000, preemptionPolicy: 'Never' });
  });

  test.each<[PodSpec, string]>([
    [{ priorityClassName: 'low' }, 'no PriorityClass with name low was found'],
    [
      { priority: 1 },
      'the integer value of priority (1) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name',
    ],
    [
      { priorityClassName: 'high', preemptionPolicy: 'PreemptLowerPriority' },
      'the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name',
    ],
  ])('%j is refused', (spec, why) => {
    expect(setPriority({ ...spec }, clusterOf(high))).toBe(why);
  });
});

test('an update keeps the priority that it does not name', () => {
  const spec: PodSpec = {};
  keepPriority(spec, { priority: 7, preemptionPolicy: 'Never' });
  expect(spec).toEqual({ priority: 7, preemptionPolicy: 'Never' });
  const other: PodSpec = { priority: 8 };
  keepPriority(other, { priority: 7 });
  expect(other).toEqual({ priority: 8 });
});
