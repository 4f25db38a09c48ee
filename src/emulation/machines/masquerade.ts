import type { Host } from '../../host/host.ts';
import { parseCidr } from '../../objects/address.ts';
import { field, match } from '../../node/nftables/commands.ts';
import { Nft } from '../../node/nftables/nft.ts';
import { outsideAddresses } from '../lan.ts';

const table = { family: 'inet', name: 'masquerade' } as const;

/**
 * Masquerades packets from Pods out of the cluster with the address of their node, as network plugins do: machines
 * outside have no route to Pods. It runs after `servicenet-egress`, which decides first.
 *
 * @param podCIDRs of the node.
 * @throws {NftError}
 */
export async function masqueradePods(host: Host, podCIDRs: readonly string[]): Promise<void> {
  const inTable = { family: table.family, table: table.name };
  const chain = { ...inTable, name: 'postrouting', type: 'nat', hook: 'postrouting', prio: 110 };
  const rules = podCIDRs.flatMap((text) => {
    const cidr = parseCidr(text);
    if (cidr === undefined) return [];
    const family = cidr.family === 'IPv4' ? 'ip' : 'ip6';
    const [addr = '', len = ''] = cidr.canonical.split('/');
    const from = match(field.sourceAddress(family), { prefix: { addr, len: Number(len) } });
    return outsideAddresses([cidr.family]).map((address) => [
      from,
      match(field.destinationAddress(family), address),
      { masquerade: null },
    ]);
  });
  await new Nft(host).run([
    { add: { table } },
    { add: { chain } },
    ...rules.map((expr) => ({ add: { rule: { ...inTable, chain: chain.name, expr } } })),
  ]);
}
