import { describe, expect, test } from 'vitest';
import { resourceClaimStrategy } from '../../../../src/registry/resource/resourceclaim.ts';
import type { StrategyContext, UserInfo } from '../../../../src/registry/generic/strategy.ts';
import { samples } from '../../../support/fuzz/samples.ts';
import { contextOf, create, definitionOf, memberOf, now, update } from '../decide.ts';

const kind = definitionOf('ResourceClaim');
const spec = memberOf(samples.get('resource.k8s.io/resourceclaims') ?? {}, 'spec');
const ten = '[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]';
const request = { name: 'gpu', exactly: { deviceClassName: 'gpu.example.com' } };
const claim = (devices: object) => ({ spec: { devices: { requests: [request], ...devices } } });

describe('a claim', () => {
  test('asks for one device of a class', () => {
    const { object, errors } = create(kind, { spec });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({
      spec: {
        devices: {
          requests: [
            { exactly: { allocationMode: 'ExactCount', count: 1, tolerations: [{ operator: 'Exists' }] } },
            { firstAvailable: [{ allocationMode: 'ExactCount', count: 2 }] },
          ],
        },
      },
      status: {},
    });
  });

  const path = 'spec.devices';
  const exactly = (rest: object) => ({
    requests: [{ name: 'a', exactly: { deviceClassName: 'c', ...rest } }],
  });

  test.each<[object, string[]]>([
    [
      { requests: [{ name: 'a' }] },
      [`${path}.requests[0]: Required value: exactly one of \`exactly\` or \`firstAvailable\` is required`],
    ],
    [
      { requests: [{ ...request, firstAvailable: [{ name: 'b', deviceClassName: 'c' }] }] },
      [
        `${path}.requests[0]: Invalid value: null: exactly one of \`exactly\` or \`firstAvailable\` is required, but multiple fields are set`,
      ],
    ],
    [exactly({ deviceClassName: '' }), [`${path}.requests[0].exactly.deviceClassName: Required value`]],
    [
      exactly({ allocationMode: 'All', count: 2 }),
      [
        `${path}.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'`,
      ],
    ],
    [
      exactly({ count: -1 }),
      [`${path}.requests[0].exactly.count: Invalid value: -1: must be greater than zero`],
    ],
    [
      exactly({ allocationMode: 'Some' }),
      [
        `${path}.requests[0].exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"`,
      ],
    ],
    [
      exactly({ tolerations: [{ key: 'a', operator: 'Exists', value: 'b' }] }),
      [
        `${path}.requests[0].exactly.tolerations[0].value: Invalid value: "b": must be empty for operator \`Exists\``,
      ],
    ],
    [
      { constraints: [{ requests: ['other'], matchAttribute: 'a.example/b' }] },
      [
        `${path}.constraints[0].requests[0]: Invalid value: "other": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`,
      ],
    ],
    [
      { constraints: [{ matchAttribute: 'b' }] },
      [
        `${path}.constraints[0].matchAttribute: Invalid value: "b": a fully qualified name must be a domain and a name separated by a slash`,
      ],
    ],
    [
      { config: [{ opaque: { driver: '', parameters: [] } }] },
      [
        `${path}.config[0].opaque.driver: Required value`,
        `${path}.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object`,
      ],
    ],
    [{ config: [{}] }, [`${path}.config[0].opaque: Required value`]],
    [
      { requests: Array.from({ length: 33 }, (_, i) => ({ ...request, name: `r${i}` })) },
      [`${path}.requests: Too many: 33: must have at most 32 items`],
    ],
  ])('%#: with %j is refused', (devices, errors) => {
    expect(create(kind, claim(devices)).errors).toEqual(errors);
  });

  test('names each request once', () => {
    const again = JSON.stringify({
      ...request,
      exactly: { ...request.exactly, allocationMode: 'ExactCount', count: 1 },
    });
    expect(create(kind, claim({ requests: [request, request] })).errors).toEqual([
      `${path}.requests[1]: Duplicate value: ${again}`,
    ]);
  });

  test.each<[string, string]>([
    ['cel.bind(1, 2, true)', 'cel.bind() variable names must be simple identifiers'],
    ['device.driver', 'must evaluate to bool or the unknown type, not string'],
    ['device.nothing', 'compilation failed: ERROR: <input>:1:7: undefined field'],
    [
      'device.attributes["a"].ids.exists(id, id == 1)',
      "expression of type 'any' cannot be range of a comprehension",
    ],
    [
      `${ten}.all(a, ${ten}.all(b, ${ten}.all(c, ${ten}.all(d, ${ten}.all(e, ${ten}.all(f, true))))))`,
      'too complex, exceeds cost limit',
    ],
  ])('has selectors of devices: %s', (expression, fault) => {
    const { errors } = create(kind, claim(exactly({ selectors: [{ cel: { expression } }] })));
    expect(errors).toEqual([expect.stringContaining(fault)]);
  });

  test.each([
    'device.attributes["gpu.example.com"].cores > 4 && device.allowMultipleAllocations',
    'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("10Gi"))',
    'device.attributes["gpu.example.com"].version.isLessThan(semver("1.0.0"))',
    'device.attributes["gpu.example.com"].healthy',
    '"id" in device.attributes["gpu.example.com"]',
    'cel.bind(gpu, device.attributes["gpu.example.com"], gpu.cores > 4 && gpu.healthy)',
  ])('may select by %s', (expression) => {
    expect(create(kind, claim(exactly({ selectors: [{ cel: { expression } }] }))).errors).toEqual([]);
  });

  test('does not change', () => {
    const { stored } = create(kind, { spec });
    expect(update(kind, stored, claim({})).errors).toEqual(['spec: Invalid value: null: field is immutable']);
  });

  test('gets devices that are in use in namespaces that say so', () => {
    const admin = { spec: { devices: exactly({ adminAccess: true }) } };
    const within = (labels: Record<string, string>): StrategyContext => ({
      ...contextOf(),
      cluster: { list: () => [], get: () => ({ metadata: { name: 'ns', labels } }) },
    });
    expect(create(kind, admin, within({})).errors).toEqual([
      'spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace',
    ]);
    expect(create(kind, admin, within({ 'resource.kubernetes.io/admin-access': 'true' })).errors).toEqual([]);
  });
});

