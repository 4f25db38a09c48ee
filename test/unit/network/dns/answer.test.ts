import { describe, expect, test } from 'vitest';
import { answer } from '../../../../src/network/dns/answer.ts';
import { ask, service, slice, textOf, zoneOf } from './fixtures.ts';

const http = { name: 'http', port: 80, protocol: 'TCP' };
const web = service('shop', 'web', {
  clusterIPs: ['10.96.0.20'],
  ports: [http, { name: 'dns', port: 53, protocol: 'UDP' }],
});
const dual = service('shop', 'dual', { clusterIPs: ['10.96.0.21', 'fd00:96::21'], ports: [http] });
const six = service('shop', 'six', { clusterIPs: ['fd00:96::22'], ports: [http] });
const db = service('shop', 'db', { clusterIPs: ['None'], ports: [http] });
const objects = {
  namespaces: ['shop', 'empty', 'kube-system'],
  services: [
    web,
    dual,
    six,
    db,
    service('shop', 'idle', { clusterIPs: ['None'], ports: [http] }),
    service('shop', 'portless', { clusterIPs: ['None'] }),
    service('shop', 'pending', { ports: [http] }),
    service('gone', 'web', { clusterIPs: ['10.96.0.30'], ports: [http] }),
    service('shop', 'out', { type: 'ExternalName', externalName: 'Example.com.' }),
    service('shop', 'in', { type: 'ExternalName', externalName: 'web.shop.svc.cluster.local' }),
    service('shop', 'twice', { type: 'ExternalName', externalName: 'in.shop.svc.cluster.local' }),
    service('shop', 'nowhere', { type: 'ExternalName', externalName: 'none.shop.svc.cluster.local' }),
    service('shop', 'itself', { type: 'ExternalName', externalName: 'itself.shop.svc.cluster.local' }),
    service('shop', 'number', { type: 'ExternalName', externalName: '192.0.2.1' }),
    service('shop', 'long', { type: 'ExternalName', externalName: `${'a'.repeat(64)}.example.com` }),
    service('kube-system', 'kube-dns', {
      clusterIPs: ['10.96.0.10'],
      ports: [{ name: 'dns', port: 53, protocol: 'UDP' }],
    }),
  ],
  slices: [
    slice('shop', 'web', [{ addresses: ['10.244.0.5'], conditions: { ready: true } }]),
    slice('shop', 'db', [
      { addresses: ['10.244.0.6'], conditions: { ready: true }, hostname: 'db-0' },
      { addresses: ['10.244.0.7'], conditions: {}, hostname: 'db-1' },
      { addresses: ['10.244.0.8'], conditions: { ready: false }, hostname: 'db-2' },
      { addresses: ['10.244.0.9'], conditions: { ready: true } },
    ]),
    slice(
      'shop',
      'db',
      [{ addresses: ['10.244.0.6'], conditions: { ready: true }, hostname: 'db-0' }],
      undefined,
      { number: 1 },
    ),
    slice(
      'shop',
      'db',
      [{ addresses: ['fd00:244::6'], conditions: { ready: true }, hostname: 'db-0' }],
      undefined,
      { addressType: 'IPv6', number: 2 },
    ),
    slice('shop', 'portless', [{ addresses: ['10.244.0.4'], conditions: { ready: true } }], []),
    slice('shop', 'idle', [{ addresses: ['10.244.0.3'], conditions: { ready: false } }]),
    slice('shop', 'fqdn', [{ addresses: ['example.org'], conditions: { ready: true } }], undefined, {
      addressType: 'FQDN',
    }),
  ],
};
const zone = zoneOf(objects);

