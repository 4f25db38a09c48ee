import { type Host, ProgramMissingError } from '../../host/host.ts';
import { isRecord } from '../../objects/json.ts';
import type { Nft } from './nft.ts';

/** Other Service proxies in this kernel. */
export interface OtherProxies {
  /** Their traces in the kernel, in words; empty: none. */
  readonly found: readonly string[];
  /** What could not be checked, and why. */
  readonly unclear: readonly string[];
}

/** Looks for kube-proxy's rules. Two proxies would both translate, and the hook that comes first would win. */
export async function otherProxies(host: Host, nft: Nft): Promise<OtherProxies> {
  const found = new Set<string>();
  const unclear: string[] = [];
  const listing: unknown = JSON.parse((await nft.list([], 'chains')) ?? '{}');
  const objects: unknown = isRecord(listing) ? listing['nftables'] : undefined;
  for (const object of Array.isArray(objects) ? objects : []) {
    const chain: unknown = isRecord(object) ? object['chain'] : undefined;
    if (!isRecord(chain)) continue;
    if (chain['table'] === 'kube-proxy') found.add('the nftables table kube-proxy');
    if (chain['name'] === iptablesChain) found.add(`the iptables chain ${iptablesChain}`);
  }
  for (const family of ['ip', 'ip6'] as const) {
    if (!(await hasLegacyNat(host, family))) continue;
    const program = `${family}tables-legacy`;
    const looked = await findLegacyChain(host, program);
    if (looked === 'found') found.add(`the ${program} chain ${iptablesChain}`);
    else if (looked !== 'none') unclear.push(`${program} has a nat table here: ${looked.why}`);
  }
  return { found: [...found], unclear };
}

/** kube-proxy has it in its modes iptables and ipvs; kubelet's chains have other names. */
const iptablesChain = 'KUBE-SERVICES';

/** Whether the older iptables is in use: its program would make the table where there is none. */
async function hasLegacyNat(host: Host, family: 'ip' | 'ip6'): Promise<boolean> {
  const { exitCode, stdout } = await host.exec('cat', [`/proc/net/${family}_tables_names`]);
  return exitCode === 0 && stdout.split('\n').includes('nat');
}

async function findLegacyChain(
  host: Host,
  program: string,
): Promise<'found' | 'none' | { readonly why: string }> {
  try {
    const { exitCode, stderr } = await host.exec(program, ['-t', 'nat', '-n', '-L', iptablesChain]);
    if (exitCode === 0) return 'found';
    // iptables(8): 1 for what is not there, other codes for usage, versions and the lock.
    return exitCode === 1 ? 'none' : { why: stderr.trim() };
  } catch (error) {
    if (error instanceof ProgramMissingError)
      return { why: `there is no program ${program} to look into it` };
    throw error;
  }
}