describe('the status of a claim', () => {
  const { stored } = create(kind, { spec });
  const result = { request: 'gpu', driver: 'gpu.example.com', pool: 'a', device: 'gpu-0' };
  const allocation = { devices: { results: [result] } };
  const pod = { resource: 'pods', name: 'web', uid: 'u' };
  const write = (old: object, status: object) =>
    update(kind, { ...stored, ...{ status: old } }, { spec, status }, 'status');

  test('is an allocation, which does not change but goes', () => {
    expect(write({}, { allocation, reservedFor: [pod] }).errors).toEqual([]);
    expect(write({ allocation }, {}).errors).toEqual([]);
    const other = { devices: { results: [{ ...result, device: 'gpu-1' }] } };
    expect(write({ allocation }, { allocation: other }).errors).toEqual([
      'status.allocation: Invalid value: null: field cannot be modified once set',
    ]);
  });

  test.each<[object, string[]]>([
    [
      { reservedFor: [pod] },
      ['status.reservedFor: Forbidden: may not be specified when `allocated` is not set'],
    ],
    [
      { allocation, reservedFor: [pod, { ...pod, name: '' }] },
      [
        'status.reservedFor[1].name: Required value',
        'status.reservedFor[1]: Duplicate value: {"resource":"pods","name":"","uid":"u"}',
      ],
    ],
    [
      { allocation: { devices: { results: [{ ...result, request: 'x', shareID: 'y' }] } } },
      [
        `status.allocation.devices.results[0].request: Invalid value: "x": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`,
        'status.allocation.devices.results[0].shareID: Invalid value: "y": must be a lowercase UUID in 8-4-4-4-12 format',
      ],
    ],
    [
      { allocation, devices: [{ driver: 'gpu.example.com', pool: 'a', device: 'gpu-9' }] },
      [
        'status.devices[0]: Invalid value: {"Driver":"gpu.example.com","Pool":"a","Device":"gpu-9","ShareID":""}: must be an allocated device in the claim',
      ],
    ],
    [
      { allocation, devices: [{ ...result, networkData: { ips: ['10.0.0.1', '2001:DB8::1/64'] } }] },
      [
        'status.devices[0].networkData.ips[0]: Invalid value: "10.0.0.1": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)',
        'status.devices[0].networkData.ips[1]: Invalid value: "2001:DB8::1/64": must be in canonical form ("2001:db8::1/64")',
      ],
    ],
  ])('%#: of %j is refused', (status, errors) => {
    expect(write({}, status).errors).toEqual(errors);
  });

  test('loses what is said of devices that are given back', () => {
    const devices = [{ driver: 'gpu.example.com', pool: 'a', device: 'gpu-0' }];
    const { object, errors } = write({ allocation, devices }, { devices });
    expect(errors).toEqual([]);
    expect(object).not.toHaveProperty('status.devices');
  });

  test('needs permissions of its own', () => {
    const asked: string[] = [];
    const guarded = {
      ...kind,
      strategy: resourceClaimStrategy((_user: UserInfo, { verb, subresource, namespace, name }) => {
        asked.push([verb, subresource, namespace, name].join(' '));
        return 'no';
      }),
    };
    const extra = { 'authentication.kubernetes.io/node-name': ['a'] };
    const user = { name: 'system:serviceaccount:ns:driver', uid: '', groups: [], extra };
    const onNode = {
      ...allocation,
      nodeSelector: {
        nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] }],
      },
    };
    const devices = [{ driver: 'gpu.example.com', pool: 'a', device: 'gpu-0' }];
    const status = { allocation: onNode, devices };
    const context = { ...contextOf(), user, verb: 'patch' };
    expect(update(guarded, stored, { spec, status }, 'status', context).errors).toEqual([
      'status.allocation: Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="patch" permission: no',
      'status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[associated-node:patch arbitrary-node:patch]" permission: no',
    ]);
    expect(asked).toEqual([
      'patch binding  ',
      'associated-node:patch driver ns gpu.example.com',
      'arbitrary-node:patch driver ns gpu.example.com',
    ]);
  });
});