/** Names below the apex, with the names of CoreDNS' tests (plugin/kubernetes) where it has the case. */
describe('a question below the apex', () => {
  test.each([
    ['A of a Service', 'web.shop.svc', 'A', ['10.96.0.20']],
    ['A of a Service without endpoints', 'dual.shop.svc', 'A', ['10.96.0.21']],
    ['AAAA of a dual-stack Service', 'dual.shop.svc', 'AAAA', ['fd00:96::21']],
    ['AAAA of an IPv4 Service: musl and glibc would give up the name', 'web.shop.svc', 'AAAA', 'NODATA'],
    ['A of an IPv6 Service', 'six.shop.svc', 'A', 'NODATA'],
    ['upper case', 'WEB.Shop.SVC', 'A', ['10.96.0.20']],
    ['a Service that is not there', 'none.shop.svc', 'A', 'NXDOMAIN'],
    ['AAAA of a Service that is not there', 'none.shop.svc', 'AAAA', 'NXDOMAIN'],
    ['a Service that has no cluster IP yet', 'pending.shop.svc', 'A', 'NXDOMAIN'],
    ['a Service of a namespace that is not there', 'web.gone.svc', 'A', 'NXDOMAIN'],
    ['svc', 'svc', 'A', 'NODATA'],
    ['pod, with names of Pods off', 'pod', 'A', 'NODATA'],
    ['a namespace', 'shop.svc', 'A', 'NODATA'],
    ['SRV of a namespace', 'shop.svc', 'SRV', 'NODATA'],
    ['TXT of a namespace', 'empty.svc', 'TXT', 'NODATA'],
    ['a namespace that is not there', 'gone.svc', 'A', 'NXDOMAIN'],
    ['a namespace of Pods, with names of Pods off', 'shop.pod', 'A', 'NXDOMAIN'],
    ['a group that is none', 'web.shop.service', 'A', 'NXDOMAIN'],
    ['too many labels', 'a.b.c.web.shop.svc', 'A', 'NXDOMAIN'],
    ['MX of a Service', 'web.shop.svc', 'MX', 'NODATA'],
    ['HTTPS of a Service', 'web.shop.svc', 'HTTPS', 'NODATA'],
    ['CNAME of a Service', 'web.shop.svc', 'CNAME', 'NODATA'],
    ['NS of a Service', 'web.shop.svc', 'NS', 'NODATA'],
    ['SOA of a Service', 'web.shop.svc', 'SOA', 'NODATA'],
    ['ANY of a Service', 'web.shop.svc', 'ANY', 'NODATA'],
    ['HTTPS of a Service that is not there', 'none.shop.svc', 'HTTPS', 'NXDOMAIN'],
    ['PTR of a Service', 'web.shop.svc', 'PTR', 'NODATA'],
    ['a wildcard, gone since CoreDNS 1.8', '*.shop.svc', 'A', 'NXDOMAIN'],
    ['AXFR', 'web.shop.svc', 'AXFR', 'REFUSED'],
    ['the version of the schema', 'dns-version', 'TXT', ['1.1.0']],
    ['A of the version', 'dns-version', 'A', 'NODATA'],
    ['the default name server', 'ns.dns', 'A', ['10.96.0.10']],
    ['AAAA of the default name server', 'ns.dns', 'AAAA', 'NODATA'],
  ])('%s', (_name, name, type, expected) => {
    expect(ask(zone, `${name}.cluster.local`, type)).toEqual(expected);
  });

  test.each([
    ['a named port', '_http._tcp.web.shop.svc', ['0 100 80 web.shop.svc.cluster.local']],
    ['the protocol in upper case', '_http._TCP.web.shop.svc', ['0 100 80 web.shop.svc.cluster.local']],
    ['another protocol', '_http._udp.web.shop.svc', 'NXDOMAIN'],
    ['a port that is not there', '_none._tcp.web.shop.svc', 'NXDOMAIN'],
    [
      'all ports',
      'web.shop.svc',
      ['0 50 80 web.shop.svc.cluster.local', '0 50 53 web.shop.svc.cluster.local'],
    ],
    [
      'two cluster IPs share the weight of one record',
      'dual.shop.svc',
      ['0 50 80 dual.shop.svc.cluster.local'],
    ],
    [
      'each endpoint of a headless Service once',
      '_http._tcp.db.shop.svc',
      [
        '0 20 8080 db-0.db.shop.svc.cluster.local',
        '0 20 8080 db-1.db.shop.svc.cluster.local',
        '0 20 8080 10-244-0-9.db.shop.svc.cluster.local',
      ],
    ],
    ['one endpoint', 'db-1.db.shop.svc', ['0 100 8080 db-1.db.shop.svc.cluster.local']],
    ['endpoints without ports', 'portless.shop.svc', 'NODATA'],
    ['an ExternalName', 'out.shop.svc', 'NODATA'],
    ['a port of an ExternalName', '_http._tcp.out.shop.svc', 'NXDOMAIN'],
  ])('SRV of %s', (_name, name, expected) => {
    expect(ask(zone, `${name}.cluster.local`, 'SRV')).toEqual(expected);
  });

  test.each([
    ['all ready endpoints, each address once', 'db', 'A', ['10.244.0.6', '10.244.0.7', '10.244.0.9']],
    ['the other family', 'db', 'AAAA', ['fd00:244::6']],
    ['an endpoint by its hostname', 'db-0.db', 'A', ['10.244.0.6']],
    ['an endpoint by its hostname, other family', 'db-0.db', 'AAAA', ['fd00:244::6']],
    ['an endpoint by its address', '10-244-0-9.db', 'A', ['10.244.0.9']],
    ['an endpoint with a hostname has no name of its address', '10-244-0-7.db', 'A', 'NXDOMAIN'],
    ['an endpoint that is not ready', 'db-2.db', 'A', 'NXDOMAIN'],
    ['an endpoint of a Service with a cluster IP', '10-244-0-5.web', 'A', ['10.244.0.5']],
    ['AAAA of an IPv4 endpoint', 'db-1.db', 'AAAA', 'NODATA'],
    ['no ready endpoint', 'idle', 'A', 'NXDOMAIN'],
    ['endpoints without ports', 'portless', 'A', ['10.244.0.4']],
  ])('headless: %s', (_name, name, type, expected) => {
    expect(ask(zone, `${name}.shop.svc.cluster.local`, type)).toEqual(expected);
  });
});

