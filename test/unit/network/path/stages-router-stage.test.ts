import { expect, test } from 'vitest';
import { ClusterView } from '../../../../src/network/path/cluster-view.ts';
import { tracePath } from '../../../../src/network/path/trace.ts';
import type { Pod } from '../../../../src/objects/types/core.generated.ts';
import { forwardingOptions } from '../../../network/support/objects.ts';

function podAt(address: string, annotations: Record<string, string> = {}): Pod {
  return {
    ...{
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `p${address.slice(-1)}`, namespace: 'shop', annotations },
    },
    spec: { nodeName: 'n1', containers: [{ name: 'main', image: 'x' }] },
    status: { phase: 'Running', podIP: address, podIPs: [{ ip: address }] },
  };
}

const client = podAt('10.244.0.1');
const networks = 'k8s.v1.cni.cncf.io/networks';

/** What the last stage says of a connection to a Pod with this configuration of a network. */
function said(ip: object, port: number, protocol: 'TCP' | 'UDP' = 'TCP'): string {
  const config = { type: 'egress-router', ip: { addresses: ['192.0.2.9/24'], gateway: '192.0.2.1', ...ip } };
  const attachments = [
    { metadata: { name: 'out', namespace: 'shop' }, spec: { config: JSON.stringify(config) } },
  ];
  const router = podAt('10.244.0.2', { [networks]: 'out' });
  const objects = { namespaces: [], nodes: [], services: [], slices: [], policies: [], firewalls: [] };
  const view = new ClusterView({ ...objects, pods: [client, router], attachments }, forwardingOptions);
  const to = { address: '10.244.0.2', protocol, port };
  const [path] = tracePath(view, { kind: 'pod', pod: client }, to).endpoints;
  const last = path?.stages.at(-1);
  return `${last?.verdict ?? ''} ${last?.object ?? ''}: ${last?.message ?? ''}`;
}

test('a trace says where an egress router leads a connection on to, or that it refuses it', () => {
  const destinations = ['8080 TCP 203.0.113.26 80'];
  const object = 'NetworkAttachmentDefinition shop/out';
  expect(said({ destinations }, 8080)).toBe(
    `allow ${object}: the egress router leads on to 203.0.113.26:80 by a rule, from 192.0.2.9`,
  );
  expect(said({ destinations }, 8080, 'UDP')).toBe(
    `deny ${object}: the egress router has no rule for 8080/UDP, and no fallback`,
  );
  expect(said({ destinations, fallbackIP: '203.0.113.27' }, 9000)).toBe(
    `allow ${object}: the egress router leads on to 203.0.113.27:9000 by its fallback, from 192.0.2.9`,
  );
  // Of the other family, and of no plan: it is a Pod like any other.
  const other = { addresses: ['2001:db8::9/64'], gateway: '2001:db8::1' };
  for (const ip of [other, { addresses: [''] }]) {
    expect(said(ip, 8080)).toBe(
      'pass Pod shop/p2: no container declares 8080/TCP: one may listen all the same',
    );
  }
});
