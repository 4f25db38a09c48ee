import { describe, expect, test } from 'vitest';
import { importCilium, importKubeVip, runsKubeVip } from '../../../src/pools/import/read.ts';
import { keepingAssigned } from '../../../src/pools/import/imported.ts';
import { importMetalLB, importMetalLBConfig } from '../../../src/pools/import/metallb.ts';
import type { MetalLBAnnouncing } from '../../../src/pools/import/metallb-announce.ts';
import type { KubeObject } from '../../../src/objects/meta.ts';

const object = (name: string, rest: Record<string, unknown>): KubeObject => ({
  metadata: { name },
  ...rest,
});
const inNamespaces = (...values: string[]): unknown => ({
  matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values }],
});

/** One L2Advertisement for all pools. */
const byLayer2: MetalLBAnnouncing = {
  l2Advertisements: [object('l2', { spec: {} })],
  ...{ bgpAdvertisements: [], bgpPeers: [], communities: [] },
};

describe('import', () => {
  test('of MetalLB', () => {
    const { pools, notes } = importMetalLB(
      [
        object('a', {
          spec: { addresses: ['192.0.2.0/24', '198.51.100.1-198.51.100.9'], autoAssign: false },
        }),
        object('b', {
          spec: {
            addresses: ['203.0.113.0/24'],
            avoidBuggyIPs: true,
            serviceAllocation: {
              priority: 10,
              namespaces: ['x', 'y'],
              serviceSelectors: [{ matchLabels: { app: 'w' } }, {}],
            },
          },
        }),
        object('broken', { spec: 'x' }),
      ],
      byLayer2,
    );
    expect(pools.map(({ spec }) => spec)).toEqual([
      {
        addresses: ['192.0.2.0/24', '198.51.100.1-198.51.100.9'],
        autoAssign: false,
        announce: { layer2: {} },
      },
      {
        announce: { layer2: {} },
        addresses: ['203.0.113.0/24'],
        exclude: ['203.0.113.0', '203.0.113.255'],
        priority: 999_990,
        namespaceSelector: inNamespaces('x', 'y'),
        serviceSelector: { matchLabels: { app: 'w' } },
      },
    ]);
    expect(notes).toEqual([
      'b: selects Services by any of 2 selectors; an AddressPool has one, so only the first was taken',
      'broken: not imported: it has no addresses that a pool can have',
    ]);
  });

  test('clears the host bits of CIDRs, and leaves out entries that no pool can have', () => {
    const addresses = [
      '192.168.1.5/28',
      ' 192.168.0.220/29',
      '2001:db8:0:aa00::5/120',
      '2001:db8:0:aa00::/56',
      '192.0.2.9 - 192.0.2.20',
      '192.0.2.9-192.0.2.2',
      '192.0.2.1-2001:db8::1',
      '192.0.2.077',
      '192.0.2.78',
      'lan',
    ];
    const { pools, notes } = importMetalLB([object('a', { spec: { addresses } })], byLayer2);
    expect(pools[0]?.spec.addresses).toEqual([
      '192.168.1.0/28',
      '192.168.0.216/29',
      '2001:db8:0:aa00::/120',
      '192.0.2.9-192.0.2.20',
      '192.0.2.78-192.0.2.78',
    ]);
    expect(notes.map((note) => note.split(' not imported: ')[0])).toEqual(
      ['2001:db8:0:aa00::/56', '192.0.2.9-192.0.2.2', '192.0.2.1-2001:db8::1', '192.0.2.077', 'lan'].map(
        (text) => `a: "${text}"`,
      ),
    );
  });

  test('makes no pool of addresses from DHCP', () => {
    const data = { 'range-global': '0.0.0.0', 'range-x': '0.0.0.0-0.0.0.0, 192.0.2.1-192.0.2.2' };
    const { pools, notes } = importKubeVip(object('kubevip', { data }));
    expect(pools.map(({ metadata, spec }) => [metadata.name, spec.addresses])).toEqual([
      ['kube-vip-x', ['192.0.2.1-192.0.2.2']],
    ]);
    expect(notes).toHaveLength(3);
    expect(notes[0]).toBe(
      'kube-vip-global: "0.0.0.0" not imported: it asks DHCP for addresses, which has no counterpart',
    );
  });

  test('does not import a pool with an invalid selector', () => {
    const addresses = ['192.0.2.0/24'];
    const selectors = [{ matchLabels: { 'no label': 'x' } }, { matchExpressions: 7 }, 'x'];
    for (const selector of selectors) {
      const metalLB = object('a', {
        spec: { addresses, serviceAllocation: { serviceSelectors: [selector] } },
      });
      expect(importMetalLB([metalLB], byLayer2).pools).toEqual([]);
      const cilium = object('a', { spec: { blocks: [{ cidr: '192.0.2.0/24' }], serviceSelector: selector } });
      expect(importCilium([cilium]).pools).toEqual([]);
    }
  });

  test('gives every pool a unique, valid name', () => {
    const pool = (name: string): string => `- { name: ${JSON.stringify(name)}, addresses: [192.0.2.0/24] }\n`;
    const config = `address-pools:\n${['lan', 'LAN', 'My_Pool', '..', '', 'x'.repeat(300)].map(pool).join('')}`;
    const { pools, notes } = importMetalLBConfig(object('config', { data: { config } }));
    expect(pools.map(({ metadata }) => metadata.name)).toEqual([
      'lan',
      'lan-2',
      'my-pool',
      'pool',
      'pool-2',
      'x'.repeat(245),
    ]);
    expect(notes[0]).toBe('"LAN" was renamed to lan-2');
  });

  test('serves the namespaces that all selectors of a Cilium pool name', () => {
    const key = 'io.kubernetes.service.namespace';
    const of = (...values: string[][]): unknown => {
      const matchExpressions = values.map((list) => ({ key, operator: 'In', values: list }));
      const spec = { blocks: [{ cidr: '192.0.2.0/24' }], serviceSelector: { matchExpressions } };
      return importCilium([object('a', { spec })]).pools[0]?.spec.namespaceSelector;
    };
    expect(of(['x', 'y'], ['y', 'z'])).toEqual(inNamespaces('y'));
    expect(of(['x'], ['y'])).toBeUndefined();
  });

  test('of the YAML in the ConfigMap of MetalLB before 0.13', () => {
    const config = `
      peers:
      - { peer-address: 10.0.0.1, peer-asn: 64513, my-asn: 64512, hold-time: 30s, node-selectors: [{ match-labels: { rack: a } }] }
      bgp-communities: { rack: '64512:1' }
      address-pools:
      - name: default
        protocol: layer2
        addresses: [192.0.2.0/24]
        avoid-buggy-ips: true
      - { name: bgp, protocol: bgp, addresses: [198.51.100.0/24], auto-assign: false, bgp-advertisements: [{ aggregation-length: 24, communities: [rack, no-export] }] }`;
    const { pools, peers, notes } = importMetalLBConfig(object('config', { data: { config } }));
    expect(pools.map(({ metadata, spec }) => [metadata.name, spec])).toEqual([
      [
        'default',
        { addresses: ['192.0.2.0/24'], exclude: ['192.0.2.0', '192.0.2.255'], announce: { layer2: {} } },
      ],
      [
        'bgp',
        {
          addresses: ['198.51.100.0/24'],
          autoAssign: false,
          announce: { bgp: { aggregationLength: 24, communities: ['64512:1', 'no-export'] } },
        },
      ],
    ]);
    expect(peers.map(({ metadata, spec }) => [metadata.name, spec])).toEqual([
      [
        'peer-1',
        {
          ...{ myASN: 64512, peerASN: 64513, peerAddress: '10.0.0.1', holdTime: '30s' },
          ...{ nodeSelector: { matchLabels: { rack: 'a' } }, gracefulRestart: false },
        },
      ],
    ]);
    expect(notes).toEqual([]);
    expect(importMetalLBConfig(object('config', {})).notes).toEqual(['config: has no address-pools']);
  });

  test('of how MetalLB announces: advertisements, communities and peers', () => {
    const pool = (name: string, labels = {}): KubeObject => ({
      metadata: { name, labels },
      ...{ spec: { addresses: ['192.0.2.0/24'] } },
    });
    const host = (name: string): unknown => ({ matchLabels: { 'kubernetes.io/hostname': name } });
    const { pools, peers, notes } = importMetalLB(
      [pool('lan'), pool('rack', { zone: 'b' }), pool('both'), pool('silent')],
      {
        l2Advertisements: [
          object('wired', {
            spec: { ipAddressPools: ['lan', 'both'], interfaces: ['eth0', 'eth0', 'far/too'] },
          }),
          object('again', { spec: { ipAddressPools: ['both'] } }),
        ],
        bgpAdvertisements: [
          object('routes', {
            spec: {
              ipAddressPools: ['both'],
              ipAddressPoolSelectors: [{ matchLabels: { zone: 'b' } }],
              ...{ aggregationLength: 32, aggregationLengthV6: 64, localPref: 200, peers: ['tor', 'other'] },
              communities: ['vpn', 'large:64512:1:2', 'no-export', '1:99999'],
              nodeSelectors: [host('a'), host('b')],
            },
          }),
        ],
        communities: [object('c', { spec: { communities: [{ name: 'vpn', value: '64512:7' }] } })],
        bgpPeers: [
          object('tor', {
            spec: {
              ...{ myASN: 64512, peerASN: 4_200_000_000, peerAddress: '10.0.0.1', peerPort: 1179 },
              ...{ sourceAddress: '10.0.0.9', routerID: '10.1.1.1', holdTime: '1m30s', ebgpMultiHop: true },
              ...{ password: 'x', bfdProfile: 'fast', vrf: 'red', enableGracefulRestart: true },
              nodeSelectors: [{ matchLabels: { rack: 'a' } }, { matchLabels: { zone: 'b' } }],
            },
          }),
          object('unnumbered', { spec: { myASN: 64512, peerASN: 64513, interface: 'eth0' } }),
          object('local', { spec: { myASN: 64512, peerASN: 64513, peerAddress: 'fe80::1' } }),
          object('reserved', { spec: { myASN: 23456, peerASN: 64513, peerAddress: '10.0.0.2' } }),
        ],
      },
    );
    const bgp = {
      ...{ peers: ['tor'], localPreference: 200, aggregationLengthV6: 64 },
      communities: ['64512:7', '64512:1:2', 'no-export'],
      nodeSelector: {
        matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['a', 'b'] }],
      },
    };
    expect(Object.fromEntries(pools.map(({ metadata, spec }) => [metadata.name, spec.announce]))).toEqual({
      lan: { layer2: { interfaces: ['eth0'] } },
      rack: { bgp },
      both: { layer2: { interfaces: ['eth0'] }, bgp },
      silent: {},
    });
    expect(peers.map(({ metadata, spec }) => [metadata.name, spec])).toEqual([
      [
        'tor',
        {
          ...{ myASN: 64512, peerASN: 4_200_000_000, peerAddress: '10.0.0.1', peerPort: 1179 },
          ...{ sourceAddress: '10.0.0.9', routerID: '10.1.1.1', holdTime: '90s', gracefulRestart: true },
          nodeSelector: { matchLabels: { rack: 'a' } },
        },
      ],
    ]);
    expect(notes).toEqual([
      'tor: vrf not imported',
      'tor: TCPMD5NotSupported: the password is not imported; see docs/bgp.md for what protects sessions',
      'tor: BFDNotSupported: bfdProfile is not imported; holdTime: 3s notices a dead router in 3 to 3.6 s',
      'tor: selects nodes by any of 2 selectors; only the first was taken',
      'unnumbered: interface not imported',
      'unnumbered: not imported: its address is none of another machine',
      'local: not imported: its address is none of another machine',
      'reserved: not imported: it has no AS numbers that a peer can have',
      'wired: only the interfaces eth0 were imported',
      'routes: the community "1:99999" not imported',
      'both: has several L2Advertisements; an AddressPool has one, so again not imported',
      'silent: MetalLB does not announce it, or not in a way that can be imported: announce is {}',
    ]);
  });

  test('of how kube-vip announces', () => {
    const daemonSet = (env: Record<string, string>, args: readonly string[] = ['manager']): KubeObject =>
      object('kube-vip-ds', {
        spec: {
          template: {
            spec: {
              containers: [
                {
                  image: 'ghcr.io/kube-vip/kube-vip:v0.8.0',
                  args,
                  env: Object.entries(env).map(([name, value]) => ({ name, value })),
                },
              ],
            },
          },
        },
      });
    const configMap = object('kubevip', { data: { 'cidr-global': '192.0.2.0/28' } });
    const announced = (daemon: KubeObject): unknown => {
      const { pools, peers, notes } = importKubeVip(configMap, daemon);
      return { announce: pools[0]?.spec.announce, peers: peers.map(({ spec }) => spec), notes };
    };
    expect(runsKubeVip(daemonSet({}))).toBe(true);
    expect(announced(daemonSet({ vip_arp: 'true', vip_interface: 'eth0' }))).toEqual({
      ...{ announce: { layer2: { interfaces: ['eth0'] } }, peers: [], notes: [] },
    });
    expect(
      announced(daemonSet({}, ['manager', '--arp', '--interface', 'eth0', '--serviceInterface=eth1'])),
    ).toEqual({
      ...{ announce: { layer2: { interfaces: ['eth1'] } }, peers: [], notes: [] },
    });
    const list = '10.0.0.1:65001::false, [2001:db8::1]:65001:secret:true,10.0.0.3';
    const env = {
      bgp_enable: 'true',
      vip_interface: 'lo',
      bgp_as: '65000',
      bgp_peers: list,
      bgp_sourceif: 'eth0',
    };
    expect(announced(daemonSet(env))).toEqual({
      announce: { bgp: {} },
      peers: [
        { myASN: 65000, peerASN: 65001, peerAddress: '10.0.0.1' },
        { myASN: 65000, peerASN: 65001, peerAddress: '2001:db8::1' },
      ],
      notes: [
        'bgp_sourceif: has no counterpart',
        'peer-2: TCPMD5NotSupported: the password is not imported; see docs/bgp.md for what protects sessions',
        'peer-3: not imported: it has no AS numbers that a peer can have',
      ],
    });
    const one = { bgp_enable: 'true', bgp_as: '65000', bgp_peeraddress: '10.0.0.1', bgp_peeras: '65001' };
    expect(announced(daemonSet({ ...one, bgp_hold_time: '15' }))).toMatchObject({
      peers: [{ peerAddress: '10.0.0.1', holdTime: '15s' }],
    });
  });

  test('names the fields that are not imported', () => {
    const spec = { addresses: ['192.0.2.0/24'], colour: 'blue', serviceAllocation: { weight: 1 } };
    expect(importMetalLB([object('a', { spec })], byLayer2).notes).toEqual([
      'a: colour not imported',
      'a: weight not imported',
    ]);
    const blocks = [{ cidr: '192.0.2.0/24' }];
    expect(importCilium([object('a', { spec: { blocks, colour: 'blue' } })]).notes).toEqual([
      'a: colour not imported',
    ]);
  });

  test('of Cilium', () => {
    const { pools, notes } = importCilium([
      object('a', {
        spec: {
          blocks: [
            { cidr: '192.0.2.0/28' },
            { start: '198.51.100.1', stop: '198.51.100.9' },
            { start: '2001:db8::1' },
          ],
          allowFirstLastIPs: 'No',
          serviceSelector: { matchLabels: { 'io.kubernetes.service.namespace': 'x', app: 'w' } },
        },
      }),
      object('off', { spec: { cidrs: [{ cidr: '203.0.113.0/24' }], disabled: true } }),
    ]);
    expect(pools.map(({ spec }) => spec)).toEqual([
      {
        addresses: ['192.0.2.0/28', '198.51.100.1-198.51.100.9', '2001:db8::1-2001:db8::1'],
        avoidFirstLast: true,
        namespaceSelector: inNamespaces('x'),
        serviceSelector: { matchLabels: { app: 'w' } },
      },
      { addresses: ['203.0.113.0/24'], autoAssign: false },
    ]);
    expect(notes).toHaveLength(1);
  });

  test('of kube-vip', () => {
    const data = {
      'range-global': '192.0.2.0-192.0.2.15',
      'range-x': '198.51.100.1-198.51.100.9, 198.51.100.20-198.51.100.21',
      'allow-share-x': 'true',
    };
    expect(
      importKubeVip(object('kubevip', { data })).pools.map(({ metadata, spec }) => ({
        [metadata.name ?? '']: spec,
      })),
    ).toEqual([
      { 'kube-vip-global': { addresses: ['192.0.2.0-192.0.2.15'] } },
      {
        'kube-vip-x': {
          addresses: ['198.51.100.1-198.51.100.9', '198.51.100.20-198.51.100.21'],
          namespaceSelector: inNamespaces('x'),
          sharing: 'by-ports',
        },
      },
    ]);
  });

  test('adds pools for the addresses in use', () => {
    const imported = importMetalLB([object('a', { spec: { addresses: ['192.0.2.0/24'] } })], byLayer2);
    const service = (type: string, ...ips: string[]) => ({
      metadata: {},
      spec: { type },
      status: { loadBalancer: { ingress: ips.map((ip) => ({ ip })) } },
    });
    const { pools } = keepingAssigned(
      imported,
      [
        service('LoadBalancer', '192.0.2.1', '198.51.100.7', '2001:db8::7', '203.0.113.9'),
        service('ClusterIP', '203.0.113.1'),
      ],
      [{ metadata: { name: 'ours' }, spec: { addresses: ['203.0.113.9/32'] } }],
    );
    expect(pools.at(-1)?.spec).toEqual({
      addresses: ['198.51.100.7/32', '2001:db8::7/128'],
      autoAssign: false,
    });
  });
});