// Kubernetes' e2e test `dns.go`: DNS for a service with multiple EndpointSlices and no Endpoints.
test('a headless Service without a selector has the endpoints and ports of all its slices', () => {
  const ready = (address: string) => [{ addresses: [address], conditions: { ready: true } }];
  const made = zoneOf({
    namespaces: ['shop'],
    services: [service('shop', 'made', { clusterIP: 'None', clusterIPs: ['None'], ipFamilies: ['IPv4'] })],
    slices: [
      slice('shop', 'made', ready('10.244.1.1'), [{ name: 'http', protocol: 'TCP', port: 80 }]),
      slice('shop', 'made', ready('10.244.1.2'), [{ name: 'https', protocol: 'TCP', port: 443 }], {
        number: 1,
      }),
    ],
  });
  const name = 'made.shop.svc.cluster.local';
  expect(ask(made, name, 'A')).toEqual(['10.244.1.1', '10.244.1.2']);
  expect(ask(made, `_http._tcp.${name}`, 'SRV')).toEqual([`0 100 80 10-244-1-1.${name}`]);
  expect(ask(made, `_https._tcp.${name}`, 'SRV')).toEqual([`0 100 443 10-244-1-2.${name}`]);
});

test('the names of IPv6 endpoints end in no dash', () => {
  const slices = [
    slice('shop', 'db', [{ addresses: ['fd00::1', '1234::'], conditions: {} }], undefined, {
      addressType: 'IPv6',
    }),
  ];
  const six = zoneOf({ ...objects, slices });
  expect(ask(six, 'fd00--1.db.shop.svc.cluster.local', 'AAAA')).toEqual(['fd00::1']);
  expect(ask(six, '1234--0.db.shop.svc.cluster.local', 'AAAA')).toEqual(['1234::']);
});

describe('ExternalName', () => {
  test.each([
    ['CNAME alone', 'out', 'CNAME', ['example.com']],
    ['to a Service', 'in', 'A', ['web.shop.svc.cluster.local', '10.96.0.20']],
    ['to a Service without that family', 'in', 'AAAA', 'NODATA'],
    [
      'to another one',
      'twice',
      'A',
      ['in.shop.svc.cluster.local', 'web.shop.svc.cluster.local', '10.96.0.20'],
    ],
    ['to nothing', 'nowhere', 'A', 'NODATA'],
    ['to itself', 'itself', 'A', 'NODATA'],
    ['to an address', 'number', 'A', 'NXDOMAIN'],
    ['to a label of 64 letters', 'long', 'A', 'NXDOMAIN'],
    ['TXT', 'out', 'TXT', 'NODATA'],
    ['what is below', 'a.out', 'A', 'NXDOMAIN'],
  ])('%s', (_name, name, type, expected) => {
    expect(ask(zone, `${name}.shop.svc.cluster.local`, type)).toEqual(expected);
  });

  test('a target outside is for an upstream, the alias comes before it', () => {
    const found = answer(zone, { name: 'out.shop.svc.cluster.local', type: 'AAAA' });
    expect(found?.outsideTarget).toBe('example.com');
    expect(found?.answers.map(textOf)).toEqual(['out.shop.svc.cluster.local CNAME example.com']);
  });
});

