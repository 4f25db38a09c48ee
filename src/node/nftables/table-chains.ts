import type { Command } from './commands.ts';

/** Chains by name, and how many rules each has: enough to find one that is incomplete, or that was tampered with. */
export type ChainSizes = ReadonlyMap<string, number>;

/** The chains that commands make. */
export function chainSizes(commands: readonly Command[]): ChainSizes {
  const sizes = new Map<string, number>();
  for (const { add } of commands) count(add, sizes);
  return sizes;
}

/** The chains in what `nft -j list table` printed. */
export function listedChains(listing: string): ChainSizes {
  const sizes = new Map<string, number>();
  const parsed: unknown = JSON.parse(listing);
  const objects: unknown = typeof parsed === 'object' && parsed !== null ? Reflect.get(parsed, 'nftables') : [];
  for (const object of Array.isArray(objects) ? objects : []) count(object, sizes);
  return sizes;
}

function count(object: unknown, sizes: Map<string, number>): void {
  const chain = name(object, 'chain', 'name');
  if (chain !== undefined && !sizes.has(chain)) sizes.set(chain, 0);
  const ruled = name(object, 'rule', 'chain');
  if (ruled !== undefined) sizes.set(ruled, (sizes.get(ruled) ?? 0) + 1);
}

function name(object: unknown, kind: string, member: string): string | undefined {
  const inner: unknown = typeof object === 'object' && object !== null ? Reflect.get(object, kind) : undefined;
  const value: unknown = typeof inner === 'object' && inner !== null ? Reflect.get(inner, member) : undefined;
  return typeof value === 'string' ? value : undefined;
}
