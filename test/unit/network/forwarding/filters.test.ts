import { describe, expect, it } from 'vitest';
import {
  serviceIP,
  endpoint,
  ingress,
  ips,
  local,
  onlyPort,
  options,
  plan,
  service,
  slice,
} from './fixtures.ts';

const proxyNameLabel = 'service.kubernetes.io/service-proxy-name';
const headlessLabel = 'service.kubernetes.io/headless';
const one = [slice([endpoint('10.1.1.1')])];

describe('F1: what another proxy carries', () => {
  it.each(['other', ''])('ignores a Service with service-proxy-name %j', (value) => {
    expect(plan(service({}, { labels: { [proxyNameLabel]: value } }), one).services.size).toBe(0);
  });

  it.each([proxyNameLabel, headlessLabel])('ignores slices with the label %s', (label) => {
    const planned = plan(service(), [slice([endpoint('10.1.1.1')], {}, { labels: { [label]: '' } })]);
    expect(onlyPort(planned).clusterEndpoints).toEqual([]);
  });
});

describe('F2: Services that are not proxied', () => {
  it.each([
    ['an empty cluster IP', { clusterIP: '', clusterIPs: [] }],
    ['no cluster IP', { clusterIP: 'None', clusterIPs: ['None'] }],
    ['type ExternalName, though it has a cluster IP', { type: 'ExternalName' }],
  ])('skips %s', (_, spec) => {
    expect(plan(service(spec), one).services.size).toBe(0);
  });
});

describe('F3: each family for itself', () => {
  const dual = service(
    {
      type: 'LoadBalancer',
      clusterIPs: [serviceIP, 'fd00:96::10'],
      externalIPs: ['2001:db8:e::1', '203.0.113.9'],
      loadBalancerSourceRanges: ['198.51.100.0/24', '2001:db8:c::/64'],
    },
    { status: ingress('203.0.113.20', '2001:db8:f::20') },
  );
  const slices = [
    slice([endpoint('10.1.1.1')]),
    slice([endpoint('fd00:1::1')], { addressType: 'IPv6' }, { name: 'web-2' }),
    slice([endpoint('web.example')], { addressType: 'FQDN' }, { name: 'web-3' }),
  ];

  it('sorts addresses, ranges and slices into two ports', () => {
    const ports = plan(dual, slices).services.get('default/web')?.ports ?? [];
    expect(
      ports.map(({ family, destinations, clusterEndpoints }) => [
        family,
        destinations.map(({ kind, address, sourceRanges }) => [kind, address, sourceRanges]),
        ips(clusterEndpoints),
      ]),
    ).toEqual([
      [
        'IPv4',
        [
          ['clusterIP', serviceIP, undefined],
          ['loadBalancerIP', '203.0.113.20', ['198.51.100.0/24']],
          ['externalIP', '203.0.113.9', undefined],
        ],
        ['10.1.1.1'],
      ],
      [
        'IPv6',
        [
          ['clusterIP', 'fd00:96::10', undefined],
          ['loadBalancerIP', '2001:db8:f::20', ['2001:db8:c::/64']],
          ['externalIP', '2001:db8:e::1', undefined],
        ],
        ['fd00:1::1'],
      ],
    ]);
  });

  it('plans only the families that the node serves', () => {
    expect(onlyPort(plan(dual, slices, { families: ['IPv6'] })).family).toBe('IPv6');
  });

  it('plans nothing in a family in which the Service has no cluster IP', () => {
    const single = service({ externalIPs: ['2001:db8:e::1'] });
    expect([...plan(single, slices).destinations.keys()]).toEqual([`${serviceIP} TCP 80`]);
  });

  it('reads clusterIP where there are no clusterIPs', () => {
    const old = service();
    delete old.spec.clusterIPs;
    expect(onlyPort(plan(old, one)).clusterIP).toBe(serviceIP);
  });
});

