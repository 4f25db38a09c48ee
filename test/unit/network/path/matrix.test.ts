import { describe, expect, it } from 'vitest';
import { ClusterView } from '../../../../src/network/path/cluster-view.ts';
import { reachabilityMatrix } from '../../../../src/network/path/matrix.ts';
import type { Pod } from '../../../../src/objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../../src/objects/types/discovery.generated.ts';
import type { NetworkPolicy } from '../../../../src/objects/types/networking.generated.ts';
import { options } from '../forwarding/fixtures.ts';

/** A Pod of a ReplicaSet that a Deployment has made; without `of`, of its own. */
function pod(name: string, last: number, of?: string, labels: Record<string, string> = {}): Pod {
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `${of}-5d4f`, uid: 'u', controller: true };
  const hash: Record<string, string> = of === undefined ? {} : { 'pod-template-hash': '5d4f' };
  return {
    metadata: {
      namespace: 'shop',
      name,
      labels: { ...labels, ...hash },
      ...(of === undefined ? {} : { ownerReferences: [owner] }),
    },
    spec: { nodeName: 'node-1', containers: [{ name: 'main' }] },
    status: { phase: 'Running', podIP: `10.1.1.${last}`, podIPs: [{ ip: `10.1.1.${last}` }] },
  };
}

const pods = [
  pod('web-5d4f-a', 1, 'web', { app: 'web' }),
  pod('web-5d4f-b', 2, 'web', { app: 'web', canary: 'yes' }),
  pod('cart', 3),
  pod('idle', 4),
];
const slice = (name: string, port: number, addresses: readonly string[]): EndpointSlice => ({
  metadata: { namespace: 'shop', name, labels: { 'kubernetes.io/service-name': name } },
  addressType: 'IPv4',
  ports: [{ name: '', protocol: 'TCP', port }],
  endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
});
const slices = [slice('web', 8080, ['10.1.1.1', '10.1.1.2']), slice('cart', 9000, ['10.1.1.3'])];

function matrix(policies: readonly NetworkPolicy[], port?: number) {
  const node = {
    metadata: { name: 'node-1' },
    spec: { podCIDRs: ['10.1.1.0/24'] },
    status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] },
  };
  const namespaces = [{ metadata: { name: 'shop' }, spec: {}, status: {} }];
  const objects = { namespaces, nodes: [node], pods, services: [], slices, policies, firewalls: [] };
  return reachabilityMatrix(new ClusterView(objects, options()), 'shop', 'TCP', port);
}

const isolated = (labels: Record<string, string>): NetworkPolicy => ({
  metadata: { namespace: 'shop', name: 'none' },
  spec: { podSelector: { matchLabels: labels }, policyTypes: ['Ingress'] },
});

describe('who reaches whom', () => {
  it('asks workloads at the ports of their Services', () => {
    const { workloads, reach } = matrix([]);
    expect(workloads).toEqual([
      { name: 'pod/cart', pods: ['shop/cart'], ports: [9000] },
      { name: 'pod/idle', pods: ['shop/idle'], ports: [] },
      { name: 'deployment/web', pods: ['shop/web-5d4f-a', 'shop/web-5d4f-b'], ports: [8080] },
    ]);
    expect(reach).toEqual([
      ['all', 'unasked', 'all'],
      ['all', 'unasked', 'all'],
      ['all', 'unasked', 'all'],
    ]);
  });

  it('tells all Pods of a workload from some and from no one', () => {
    expect(matrix([isolated({ app: 'web' })]).reach.map((row) => row[2])).toEqual(['none', 'none', 'some']);
    expect(matrix([isolated({ canary: 'yes' })]).reach.map((row) => row[2])).toEqual([
      'some',
      'some',
      'some',
    ]);
  });

  it('asks all Pods at a port that is given', () => {
    const { workloads, reached } = matrix([isolated({ app: 'web' })], 80);
    expect(workloads.map(({ ports }) => ports)).toEqual([[80], [80], [80]]);
    // A Pod always reaches itself.
    expect(reached).toEqual([
      [true, true, false, false],
      [true, true, false, false],
      [true, true, true, false],
      [true, true, false, true],
    ]);
  });
});
