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

/** An atom, a protocol by its name, or in sets of intervals a prefix as `address/length`. */
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

/**
 * Protocols of Services, by the numbers of IANA: for each name of one, nft opens and reads `/etc/protocols`, which takes
 * it as long as the rest of what it does for an element.
 */
const protocolNumbers: ReadonlyMap<string, number> = new Map([
  ['tcp', 6],
  ['udp', 17],
  ['sctp', 132],
]);

const protocolNames: ReadonlyMap<number, string> = new Map(
  Array.from(protocolNumbers, ([name, number]) => [number, name]),
);

/** The name of a protocol of Services, as keys have it; undefined: it is another one. */
export function protocolName(number: number): string | undefined {
  return protocolNames.get(number);
}

function partExpression(part: KeyPart): NftExpression {
  if (typeof part === 'number') return part;
  const protocol = protocolNumbers.get(part);
  if (protocol !== undefined) return protocol;
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