describe('F4: how slices and Services join', () => {
  it('joins by the name and protocol of a port, not by its number', () => {
    const planned = plan(service(), [
      slice([endpoint('10.1.1.1')], { ports: [{ name: 'http', protocol: 'TCP', port: 9000 }] }),
      slice(
        [endpoint('10.1.1.2')],
        { ports: [{ name: 'https', protocol: 'TCP', port: 80 }] },
        { name: 'web-2' },
      ),
      slice(
        [endpoint('10.1.1.3')],
        { ports: [{ name: 'http', protocol: 'UDP', port: 80 }] },
        { name: 'web-3' },
      ),
    ]);
    expect(onlyPort(planned).clusterEndpoints).toEqual([{ address: '10.1.1.1', port: 9000, isLocal: false }]);
  });

  it('joins ports without a name by the empty one', () => {
    const unnamed = service({ ports: [{ port: 80 }] });
    const planned = plan(unnamed, [slice([endpoint('10.1.1.1')], { ports: [{ name: '', port: 8080 }] })]);
    expect(ips(onlyPort(planned).clusterEndpoints)).toEqual(['10.1.1.1']);
  });

  it.each([{ port: 8080 }, { name: 'http' }, { name: 'http', port: 0 }])('ignores slice port %j', (port) => {
    const planned = plan(service(), [slice([endpoint('10.1.1.1')], { ports: [port] })]);
    expect(onlyPort(planned).clusterEndpoints).toEqual([]);
    expect(planned.services.get('default/web')?.problems).toMatchObject([
      { reason: 'InvalidPort', kind: 'EndpointSlice', key: 'default/web-1' },
    ]);
  });

  it('merges slices whatever their order, each endpoint once, and tells the ports of an address apart', () => {
    const slices = [
      slice([endpoint('10.1.1.2'), endpoint('10.1.1.1')], {}, { name: 'b' }),
      slice([endpoint('10.1.1.1'), endpoint('10.1.1.3')], {}, { name: 'a' }),
      slice([endpoint('10.1.1.1')], { ports: [{ name: 'http', port: 9090 }] }, { name: 'c' }),
    ];
    const planned = plan(service(), slices);
    expect(onlyPort(planned).clusterEndpoints.map(({ address, port }) => `${address}:${port}`)).toEqual([
      '10.1.1.1:8080',
      '10.1.1.1:9090',
      '10.1.1.2:8080',
      '10.1.1.3:8080',
    ]);
    expect(plan(service(), slices.toReversed()).services).toEqual(planned.services);
    expect(planned.services.get('default/web')?.problems).toEqual([]);
  });

  const readyHere = local('10.1.1.1');
  const terminatingThere = endpoint('10.1.1.1', {
    conditions: { ready: false, serving: true, terminating: true },
  });
  it.each([
    ['a later entry that does not terminate replaces', terminatingThere, readyHere, true],
    ['a later entry that terminates does not', readyHere, terminatingThere, true],
    ['of two that do not terminate the later is believed', readyHere, endpoint('10.1.1.1'), false],
  ])('%s', (_, first, second, isLocal) => {
    const planned = plan(service(), [slice([second], {}, { name: 'b' }), slice([first], {}, { name: 'a' })]);
    expect(onlyPort(planned).clusterEndpoints).toEqual([{ address: '10.1.1.1', port: 8080, isLocal }]);
  });

  it('reads only the first address of an endpoint', () => {
    const planned = plan(service(), [slice([endpoint('10.1.1.1', { addresses: ['10.1.1.1', '10.1.1.2'] })])]);
    expect(ips(onlyPort(planned).clusterEndpoints)).toEqual(['10.1.1.1']);
  });
});

it('F5: an endpoint is local by the name of its node, and never without one', () => {
  const { nodeName: _, ...homeless } = endpoint('10.1.1.2');
  const planned = plan(service(), [slice([local('10.1.1.1'), homeless, endpoint('10.1.1.3')])]);
  expect(onlyPort(planned).clusterEndpoints.map((one) => one.isLocal)).toEqual([true, false, false]);
});

describe('F6: conditions', () => {
  it('takes absent conditions for ready, serving and not terminating', () => {
    const planned = plan(service(), [slice([endpoint('10.1.1.1', { conditions: {} })])]);
    expect(ips(onlyPort(planned).clusterEndpoints)).toEqual(['10.1.1.1']);
  });

  it('takes an absent serving for true where the endpoint is not ready and terminates', () => {
    const draining = endpoint('10.1.1.1', { conditions: { ready: false, terminating: true } });
    expect(ips(onlyPort(plan(service(), [slice([draining])])).clusterEndpoints)).toEqual(['10.1.1.1']);
  });

  it('takes ready: true of an endpoint that does not serve: so addresses that are not ready are published', () => {
    const published = endpoint('10.1.1.1', { conditions: { ready: true, serving: false } });
    expect(ips(onlyPort(plan(service(), [slice([published])])).clusterEndpoints)).toEqual(['10.1.1.1']);
  });
});

it('F7: external IPs have no effect where they are not allowed', () => {
  const planned = plan(service({ externalIPs: ['203.0.113.9'] }), one, { allowExternalIPs: false });
  expect(onlyPort(planned).destinations.map(({ kind }) => kind)).toEqual(['clusterIP']);
  expect(options().allowExternalIPs).toBe(true);
});

describe('F8: sloppy addresses', () => {
  it('reads leading zeros as decimal, trims source ranges, and writes all canonically', () => {
    const sloppy = service(
      {
        type: 'LoadBalancer',
        clusterIP: '10.096.000.010',
        clusterIPs: ['10.096.000.010'],
        externalIPs: ['203.000.113.009'],
        loadBalancerSourceRanges: [' 198.051.100.000/24 '],
      },
      { status: ingress('203.0.113.020') },
    );
    const port = onlyPort(plan(sloppy, [slice([endpoint('010.001.001.001')])]));
    expect(port.destinations.map(({ address, sourceRanges }) => [address, sourceRanges])).toEqual([
      ['10.96.0.10', undefined],
      ['203.0.113.20', ['198.51.100.0/24']],
      ['203.0.113.9', undefined],
    ]);
    expect(ips(port.clusterEndpoints)).toEqual(['10.1.1.1']);
  });

  it('skips what cannot be read and names each field', () => {
    const broken = service(
      {
        type: 'LoadBalancer',
        externalIPs: ['203.0.113.9', 'nonsense'],
        loadBalancerSourceRanges: ['198.51.100.0/24', '1.2.3.4'],
      },
      { status: ingress('203.0.113.20') },
    );
    const planned = plan(broken, [slice([endpoint('10.1.1'), endpoint('10.1.1.1')])]);
    expect(ips(onlyPort(planned).clusterEndpoints)).toEqual(['10.1.1.1']);
    expect(onlyPort(planned).destinations).toMatchObject([
      { kind: 'clusterIP' },
      { kind: 'loadBalancerIP', sourceRanges: ['198.51.100.0/24'] },
      { kind: 'externalIP', address: '203.0.113.9' },
    ]);
    expect(planned.services.get('default/web')?.problems.map(({ reason, key }) => [reason, key])).toEqual([
      ['InvalidAddress', 'default/web'],
      ['InvalidAddress', 'default/web-1'],
    ]);
  });
});
