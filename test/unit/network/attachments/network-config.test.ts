import { describe, expect, it } from 'vitest';
import { announcedPools } from '../../../../src/network/announcing/assigned-addresses.ts';
import type { Service } from '../../../../src/objects/types/core.generated.ts';
import {
  lanGateways,
  ownerAmongServices,
  readNetworkConfig,
  type NetworkConfig,
} from '../../../../src/network/attachments/network-config.ts';

function read(config: unknown): NetworkConfig {
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  return readNetworkConfig({ metadata: { name: 'own', namespace: 'shop' }, spec: { config: text } });
}

describe('a configuration', () => {
  it('of one plugin', () => {
    const config = read({
      ...{ cniVersion: '0.3.1', name: 'mynet', type: 'macvlan', master: 'eth1', mode: 'bridge', mtu: 1400 },
      ipam: { type: 'whereabouts', range: '192.168.1.5-192.168.1.25/24', gateway: '192.168.10.1' },
    });
    expect(config).toMatchObject({ name: 'mynet', chained: [] });
    expect(config.plugin).toMatchObject({ type: 'macvlan', master: 'eth1', mode: 'bridge', mtu: 1400 });
    expect(config.plugin.ipam).toMatchObject({ type: 'whereabouts', overlapping: true, networkName: '' });
  });

  it('of a list', () => {
    const config = read({
      plugins: [{ type: 'bridge', bridge: 'br1', vlan: 7, isGateway: true }, { type: 'tuning' }],
    });
    // Without a name it is that of the NetworkAttachmentDefinition.
    expect(config).toMatchObject({ name: 'own', chained: ['tuning'] });
    expect(config.plugin).toMatchObject({ type: 'bridge', bridge: 'br1', vlan: 7, isGateway: true });
    expect(config.plugin.ipam).toEqual({ type: 'none' });
    expect(read({ type: 'bridge', name: '' }).name).toBe('own');
  });

  it.each([
    ['', 'No networks found in /etc/cni/multus/net.d'],
    ['*** no JSON ***', 'failed to unmarshal Spec.Config'],
    ['[]', 'failed to unmarshal Spec.Config'],
    ['{}', "must have the 'type' or 'plugin' field"],
    ['{"plugins":[]}', "must have the 'type' or 'plugin' field"],
    ['{"plugins":[{"name":"a"}]}', "a plugin delegate must have the 'type' field"],
    ['{"plugins":["a"]}', "a plugin delegate must have the 'type' field"],
    ['{"type":"macvlan","ipam":"static"}', 'cannot unmarshal ipam'],
  ])('refuses %s', (text, message) => {
    expect(() => read(text)).toThrow(message);
  });
});

describe('the plugin egress-router', () => {
  const router = (ip: object): NetworkConfig => read({ type: 'egress-router', ip });

  it('has its address and its default route beside ipam', () => {
    expect(router({ addresses: ['192.0.2.10/24'], gateway: '192.0.2.1' }).plugin.ipam).toEqual({
      type: 'static',
      addresses: [{ family: 'IPv4', address: '192.0.2.10', prefixLength: 24 }],
      routes: [{ destination: '0.0.0.0/0', gateway: '192.0.2.1' }],
    });
    expect(() => router({ addresses: [''], gateway: '' })).toThrow('unable to parse IP address ""');
  });
});

describe('ipam', () => {
  const of = (ipam: unknown): NetworkConfig['plugin']['ipam'] => read({ type: 'macvlan', ipam }).plugin.ipam;

  it('static', () => {
    const routes = [{ dst: '0.0.0.0/0', gw: '10.1.2.1' }, { dst: '10.9.0.7/16' }];
    expect(of({ type: 'static', addresses: [{ address: '10.1.2.3/24' }], routes })).toEqual({
      type: 'static',
      addresses: [{ family: 'IPv4', address: '10.1.2.3', prefixLength: 24 }],
      routes: [{ destination: '0.0.0.0/0', gateway: '10.1.2.1' }, { destination: '10.9.0.0/16' }],
    });
    expect(() => of({ type: 'static', addresses: [{ address: '10.1.2.3' }] })).toThrow('CIDR notation');
    expect(() => of({ type: 'static', routes: [{ dst: 'x' }] })).toThrow('invalid CIDR address: x');
    expect(() => of({ type: 'static', routes: [{ dst: '::/0', gw: 'x' }] })).toThrow('invalid IP address: x');
  });

  it('host-local', () => {
    const set = [{ subnet: '10.1.0.0/24', rangeStart: '10.1.0.9', gateway: '10.1.0.254' }];
    const found = of({ type: 'host-local', subnet: 'fd00::/64', ranges: [set] });
    if (found.type !== 'host-local') throw new Error(found.type);
    const [own, written] = found.sets;
    // The last address of an IPv6 network is given, that of an IPv4 network is not.
    expect(own?.[0]).toMatchObject({ prefixLength: 64, gateway: (0xfd00n << 112n) | 1n });
    expect(own?.[0]?.usable.last).toBe((0xfd00n << 112n) | (2n ** 64n - 1n));
    expect(written?.[0]?.usable).toMatchObject({ first: 0x0a010009n, last: 0x0a0100fen });
    expect(() => of({ type: 'host-local' })).toThrow('no IP ranges specified');
    expect(() => of({ type: 'host-local', subnet: '10.0.0.0/31' })).toThrow('too small to allocate from');
    expect(() => of({ type: 'host-local', subnet: '10.0.0.5/24' })).toThrow('host bits set');
    expect(() => of({ type: 'host-local', ranges: [[]] })).toThrow('empty range set');
    expect(() => of({ type: 'host-local', subnet: '10.0.0.0/24', rangeEnd: '10.0.1.1' })).toThrow(
      'not in network',
    );
    const mixed = [[{ subnet: '10.0.0.0/24' }, { subnet: 'fd00::/64' }]];
    expect(() => of({ type: 'host-local', ranges: mixed })).toThrow('mixed address families');
  });

  it('whereabouts: the range at the top comes before the list', () => {
    const found = of({
      ...{ type: 'whereabouts', range: '10.0.0.0/24', range_start: '10.0.0.9', exclude: ['10.0.0.10'] },
      ...{ ipRanges: [{ range: 'fd00::/64' }], enable_overlapping_ranges: false, network_name: 'n' },
    });
    if (found.type !== 'whereabouts') throw new Error(found.type);
    expect(found).toMatchObject({ overlapping: false, networkName: 'n' });
    expect(found.ranges.map(({ network }) => network.text)).toEqual(['10.0.0.0/24', 'fd00::/64']);
    expect(found.ranges[0]?.usable.first).toBe(0x0a000009n);
    expect(() => of({ type: 'whereabouts', range: '10.0.0.0/31' })).toThrow('no usable IP addresses');
    expect(() => of({ type: 'whereabouts', range: '10.0.0.0/24', gateway: 'x' })).toThrow('gateway IP: x');
    expect(() => of({ type: 'whereabouts', range: '10.0.0.0/8', node_slice_size: '/24' })).toThrow(
      'node slices',
    );
  });

  it('others', () => {
    expect(of({ type: 'dhcp' })).toEqual({ type: 'other', plugin: 'dhcp' });
    expect(of({})).toEqual({ type: 'none' });
  });
});

