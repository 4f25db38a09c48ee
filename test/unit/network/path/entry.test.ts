import { describe, expect, it } from 'vitest';
import {
  announcerLabel,
  announcerLeaseName,
  encodeReport,
  reportAnnotation,
} from '../../../../src/network/announcing/agent-report.ts';
import { ClusterView } from '../../../../src/network/path/cluster-view.ts';
import { announcingNodes } from '../../../../src/network/path/entry.ts';
import { tracePath } from '../../../../src/network/path/trace.ts';
import { parseCidr } from '../../../../src/objects/address.ts';
import type { Lease } from '../../../../src/objects/types/coordination.generated.ts';
import type { Node, Service, ServiceSpec } from '../../../../src/objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../../src/objects/types/discovery.generated.ts';
import type { AddressPool, AddressPoolAnnounce } from '../../../../src/objects/types/servicenet.ts';
import { options } from '../forwarding/fixtures.ts';

const address = '192.0.2.200';
const now = Date.parse('2026-01-01T00:00:10Z');
const subnets = [parseCidr('192.0.2.0/24') ?? []].flat();
const nodes: readonly Node[] = [1, 2, 3].map((number) => ({
  metadata: { name: `node-${number}` },
  spec: { podCIDRs: [`10.1.${number}.0/24`] },
  status: { addresses: [{ type: 'InternalIP', address: `192.0.2.${number}` }] },
}));
/** What an agent's Lease says. */
interface Said {
  readonly node: number;
  readonly announced?: readonly string[];
  readonly sessions?: readonly string[];
  readonly isReleased?: boolean;
  /** For 120 s. */
  readonly kept?: readonly string[];
  readonly renewed?: string;
}

function lease({ node, announced = [], sessions = [], isReleased = false, kept, renewed }: Said): Lease {
  const interfaces = [{ name: 'eth0', subnets, mac: `02:00:00:00:00:0${node}`, ownMac: 'a' }];
  const report = {
    ...{ interfaces, sessions, refused: [], announced, voters: new Map<string, string>() },
    kept: kept && { addresses: kept, seconds: 120 },
  };
  return {
    metadata: {
      name: announcerLeaseName(`node-${node}`),
      labels: { [announcerLabel]: 'true' },
      annotations: { [reportAnnotation]: encodeReport(report) },
    },
    spec: {
      holderIdentity: isReleased ? '' : `node-${node}`,
      ...{ acquireTime: '2026-01-01T00:00:00Z', renewTime: renewed ?? '2026-01-01T00:00:09Z' },
    },
  };
}