describe('names of addresses', () => {
  test.each([
    ['a cluster IP', '20.0.96.10.in-addr.arpa', ['web.shop.svc.cluster.local']],
    ['upper case', '20.0.96.10.IN-ADDR.ARPA', ['web.shop.svc.cluster.local']],
    ['an endpoint with a hostname', '7.0.244.10.in-addr.arpa', ['db-1.db.shop.svc.cluster.local']],
    ['an endpoint without one', '5.0.244.10.in-addr.arpa', ['10-244-0-5.web.shop.svc.cluster.local']],
    ['an endpoint that is not ready', '8.0.244.10.in-addr.arpa', 'forwarded'],
    ['an address outside', '1.2.0.192.in-addr.arpa', 'forwarded'],
    ['a network', '96.10.in-addr.arpa', 'forwarded'],
    ['no address', 'x.0.96.10.in-addr.arpa', 'forwarded'],
    ['zeros in front', '020.0.96.10.in-addr.arpa', 'forwarded'],
    ['an IPv6 cluster IP', `1.2.${'0.'.repeat(22)}6.9.0.0.0.0.d.f.ip6.arpa`, ['dual.shop.svc.cluster.local']],
    ['part of an IPv6 address', '6.9.0.0.0.0.d.f.ip6.arpa', 'forwarded'],
  ])('%s', (_name, name, expected) => {
    expect(ask(zone, name, 'PTR')).toEqual(expected);
  });

  test('another type of a known one is not forwarded', () => {
    expect(ask(zone, '20.0.96.10.in-addr.arpa', 'A')).toBe('NODATA');
  });

  test('an address of two Services has two names', () => {
    const endpoint = { addresses: ['10.244.0.6'], conditions: {}, hostname: 'db-0' };
    const two = zoneOf({
      ...objects,
      slices: [slice('shop', 'db', [endpoint]), slice('shop', 'web', [endpoint])],
    });
    expect(ask(two, '6.0.244.10.in-addr.arpa', 'PTR')).toEqual([
      'db-0.db.shop.svc.cluster.local',
      'db-0.web.shop.svc.cluster.local',
    ]);
  });
});

describe('names of Pods', () => {
  const pod = (namespace: string, name: string, ip: string) => ({
    metadata: { namespace, name },
    spec: {},
    status: { podIPs: [{ ip }] },
  });
  const pods = [pod('shop', 'a', '10.244.0.5'), pod('empty', 'b', 'fd00:0::7')];
  test.each([
    ['insecure', 'any address', '192-0-2-1.shop.pod', 'A', ['192.0.2.1']],
    ['insecure', 'IPv6', 'fd00--1.shop.pod', 'AAAA', ['fd00::1']],
    ['insecure', 'the other family', '192-0-2-1.shop.pod', 'AAAA', 'NODATA'],
    ['insecure', 'a namespace that is not there', '192-0-2-1.gone.pod', 'A', 'NXDOMAIN'],
    ['insecure', 'no address', 'web.shop.pod', 'A', 'NXDOMAIN'],
    ['insecure', 'a number too large', '192-0-2-256.shop.pod', 'A', 'NXDOMAIN'],
    ['insecure', 'what is below', 'a.192-0-2-1.shop.pod', 'A', 'NXDOMAIN'],
    ['insecure', 'the namespace', 'shop.pod', 'A', 'NODATA'],
    ['verified', 'a Pod', '10-244-0-5.shop.pod', 'A', ['10.244.0.5']],
    ['verified', 'a Pod of another namespace', '10-244-0-5.empty.pod', 'A', 'NXDOMAIN'],
    ['verified', 'an IPv6 Pod', 'fd00--7.empty.pod', 'AAAA', ['fd00::7']],
    ['verified', 'no Pod', '10-244-0-9.shop.pod', 'A', 'NXDOMAIN'],
    ['disabled', 'a Pod', '10-244-0-5.shop.pod', 'A', 'NXDOMAIN'],
  ] as const)('%s: %s', (mode, _name, name, type, expected) => {
    const named = zoneOf({ ...objects, pods }, { pods: mode });
    expect(ask(named, `${name}.cluster.local`, type)).toEqual(expected);
  });

  test('a Pod that is gone has none', () => {
    const named = zoneOf({ ...objects, pods }, { pods: 'verified' });
    named.setPod('shop/a', undefined);
    expect(ask(named, '10-244-0-5.shop.pod.cluster.local', 'A')).toBe('NXDOMAIN');
  });
});

