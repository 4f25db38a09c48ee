import { expect, test } from 'vitest';
import { planNetworkStatus, planOmissions, sandboxMessage } from '../../../../src/platforms/cni/plan.ts';
import { resolveAttachments } from '../../../../src/network/attachments/attachments.ts';
import { networksAnnotation } from '../../../../src/network/attachments/attachments.ts';
import type { Pod } from '../../../../src/objects/types/core.generated.ts';

const config = {
  ...{
    type: 'macvlan',
    mtu: 1400,
    dns: { nameservers: ['192.0.2.53'], domain: 'lan', search: [], options: 7 },
  },
  ipam: {
    type: 'static',
    routes: [
      { dst: '0.0.0.0/0', gw: '192.0.2.1' },
      { dst: '10.0.0.0/8', gw: '192.0.2.2' },
    ],
  },
};

function pod(networks: string, more: Record<string, string> = {}): Pod {
  return {
    metadata: {
      namespace: 'shop',
      name: 'web',
      uid: 'u',
      annotations: { [networksAnnotation]: networks, ...more },
    },
    spec: {},
    status: { podIPs: [{ ip: '10.244.0.5' }, { ip: 'fd00::5' }] },
  };
}

function find(_: string, name: string): { metadata: { name: string }; spec: { config: string } } {
  const dhcp = { type: 'macvlan', ipam: { type: 'dhcp' } };
  return { metadata: { name }, spec: { config: JSON.stringify(name === 'dhcp' ? dhcp : config) } };
}

test('the cluster network comes first; addresses have no prefix, gateways are those of default routes', () => {
  const of = pod('[{"name":"lan","mac":"02:00:00:00:00:07"}]');
  const addressed = resolveAttachments(of, find).map((attachment) => ({ attachment, ips: ['192.0.2.9'] }));
  expect(planNetworkStatus(of, addressed)).toEqual([
    { name: 'servicenet', interface: 'eth0', ips: ['10.244.0.5', 'fd00::5'], default: true, dns: {} },
    {
      ...{ name: 'shop/lan', interface: 'net1', ips: ['192.0.2.9'], mac: '02:00:00:00:00:07', mtu: 1400 },
      ...{ dns: { nameservers: ['192.0.2.53'], domain: 'lan' }, gateway: ['192.0.2.1'] },
    },
  ]);
});

test('what is not done is said, each by a message', () => {
  const asked = [{ name: 'lan', bandwidth: { ingressRate: 1 }, portMappings: [] }, { name: 'dhcp' }];
  const of = pod(JSON.stringify(asked), { 'v1.multus-cni.io/default-network': 'other' });
  const messages = planOmissions(of, resolveAttachments(of, find));
  expect(messages).toEqual([
    'shop/lan (net1): portMappings of the annotation is not acted upon',
    'shop/lan (net1): bandwidth of the annotation is not acted upon',
    expect.stringContaining('shop/dhcp (net2): the interface gets no addresses'),
    expect.stringContaining('v1.multus-cni.io/default-network is not acted upon'),
  ]);
  expect(planOmissions(pod('lan'), resolveAttachments(pod('lan'), find))).toEqual([]);
});

test('a failure has the words of the kubelet around it', () => {
  expect(sandboxMessage(pod('lan'), 'abc', 'why')).toBe(
    'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "abc": plugin type="multus" name="multus-cni-network" failed (add): Multus: [shop/web/u]: why',
  );
});