test.each<[string, string[], string[] | undefined]>([
  ['a range over a .0', ['192.168.1.250-192.168.2.3'], ['192.168.1.255', '192.168.2.0']],
  [
    'a /22',
    ['10.0.0.0/22'],
    ['10.0.0.0', '10.0.0.255', '10.0.1.0', '10.0.1.255', '10.0.2.0', '10.0.2.255', '10.0.3.0', '10.0.3.255'],
  ],
  ['a /28 in the middle', ['192.168.1.16/28'], undefined],
  ['IPv6', ['2001:db8::/120'], undefined],
])('avoidBuggyIPs of %s excludes what ends in .0 and .255', (_what, addresses, exclude) => {
  const { pools, notes } = importMetalLB(
    [object('p', { spec: { addresses, avoidBuggyIPs: true } })],
    byLayer2,
  );
  expect(pools[0]?.spec.exclude).toEqual(exclude);
  expect(pools[0]?.spec).not.toHaveProperty('avoidFirstLast');
  expect(notes).toEqual([]);
});

test('names the fields of a MetalLB peer that have no counterpart, and its defaults hold', () => {
  const spec = { myASN: 64512, peerASN: 64513, peerAddress: '10.0.0.1' };
  const peerOf = (more: object) => {
    const bgpPeers = [object('r', { spec: { ...spec, ...more } })];
    return importMetalLB([], { ...byLayer2, bgpPeers });
  };
  expect(peerOf({ disableMP: false }).notes).toEqual([]);
  expect(peerOf({}).peers[0]?.spec).toMatchObject({ gracefulRestart: false });
  expect(peerOf({ enableGracefulRestart: true }).peers[0]?.spec).toMatchObject({ gracefulRestart: true });
  const { notes } = peerOf({ keepaliveTime: '1s', connectTime: '5s', disableMP: true, vrf: 'red' });
  for (const field of ['keepaliveTime', 'connectTime', 'disableMP', 'vrf']) {
    expect(notes.filter((note) => note.includes(field) && note.includes('not imported'))).toHaveLength(1);
  }
});

