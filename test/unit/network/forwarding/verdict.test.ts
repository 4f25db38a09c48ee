import { describe, expect, it } from 'vitest';
import type { Endpoint as SliceEndpoint } from '../../../../src/objects/types/discovery.generated.ts';
import type { ServiceSpec } from '../../../../src/objects/types/core.generated.ts';
import { sourceOf, verdictFor } from '../../../../src/network/forwarding/verdict.ts';
import {
  cidr,
  outsideClient,
  serviceIP,
  endpoint,
  flow,
  ingress,
  local,
  ownNodeIP,
  node,
  onlyPort,
  plan,
  localPodIP,
  service,
  slice,
  terminatingEndpoint,
  told,
} from './fixtures.ts';

const loadBalancerIP = '203.0.113.20';
const externalIP = '203.0.113.9';
const localIP = '10.1.0.1';
const remoteIP = '10.1.1.1';

/** A Service that is reached in all four ways. */
function reached(spec: Partial<ServiceSpec> = {}) {
  return service(
    {
      type: 'LoadBalancer',
      externalIPs: [externalIP],
      ports: [{ name: 'http', protocol: 'TCP', port: 80, nodePort: 30080 }],
      ...spec,
    },
    { status: ingress(loadBalancerIP) },
  );
}

const allDestinations = [
  ['cluster IP', serviceIP, 80],
  ['load balancer IP', loadBalancerIP, 80],
  ['external IP', externalIP, 80],
  ['node port', ownNodeIP, 30080],
] as const;
const externalDestinations = allDestinations.slice(1);
const sourceIPs = [localPodIP, ownNodeIP, outsideClient];

const both = [local(localIP), endpoint(remoteIP)];
const remote = [endpoint(remoteIP)];

interface Row {
  readonly name: string;
  readonly spec?: Partial<ServiceSpec>;
  readonly endpoints: SliceEndpoint[];
  readonly masqueradeAll?: boolean;
  readonly detectsPods?: boolean;
  /** What happens from a Pod, from the node, and from outside. */
  readonly internal: [string, string, string];
  readonly external: [string, string, string];
}

const everywhere = (text: string): [string, string, string] => [text, text, text];
const all = `${localIP}:8080, ${remoteIP}:8080`;
const masqueraded = `${localIP}:8080*, ${remoteIP}:8080*`;

const rows: Row[] = [
  {
    name: 'D1, D2, D6, D7: both policies Cluster',
    endpoints: both,
    internal: [all, masqueraded, masqueraded],
    external: everywhere(masqueraded),
  },
  {
    name: 'D7: masqueradeAll',
    endpoints: both,
    masqueradeAll: true,
    internal: everywhere(masqueraded),
    external: everywhere(masqueraded),
  },
  {
    name: 'D7: masqueradeAll where Pods cannot be recognised',
    endpoints: both,
    masqueradeAll: true,
    detectsPods: false,
    internal: everywhere(masqueraded),
    external: everywhere(masqueraded),
  },
  {
    name: 'D7: where Pods cannot be recognised, traffic to the cluster IP is not masqueraded',
    endpoints: both,
    detectsPods: false,
    internal: everywhere(all),
    external: everywhere(masqueraded),
  },
  {
    name: 'D1: internal policy Local',
    spec: { internalTrafficPolicy: 'Local' },
    endpoints: both,
    internal: [`${localIP}:8080`, `${localIP}:8080*`, `${localIP}:8080*`],
    external: everywhere(masqueraded),
  },
  {
    name: 'D4: internal policy Local without a local endpoint',
    spec: { internalTrafficPolicy: 'Local' },
    endpoints: remote,
    internal: everywhere('drop NoLocalEndpoints'),
    external: everywhere(`${remoteIP}:8080*`),
  },
  {
    name: 'D5, D6: external policy Local, with Pods and the node passing it by',
    spec: { externalTrafficPolicy: 'Local' },
    endpoints: both,
    internal: [all, masqueraded, masqueraded],
    external: [all, masqueraded, `${localIP}:8080`],
  },
  {
    name: 'D4, D5: external policy Local without a local endpoint drops only what comes from outside',
    spec: { externalTrafficPolicy: 'Local' },
    endpoints: remote,
    internal: [`${remoteIP}:8080`, `${remoteIP}:8080*`, `${remoteIP}:8080*`],
    external: [`${remoteIP}:8080`, `${remoteIP}:8080*`, 'drop NoLocalEndpoints'],
  },
  {
    name: 'D5: external policy Local where Pods cannot be recognised',
    spec: { externalTrafficPolicy: 'Local' },
    endpoints: both,
    detectsPods: false,
    internal: everywhere(all),
    external: [`${localIP}:8080`, masqueraded, `${localIP}:8080`],
  },
  {
    name: 'both policies Local, the local endpoint terminates',
    spec: { internalTrafficPolicy: 'Local', externalTrafficPolicy: 'Local' },
    endpoints: [local(localIP, { conditions: terminatingEndpoint }), endpoint(remoteIP)],
    internal: [`${localIP}:8080`, `${localIP}:8080*`, `${localIP}:8080*`],
    external: [`${remoteIP}:8080`, `${remoteIP}:8080*`, `${localIP}:8080`],
  },
  ...(['Cluster', 'Local'] as const).map((policy) => ({
    name: `D3: no endpoints, policies ${policy}`,
    spec: { internalTrafficPolicy: policy, externalTrafficPolicy: policy },
    endpoints: [],
    internal: everywhere('reject NoEndpoints'),
    external: everywhere('reject NoEndpoints'),
  })),
];