function service(name: string, ip: string, spec: Partial<ServiceSpec>): Service {
  return {
    metadata: { namespace: 'shop', name },
    spec: {
      ...{ type: 'LoadBalancer', clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10'] },
      ports: [{ name: 'http', protocol: 'TCP', port: 80, nodePort: 30_080 }],
      ...spec,
    },
    status: {
      loadBalancer: { ingress: [{ ip, ipMode: 'VIP' }] },
      conditions: [
        {
          ...{ type: 'servicenet.dev/LoadBalancerReady', status: 'True', reason: 'Assigned' },
          ...{ message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
        },
      ],
    },
  };
}

function slice(name: string, on: readonly number[]): EndpointSlice {
  return {
    metadata: { namespace: 'shop', name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: on.map((node) => ({ addresses: [`10.1.${node}.2`], nodeName: `node-${node}` })),
  };
}

function pool(announce: AddressPoolAnnounce): AddressPool {
  return { metadata: { name: 'lan' }, spec: { addresses: ['192.0.2.192/26'], announce } };
}

const local = { externalTrafficPolicy: 'Local' };

/** From outside to the Service `shop/web` at `address`, with an endpoint on node-1 and one on node-2. */
function trace(
  said: readonly Said[],
  {
    spec = {},
    announce = { layer2: {} },
    others = [],
  }: { spec?: Partial<ServiceSpec>; announce?: AddressPoolAnnounce; others?: readonly Service[] } = {},
) {
  const view = new ClusterView(
    {
      ...{ namespaces: [], nodes, pods: [], policies: [], firewalls: [] },
      services: [service('web', address, spec), ...others],
      slices: [slice('web', [1, 2]), slice('other', [3])],
      ...{ pools: [pool(announce)], agents: announcingNodes(said.map(lease), now) },
    },
    options(),
  );
  const from = { kind: 'outside', addresses: ['198.51.100.7'] } as const;
  const { reachable, stages, endpoints } = tracePath(view, from, { address, protocol: 'TCP', port: 80 });
  return {
    ...{ reachable, endpoints: endpoints.map((one) => one.address) },
    said: stages.filter(({ stage }) => stage === 'announcement').map(({ message }) => message),
    last: stages.at(-1)?.message ?? '',
  };
}

describe('by layer 2', () => {
  it.each([1, 2])(
    'a packet enters by the node that has it, and finds the endpoint there: node-%s',
    (node) => {
      const others = [1, 2, 3].filter((each) => each !== node).map((each) => ({ node: each }));
      expect(trace([...others, { node, announced: [address] }], { spec: local })).toMatchObject({
        ...{ reachable: true, endpoints: [`10.1.${node}.2`] },
        said: [`${address}: node-${node} announces it by layer 2`],
      });
    },
  );

  it('a node without an endpoint forwards to all of them, once each, where the policy is Cluster', () => {
    const all = [{ node: 1 }, { node: 2 }, { node: 3, announced: [address] }];
    expect(trace(all)).toMatchObject({ reachable: true, endpoints: ['10.1.1.2', '10.1.2.2'] });
  });

  it('a node that has it and lost its endpoint drops it', () => {
    const others = [{ node: 1 }, { node: 2 }];
    expect(trace([...others, { node: 3, announced: [address] }], { spec: local })).toMatchObject({
      ...{ reachable: false, endpoints: [] },
    });
  });

  it.each<[string, readonly Said[], string]>([
    ['has not been announced yet', [{ node: 1 }], 'node-1 has not announced it yet'],
    [
      'has agents that have ended',
      [{ node: 1, announced: [address], isReleased: true }],
      'no agent renews its Lease',
    ],
    [
      'has an agent that died as the last one',
      [{ node: 1, announced: [address], renewed: '2025-12-31T23:50:00Z' }],
      'no agent renews its Lease',
    ],
  ])('nothing reaches an address that %s', (_, said, why) => {
    const found = trace(said);
    expect(found).toMatchObject({ reachable: false, last: `no node announces ${address}: ${why}` });
  });

  it('an agent that has ended leaves its addresses where they are for its restart', () => {
    const left = { node: 1, isReleased: true, kept: [address] };
    expect(trace([left], { spec: local })).toMatchObject({ reachable: true, endpoints: ['10.1.1.2'] });
    expect(trace([{ ...left, renewed: '2025-12-31T23:58:00Z' }]).reachable).toBe(false);
  });

  it('the one that died does not count beside the one that has taken over', () => {
    const said = [
      { node: 1, announced: [address], renewed: '2025-12-31T23:50:00Z' },
      { node: 2, announced: [address] },
    ];
    expect(trace(said, { spec: local }).endpoints).toEqual(['10.1.2.2']);
  });
});

describe('by BGP', () => {
  const byBGP = { announce: { bgp: {} }, spec: local };
  const all = [1, 2, 3].map((node) => ({ node, sessions: ['router'] }));

  it('a packet enters by each next hop', () => {
    expect(trace(all, byBGP)).toMatchObject({
      ...{ reachable: true, endpoints: ['10.1.1.2', '10.1.2.2'] },
      said: [`${address}: node-1, node-2 by BGP`],
    });
  });

  it('a node without a session is none', () => {
    expect(trace([{ node: 1 }, { node: 2, sessions: ['router'] }], byBGP).endpoints).toEqual(['10.1.2.2']);
  });

  it('a route that has other addresses too leads to nodes that drop it', () => {
    const others = [service('other', '192.0.2.201', local)];
    const found = trace(all, { ...byBGP, announce: { bgp: { aggregationLength: 26 } }, others });
    expect(found.said).toEqual([`${address}: node-1, node-2, node-3 by BGP`]);
    expect(found.reachable).toBeUndefined();
  });
});

it.each<[string, readonly Said[], AddressPoolAnnounce]>([
  ['runs no agent', [], { layer2: {} }],
  ['announces by others', [{ node: 1 }], {}],
])('an address of a cluster that %s may come in by every node with an endpoint', (_, said, announce) => {
  expect(trace(said, { spec: local, announce })).toMatchObject({
    ...{ reachable: true, endpoints: ['10.1.1.2', '10.1.2.2'], said: [] },
  });
});

it.each<[string, readonly string[], string | undefined]>([
  ['is the first of its range', ['192.0.2.192/26'], '203.0.113.1'],
  ['is of no pool', ['203.0.113.0-203.0.113.9', '203.0.113.10'], '203.0.113.11'],
  ['is of the next range where a pool has all', ['203.0.113.0/24'], '198.51.100.1'],
])('the address of a machine outside %s', (_, addresses, expected) => {
  const pools: AddressPool[] = [{ metadata: { name: 'lan' }, spec: { addresses: [...addresses] } }];
  const objects = { namespaces: [], nodes, pods: [], services: [], slices: [], policies: [], firewalls: [] };
  expect(new ClusterView({ ...objects, pools }, options()).outsideAddress('IPv4')).toBe(expected);
});

it('the address of a machine outside is no Service’s either', () => {
  const services = [service('web', '203.0.113.1', { externalIPs: ['203.0.113.2', '2001:db8::1'] })];
  const objects = { namespaces: [], nodes, pods: [], services, slices: [], policies: [], firewalls: [] };
  const view = new ClusterView(objects, options());
  expect([view.outsideAddress('IPv4'), view.outsideAddress('IPv6')]).toEqual(['203.0.113.3', '2001:db8::2']);
});
