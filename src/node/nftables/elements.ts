import type { ObjectKey } from '../../objects/key.ts';
import type { Atom, NftExpression } from './commands.ts';
import type { SetName } from './sets.ts';

/** An element of one of our sets or maps, of one family. */
export interface Element {
  readonly set: SetName;
  readonly key: readonly KeyPart[];
  /** In maps: where it leads. */
  readonly value?: ElementValue;
  /** The Service that it belongs to, if it is one's alone. */
  readonly service?: ObjectKey;
}

/** An atom, or in sets of intervals a prefix as `address/length`. */
export type KeyPart = Atom;

export type ElementValue = EndpointValue | MarkValue | { readonly goto: string } | 'drop';

/** An endpoint's address and port. */
export type EndpointValue = readonly [string, number];

/** The mark of an endpoint. */
export type MarkValue = readonly [number];

/** The key of an element in its set. */
export function keyText(key: readonly KeyPart[]): string {
  return key.join(' ');
}

/** Equal for equal values. */
export function valueText(value: ElementValue | undefined): string {
  if (value === undefined || value === 'drop') return value ?? '';
  return 'goto' in value ? value.goto : value.join(' ');
}

/** A key in nft's JSON. */
export function keyExpression(key: readonly KeyPart[]): NftExpression {
  const parts = key.map(partExpression);
  return parts.length === 1 ? (parts[0] ?? null) : { concat: parts };
}

/** A value in nft's JSON. */
export function valueExpression(value: ElementValue): NftExpression {
  if (value === 'drop') return { drop: null };
  return 'goto' in value ? { goto: { target: value.goto } } : keyExpression(value);
}

function partExpression(part: KeyPart): NftExpression {
  if (typeof part === 'number') return part;
  const slash = part.indexOf('/');
  if (slash === -1) return part;
  return { prefix: { addr: part.slice(0, slash), len: Number(part.slice(slash + 1)) } };
}

export function isEndpointValue(value: ElementValue | undefined): value is EndpointValue {
  return Array.isArray(value) && value.length === 2;
}

export function isMarkValue(value: ElementValue | undefined): value is MarkValue {
  return Array.isArray(value) && value.length === 1;
}