test.each<[string, Record<string, string>, Record<string, string[]>, string[]]>([
  [
    'a CIDR of the namespace before its range',
    { 'cidr-x': '192.0.2.0/29', 'range-x': '192.0.2.8-192.0.2.9' },
    { 'kube-vip-x': ['192.0.2.0/29'] },
    ['range-x'],
  ],
  [
    'a global CIDR before every range',
    {
      'cidr-global': '192.0.2.0/29',
      'range-x': '192.0.2.8-192.0.2.9',
      'range-global': '192.0.2.10-192.0.2.11',
    },
    { 'kube-vip-global': ['192.0.2.0/29'] },
    ['range-x', 'range-global'],
  ],
  [
    'a range where only others have a CIDR',
    { 'cidr-y': '192.0.2.0/29', 'range-x': '192.0.2.8-192.0.2.9' },
    { 'kube-vip-y': ['192.0.2.0/29'], 'kube-vip-x': ['192.0.2.8-192.0.2.9'] },
    [],
  ],
])('of kube-vip takes %s, as its discoverPool', (_what, data, expected, dropped) => {
  const { pools, notes } = importKubeVip(object('kubevip', { data }));
  expect(Object.fromEntries(pools.map(({ metadata, spec }) => [metadata.name, spec.addresses]))).toEqual(
    expected,
  );
  expect(notes.map((note) => note.split(':')[0])).toEqual(dropped);
});

test('of kube-vip leaves out the ends of CIDRs where it does', () => {
  const data = { 'cidr-global': '192.168.0.200/29', 'skip-end-ips-in-cidr': 'true' };
  const { pools, notes } = importKubeVip(object('kubevip', { data }));
  expect(pools[0]?.spec).toMatchObject({ addresses: ['192.168.0.200/29'], avoidFirstLast: true });
  expect(notes).toEqual([]);
});

test('says which addresses Services of several namespaces share', () => {
  const imported = importMetalLB([object('a', { spec: { addresses: ['192.0.2.0/24'] } })], byLayer2);
  const service = (namespace: string, ip: string) => ({
    metadata: { namespace, name: 's' },
    spec: { type: 'LoadBalancer' },
    status: { loadBalancer: { ingress: [{ ip }] } },
  });
  const services = [service('b', '192.0.2.10'), service('a', '192.0.2.10'), service('a', '192.0.2.11')];
  const { notes } = keepingAssigned(imported, services, []);
  const about = notes.filter((note) => note.includes('servicenet.dev/sharing-namespaces'));
  expect(about.map((note) => note.split(':')[0])).toEqual([
    '192.0.2.10 is shared by Services of the namespaces a, b',
  ]);
});
