import { describe, expect, test } from 'vitest';
import { attachedInterfaces } from '../../../../src/network/attachments/attachments.ts';
import { type InterfacePlan, planInterfaces } from '../../../../src/network/attachments/interface-plan.ts';
import { lanGateways, writtenGateways } from '../../../../src/network/attachments/network-config.ts';
import type { JsonRecord } from '../../../../src/objects/json.ts';
import type { NetworkAttachmentDefinition } from '../../../../src/objects/types/openshift.ts';

const mac = '02:42:00:00:00:01';

/** One Pod with these networks; each interface has the addresses that are named. */
function planOf(
  networks: readonly (readonly [config: JsonRecord, ips?: readonly string[], more?: JsonRecord])[],
): InterfacePlan {
  const definitions = networks.map(([config]): NetworkAttachmentDefinition => ({
    metadata: { name: 'net' },
    spec: { config: JSON.stringify(config) },
  }));
  const annotations = {
    'k8s.v1.cni.cncf.io/networks': JSON.stringify(
      networks.map(([, , more = {}], index) => ({ name: `n${index}`, ...more })),
    ),
    'k8s.v1.cni.cncf.io/network-status': JSON.stringify([
      { name: 'cluster', interface: 'eth0', default: true, dns: {} },
      ...networks.map(([, ips = [], more = {}], index) => ({
        name: `shop/n${index}`,
        interface: more['interface'] ?? `net${index + 1}`,
        ips,
        mac,
      })),
    ]),
  };
  const pod = { metadata: { name: 'p', namespace: 'shop', uid: 'u', annotations }, spec: {}, status: {} };
  return planInterfaces(attachedInterfaces(pod, (_, name) => definitions[Number(name.slice(1))]) ?? []);
}

const ranged = { type: 'whereabouts', range: '192.168.9.0/24' };

describe('interfaces', () => {
  test('macvlan with its master, mode, MTU, addresses and routes', () => {
    const routes = [{ dst: '10.9.0.0/16', gw: '192.168.9.1' }, { dst: '10.8.0.0/16' }];
    const { interfaces, missing } = planOf([
      [
        { type: 'macvlan', master: 'eth1', mode: 'private', mtu: 1400, ipam: { ...ranged, routes } },
        ['192.168.9.7'],
      ],
    ]);
    expect(missing).toEqual([]);
    expect(interfaces).toEqual([
      {
        ...{ name: 'net1', mac, mtu: 1400, router: undefined, defaultGateways: new Map() },
        below: { kind: 'macvlan', master: 'eth1', mode: 'private' },
        addresses: [{ family: 'IPv4', address: '192.168.9.7', prefixLength: 24 }],
        routes: [{ destination: '10.9.0.0/16', gateway: '192.168.9.1' }, { destination: '10.8.0.0/16' }],
      },
    ]);
  });

  test('macvlan and bridge with the defaults of the plugins', () => {
    const { interfaces } = planOf([[{ type: 'macvlan' }], [{ type: 'bridge' }]]);
    expect(interfaces.map(({ name, below }) => [name, below])).toEqual([
      ['net1', { kind: 'macvlan', master: undefined, mode: 'bridge' }],
      ['net2', { kind: 'bridge', bridge: 'cni0', addresses: [] }],
    ]);
  });

  test('a bridge that is the gateway has the address that is written, else the first one', () => {
    const bridge = { type: 'bridge', bridge: 'br', isGateway: true };
    const addresses = (ipam: JsonRecord, ip: string): unknown =>
      planOf([[{ ...bridge, ipam }, [ip]]]).interfaces[0]?.below;
    const at = (address: string, prefixLength: number, family = 'IPv4'): unknown => ({
      ...{ kind: 'bridge', bridge: 'br' },
      addresses: [{ family, address, prefixLength }],
    });
    expect(addresses(ranged, '192.168.9.7')).toEqual(at('192.168.9.1', 24));
    expect(addresses({ ...ranged, gateway: '192.168.9.254' }, '192.168.9.7')).toEqual(
      at('192.168.9.254', 24),
    );
    const v6 = { type: 'host-local', ranges: [[{ subnet: 'fd09::/64' }]] };
    expect(addresses(v6, 'fd09::7')).toEqual(at('fd09::1', 64, 'IPv6'));
  });

  test('of two routes to one destination the first stays, and the default route is that of the cluster', () => {
    const route = (gw: string): JsonRecord => ({ dst: '10.9.0.0/16', gw });
    const { interfaces } = planOf([
      [{ type: 'bridge', ipam: { ...ranged, routes: [route('192.168.9.1'), { dst: '0.0.0.0/0' }] } }],
      [{ type: 'bridge', ipam: { ...ranged, routes: [route('192.168.9.2')] } }],
    ]);
    expect(interfaces.map(({ routes, defaultGateways }) => [routes, defaultGateways.size])).toEqual([
      [[{ destination: '10.9.0.0/16', gateway: '192.168.9.1' }], 0],
      [[], 0],
    ]);
  });

  test('the default route goes where the Pod asks for it', () => {
    const more = { 'default-route': ['192.168.9.1', 'fd09::1'] };
    const { interfaces } = planOf([[{ type: 'macvlan', ipam: ranged }, ['192.168.9.7'], more]]);
    expect([...(interfaces[0]?.defaultGateways ?? [])]).toEqual([
      ['IPv4', '192.168.9.1'],
      ['IPv6', 'fd09::1'],
    ]);
  });

  test('an egress router is a macvlan with its own address, and the default route of the Pod', () => {
    const { interfaces } = planOf([
      [
        {
          type: 'egress-router',
          ip: { addresses: ['192.0.2.9/24'], gateway: '192.0.2.1', destinations: ['80 TCP 203.0.113.1'] },
        },
        ['192.0.2.9'],
        { 'default-route': ['192.0.2.1'] },
      ],
    ]);
    expect(interfaces).toMatchObject([
      {
        below: { kind: 'macvlan', master: undefined, mode: 'bridge' },
        addresses: [{ address: '192.0.2.9', prefixLength: 24 }],
        defaultGateways: new Map([['IPv4', '192.0.2.1']]),
        router: { redirects: [{ match: { protocol: 'TCP', port: 80 }, destination: '203.0.113.1' }] },
      },
    ]);
  });

  test('other plugins make none, and say so; the others are made', () => {
    const { interfaces, missing } = planOf([
      [{ type: 'sriov' }],
      [{ plugins: [{ type: 'macvlan' }, { type: 'tuning' }] }],
      [{ type: 'bridge', vlan: 100 }],
    ]);
    expect(interfaces.map(({ name }) => name)).toEqual(['net2']);
    expect(missing).toEqual([
      'network shop/n0: there is no plugin sriov: there is no interface net1',
      'network shop/n1: there is no plugin tuning: it changes nothing of interface net2',
      'network shop/n2: there are no VLANs (100): there is no interface net3',
    ]);
  });

  test('what a plugin fails with', () => {
    expect(() => planOf([[{ type: 'macvlan', mode: 'Bridge' }]])).toThrow('unknown macvlan mode: "Bridge"');
    for (const name of ['br 0', 'br0\nlink delete eth0', '-br', 'br"', 'sixteen-letters-']) {
      const problem = `failed to lookup ${JSON.stringify(name)}: not a usable name of an interface`;
      expect(() => planOf([[{ type: 'bridge', bridge: name }]])).toThrow(problem);
      expect(() => planOf([[{ type: 'macvlan', master: name }]])).toThrow(problem);
    }
    expect(() => planOf([[{ type: 'macvlan' }, [], { interface: 'a";}' }]])).toThrow('not a usable name');
    expect(() => planOf([[{ type: 'egress-router', ip: { addresses: [''] } }]])).toThrow(
      'unable to parse IP address "": invalid CIDR address',
    );
  });
});

