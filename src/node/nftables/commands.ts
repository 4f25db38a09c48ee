/**
 * The JSON that `nft -j` reads and prints (`libnftables-json(5)`), as far as we use it. Everything goes to nft in this
 * form: a value can be odd, but it never becomes a command.
 */

/** `ip` or `ip6`: one table for each. */
export type NftFamily = 'ip' | 'ip6';

/** Ours alone, in both families. */
export const tableName = 'servicenet';

/** A part of an element's key or value: an address, a name of the kernel's (`tcp`), a port, a mark. */
export type Atom = string | number;

/** An expression or a statement in JSON. */
export type NftExpression =
  string | number | null | readonly NftExpression[] | { readonly [key: string]: NftExpression };

export type Command = Readonly<Record<string, NftExpression>>;

/** A field of a packet. */
export const field = {
  sourceAddress: (family: NftFamily): NftExpression => ({ payload: { protocol: family, field: 'saddr' } }),
  destinationAddress: (family: NftFamily): NftExpression => ({
    payload: { protocol: family, field: 'daddr' },
  }),
  destinationPort: { payload: { protocol: 'th', field: 'dport' } },
  protocol: { meta: { key: 'l4proto' } },
  packetMark: { meta: { key: 'mark' } },
  connectionMark: { ct: { key: 'mark' } },
} as const;

export function concat(...parts: readonly NftExpression[]): NftExpression {
  return { concat: parts };
}

/** The statement `<left> == <right>`, or another operator. */
export function match(
  left: NftExpression,
  right: NftExpression,
  op: '==' | '!=' | 'in' = '==',
): NftExpression {
  return { match: { op, left, right } };
}

export function assign(key: NftExpression, value: NftExpression): NftExpression {
  return { mangle: { key, value } };
}

export function goto(target: string): NftExpression {
  return { goto: { target } };
}

export function jump(target: string): NftExpression {
  return { jump: { target } };
}

/** Jumps by the verdict map; continues without an element for the packet. */
export function verdictOf(key: NftExpression, map: string): NftExpression {
  return { vmap: { key, data: `@${map}` } };
}

export function addRule(family: NftFamily, chain: string, ...expr: readonly NftExpression[]): Command {
  return { add: { rule: { family, table: tableName, chain, expr } } };
}

export function addChain(family: NftFamily, name: string): Command {
  return { add: { chain: { family, table: tableName, name } } };
}
