import { describe, expect, it } from 'vitest';
import { create, definitionOf, update } from '../../decide.ts';

const nodes = definitionOf('Node');

describe('a Node', () => {
  it('brings its own status', () => {
    const { object } = create(nodes, { status: { capacity: { cpu: '2' } } });
    expect(object).toMatchObject({
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
    [
      { podCIDRs: ['x', 'FD00::/64'] },
      [
        'spec.podCIDRs[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
        'spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[0]: <nil> (invalid CIDR address: x)',
        'spec.podCIDRs: Invalid value: ["x","FD00::/64"]: may specify no more than one CIDR for each IP family',
      ],
    ],
  ])('with %j is refused', (spec, errors) => {
    expect(create(nodes, { spec }).errors).toEqual(errors);
  });

  it.each([
    ['{"preferAvoidPods":[{"podSignature":{"podController":{"kind":"a","controller":true}}}]}', []],
    ['{"preferAvoidPods":[{"reason":"a"}]}', ['[0].PodSignature: Required value']],
    [
      '{"preferAvoidPods":[{"podSignature":{"podController":{"kind":"a","controller":false}}}]}',
      ['[0].PodSignature.PodController.Controller: Invalid value: false: must point to a controller'],
    ],
  ])('names in an annotation which Pods better go elsewhere: %s', (text, errors) => {
    const key = 'scheduler.alpha.kubernetes.io/preferAvoidPods';
    const metadata = { name: 'a', annotations: { [key]: text } };
    const texts = errors.map((error) => `metadata.annotations.${key}${error}`);
    expect(create(nodes, { metadata }).errors).toEqual(texts);
    expect(
      update(nodes, create(nodes, {}).stored, { metadata }).errors.filter((text) => text.includes(key)),
    ).toEqual([...texts, ...texts]);
  });

  it('whose annotation is no JSON is refused', () => {
    const annotations = { 'scheduler.alpha.kubernetes.io/preferAvoidPods': 'x' };
    expect(create(nodes, { metadata: { name: 'a', annotations } }).errors).toEqual([
      'metadata.annotations.AvoidPods: Invalid value: "scheduler.alpha.kubernetes.io/preferAvoidPods": invalid character \'x\' looking for beginning of value',
    ]);
  });

  it.each([
    [
      {},
      [
        'spec.configSource: Invalid value: {"ConfigMap":null}: exactly one reference subfield must be non-nil',
      ],
    ],
    [
      { configMap: { uid: 'u', resourceVersion: '1', name: 'A', kubeletConfigKey: '..' } },
      [
        'spec.configSource.configMap.uid: Forbidden: uid must not be set in spec',
        'spec.configSource.configMap.resourceVersion: Forbidden: resourceVersion must not be set in spec',
        'spec.configSource.configMap.namespace: Required value',
        "spec.configSource.configMap.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        'spec.configSource.configMap.kubeletConfigKey: Invalid value: "..": must not be \'..\'',
      ],
    ],
    [{ configMap: { namespace: 'n', name: 'a', kubeletConfigKey: 'k' } }, []],
  ])('may be updated to have the source %j, with the errors %j', (configSource, errors) => {
    const old = create(nodes, {}).stored;
    expect(update(nodes, old, { spec: { configSource } }).errors).toEqual(errors);
    expect(create(nodes, { spec: { configSource } }).errors).toEqual([]);
  });

  it('is warned of fields without a use and of odd CIDRs', () => {
    const spec = { externalID: 'x', podCIDR: 'FD00::/64', configSource: { configMap: {} } };
    const warnings = [
      'spec.configSource: the feature is removed',
      'spec.externalID: this field is deprecated, and is unused by Kubernetes',
      'spec.podCIDRs[0]: IPv6 CIDR value "FD00::/64" should be in RFC 5952 canonical format ("fd00::/64")',
    ];
    const { stored, warnings: given } = create(nodes, { spec });
    expect(given).toEqual(warnings);
    expect(update(nodes, stored, { spec: { ...spec, configSource: undefined } }).warnings).toEqual(
      warnings.slice(1),
    );
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
