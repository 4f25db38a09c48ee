import { describe, expect, test } from 'vitest';
import type { ServiceSpec } from '../../../../../src/objects/types/core.generated.ts';
import { dual46, dual64, failure, ServiceWorld, v4, v6, type Cluster } from './world.ts';

const clusters: Record<string, Cluster> = { v4, v6, dual46, dual64 };
const policies = new Map([
  ['S', 'SingleStack'],
  ['P', 'PreferDualStack'],
  ['R', 'RequireDualStack'],
]);

function withFamilies(policy: string, families: string, more: ServiceSpec = {}): ServiceSpec {
  const ipFamilyPolicy = policies.get(policy);
  const ipFamilies = families === '' ? [] : families.split(',').map((digit) => `IPv${digit}`);
  return {
    ports: [{ port: 80 }],
    ...(ipFamilyPolicy === undefined ? {} : { ipFamilyPolicy }),
    ...(ipFamilies.length === 0 ? {} : { ipFamilies }),
    ...more,
  };
}

/** `S 4,6`, or `✗`. */
function outcome(cluster: Cluster, spec: ServiceSpec): string {
  const world = new ServiceWorld(cluster);
  try {
    const { ipFamilyPolicy = '', ipFamilies = [], clusterIPs = [] } = world.create('a', spec).spec;
    expect(world.addresses.size).toBe(clusterIPs[0] === 'None' ? 0 : ipFamilies.length);
    return `${ipFamilyPolicy.charAt(0)} ${ipFamilies.map((family) => family.slice(3)).join(',')}`;
  } catch {
    expect(world.addresses.size).toBe(0);
    return '✗';
  }
}

const columns = ['v4', 'v6', 'dual46', 'dual64'];
// initIPFamilyFields (registry/core/service/storage/alloc.go): policy and ipFamilies as sent, then what each cluster stores.
const headful: [string, string, string[]][] = [
  ['', '', ['S 4', 'S 6', 'S 4', 'S 6']],
  ['S', '', ['S 4', 'S 6', 'S 4', 'S 6']],
  ['', '4', ['S 4', '✗', 'S 4', 'S 4']],
  ['', '6', ['✗', 'S 6', 'S 6', 'S 6']],
  ['S', '4', ['S 4', '✗', 'S 4', 'S 4']],
  ['S', '6', ['✗', 'S 6', 'S 6', 'S 6']],
  ['', '4,6', ['✗', '✗', '✗', '✗']],
  ['S', '6,4', ['✗', '✗', '✗', '✗']],
  ['P', '', ['P 4', 'P 6', 'P 4,6', 'P 6,4']],
  ['P', '4', ['P 4', '✗', 'P 4,6', 'P 4,6']],
  ['P', '6', ['✗', 'P 6', 'P 6,4', 'P 6,4']],
  ['P', '4,6', ['✗', '✗', 'P 4,6', 'P 4,6']],
  ['P', '6,4', ['✗', '✗', 'P 6,4', 'P 6,4']],
  ['R', '', ['✗', '✗', 'R 4,6', 'R 6,4']],
  ['R', '4', ['✗', '✗', 'R 4,6', 'R 4,6']],
  ['R', '6', ['✗', '✗', 'R 6,4', 'R 6,4']],
  ['R', '4,6', ['✗', '✗', 'R 4,6', 'R 4,6']],
  ['R', '6,4', ['✗', '✗', 'R 6,4', 'R 6,4']],
];
const headlessWithoutSelector: [string, string, string[]][] = [
  ['', '', ['R 4,6', 'R 6,4', 'R 4,6', 'R 6,4']],
  ['', '6', ['R 6,4', 'R 6,4', 'R 6,4', 'R 6,4']],
  ['S', '', ['S 4', 'S 6', 'S 4', 'S 6']],
  ['S', '6', ['S 6', 'S 6', 'S 6', 'S 6']],
  ['S', '4,6', ['✗', '✗', '✗', '✗']],
  ['P', '', ['P 4,6', 'P 6,4', 'P 4,6', 'P 6,4']],
  ['P', '4', ['P 4,6', 'P 4,6', 'P 4,6', 'P 4,6']],
  ['R', '6,4', ['R 6,4', 'R 6,4', 'R 6,4', 'R 6,4']],
];

