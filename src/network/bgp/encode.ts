import { type IPFamily, parseStrictAddress, ipFamilies } from '../../objects/address.ts';
import { pushAll } from '../../objects/lists.ts';
import { asTrans, maxMessageLength, type Notification, type Open, type Prefix } from './message.ts';
import { attributesKey, type BGPRoute, type RouteChanges } from './route.ts';

/** The capabilities that both speakers have, as far as UPDATE messages depend on them. */
export interface Dialect {
  readonly localAs: number;
  /** Whether the peer is of the same AS (iBGP). */
  readonly isInternal: boolean;
  /** Whether AS paths have 4-byte numbers. */
  readonly fourByteAs: boolean;
}

export const keepalive: Uint8Array = message(4, []);

/** @param open whose capabilities all go in one optional parameter. */
export function encodeOpen(open: Open): Uint8Array {
  const { families, routeRefresh, fourByteAs, gracefulRestart } = open.capabilities;
  const capabilities: number[] = [];
  const add = (code: number, value: readonly number[]): void => {
    pushAll(capabilities, [code, value.length], value);
  };
  for (const family of families ?? []) add(1, [0, afi(family), 0, 1]);
  if (routeRefresh) add(2, []);
  if (gracefulRestart !== undefined) {
    const { restarting, restartSeconds } = gracefulRestart;
    add(64, [
      ...uint16((restarting ? 0x8000 : 0) | restartSeconds),
      ...gracefulRestart.families.flatMap(({ family, forwarding }) => [
        0,
        afi(family),
        1,
        forwarding ? 0x80 : 0,
      ]),
    ]);
  }
  if (fourByteAs) add(65, uint32(open.as));
  const parameters = capabilities.length === 0 ? [] : [2, capabilities.length, ...capabilities];
  const as2 = open.as > 0xffff ? asTrans : open.as;
  return message(1, [
    4,
    ...uint16(as2),
    ...uint16(open.holdSeconds),
    ...addressBytes(open.routerId),
    parameters.length,
    ...parameters,
  ]);
}

/** The data is cut to what a message can hold. */
export function encodeNotification({ code, subcode, data }: Omit<Notification, 'type'>): Uint8Array {
  return message(3, [code, subcode, ...data.subarray(0, maxMessageLength - 21)]);
}

/** The text of a Cease (RFC 9003): at most 255 bytes of UTF-8, cut between characters. */
export function shutdownText(text: string): Uint8Array {
  const bytes = new Uint8Array(255);
  const { written } = new TextEncoder().encodeInto(text, bytes);
  return Uint8Array.of(written, ...bytes.subarray(0, written));
}

/** RFC 4724 §2: all routes of the family have been sent. */
export function endOfRib(family: IPFamily): Uint8Array {
  return family === 'IPv4'
    ? updateMessage([], [], [])
    : updateMessage([], attribute(0x80, 15, [0, 2, 1]), []);
}

/** UPDATE messages for changes, as few as there can be; withdrawals first. */
export function encodeUpdates({ withdrawn, announced }: RouteChanges, dialect: Dialect): Uint8Array[] {
  const messages: Uint8Array[] = [];
  for (const family of ipFamilies) {
    const gone = withdrawn.filter((prefix) => prefix.family === family).map(prefixBytes);
    const withdraw = family === 'IPv4' ? [] : [0, 2, 1];
    for (const part of packed(gone, withdraw.length)) {
      messages.push(
        family === 'IPv4'
          ? updateMessage(part, [], [])
          : updateMessage([], attribute(0x80, 15, [...withdraw, ...part]), []),
      );
    }
  }
  for (const routes of Map.groupBy(announced, attributesKey).values()) {
    const [first] = routes;
    const prefixes = routes.map(({ prefix }) => prefix);
    if (first !== undefined) pushAll(messages, encodeAnnouncements(first, prefixes, dialect));
  }
  return messages;
}