test('the claims of a template have labels and annotations of it', () => {
  const template = definitionOf('ResourceClaimTemplate');
  const { stored, errors } = create(template, { spec: { metadata: { labels: { a: 'b' } }, spec } });
  expect(errors).toEqual([]);
  expect(create(template, { spec: { metadata: { name: 'a' }, spec } }).errors).toEqual([
    'spec.metadata.name: Forbidden: cannot be set',
  ]);
  const changed = update(template, stored, { spec: { metadata: {}, spec } });
  expect(changed.errors).toEqual([expect.stringMatching(/^spec: Invalid value: .*: field is immutable$/)]);
});

test('a rule of taints has a time, and another one for another effect', () => {
  const rule = definitionOf('DeviceTaintRule');
  const old = '2019-01-01T00:00:00Z';
  const taint = { key: 'a', effect: 'NoExecute', timeAdded: old };
  const { stored } = create(rule, { spec: { taint } });
  expect(create(rule, { spec: { taint: { key: 'a', effect: 'None' } } }).object).toMatchObject({
    ...{ metadata: { generation: 1 }, spec: { taint: { timeAdded: now } } },
  });
  const changed = update(rule, stored, { spec: { taint: { ...taint, effect: 'NoSchedule' } } });
  expect(changed.object).toMatchObject({ metadata: { generation: 2 }, spec: { taint: { timeAdded: now } } });
  expect(
    create(rule, { spec: { deviceSelector: { pool: '' }, taint: { key: '', effect: 'x' } } }).errors,
  ).toEqual([
    'spec.deviceSelector.pool: Required value',
    'spec.taint.key: Invalid value: "": name part must be non-empty',
    expect.stringContaining('spec.taint.key: Invalid value: "": name part must consist of'),
    'spec.taint.effect: Unsupported value: "x": supported values: "NoExecute", "NoSchedule", "None"',
  ]);
});

test('a class may be known as a resource', () => {
  const deviceClass = definitionOf('DeviceClass');
  expect(create(deviceClass, samples.get('resource.k8s.io/deviceclasses') ?? {}).errors).toEqual([]);
  expect(create(deviceClass, { spec: { extendedResourceName: 'gpu' } }).errors).toEqual([
    `spec.extendedResourceName: Invalid value: "gpu": a name must be a domain-prefixed path, such as 'example.com/my-prop'`,
  ]);
  const { stored } = create(deviceClass, {});
  const broken = { spec: { selectors: [{ cel: { expression: '1' } }] } };
  expect(update(deviceClass, stored, broken).errors).toHaveLength(1);
  expect(update(deviceClass, { ...stored, ...broken }, broken).errors).toEqual([]);
});