describe.each(rows)('$name', ({ spec, endpoints, masqueradeAll, detectsPods, internal, external }) => {
  const planned = plan(reached(spec), [slice(endpoints)], {
    masqueradeAll: masqueradeAll ?? false,
    ...(detectsPods === false ? { podDetection: undefined } : {}),
  });

  it('to the cluster IP', () => {
    expect(sourceIPs.map((from) => flow(planned, from, serviceIP, 80))).toEqual(internal);
  });

  it.each(externalDestinations)('to the %s', (_, to, port) => {
    expect(sourceIPs.map((from) => flow(planned, from, to, port))).toEqual(external);
  });
});

it('D6: reads the external policy only of Services that are reached from outside by their type', () => {
  const internal = service({ externalTrafficPolicy: 'Local' }, { status: ingress(loadBalancerIP) });
  expect(flow(plan(internal, [slice(both)]), outsideClient, loadBalancerIP, 80)).toBe(masqueraded);
});

describe('D5: who is a Pod', () => {
  it('takes an address of the node in the CIDR of Pods for a Pod', () => {
    const bridge = { ...node(), interfaceAddresses: [...node().interfaceAddresses] };
    const planned = plan(
      reached({ externalTrafficPolicy: 'Local' }),
      [slice(both)],
      {
        podDetection: { by: 'cidr', cidrs: [cidr('10.1.0.0/16'), cidr('192.0.2.0/24')] },
      },
      bridge,
    );
    expect(sourceOf(planned, ownNodeIP)).toBe('pod');
    expect(flow(planned, ownNodeIP, loadBalancerIP, 80)).toBe(all);
  });

  it.each([{ by: 'bridge', interface: 'cni0' } as const, { by: 'interfacePrefix', prefix: 'veth' } as const])(
    'leaves it to the reader where the interface decides: $by',
    (podDetection) => {
      const planned = plan(reached({ externalTrafficPolicy: 'Local' }), [slice(both)], { podDetection });
      const packet = {
        sourceAddress: '172.16.0.1',
        protocol: 'TCP',
        destinationAddress: loadBalancerIP,
        destinationPort: 80,
      } as const;
      expect(told(verdictFor(planned, { ...packet, source: 'pod' }))).toBe(all);
      expect(told(verdictFor(planned, { ...packet, source: 'other' }))).toBe(`${localIP}:8080`);
    },
  );

  it('recognises no Pods in a family without a CIDR', () => {
    const planned = plan(reached(), [slice(both)], {
      podDetection: { by: 'cidr', cidrs: [cidr('fd00:1::/64')] },
    });
    expect(planned.node.families.map(({ podDetection }) => podDetection?.by)).toEqual([undefined, 'cidr']);
  });
});

it('D8: only a local endpoint that connects to itself is masqueraded', () => {
  const planned = plan(service(), [slice(both)]);
  expect(flow(planned, localIP, serviceIP, 80)).toBe(`${localIP}:8080*, ${remoteIP}:8080`);
  expect(flow(planned, remoteIP, serviceIP, 80)).toBe(all);
});

describe('D10: addresses of load balancers', () => {
  it.each([
    ['without ipMode', { ip: loadBalancerIP }, all.replaceAll('8080', '8080*')],
    ['with ipMode VIP', { ip: loadBalancerIP, ipMode: 'VIP' }, masqueraded],
    ['with ipMode Proxy', { ip: loadBalancerIP, ipMode: 'Proxy' }, 'pass'],
    ['with a hostname only', { hostname: 'lb.example' }, 'pass'],
  ])('%s', (_, one, expected) => {
    const balanced = service({ type: 'LoadBalancer' }, { status: { loadBalancer: { ingress: [one] } } });
    expect(flow(plan(balanced, [slice(both)]), outsideClient, loadBalancerIP, 80)).toBe(expected);
  });
});

