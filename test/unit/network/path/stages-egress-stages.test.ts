import { expect, test } from 'vitest';
import { type ClusterObjects, ClusterView } from '../../../../src/network/path/cluster-view.ts';
import { tracePath } from '../../../../src/network/path/trace.ts';
import type { Node, Pod } from '../../../../src/objects/types/core.generated.ts';
import { forwardingOptions } from '../../../network/support/objects.ts';

const node: Node = {
  ...{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } },
  spec: { podCIDRs: ['10.244.0.0/24'] },
  status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] },
};
const pod: Pod = {
  ...{
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'cart', namespace: 'shop', labels: { app: 'cart' } },
  },
  spec: { nodeName: 'n1', containers: [{ name: 'main', image: 'x' }] },
  status: { phase: 'Running', podIP: '10.244.0.2', podIPs: [{ ip: '10.244.0.2' }] },
};
const ovn = { apiVersion: 'k8s.ovn.org/v1' };
const egressIP = (name: string, items: readonly string[], creationTimestamp: string) => ({
  ...{ ...ovn, kind: 'EgressIP', metadata: { name, creationTimestamp } },
  spec: { egressIPs: [...items], namespaceSelector: {} },
  status: { items: items.map((item, index) => ({ egressIP: item, node: `n${index + 1}` })) },
});
const qos = {
  ...{ ...ovn, kind: 'EgressQoS', metadata: { name: 'default', namespace: 'shop' } },
  spec: { egress: [{ dscp: 10, dstCIDR: '203.0.113.0/24' }, { dscp: 46 }] },
};

/** What the two stages say of a connection from the Pod. */
function said(address: string, more: Partial<ClusterObjects>): readonly string[] {
  const objects: ClusterObjects = {
    ...{ namespaces: [], nodes: [node], pods: [pod], services: [], slices: [], policies: [], firewalls: [] },
    ...more,
  };
  const view = new ClusterView(objects, forwardingOptions);
  const { endpoints } = tracePath(view, { kind: 'pod', pod }, { address, protocol: 'TCP', port: 80 });
  return (endpoints[0]?.stages ?? []).flatMap(({ stage, object = '-', field = '-', message }) =>
    stage === 'EgressIP' || stage === 'EgressQoS' ? [`${object} ${field}: ${message}`] : [],
  );
}

test('a trace says from where a connection leaves, how it is marked, and by which objects', () => {
  const egressIPs = [
    egressIP('young', ['192.0.2.70'], '2026-02-01T00:00:00Z'),
    egressIP('old', ['192.0.2.50', '192.0.2.51'], '2026-01-01T00:00:00Z'),
  ];
  expect(said('198.51.100.1', { egressIPs, egressQoSes: [qos] })).toEqual([
    'EgressIP old -: the connection leaves from 192.0.2.50 of n1, or 192.0.2.51 of n2; standing by: young',
    'EgressQoS shop/default spec.egress[1]: packets are marked with DSCP 46',
  ]);
  expect(
    said('203.0.113.9', { egressIPs: [egressIP('v6', ['2001:db8::1'], '')], egressQoSes: [qos] }),
  ).toEqual([
    'EgressIP v6 -: it has no IPv4 address',
    'EgressQoS shop/default spec.egress[0]: packets are marked with DSCP 10',
  ]);
  // Nodes and the ranges of Pods are inside.
  for (const inside of ['192.0.2.1', '10.244.0.9']) {
    expect(said(inside, { egressIPs })).toEqual([
      '- -: the destination is inside of the cluster',
      '- -: the source has none',
    ]);
  }
});