describe('the gateways on the LAN that outside has', () => {
  const gateways = (...ipams: readonly object[]): readonly string[] =>
    lanGateways(
      ipams.map((ipam, index) => ({
        metadata: { name: `n${index}`, namespace: 'shop' },
        spec: { config: JSON.stringify({ type: 'macvlan', ipam }) },
      })),
      ['10.96.0.0/16'],
    ).map(({ address }) => address);
  const whereabouts = { type: 'whereabouts', range: '192.168.30.0/24', gateway: '192.168.30.1' };

  it.each<readonly [string, readonly object[], readonly string[]]>([
    ['are not those that whereabouts can give to a Pod', [whereabouts], []],
    ['are those that it leaves out', [{ ...whereabouts, exclude: ['192.168.30.1/32'] }], ['192.168.30.1']],
    ['are those before its start', [{ ...whereabouts, range_start: '192.168.30.9' }], ['192.168.30.1']],
    [
      'are not those that another network gives',
      [
        { type: 'static', addresses: [{ address: '192.168.30.5/24', gateway: '192.168.30.1' }] },
        { type: 'whereabouts', range: '192.168.30.0/24' },
      ],
      [],
    ],
    [
      'are not a Pod’s own address',
      [
        { type: 'static', addresses: [{ address: '192.168.30.5/24', gateway: '192.168.30.1' }] },
        { type: 'static', addresses: [{ address: '192.168.30.1/24' }] },
      ],
      [],
    ],
    [
      'are not those of Services',
      [{ type: 'static', addresses: [{ address: '10.96.0.5/24', gateway: '10.96.0.1' }] }],
      [],
    ],
  ])('%s', (_, ipams, expected) => {
    expect(gateways(...ipams)).toEqual(expected);
  });
});

describe('the owner of a gateway among Services', () => {
  const pools = announcedPools([
    {
      metadata: { name: 'home' },
      spec: { addresses: ['192.168.9.0/24', 'fd00:9::1-fd00:9::f'], exclude: ['192.168.9.1'] },
    },
  ]);
  const service = (spec: object, ip?: string): Service => ({
    metadata: { namespace: 'shop', name: 'web' },
    spec: { type: 'LoadBalancer', ...spec },
    status: { loadBalancer: ip === undefined ? {} : { ingress: [{ ip }] } },
  });

  it.each<readonly [string, string, Service | undefined, string | undefined]>([
    ['192.168.9.2', 'in a pool', undefined, 'the AddressPool home'],
    ['fd00:9::2', 'in a pool of IPv6', undefined, 'the AddressPool home'],
    ['192.168.9.1', 'that a pool excludes', undefined, undefined],
    ['192.168.8.1', 'of no pool', service({}, '192.168.7.1'), undefined],
    // An address outlives its pool (`shrinkPolicy: Retain`), and may be another load balancer's.
    ['192.168.8.1', 'that a Service has', service({}, '192.168.8.1'), 'the Service shop/web'],
    ['192.168.8.1', 'of externalIPs', service({ externalIPs: ['192.168.8.1'] }), 'the Service shop/web'],
  ])('%s, %s', (address, _, other, owner) => {
    const family = address.includes(':') ? 'IPv6' : 'IPv4';
    const gateway = { family, address, prefixLength: 24 } as const;
    expect(ownerAmongServices(gateway, pools, other === undefined ? [] : [other])).toBe(owner);
  });
});