describe('a create decides policy and families', () => {
  for (const [i, column] of columns.entries()) {
    const cluster = clusters[column] ?? v4;
    test.each(headful)(`${column}: policy "%s", families "%s"`, (policy, families, expected) => {
      expect(outcome(cluster, withFamilies(policy, families))).toBe(expected[i]);
    });
    test.each(headful)(
      `${column}, headless with selector: policy "%s", families "%s"`,
      (policy, families, expected) => {
        const headless = { clusterIP: 'None', selector: { app: 'a' } };
        expect(outcome(cluster, withFamilies(policy, families, headless))).toBe(expected[i]);
      },
    );
    test.each(headlessWithoutSelector)(
      `${column}, headless without selector: policy "%s", families "%s"`,
      (policy, families, expected) => {
        expect(outcome(cluster, withFamilies(policy, families, { clusterIP: 'None' }))).toBe(expected[i]);
      },
    );
  }

  test.each([
    ['one IPv6 acts as if its family came first', '', ['fd00:10:97::5'], 'S 6'],
    ['and gets a second address of the other family', 'P', ['fd00:10:97::5'], 'P 6,4'],
    ['two addresses in either order', 'R', ['fd00:10:97::5', '10.97.0.5'], 'R 6,4'],
    ['two addresses need a policy', '', ['10.97.0.5', 'fd00:10:97::5'], '✗'],
  ])('%s', (_, policy, clusterIPs, expected) => {
    const spec = withFamilies(policy, '', { clusterIP: clusterIPs[0] ?? '', clusterIPs });
    expect(outcome(dual46, spec)).toBe(expected);
  });
});

