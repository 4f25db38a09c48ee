/** Reads back what the kernel has of the table `inet servicenet-policy`. */
import { parseAddress } from '../../objects/address.ts';
import { at, listAt, textAt } from '../../objects/read.ts';
import type { Nft } from '../nftables/nft.ts';
import { baseChains, policyTable, subjectMaps } from './policy-commands.ts';

/** The changing contents of the kernel. */
export interface ListedPolicyTable {
  /** By name; of ranges and ports, which are never changed, the elements are left out. */
  readonly sets: ReadonlyMap<string, ReadonlySet<string>>;
  /** The number of rules of each chain: fewer than planned if an agent was stopped. */
  readonly chains: ReadonlyMap<string, number>;
  /** By the name of the map: the chain of an address. */
  readonly subjects: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

/**
 * Reads the table.
 *
 * @returns undefined where there is none, or parts that are always there are missing: it is to be made.
 * @throws {NftError}
 */
export async function readTable(nft: Nft): Promise<ListedPolicyTable | undefined> {
  const text = await nft.list([], 'table', policyTable.family, policyTable.name);
  if (text === undefined) return undefined;
  const sets = new Map<string, ReadonlySet<string>>();
  const chains = new Map<string, number>();
  const subjects = new Map<string, ReadonlyMap<string, string>>();
  for (const item of listAt(JSON.parse(text), 'nftables')) {
    const chain = textAt(item, 'chain', 'name');
    const set = textAt(item, 'set', 'name');
    const map = textAt(item, 'map', 'name');
    const ruleOf = textAt(item, 'rule', 'chain');
    if (chain !== '') chains.set(chain, 0);
    if (ruleOf !== '') chains.set(ruleOf, (chains.get(ruleOf) ?? 0) + 1);
    if (set !== '') sets.set(set, new Set(listAt(item, 'set', 'elem').flatMap(elementText)));
    if (map !== '') subjects.set(map, new Map(listAt(item, 'map', 'elem').flatMap(subjectOf)));
  }
  const isWhole =
    [...baseChains].every(([name, rules]) => chains.get(name) === rules) &&
    subjectMaps.every((name) => subjects.has(name));
  for (const name of baseChains.keys()) chains.delete(name);
  return isWhole ? { sets, chains, subjects } : undefined;
}

/** The text of an address or an endpoint; nothing for what is neither. */
function elementText(json: unknown): string[] {
  if (typeof json === 'string') return [canonical(json)];
  const [address, protocol, port] = listAt(json, 'concat');
  // Who is connected with itself.
  if (typeof address === 'string' && address === protocol) return [canonical(address)];
  if (typeof address !== 'string' || typeof protocol !== 'string' || typeof port !== 'number') return [];
  return [`${canonical(address)} ${protocol} ${port}`];
}

function subjectOf(json: unknown): [string, string][] {
  const pair: unknown[] = Array.isArray(json) ? json : [];
  const [address, verdict] = pair;
  const target = at(verdict, 'goto', 'target');
  return typeof address === 'string' && typeof target === 'string' ? [[canonical(address), target]] : [];
}

function canonical(address: string): string {
  return parseAddress(address)?.canonical ?? address;
}