describe('the apex', () => {
  test('has no addresses', () => {
    expect(ask(zone, 'cluster.local', 'A')).toBe('NODATA');
  });
  test('has the SOA record of CoreDNS', () => {
    expect(ask(zone, 'cluster.local', 'SOA')).toEqual([
      'ns.dns.cluster.local hostmaster.cluster.local 1700000000 7200 1800 86400 5',
    ]);
  });
  test('has the Service of the DNS as its name server, with its address', () => {
    const found = answer(zone, { name: 'cluster.local', type: 'NS' });
    expect(found?.answers.map(textOf)).toEqual(['cluster.local NS kube-dns.kube-system.svc.cluster.local']);
    expect(found?.additionals.map(textOf)).toEqual(['kube-dns.kube-system.svc.cluster.local A 10.96.0.10']);
  });
  test('has the default name server without that Service', () => {
    expect(ask(zoneOf({}), 'cluster.local', 'NS')).toEqual(['ns.dns.cluster.local']);
    expect(ask(zoneOf({}), 'ns.dns.cluster.local', 'A')).toBe('NODATA');
  });
});

test.each(['example.com', 'local', '', 'xcluster.local', 'cluster.local.example.com'])(
  '"%s" is not of the cluster',
  (name) => {
    expect(ask(zone, name, 'A')).toBe('forwarded');
  },
);

test.each([
  ['NODATA', 'Shop.svc.Cluster.Local'],
  ['NXDOMAIN', 'none.Shop.svc.Cluster.Local'],
])(
  '%s carries the SOA record of the zone in the case of the question, whose TTL bounds negative caching',
  (_, name) => {
    const found = answer(zoneOf(objects, { ttl: 30 }), { name, type: 'A' });
    expect(found?.authorities).toMatchObject([{ name: 'Cluster.Local', type: 'SOA', ttl: 30, minimum: 30 }]);
  },
);

test('SRV records bring the addresses of their targets, each once', () => {
  const found = answer(zone, { name: '_http._tcp.db.shop.svc.cluster.local', type: 'SRV' });
  expect(found?.additionals.map(textOf)).toEqual([
    'db-0.db.shop.svc.cluster.local A 10.244.0.6',
    'db-1.db.shop.svc.cluster.local A 10.244.0.7',
    '10-244-0-9.db.shop.svc.cluster.local A 10.244.0.9',
    'db-0.db.shop.svc.cluster.local AAAA fd00:244::6',
  ]);
});

test('the TTL is that of the options, 5 or 30 s by the Corefiles; that of the version is fixed', () => {
  const named = zoneOf(objects, { ttl: 30 });
  expect(answer(named, { name: 'web.shop.svc.cluster.local', type: 'A' })?.answers).toMatchObject([
    { ttl: 30 },
  ]);
  expect(answer(named, { name: 'dns-version.cluster.local', type: 'TXT' })?.answers).toMatchObject([
    { ttl: 28_800 },
  ]);
});

test('another domain of the cluster', () => {
  const named = zoneOf(objects, { domain: 'k8s.example.com' });
  expect(ask(named, 'web.shop.svc.k8s.example.com', 'A')).toEqual(['10.96.0.20']);
  expect(ask(named, 'web.shop.svc.cluster.local', 'A')).toBe('forwarded');
});