describe('a create refuses', () => {
  test.each<[string, Cluster, ServiceSpec, string[]]>([
    [
      'a family that the cluster does not have',
      v4,
      withFamilies('', '6'),
      ['spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'],
    ],
    [
      'RequireDualStack on a single-stack cluster, and the family',
      v4,
      withFamilies('R', '4,6'),
      [
        'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
        'spec.ipFamilies[1]: Invalid value: "IPv6": not configured on this cluster',
      ],
    ],
    [
      'an address of a family that the cluster does not have',
      v6,
      withFamilies('', '', { clusterIP: '10.96.0.5' }),
      ['spec.clusterIPs[0]: Invalid value: ["10.96.0.5"]: IPv4 is not configured on this cluster'],
    ],
    [
      'two addresses and two families with SingleStack',
      dual46,
      withFamilies('S', '4,6', { clusterIP: '10.97.0.5', clusterIPs: ['10.97.0.5', 'fd00:10:97::5'] }),
      [
        "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified",
        "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
      ],
    ],
    [
      'an address that contradicts its family',
      dual46,
      withFamilies('', '4', { clusterIP: 'fd00:10:97::5' }),
      [
        'spec.clusterIPs[0]: Invalid value: "fd00:10:97::5": expected an IPv4 value as indicated by `ipFamilies[0]`',
      ],
    ],
    [
      'words that are none',
      dual46,
      { ports: [{ port: 80 }], ipFamilyPolicy: 'Dual', ipFamilies: ['ipv4', 'IPv4', 'ipv4'] },
      [
        'spec.ipFamilies[0]: Unsupported value: "ipv4": supported values: "IPv4", "IPv6"',
        'spec.ipFamilies[2]: Unsupported value: "ipv4": supported values: "IPv4", "IPv6"',
        'spec.ipFamilies[2]: Duplicate value: "ipv4"',
        'spec.ipFamilyPolicy: Unsupported value: "Dual": supported values: "PreferDualStack", "RequireDualStack", "SingleStack"',
      ],
    ],
    [
      'the plural without the singular',
      v4,
      { ports: [{ port: 80 }], clusterIPs: ['10.96.0.5'] },
      ['spec.clusterIPs: Invalid value: ["10.96.0.5"]: must be empty when `clusterIP` is not specified'],
    ],
    [
      'a plural that starts with another address',
      v4,
      { ports: [{ port: 80 }], clusterIP: '10.96.0.5', clusterIPs: ['10.96.0.6'] },
      ['spec.clusterIPs: Invalid value: ["10.96.0.6"]: first value must match `clusterIP`'],
    ],
    [
      'None beside an address',
      dual46,
      { ports: [{ port: 80 }], clusterIP: 'None', clusterIPs: ['None', '10.97.0.5'] },
      ['spec.clusterIPs: Invalid value: ["None","10.97.0.5"]: \'None\' must be the first and only value'],
    ],
    [
      'three addresses',
      dual46,
      {
        ports: [{ port: 80 }],
        ipFamilyPolicy: 'RequireDualStack',
        clusterIP: '10.97.0.5',
        clusterIPs: ['10.97.0.5', 'fd00:10:97::5', '10.97.0.6'],
      },
      [
        'spec.clusterIPs: Invalid value: ["10.97.0.5","fd00:10:97::5","10.97.0.6"]: may only hold up to 2 values',
      ],
    ],
    [
      'two addresses of one family',
      dual46,
      {
        ports: [{ port: 80 }],
        ipFamilyPolicy: 'RequireDualStack',
        clusterIP: '10.97.0.5',
        clusterIPs: ['10.97.0.5', '10.97.0.6'],
      },
      [
        'spec.clusterIPs: Invalid value: ["10.97.0.5","10.97.0.6"]: may specify no more than one IP for each IP family',
      ],
    ],
    [
      'a malformed address, and says nothing more about the list',
      dual46,
      {
        ports: [{ port: 80 }],
        ipFamilyPolicy: 'RequireDualStack',
        clusterIP: '10.97.00.5',
        clusterIPs: ['10.97.00.5', '10.97.0.6'],
      },
      ['spec.clusterIPs[0]: Invalid value: "10.97.00.5": must not have leading 0s'],
    ],
  ])('%s', (_, cluster, spec, causes) => {
    expect(failure(() => new ServiceWorld(cluster).create('a', spec))).toEqual({ code: 422, causes });
  });
});

describe('an update of a single-stack Service on a dual-stack cluster', () => {
  const upgrade = (changes: Parameters<ServiceWorld['patch']>[1]): ServiceSpec => {
    const world = new ServiceWorld(dual46);
    world.create('a', { ports: [{ port: 80 }], clusterIP: '10.97.0.9' });
    return world.patch('a', changes).spec;
  };

  test.each(['PreferDualStack', 'RequireDualStack'])('is upgraded by %s alone', (ipFamilyPolicy) => {
    const spec = upgrade({ ipFamilyPolicy });
    expect(spec.ipFamilies).toEqual(['IPv4', 'IPv6']);
    expect(spec.clusterIPs).toEqual(['10.97.0.9', expect.stringMatching(/^fd00:10:97::/)]);
  });

  test('takes the second address that it names', () => {
    const clusterIPs = ['10.97.0.9', 'fd00:10:97::9'];
    expect(upgrade({ ipFamilyPolicy: 'RequireDualStack', clusterIPs }).clusterIPs).toEqual(clusterIPs);
  });

  test('is not upgraded by families or addresses without a policy', () => {
    expect(failure(() => upgrade({ ipFamilies: ['IPv4', 'IPv6'] })).causes).toEqual([
      "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
    ]);
  });

  test('keeps its primary', () => {
    expect(
      failure(() => upgrade({ ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] })).causes,
    ).toEqual([
      'spec.clusterIPs[0]: Invalid value: "10.97.0.9": expected an IPv6 value as indicated by `ipFamilies[0]`',
    ]);
  });
});

