import { isRecord } from '../../objects/json.ts';
import { type Command, tableName } from './commands.ts';

/** Chains by name, and how many rules each has: enough to find one that is incomplete, or that was tampered with. */
export type ChainSizes = ReadonlyMap<string, number>;

/** The chains that commands make. */
export function chainSizes(commands: readonly Command[]): ChainSizes {
  const sizes = new Map<string, number>();
  for (const { add } of commands) count(add, sizes);
  return sizes;
}

/** What our table has in what `nft -j -t list ruleset` printed: its chains, and the names of its sets and maps. */
export function listedRules(listing: string): {
  readonly chains: ChainSizes;
  readonly sets: ReadonlySet<string>;
} {
  const chains = new Map<string, number>();
  const sets = new Set<string>();
  const parsed: unknown = JSON.parse(listing);
  const objects: unknown = isRecord(parsed) ? parsed['nftables'] : undefined;
  for (const object of Array.isArray(objects) ? objects : []) {
    count(object, chains);
    const set: unknown = isRecord(object) ? (object['set'] ?? object['map']) : undefined;
    if (isRecord(set) && set['table'] === tableName && typeof set['name'] === 'string') sets.add(set['name']);
  }
  return { chains, sets };
}

function count(object: unknown, sizes: Map<string, number>): void {
  if (!isRecord(object)) return;
  const { chain, rule } = object;
  if (isRecord(chain) && chain['table'] === tableName && typeof chain['name'] === 'string') {
    sizes.set(chain['name'], sizes.get(chain['name']) ?? 0);
  }
  if (isRecord(rule) && rule['table'] === tableName && typeof rule['chain'] === 'string') {
    sizes.set(rule['chain'], (sizes.get(rule['chain']) ?? 0) + 1);
  }
}
