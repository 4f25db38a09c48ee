import { describe, expect, it } from 'vitest';
import { create, definitionOf, update } from '../decide.ts';

const nodes = definitionOf('Node');

describe('a Node', () => {
  it('is tainted until it is ready, and brings its own status', () => {
    const { object } = create(nodes, { status: { capacity: { cpu: '2' } } });
    expect(object).toMatchObject({
      spec: { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }] },
      status: { capacity: { cpu: '2' }, allocatable: { cpu: '2' } },
    });
  });

  it.each([
    [{ podCIDR: '10.3.0.0/24' }, { podCIDR: '10.3.0.0/24', podCIDRs: ['10.3.0.0/24'] }],
    [{ podCIDRs: ['10.3.0.0/24'] }, { podCIDR: '10.3.0.0/24', podCIDRs: ['10.3.0.0/24'] }],
    [
      { podCIDR: '10.3.0.0/24', podCIDRs: ['10.4.0.0/24', 'fd00::/64'] },
      { podCIDR: '10.3.0.0/24', podCIDRs: ['10.3.0.0/24'] },
    ],
  ])('with %j has %j', (spec, shown) => {
    expect(create(nodes, { spec }).object).toMatchObject({ spec: shown });
  });

  it.each([
    [
      { taints: [{ key: 'a', effect: 'Never' }] },
      [
        'metadata.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
      ],
    ],
    [
      {
        taints: [
          { key: 'a', effect: 'NoExecute' },
          { key: 'a', value: 'x', effect: 'NoExecute' },
        ],
      },
      [
        'metadata.taints[1]: Duplicate value: {"Key":"a","Value":"x","Effect":"NoExecute","TimeAdded":null}: taints must be unique by key and effect pair',
      ],
    ],
    [
      { podCIDRs: ['10.3.0.0/24', '10.4.0.0/24'] },
      [
        'spec.podCIDRs: Invalid value: ["10.3.0.0/24","10.4.0.0/24"]: may specify no more than one CIDR for each IP family',
      ],
    ],
  ])('with %j is refused', (spec, errors) => {
    expect(create(nodes, { spec }).errors).toEqual(errors);
  });

  it('is given its podCIDR once', () => {
    const old = create(nodes, { spec: { podCIDR: '10.3.0.0/24' } }).stored;
    expect(update(nodes, old, { spec: { podCIDR: '10.4.0.0/24' } }).errors).toEqual([
      'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
    ]);
    const open = create(nodes, {}).stored;
    expect(update(nodes, open, { spec: { podCIDR: '10.4.0.0/24' } }).errors).toEqual([]);
  });
});