describe('gateways', () => {
  const cases: readonly (readonly [what: string, written: JsonRecord, gateways: readonly string[]])[] = [
    ['whereabouts', { ipam: { ...ranged, gateway: '192.168.9.1' } }, ['192.168.9.1/24']],
    [
      'a part of a network',
      { ipam: { type: 'whereabouts', range: '192.168.9.9-192.168.9.20/25', gateway: '192.168.9.1' } },
      ['192.168.9.1/25'],
    ],
    [
      'host-local, one a family',
      {
        ipam: {
          type: 'host-local',
          ranges: [
            [{ subnet: '10.9.0.0/16', gateway: '10.9.0.1' }],
            [{ subnet: 'fd09::/64', gateway: 'fd09::1' }],
          ],
        },
      },
      ['10.9.0.1/16', 'fd09::1/64'],
    ],
    [
      'static, and that of a route',
      {
        ipam: {
          type: 'static',
          addresses: [{ address: '10.9.0.7/16', gateway: '10.9.0.1' }],
          routes: [{ dst: '10.8.0.0/16', gw: '10.9.0.2' }],
        },
      },
      ['10.9.0.1/16', '10.9.0.2/16'],
    ],
    ['an egress router', { ip: { addresses: ['192.0.2.9/24'], gateway: '192.0.2.1' } }, ['192.0.2.1/24']],
    ['one that nothing reaches', { ipam: { ...ranged, gateway: '192.168.8.1' } }, []],
    ['none', { ipam: ranged }, []],
  ];
  test.each(cases)('%s', (_, written, gateways) => {
    const found = writtenGateways(written).map(({ address, prefixLength }) => `${address}/${prefixLength}`);
    expect(found).toEqual(gateways);
  });

  test('on LANs of the nodes: of macvlan alone, and none that a machine or a Pod can have', () => {
    const definitions = [
      { type: 'macvlan', ipam: { ...ranged, gateway: '192.168.9.1', exclude: ['192.168.9.1'] } },
      {
        ...{ type: 'macvlan', master: 'eth1' },
        ipam: { ...ranged, range: '10.7.0.0/16', gateway: '10.7.0.1', exclude: ['10.7.0.0/24'] },
      },
      { type: 'bridge', isGateway: true, ipam: { ...ranged, gateway: '192.168.9.2' } },
      {
        type: 'egress-router',
        ...{ interfaceArgs: { master: 'eth2' }, ip: { addresses: ['192.0.2.9/24'], gateway: '192.0.2.1' } },
      },
      { type: 'macvlan', ipam: { type: 'whereabouts', range: '172.18.0.0/15', gateway: '172.18.0.1' } },
      { type: 'macvlan', ipam: { type: 'static', addresses: [{ address: 'x' }], gateway: '10.7.0.1' } },
    ].map((config) => ({ metadata: { name: 'n' }, spec: { config: JSON.stringify(config) } }));
    const found = lanGateways([...definitions, { metadata: { name: 'empty' } }], ['172.18.0.0/15']);
    expect(found.map(({ master, address }) => [master, address])).toEqual([
      [undefined, '192.168.9.1'],
      ['eth1', '10.7.0.1'],
      ['eth2', '192.0.2.1'],
    ]);
  });
});
