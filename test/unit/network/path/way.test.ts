import { describe, expect, it } from 'vitest';
import { ClusterView } from '../../../../src/network/path/cluster-view.ts';
import { tracePath, type TraceSource } from '../../../../src/network/path/trace.ts';
import { hopsOf } from '../../../../src/network/path/way.ts';
import type { Node, Pod, Service, ServiceSpec } from '../../../../src/objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../../src/objects/types/discovery.generated.ts';
import type { NetworkPolicy } from '../../../../src/objects/types/networking.generated.ts';
import { options } from '../forwarding/fixtures.ts';

function node(number: number): Node {
  return {
    metadata: { name: `node-${number}` },
    spec: { podCIDRs: [`10.1.${number}.0/24`] },
    status: { addresses: [{ type: 'InternalIP', address: `192.0.2.${number}` }] },
  };
}
function pod(name: string, number: number, address = `10.1.${number}.2`): Pod {
  return {
    metadata: { namespace: 'shop', name, labels: { app: name } },
    spec: { nodeName: `node-${number}`, containers: [{ name: 'main' }] },
    status: { phase: 'Running', podIP: address, podIPs: [{ ip: address }] },
  };
}
const cart = pod('cart', 1);
const web = pod('web', 2);
const slices: readonly EndpointSlice[] = [
  {
    metadata: { namespace: 'shop', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: '', protocol: 'TCP', port: 8080 }],
    endpoints: [{ addresses: ['10.1.2.2'], conditions: { ready: true }, nodeName: 'node-2' }],
  },
];

function hops(
  source: TraceSource,
  address: string,
  port: number,
  spec: Partial<ServiceSpec> = {},
  policies: readonly NetworkPolicy[] = [],
): readonly string[] {
  const service: Service = {
    metadata: { namespace: 'shop', name: 'web' },
    spec: {
      ...{ type: 'NodePort', clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10'] },
      ports: [{ name: '', protocol: 'TCP', port: 80, nodePort: 30_080 }],
      ...spec,
    },
    status: {},
  };
  const namespaces = [{ metadata: { name: 'shop' }, spec: {}, status: {} }];
  const objects = {
    ...{ namespaces, nodes: [node(1), node(2)], pods: [cart, web], services: [service] },
    ...{ slices, policies, firewalls: [] },
  };
  const view = new ClusterView(objects, options());
  const destination = { address, protocol: 'TCP', port } as const;
  const trace = tracePath(view, source, destination);
  return hopsOf(view, source, destination, [], trace, trace.endpoints[0]).map(({ at, stages, sends }) => {
    const decided = stages
      .filter(({ verdict }) => verdict !== 'pass')
      .map(({ stage, verdict }) => `${stage} ${verdict}`);
    const packet = sends === undefined ? [] : [`${sends.source} → ${sends.destination}`, ...sends.changed];
    return [at, ...decided, ...packet].join(', ');
  });
}

const from = { kind: 'pod', pod: cart } as const;
const deny = (direction: 'Ingress' | 'Egress'): NetworkPolicy => ({
  metadata: { namespace: 'shop', name: 'none' },
  spec: { podSelector: {}, policyTypes: [direction] },
});

describe('the way of a packet', () => {
  it('to a cluster IP is translated by the node of its source', () => {
    expect(hops(from, '10.96.0.10', 80)).toEqual([
      'Pod shop/cart, 10.1.1.2 → 10.96.0.10:80',
      'node node-1, service allow, 10.1.1.2 → 10.1.2.2:8080, destination',
      'node node-2, 10.1.1.2 → 10.1.2.2:8080',
      'Pod shop/web',
    ]);
  });

  it('to a node port of another node is translated there', () => {
    expect(hops(from, '192.0.2.2', 30_080)[1]).toMatch(/^node node-1, service allow|^node node-1, 10\.1/);
    expect(hops({ kind: 'outside', addresses: ['198.51.100.7'] }, '192.0.2.1', 30_080)).toEqual([
      'outside, 198.51.100.7 → 192.0.2.1:30080',
      'node node-1, service allow, 192.0.2.1 → 10.1.2.2:8080, destination, source',
      'node node-2, 192.0.2.1 → 10.1.2.2:8080',
      'Pod shop/web',
    ]);
  });

  it('to a Pod of the same node passes that node alone', () => {
    expect(hops({ kind: 'node', node: node(2) }, '10.1.2.2', 8080)).toEqual([
      'node node-2, 192.0.2.2 → 10.1.2.2:8080',
      'Pod shop/web',
    ]);
  });

  it('out of the cluster ends at an address', () => {
    expect(hops(from, '198.51.100.7', 443)).toEqual([
      'Pod shop/cart, 10.1.1.2 → 198.51.100.7:443',
      'node node-1, 10.1.1.2 → 198.51.100.7:443',
      '198.51.100.7',
    ]);
  });

  it('ends where something denies it', () => {
    expect(hops(from, '10.96.0.10', 80, {}, [deny('Egress')]).at(-1)).toBe(
      'node node-1, service allow, egress NetworkPolicy deny',
    );
    expect(hops(from, '10.96.0.10', 80, {}, [deny('Ingress')]).at(-1)).toBe(
      'node node-2, ingress NetworkPolicy deny',
    );
    expect(hops(from, '10.96.0.10', 81).at(-1)).toBe('node node-1, service deny');
  });
});
