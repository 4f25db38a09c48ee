import { expect, test } from 'vitest';
import { type ClusterObjects, ClusterView } from '../../../../src/network/path/cluster-view.ts';
import { firewallStage, policyStage } from '../../../../src/network/path/stages.ts';
import type { Stage } from '../../../../src/network/path/stages.ts';
import type { NetworkPolicyIngressRule } from '../../../../src/objects/types/networking.generated.ts';
import type { EgressFirewallRule } from '../../../../src/objects/types/openshift.ts';
import { forwardingOptions } from '../../../network/support/objects.ts';

const nothing: ClusterObjects = {
  ...{ namespaces: [], nodes: [], pods: [], services: [], slices: [], policies: [], firewalls: [] },
};
const pod = (name: string) => ({
  ...{
    kind: 'pod' as const,
    key: `shop/${name}` as const,
    namespace: 'shop',
    node: 'n1',
    hostNetwork: false,
  },
  ...{
    labels: { app: name },
    namespaceLabels: {},
    ports: [{ name: 'http', protocol: 'TCP' as const, port: 80 }],
  },
});
const connection = (destinationAddress: string, port = 80) => ({
  ...{ source: pod('cart'), sourceAddress: '10.244.0.2', protocol: 'TCP' as const },
  ...{ destination: pod('catalog'), destinationAddress, port },
});

test('a NetworkPolicy decides with its rule, peer and port', () => {
  const stage = (port: number, ...rules: NetworkPolicyIngressRule[]): Stage => {
    const metadata = { name: 'web', namespace: 'shop' };
    const policies = [{ metadata, spec: { podSelector: {}, ingress: rules } }];
    const view = new ClusterView({ ...nothing, policies }, forwardingOptions);
    return policyStage(view, connection('10.244.0.3', port), 'ingress');
  };
  const from = [{ podSelector: { matchLabels: { app: 'admin' } } }, { podSelector: {} }];
  const object = 'NetworkPolicy shop/web';
  expect(stage(80, { ports: [{ port: 1 }] }, { from, ports: [{ port: 2 }, { port: 'http' }] })).toEqual({
    ...{ stage: 'ingress NetworkPolicy', verdict: 'allow', object, field: 'spec.ingress[1].from[1]' },
    message: 'a rule matches, by ports[1]',
  });
  expect(stage(80, { from })).toMatchObject({ verdict: 'allow', message: 'a rule matches' });
  expect(stage(81, { from, ports: [{ port: 'http' }] })).toMatchObject({
    ...{ verdict: 'deny', object, field: 'spec.ingress' },
  });
});

test('an EgressFirewall decides with its first rule that matches, unless a name of one before was not found', () => {
  const egress: EgressFirewallRule[] = [
    { type: 'Allow', to: { dnsName: 'a.example.com' }, ports: [{ protocol: 'TCP', port: 443 }] },
    { type: 'Deny', to: { dnsName: 'b.example.com' } },
    { type: 'Deny', to: { cidrSelector: '198.51.100.0/24' } },
  ];
  const firewalls = [{ metadata: { name: 'default', namespace: 'shop' }, spec: { egress } }];
  const view = new ClusterView({ ...nothing, firewalls }, forwardingOptions);
  const stage = (address: string, port: number, names: Record<string, string[]>): Stage =>
    firewallStage(view, connection(address, port), new Map(Object.entries(names)));
  const object = 'EgressFirewall shop/default';
  const a = { 'a.example.com': ['198.51.100.1'] };
  const b = { 'b.example.com': [] };
  expect(stage('198.51.100.1', 443, { ...a, ...b })).toMatchObject({
    ...{ verdict: 'allow', object, field: 'spec.egress[0]' },
  });
  expect(stage('198.51.100.2', 443, { ...a, ...b })).toMatchObject({
    ...{ verdict: 'deny', object, field: 'spec.egress[2]' },
  });
  // It might allow what the third rule denies; on another port it says nothing.
  expect(stage('198.51.100.2', 443, b)).toEqual({
    ...{ stage: 'EgressFirewall', verdict: 'unknown', object, field: 'spec.egress[0]' },
    message: 'a.example.com is not found from here: the rule allows if the address is one of it',
  });
  expect(stage('198.51.100.2', 80, b)).toMatchObject({ verdict: 'deny' });
  // The second rule denies as the third does, and so says nothing else; of other addresses it does.
  expect(stage('198.51.100.2', 443, a)).toMatchObject({ verdict: 'deny' });
  expect(stage('203.0.113.1', 443, a)).toMatchObject({ verdict: 'unknown', field: 'spec.egress[1]' });
  expect(stage('203.0.113.1', 443, { ...a, ...b })).toMatchObject({ verdict: 'allow', object });
});
