import { listAt, textAt } from '../../objects/read.ts';
import type { Nft } from '../nftables/nft.ts';

/** What policy engines have in the kernel: a prefix of their chains of iptables, or a table of nftables. */
const marks: readonly { readonly engine: string; readonly chain?: string; readonly table?: string }[] = [
  { engine: 'Calico', chain: 'cali-' },
  { engine: 'Calico', table: 'calico' },
  { engine: 'Cilium', chain: 'CILIUM_' },
  { engine: "kube-router, k3s' policy engine among others", chain: 'KUBE-ROUTER-' },
  { engine: "kube-router, k3s' policy engine among others", chain: 'KUBE-POD-FW-' },
  { engine: 'kube-network-policies', table: 'kube-network-policies' },
  { engine: 'Antrea', chain: 'ANTREA-' },
  { engine: 'Weave Net', chain: 'WEAVE-NPC' },
  { engine: 'OVN-Kubernetes', table: 'ovn-kubernetes' },
  { engine: 'OVN-Kubernetes', chain: 'OVN-KUBE-' },
];

/** Finds other engines by their rules: two engines would both drop, and each change would take effect at other times. */
export async function otherPolicyEngines(nft: Nft): Promise<readonly string[]> {
  const found = new Set<string>();
  for (const item of listAt(JSON.parse((await nft.list([], 'chains')) ?? '{}'), 'nftables')) {
    const name = textAt(item, 'chain', 'name');
    const table = textAt(item, 'chain', 'table');
    for (const mark of marks) {
      const isChain = mark.chain !== undefined && name.startsWith(mark.chain);
      if (isChain || (mark.table !== undefined && table === mark.table)) found.add(mark.engine);
    }
  }
  return [...found];
}
