import { otherImplementations } from '../../runtime/other-implementations.ts';
import { listAt, textAt } from '../../objects/read.ts';
import type { Nft } from '../nftables/nft.ts';

/**
 * Finds other policy engines by their rules in the kernel and by their workloads: two engines would both drop, and each
 * change would take effect at other times.
 */
export async function otherPolicyEngines(
  nft: Nft,
  workloads: Iterable<string> = [],
): Promise<readonly string[]> {
  const items = listAt(JSON.parse((await nft.list([], 'chains')) ?? '{}'), 'nftables');
  const chains = items.map((item) => ({
    name: textAt(item, 'chain', 'name'),
    table: textAt(item, 'chain', 'table'),
  }));
  return otherImplementations('policies', { chains, workloads });
}
