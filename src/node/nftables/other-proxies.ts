import { type Host, ProgramMissingError } from '../../host/host.ts';
import { isRecord } from '../../objects/json.ts';
import type { Nft } from './nft.ts';

/**
 * What another Service proxy has in this kernel, in words; empty: nothing. Two proxies would both translate, and the
 * hook that comes first would win.
 */
export async function otherProxies(host: Host, nft: Nft): Promise<readonly string[]> {
  const found = new Set<string>();
  const listing: unknown = JSON.parse((await nft.list([], 'chains')) ?? '{}');
  const objects: unknown = isRecord(listing) ? listing['nftables'] : undefined;
  for (const object of Array.isArray(objects) ? objects : []) {
    const chain: unknown = isRecord(object) ? object['chain'] : undefined;
    if (!isRecord(chain)) continue;
    if (chain['table'] === 'kube-proxy') found.add('the nftables table kube-proxy');
    if (chain['name'] === iptablesChain) found.add(`the iptables chain ${iptablesChain}`);
  }
  for (const program of ['iptables-legacy', 'ip6tables-legacy']) {
    if (await hasLegacyChain(host, program)) found.add(`the ${program} chain ${iptablesChain}`);
  }
  return [...found];
}

/** kube-proxy has it in its modes iptables and ipvs; kubelet's chains have other names. */
const iptablesChain = 'KUBE-SERVICES';

async function hasLegacyChain(host: Host, program: string): Promise<boolean> {
  try {
    const { exitCode } = await host.exec(program, ['-t', 'nat', '-n', '-L', iptablesChain]);
    return exitCode === 0;
  } catch (error) {
    if (error instanceof ProgramMissingError) return false;
    throw error;
  }
}