describe('an update of a dual-stack Service', () => {
  function dual(policy = 'PreferDualStack'): ServiceWorld {
    const world = new ServiceWorld(dual46);
    const clusterIPs = ['10.97.0.9', 'fd00:10:97::9'];
    world.create('a', { ports: [{ port: 80 }], ipFamilyPolicy: policy, clusterIP: '10.97.0.9', clusterIPs });
    return world;
  }

  test.each(['PreferDualStack', 'RequireDualStack'])(
    '%s to SingleStack releases the second address',
    (policy) => {
      const world = dual(policy);
      const { spec } = world.patch('a', { ipFamilyPolicy: 'SingleStack' });
      expect([spec.clusterIPs, spec.ipFamilies]).toEqual([['10.97.0.9'], ['IPv4']]);
      expect([...world.addresses.keys()]).toEqual(['10.97.0.9']);
      expect(
        world.create('b', { ports: [{ port: 80 }], clusterIP: 'fd00:10:97::9' }).spec.ipFamilies,
      ).toEqual(['IPv6']);
    },
  );

  test('a manifest without any of the fields changes nothing', () => {
    const world = dual();
    const { spec } = world.put('a', { ports: [{ port: 81 }] });
    expect(spec).toMatchObject({
      clusterIPs: ['10.97.0.9', 'fd00:10:97::9'],
      ipFamilies: ['IPv4', 'IPv6'],
      ipFamilyPolicy: 'PreferDualStack',
    });
  });

  test('a shortened list without SingleStack is refused', () => {
    expect(failure(() => dual().patch('a', { clusterIPs: ['10.97.0.9'] })).causes).toEqual([
      'spec.ipFamilyPolicy: Invalid value: "PreferDualStack": must be \'SingleStack\' to release the secondary cluster IP',
    ]);
    expect(failure(() => dual('RequireDualStack').patch('a', { ipFamilies: ['IPv4'] })).causes).toEqual([
      'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be \'SingleStack\' to release the secondary IP family',
    ]);
  });

  test('swapped families are refused, the index is always 0', () => {
    const changes = {
      clusterIP: 'fd00:10:97::9',
      clusterIPs: ['fd00:10:97::9', '10.97.0.9'],
      ipFamilies: ['IPv6', 'IPv4'],
    };
    expect(failure(() => dual().patch('a', changes)).causes).toEqual([
      'spec.clusterIPs[0]: Invalid value: ["fd00:10:97::9","10.97.0.9"]: may not change once set',
      'spec.clusterIPs[1]: Invalid value: ["fd00:10:97::9","10.97.0.9"]: may not change once set',
      'spec.ipFamilies[0]: Invalid value: ["IPv6","IPv4"]: may not change once set',
      'spec.ipFamilies[0]: Invalid value: ["IPv6","IPv4"]: may not change once set',
    ]);
  });

  test('keeping the other address only is refused, and shows addresses where families are meant', () => {
    const changes = {
      ipFamilyPolicy: 'SingleStack',
      clusterIP: 'fd00:10:97::9',
      clusterIPs: ['fd00:10:97::9'],
      ipFamilies: ['IPv6'],
    };
    expect(failure(() => dual().patch('a', changes)).causes).toEqual([
      'spec.clusterIPs[0]: Invalid value: ["fd00:10:97::9"]: may not change once set',
      'spec.ipFamilies[0]: Invalid value: ["fd00:10:97::9"]: may not change once set',
    ]);
  });
});

test('a PreferDualStack Service is not upgraded by the way when the cluster becomes dual-stack', () => {
  const world = new ServiceWorld(dual46);
  const { spec, metadata, status } = world.create('a', { ports: [{ port: 80 }], clusterIP: '10.97.0.9' });
  world.services.set('a', { metadata, status, spec: { ...spec, ipFamilyPolicy: 'PreferDualStack' } });
  expect(
    world.put('a', { ports: [{ port: 81 }], ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv4'] }).spec
      .clusterIPs,
  ).toEqual(['10.97.0.9']);
});