function encodeAnnouncements(route: BGPRoute, prefixes: readonly Prefix[], dialect: Dialect): Uint8Array[] {
  const isIPv4 = route.prefix.family === 'IPv4';
  const nextHop = addressBytes(route.nextHop);
  const attributes = [
    ...attribute(0x40, 1, [0]),
    ...attribute(0x40, 2, asPath(dialect)),
    ...(isIPv4 ? attribute(0x40, 3, nextHop) : []),
    ...(dialect.isInternal ? attribute(0x40, 5, uint32(route.localPref ?? 100)) : []),
    ...(route.communities.length === 0 ? [] : attribute(0xc0, 8, route.communities.flatMap(uint32))),
    ...(dialect.fourByteAs || dialect.isInternal || dialect.localAs <= 0xffff
      ? []
      : attribute(0xc0, 17, [2, 1, ...uint32(dialect.localAs)])),
    ...(route.largeCommunities.length === 0
      ? []
      : attribute(0xc0, 32, route.largeCommunities.flat().flatMap(uint32))),
  ];
  const reach = [0, 2, 1, nextHop.length, ...nextHop, 0];
  const used = attributes.length + (isIPv4 ? 0 : reach.length);
  return packed(prefixes.map(prefixBytes), used).map((part) =>
    isIPv4
      ? updateMessage([], attributes, part)
      : updateMessage([], [...attributes, ...attribute(0x80, 14, [...reach, ...part])], []),
  );
}

/** Our own AS, to others; a path within the AS is empty. */
function asPath({ localAs, isInternal, fourByteAs }: Dialect): readonly number[] {
  if (isInternal) return [];
  return [2, 1, ...(fourByteAs ? uint32(localAs) : uint16(localAs > 0xffff ? asTrans : localAs))];
}

/** Header, two lengths, and the header of an attribute that holds networks. */
const updateOverhead = 19 + 2 + 2 + 4;

/** Joins networks into as few parts as fit beside `used` other bytes of an UPDATE. */
function packed(networks: readonly (readonly number[])[], used: number): (readonly number[])[] {
  const room = maxMessageLength - updateOverhead - used;
  const parts: number[][] = [];
  let last: number[] | undefined;
  for (const network of networks) {
    if (last === undefined || last.length + network.length > room) parts.push((last = []));
    pushAll(last, network);
  }
  return parts;
}

function updateMessage(
  withdrawn: readonly number[],
  attributes: readonly number[],
  announced: readonly number[],
): Uint8Array {
  return message(2, [
    ...uint16(withdrawn.length),
    ...withdrawn,
    ...uint16(attributes.length),
    ...attributes,
    ...announced,
  ]);
}

function message(type: number, body: readonly number[]): Uint8Array {
  const length = 19 + body.length;
  if (length > maxMessageLength) throw new RangeError(`a message of ${length} bytes`);
  const bytes = new Uint8Array(length).fill(0xff, 0, 16);
  bytes.set(uint16(length), 16);
  bytes[18] = type;
  bytes.set(body, 19);
  return bytes;
}

function attribute(flags: number, type: number, value: readonly number[]): number[] {
  return value.length > 255
    ? [flags | 0x10, type, ...uint16(value.length), ...value]
    : [flags, type, value.length, ...value];
}

function prefixBytes({ family, network, length }: Prefix): readonly number[] {
  const bytes = bigBytes(network, family === 'IPv4' ? 4 : 16);
  return [length, ...bytes.slice(0, Math.ceil(length / 8))];
}

function addressBytes(text: string): readonly number[] {
  const address = parseStrictAddress(text);
  if (address === undefined) throw new RangeError(`"${text}" is no address`);
  return bigBytes(address.value, address.family === 'IPv4' ? 4 : 16);
}

function bigBytes(value: bigint, size: 4 | 16): number[] {
  return Array.from({ length: size }, (_, i) => Number((value >> BigInt(8 * (size - 1 - i))) & 255n));
}

function afi(family: IPFamily): 1 | 2 {
  return family === 'IPv4' ? 1 : 2;
}

function uint16(value: number): number[] {
  return [(value >>> 8) & 255, value & 255];
}

function uint32(value: number): number[] {
  return [(value >>> 24) & 255, (value >>> 16) & 255, (value >>> 8) & 255, value & 255];
}
