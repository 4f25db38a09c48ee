import { describe, expect, test } from 'vitest';
import { samples } from '../../../support/fuzz/samples.ts';
import { create, definitionOf, memberOf, now, update } from '../decide.ts';

const kind = definitionOf('ResourceSlice');
const spec = memberOf(samples.get('resource.k8s.io/resourceslices') ?? {}, 'spec');
const errorsOf = (given: object) => create(kind, { spec: { ...spec, ...given } }).errors;
const device = { name: 'gpu-0' };

describe('a slice', () => {
  test('has devices of a driver on a node', () => {
    const { object, stored, errors, warnings } = create(kind, { spec });
    expect([errors, warnings]).toEqual([[], []]);
    expect(object).toMatchObject({
      metadata: { generation: 1 },
      spec: { devices: [{ taints: [{ timeAdded: now }] }] },
    });
    expect(kind.strategy.fields?.(stored)).toEqual({
      ...{ 'spec.nodeName': 'a', 'spec.driver': 'gpu.example.com', 'spec.pool.name': 'a' },
    });
  });

  test.each<[object, string[]]>([
    [{ driver: '' }, ['spec.driver: Required value']],
    [
      { pool: { name: 'a//b', generation: -1, resourceSliceCount: 0 } },
      [
        expect.stringMatching(/^spec.pool.name: Invalid value: "": a lowercase RFC 1123 subdomain/),
        'spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero',
        'spec.pool.generation: Invalid value: -1: must be greater than or equal to zero',
      ],
    ],
    [
      { nodeName: undefined },
      [
        'spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required',
      ],
    ],
    [
      { allNodes: true },
      [
        'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set',
      ],
    ],
    [
      { sharedCounters: [{ name: 'c', counters: { a: { value: '1' } } }] },
      ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed'],
    ],
    [{ devices: [device, device] }, ['spec.devices[1]: Duplicate value: "gpu-0"']],
    [
      { devices: Array.from({ length: 129 }, (_, i) => ({ name: `d${i}` })) },
      ['spec.devices: Too many: 129: must have at most 128 items'],
    ],
    [
      { devices: [{ ...device, nodeName: 'b' }] },
      [
        'spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec',
      ],
    ],
    [
      { devices: [{ ...device, attributes: { a: {}, 'b-c': { int: 1 }, d: { int: 1, bool: true } } }] },
      [
        expect.stringMatching(/^spec.devices\[0\].attributes: Invalid value: "b-c": a valid C identifier/),
        'spec.devices[0].attributes[a]: Invalid value: "": must specify one of: `int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`',
        'spec.devices[0].attributes[d]: Invalid value: "{`int`, `bool`}": must specify exactly one of: `int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`',
      ],
    ],
    [
      { devices: [{ ...device, attributes: { a: { version: '1.0' }, b: { string: 'x'.repeat(65) } } }] },
      [
        'spec.devices[0].attributes[a].version: Invalid value: "1.0": must be a string compatible with semver.org spec 2.0.0',
        'spec.devices[0].attributes[b].string: Too long: may not be more than 64 bytes',
      ],
    ],
    [
      { devices: [{ ...device, bindingConditions: ['a'] }] },
      [
        'spec.devices[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions',
      ],
    ],
    [
      { devices: [{ ...device, consumesCounters: [{ counterSet: '', counters: {} }] }] },
      [
        'spec.devices[0].consumesCounters[0].counterSet: Required value',
        'spec.devices[0].consumesCounters[0].counters: Required value',
      ],
    ],
  ])('%#: with %j is refused', (given, errors) => {
    expect(new Set(errorsOf(given))).toEqual(new Set(errors));
  });

  const path = 'spec.devices[0].capacity[m].requestPolicy';
  const policy = (requestPolicy: object, value = '10') =>
    errorsOf({
      devices: [{ ...device, allowMultipleAllocations: true, capacity: { m: { value, requestPolicy } } }],
    });

  test.each<[object, string[]]>([
    [{ default: '1', validValues: ['1', '2'] }, []],
    [
      { default: '3', validValues: ['2', '1', '20'] },
      [
        `${path}.validValues[1]: Invalid value: "1": values must be sorted in ascending order`,
        `${path}.validValues[2]: Invalid value: "20": option is larger than capacity value: 10`,
        `${path}.validValues: Invalid value: "3": default value is not valid according to the requestPolicy`,
      ],
    ],
    [{ validRange: { min: '1' } }, [`${path}.default: Required value: required when validRange is defined`]],
    [{ default: '2', validRange: { min: '1', max: '9', step: '1' } }, []],
    [{ default: '1500m', validRange: { min: '1', step: '500m' } }, []],
    [
      { default: '2', validRange: { min: '1', max: '9', step: '3' } },
      [
        `${path}.validRange.step: Invalid value: "2": value is not a multiple of a given step (3) from (1)`,
        `${path}.validRange.step: Invalid value: "9": value is not a multiple of a given step (3) from (1)`,
      ],
    ],
    [
      { default: '0', validRange: { min: '1', max: '20' } },
      [
        `${path}.validRange.default: Invalid value: "0": default is less than min: 1`,
        `${path}.validRange.max: Invalid value: "20": max is larger than capacity value: 10`,
      ],
    ],
  ])('%#: gives a request of %j a share', (given, errors) => {
    expect(policy(given)).toEqual(errors);
  });

  test('shares devices that may be shared only', () => {
    const capacity = { m: { value: '1', requestPolicy: { default: '1', validValues: ['1'] } } };
    expect(errorsOf({ devices: [{ ...device, capacity }] })).toEqual([
      `${path}: Forbidden: allowMultipleAllocations must be true`,
    ]);
  });

  test('stays with its node, driver and pool, and drops what features read that are off', () => {
    const { stored } = create(kind, { spec });
    const moved = { ...spec, nodeName: 'b', driver: 'other.example.com' };
    expect(update(kind, stored, { spec: moved }).errors).toEqual([
      'spec.driver: Invalid value: "other.example.com": field is immutable',
      'spec.nodeName: Invalid value: "b": field is immutable',
    ]);
    const attributes = { a: { ints: [1], int: 1 } };
    const more = { ...spec, skipNodeOperations: ['*'], devices: [{ ...device, attributes }] };
    const changed = update(kind, stored, { spec: more });
    expect(changed.errors).toEqual([]);
    expect(changed.object).not.toHaveProperty('spec.skipNodeOperations');
    expect(changed.object).toHaveProperty('spec.devices.0.attributes', { a: { int: 1 } });
    expect(changed.object).toHaveProperty('metadata.generation', 2);
  });

  test('warns of upper case', () => {
    expect(create(kind, { spec: { ...spec, driver: 'GPU.example.com' } }).warnings).toEqual([
      'spec.driver: driver names should be lowercase; "GPU.example.com" contains uppercase characters',
    ]);
  });
});
