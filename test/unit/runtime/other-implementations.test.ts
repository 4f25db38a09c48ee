import { expect, test } from 'vitest';
import { otherImplementations } from '../../../src/runtime/other-implementations.ts';

test.each([
  ['policies', 'calico-node', ['Calico']],
  ['policies', 'cilium', ['Cilium']],
  ['policies', 'ovnkube-node', ['OVN-Kubernetes']],
  ['egress firewalls', 'ovnkube-control-plane', ['OVN-Kubernetes']],
  ['egress addresses', 'ovnkube-node', ['OVN-Kubernetes']],
  ['egress QoS', 'ovnkube-node', ['OVN-Kubernetes']],
  ['cloud addresses', 'cloud-network-config-controller', ['cloud-network-config-controller']],
  ['network attachments', 'kube-multus-ds', ['multus']],
  ['address ranges', 'whereabouts', ['whereabouts']],
  ['egress routers', 'network-operator', ['cluster-network-operator']],
  ['connectivity checks', 'network-operator', ['cluster-network-operator']],
  ['policies', 'kindnet', []],
  ['egress firewalls', 'calico-node', []],
  ['address ranges', 'multus', []],
] as const)('%s: the workload %s shows %j', (work, workload, projects) => {
  expect(otherImplementations(work, { workloads: ['web', workload] })).toEqual(projects);
});

test.each([
  ['cali-FORWARD', 'filter', 'Calico'],
  ['CILIUM_FORWARD', 'filter', 'Cilium'],
  ['KUBE-ROUTER-INPUT', 'filter', "kube-router, k3s' policy engine among others"],
  ['forward', 'kube-network-policies', 'kube-network-policies'],
  ['postrouting', 'kindnet-network-policies', 'kindnet'],
  ['anything', 'ovn-kubernetes', 'OVN-Kubernetes'],
])('the chain %s of the table %s shows a policy engine', (name, table, project) => {
  expect(otherImplementations('policies', { chains: [{ name, table }] })).toEqual([project]);
  expect(otherImplementations('policies', { chains: [{ name: 'KUBE-SERVICES', table: 'nat' }] })).toEqual([]);
});