describe('D11: source ranges', () => {
  const restricted = (...ranges: string[]) =>
    plan(reached({ loadBalancerSourceRanges: ranges }), [slice(both)]);

  it('drops others at the load balancer IP, and there alone', () => {
    const planned = restricted('198.51.100.0/28');
    expect(flow(planned, outsideClient, loadBalancerIP, 80)).toBe(masqueraded);
    expect(allDestinations.map(([, to, port]) => flow(planned, '198.51.100.99', to, port))).toEqual([
      masqueraded,
      'drop SourceNotAllowed',
      masqueraded,
      masqueraded,
    ]);
  });

  it('drops before it is known whether there are endpoints', () => {
    const planned = plan(reached({ loadBalancerSourceRanges: ['198.51.100.0/28'] }), []);
    expect(flow(planned, '198.51.100.99', loadBalancerIP, 80)).toBe('drop SourceNotAllowed');
    expect(flow(planned, outsideClient, loadBalancerIP, 80)).toBe('reject NoEndpoints');
  });

  it('drops Pods and the node too', () => {
    const planned = restricted('198.51.100.0/28');
    expect([localPodIP, ownNodeIP].map((from) => flow(planned, from, loadBalancerIP, 80))).toEqual([
      'drop SourceNotAllowed',
      'drop SourceNotAllowed',
    ]);
  });

  it('allows the load balancer IP where the node is allowed', () => {
    const ranges = (text: string): unknown => onlyPort(restricted(text)).destinations[1]?.sourceRanges;
    expect(ranges('192.0.2.0/24')).toEqual(['192.0.2.0/24', `${loadBalancerIP}/32`]);
    expect(ranges('198.51.100.0/24')).toEqual(['198.51.100.0/24']);
  });

  it('keeps no range that another one contains', () => {
    const port = onlyPort(restricted('10.1.0.0/16', '10.0.0.0/8', '10.1.0.0/16', '198.51.100.0/24'));
    expect(port.destinations[1]?.sourceRanges).toEqual(['10.0.0.0/8', '198.51.100.0/24']);
  });

  it.each([['0.0.0.0/0'], ['198.51.100.0/28', '0.0.0.0/0']])(
    'takes a /0 for no restriction: %j',
    (...ranges) => {
      const planned = restricted(...ranges);
      expect(onlyPort(planned).destinations[1]).toMatchObject({
        address: loadBalancerIP,
        sourceRanges: undefined,
      });
      expect(flow(planned, '198.51.100.99', loadBalancerIP, 80)).toBe(masqueraded);
      expect(planned.services.get('default/web')?.problems).toEqual([]);
    },
  );

  it('restricts no one in a family without a range, and says so', () => {
    const planned = restricted('2001:db8::/32');
    expect(flow(planned, outsideClient, loadBalancerIP, 80)).toBe(masqueraded);
    expect(planned.services.get('default/web')?.problems).toMatchObject([
      { reason: 'NoSourceRange', kind: 'Service', key: 'default/web' },
    ]);
  });

  it('keeps the ranges where the load balancer IP is an external IP too', () => {
    const planned = plan(
      reached({ externalIPs: [loadBalancerIP], loadBalancerSourceRanges: ['198.51.100.0/28'] }),
      [slice(both)],
    );
    expect(flow(planned, '198.51.100.99', loadBalancerIP, 80)).toBe('drop SourceNotAllowed');
  });
});

describe('D12: where node ports answer', () => {
  const answers = (nodePortAddresses: 'primary' | string[]): string[] => {
    const planned = plan(reached(), [slice(both)], {
      nodePortAddresses:
        nodePortAddresses === 'primary' ? 'primary' : nodePortAddresses.map((text) => cidr(text)),
    });
    return [ownNodeIP, '203.0.113.1', '127.0.0.1', outsideClient].filter(
      (to) => flow(planned, outsideClient, to, 30080) !== 'pass',
    );
  };

  it.each([
    ['the primary address', 'primary' as const, [ownNodeIP]],
    ['addresses in a CIDR', ['203.0.113.0/24'], ['203.0.113.1']],
    ['loopback never', ['127.0.0.0/8'], []],
    ['every address, by a /0', ['0.0.0.0/0', '203.0.113.0/24'], [ownNodeIP, '203.0.113.1']],
    ['every address, by CIDRs of the other family only', ['2001:db8::/32'], [ownNodeIP, '203.0.113.1']],
  ])('%s', (_, addresses, expected) => {
    expect(answers(addresses)).toEqual(expected);
  });

  it('names no addresses where all are meant: one that comes later answers too', () => {
    const planned = plan(reached(), [], { nodePortAddresses: [cidr('0.0.0.0/0'), cidr('2001:db8::/64')] });
    expect(planned.node.families.map(({ nodePortAddresses }) => nodePortAddresses)).toEqual([
      'all',
      ['2001:db8::1'],
    ]);
  });
});

