import { describe, expect, it } from 'vitest';
import { ClusterView } from '../../../../src/network/path/cluster-view.ts';
import {
  parseDestination,
  resolveDestination,
  type ResolvedDestination,
} from '../../../../src/network/path/destination.ts';
import { tracePath, type TraceSource } from '../../../../src/network/path/trace.ts';
import type { Node, Pod, Service, ServiceSpec } from '../../../../src/objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../../src/objects/types/discovery.generated.ts';
import { zoneOf } from '../dns/fixtures.ts';
import { options } from '../forwarding/fixtures.ts';

const nodes: readonly Node[] = [1, 2, 3].map((number) => ({
  metadata: { name: `node-${number}` },
  spec: { podCIDRs: [`10.1.${number}.0/24`] },
  status: { addresses: [{ type: 'InternalIP', address: `192.0.2.${number}` }] },
}));
const pods: readonly Pod[] = [1, 2].map((number) => ({
  metadata: { namespace: 'shop', name: `pod-${number}` },
  spec: { nodeName: `node-${number}`, containers: [{ name: 'main', ports: [{ containerPort: 8080 }] }] },
  status: { phase: 'Running', podIP: `10.1.${number}.2`, podIPs: [{ ip: `10.1.${number}.2` }] },
}));
const slices: readonly EndpointSlice[] = [
  {
    metadata: { namespace: 'shop', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    // Of node-1 alone.
    endpoints: [{ addresses: ['10.1.1.2'], conditions: { ready: true }, nodeName: 'node-1' }],
  },
];

/** A cluster of three nodes with the Service `shop/web`, whose one endpoint is on node-1. */
function view(spec: Partial<ServiceSpec>, ingress: readonly string[] = []): ClusterView {
  const web: Service = {
    metadata: { namespace: 'shop', name: 'web' },
    spec: {
      ...{ type: 'LoadBalancer', clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10'] },
      ports: [{ name: 'http', protocol: 'TCP', port: 80, nodePort: 30_080 }],
      ...spec,
    },
    status: { loadBalancer: { ingress: ingress.map((ip) => ({ ip })) } },
  };
  const none = { policies: [], firewalls: [] };
  const namespaces = [{ metadata: { name: 'shop' }, spec: {}, status: {} }];
  return new ClusterView({ namespaces, nodes, pods, services: [web], slices, ...none }, options());
}

const outside: TraceSource = { kind: 'outside', addresses: ['198.51.100.7'] };
const at = <T>(list: readonly T[], index: number): T => {
  const found = list[index];
  if (found === undefined) throw new Error(`no item ${index}`);
  return found;
};
const node = (number: number): TraceSource => ({ kind: 'node', node: at(nodes, number - 1) });
const pod = (number: number): TraceSource => ({ kind: 'pod', pod: at(pods, number - 1) });

function reached(from: TraceSource, address: string, port: number, spec: Partial<ServiceSpec> = {}) {
  const cluster = view(spec, ['203.0.113.8']);
  return tracePath(cluster, from, { address, protocol: 'TCP', port }).reachable;
}

const local = { externalTrafficPolicy: 'Local' };

describe('a connection', () => {
  it.each<readonly [string, TraceSource, string, number, Partial<ServiceSpec>, boolean | undefined]>([
    ['outside → a cluster IP', outside, '10.96.0.10', 80, {}, false],
    ['outside → a Pod', outside, '10.1.1.2', 8080, {}, false],
    ['outside → the load balancer', outside, '203.0.113.8', 80, {}, true],
    ['outside → the load balancer, Local', outside, '203.0.113.8', 80, local, true],
    [
      'outside → the load balancer, other sources',
      outside,
      '203.0.113.8',
      80,
      { loadBalancerSourceRanges: ['10.0.0.0/8'] },
      false,
    ],
    ['outside → an external IP', outside, '203.0.113.7', 80, { externalIPs: ['203.0.113.7'] }, true],
    [
      'outside → an external IP, Local: it depends',
      outside,
      '203.0.113.7',
      80,
      { externalIPs: ['203.0.113.7'], ...local },
      undefined,
    ],
    ['outside → a node port', outside, '192.0.2.2', 30_080, {}, true],
    ['outside → a node port, Local, without an endpoint', outside, '192.0.2.2', 30_080, local, false],
    ['outside → a node port, Local, with one', outside, '192.0.2.1', 30_080, local, true],
    ['outside → what perhaps listens on a node', outside, '192.0.2.1', 22, {}, undefined],
    ['node-3 → a node port of node-2, Local', node(3), '192.0.2.2', 30_080, local, false],
    ['node-3 → a node port of node-1, Local', node(3), '192.0.2.1', 30_080, local, true],
    ['node-2 → its own node port, Local', node(2), '192.0.2.2', 30_080, local, true],
    ['a Pod of node-2 → a node port of node-3', pod(2), '192.0.2.3', 30_080, {}, true],
    ['a Pod of node-2 → a node port of node-3, Local', pod(2), '192.0.2.3', 30_080, local, false],
    ['a Pod of node-2 → a node port of node-1, Local', pod(2), '192.0.2.1', 30_080, local, true],
    ['a Pod of node-2 → its own node, Local', pod(2), '192.0.2.2', 30_080, local, true],
  ])('%s', (_, from, address, port, spec, expected) => {
    expect(reached(from, address, port, spec)).toBe(expected);
  });
});

describe('svc/… from outside', () => {
  const resolve = (spec: Partial<ServiceSpec>, ingress: readonly string[] = []): ResolvedDestination =>
    resolveDestination(
      ...([view(spec, ingress), zoneOf({}), parseDestination('svc/shop/web:80', 'shop'), 'TCP'] as const),
      ...([[], [], true] as const),
    );

  it('means the addresses of the load balancer and the external IPs', () => {
    const found = resolve({ externalIPs: ['203.0.113.7'] }, ['203.0.113.8']);
    expect(found).toMatchObject({
      kind: 'found',
      targets: [
        { address: '203.0.113.8', port: 80 },
        { address: '203.0.113.7', port: 80 },
      ],
    });
  });

  it.each(['NodePort', 'LoadBalancer'])('means the node port of each node for a %s without one', (type) => {
    const nodePorts = [1, 2, 3].map((number) => ({ address: `192.0.2.${number}`, port: 30_080 }));
    expect(resolve({ type })).toMatchObject({ kind: 'found', targets: nodePorts });
    expect(resolve({ type, externalIPs: ['203.0.113.7'] })).toMatchObject({
      targets: [{ address: '203.0.113.7', port: 80 }, ...nodePorts],
    });
  });

  const noNodePort = [{ name: 'http', protocol: 'TCP', port: 80 }];
  it.each<[string, Partial<ServiceSpec>, string]>([
    ['a ClusterIP', { type: 'ClusterIP', ports: noNodePort }, 'it is of type ClusterIP'],
    [
      'a LoadBalancer without an address and node ports',
      { allocateLoadBalancerNodePorts: false, ports: noNodePort },
      'no load balancer address yet',
    ],
  ])('is nothing for %s', (_, spec, message) => {
    const found = resolve(spec);
    expect(found).toMatchObject({ kind: 'none', stages: [{ verdict: 'deny' }] });
    expect(JSON.stringify(found)).toContain(message);
  });
});