describe('D13: other packets to cluster IPs', () => {
  const planned = plan(service(), [slice(both)]);

  it.each([
    ['another port of a cluster IP is rejected', serviceIP, 81, 'reject UnknownPort'],
    [
      'an address of the Service range without a Service is dropped',
      '10.96.0.11',
      80,
      'drop UnknownClusterIP',
    ],
    ['what is outside passes', '10.97.0.10', 80, 'pass'],
    ['other ports of the node pass', ownNodeIP, 80, 'pass'],
  ])('%s', (_, to, port, expected) => {
    expect(flow(planned, localPodIP, to, port)).toBe(expected);
  });
});

it('D14: every candidate is there once, without a weight', () => {
  const verdict = flow(plan(service(), [slice([...both, ...both])]), localPodIP, serviceIP, 80);
  expect(verdict).toBe(all);
});

describe('D15: session affinity', () => {
  const affine = (spec: Partial<ServiceSpec>) => onlyPort(plan(service(spec), [slice(both)])).affinitySeconds;

  it.each([
    ['none', { sessionAffinity: 'None' }, undefined],
    [
      'by client for the time given',
      { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } },
      60,
    ],
    ['three hours where none is given', { sessionAffinity: 'ClientIP' }, 10800],
    [
      'a day at most',
      { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 86400 } } },
      86400,
    ],
    [
      'the default for a time out of range',
      { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 86401 } } },
      10800,
    ],
  ])('%s', (_, spec, seconds) => {
    expect(affine(spec)).toBe(seconds);
  });
});

it('D16: the same number of two protocols is two destinations', () => {
  const dns = service({
    ports: [
      { name: 'dns', protocol: 'UDP', port: 53 },
      { name: 'dns-tcp', protocol: 'TCP', port: 53 },
      { name: 'dns-sctp', protocol: 'SCTP', port: 53 },
    ],
  });
  const ports = [
    { name: 'dns', protocol: 'UDP', port: 5301 },
    { name: 'dns-tcp', protocol: 'TCP', port: 5302 },
    { name: 'dns-sctp', protocol: 'SCTP', port: 5303 },
  ];
  const planned = plan(dns, [slice([endpoint(remoteIP)], { ports })]);
  const to = (protocol: 'TCP' | 'UDP' | 'SCTP'): string =>
    told(
      verdictFor(planned, {
        source: 'pod',
        sourceAddress: localPodIP,
        protocol,
        destinationAddress: serviceIP,
        destinationPort: 53,
      }),
    );
  expect([to('UDP'), to('TCP'), to('SCTP')]).toEqual([
    `${remoteIP}:5301`,
    `${remoteIP}:5302`,
    `${remoteIP}:5303`,
  ]);
  expect(planned.services.get('default/web')?.problems).toEqual([]);
});

describe('D17: flows that may go on', () => {
  const draining = [local(localIP, { conditions: terminatingEndpoint }), endpoint(remoteIP)];

  it('lists for UDP all that serve, whatever the policies use', () => {
    const udp = service({
      internalTrafficPolicy: 'Local',
      ports: [{ name: 'http', protocol: 'UDP', port: 80 }],
    });
    const gone = endpoint('10.1.1.9', { conditions: { ready: false, serving: false } });
    const ports = [{ name: 'http', protocol: 'UDP', port: 8080 }];
    const port = onlyPort(plan(udp, [slice([...draining, gone], { ports })]));
    expect(port.servingEndpoints?.map(({ address }) => address)).toEqual([localIP, remoteIP]);
  });

  it('lists nothing for TCP, whose connections are never cut', () => {
    expect(onlyPort(plan(service(), [slice(draining)])).servingEndpoints).toBeUndefined();
  });
});

describe('health check node ports', () => {
  const healthy = (spec: Partial<ServiceSpec> = {}) =>
    reached({ externalTrafficPolicy: 'Local', healthCheckNodePort: 32000, ...spec });

  it('counts the addresses of local ready endpoints, once for all ports', () => {
    const ports = [
      { name: 'http', port: 8080 },
      { name: 'https', port: 8443 },
    ];
    const endpoints = [
      local(localIP),
      local('10.1.0.2', { conditions: terminatingEndpoint }),
      endpoint(remoteIP),
    ];
    const planned = plan(healthy(), [slice(endpoints, { ports })]);
    expect(planned.services.get('default/web')?.healthChecks).toEqual([
      { family: 'IPv4', port: 32000, localEndpoints: 1 },
    ]);
  });

  it.each([
    ['another type', { type: 'NodePort' }],
    ['policy Cluster', { externalTrafficPolicy: 'Cluster' }],
  ])('has none for %s', (_, spec) => {
    expect(plan(healthy(spec), [slice(both)]).services.get('default/web')?.healthChecks).toEqual([]);
  });
});
