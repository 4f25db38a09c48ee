import { formatAddress, formatV4, type IPFamily } from '../../objects/address.ts';
import {
  type PeerCapabilities,
  errorCode,
  type GracefulRestart,
  type LargeCommunity,
  type BGPMessage,
  type Notification,
  type Open,
  type PathAttributes,
  type Prefix,
  ProtocolError,
  type UpdateMessage,
  maxMessageLength,
} from './message.ts';

/** Reads big-endian numbers from bytes, and never beyond their end. */
class MessageReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #tooShort: () => Error;
  #at = 0;

  /** @param tooShort the error for a read beyond the end. */
  constructor(bytes: Uint8Array, tooShort: () => Error) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#tooShort = tooShort;
  }

  /** Bytes that are left. */
  get left(): number {
    return this.#bytes.length - this.#at;
  }

  uint8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  uint16(): number {
    return this.#view.getUint16(this.#take(2));
  }

  uint32(): number {
    return this.#view.getUint32(this.#take(4));
  }

  /** A view of the next bytes. */
  bytes(length: number): Uint8Array {
    const start = this.#take(length);
    return this.#bytes.subarray(start, start + length);
  }

  /** A reader of the next bytes alone. @param tooShort as in the constructor; default: the same. */
  part(length: number, tooShort = this.#tooShort): MessageReader {
    return new MessageReader(this.bytes(length), tooShort);
  }

  #take(length: number): number {
    if (length > this.left) throw this.#tooShort();
    const start = this.#at;
    this.#at += length;
    return start;
  }
}

/**
 * Reads the body of a message.
 *
 * @param type 1 to 5.
 * @param fourByteAs whether AS paths have 4-byte numbers: both speakers have announced that they can (RFC 6793).
 * @throws {ProtocolError} with the NOTIFICATION to answer with.
 */
function decodeMessageBody(type: number, body: Uint8Array, fourByteAs: boolean): BGPMessage {
  switch (type) {
    case 1:
      return decodeOpen(body);
    case 2:
      return decodeUpdate(body, fourByteAs);
    case 3:
      return decodeNotification(body);
    case 4:
      return { type: 'keepalive' };
    default:
      return {
        type: 'route-refresh',
        family: familyOf(new MessageReader(body, () => new RangeError('ROUTE-REFRESH'))),
      };
  }
}

function openError(message: string, subcode: number, data?: Uint8Array): ProtocolError {
  return new ProtocolError(message, errorCode.openMessage, subcode, data);
}

function decodeOpen(body: Uint8Array): Open {
  const reader = new MessageReader(body, () => openError('an OPEN that is cut off', 0));
  const version = reader.uint8();
  if (version !== 4) throw openError(`BGP version ${version}`, 1, Uint8Array.of(0, 4));
  const as2 = reader.uint16();
  const holdSeconds = reader.uint16();
  if (holdSeconds === 1 || holdSeconds === 2) throw openError(`a hold time of ${holdSeconds} s`, 6);
  const routerId = reader.uint32();
  if (routerId === 0) throw openError('BGP identifier 0.0.0.0', 3);
  const { as4, ...capabilities } = decodeParameters(reader);
  const as = as4 ?? as2;
  if (as === 0) throw openError('AS 0', 2);
  return { type: 'open', as, holdSeconds, routerId: formatV4(routerId), capabilities };
}

type FoundCapabilities = PeerCapabilities & { readonly as4: number | undefined };

/** Optional parameters, with their extended length (RFC 9072) where it is used. */
function decodeParameters(reader: MessageReader): FoundCapabilities {
  let length = reader.uint8();
  let isExtended = false;
  if (length === 255 && reader.left >= 3) {
    isExtended = reader.uint8() === 255;
    if (!isExtended) throw openError('optional parameters that are cut off', 0);
    length = reader.uint16();
  }
  if (length !== reader.left) throw openError('optional parameters of a wrong length', 0);
  let found: FoundCapabilities = {
    ...{ families: undefined, routeRefresh: false, fourByteAs: false },
    ...{ gracefulRestart: undefined, as4: undefined },
  };
  while (reader.left > 0) {
    const type = reader.uint8();
    const value = reader.part(isExtended ? reader.uint16() : reader.uint8());
    if (type !== 2) throw openError(`optional parameter ${type}`, 4);
    while (value.left > 0) found = withCapability(found, value.uint8(), value.part(value.uint8()));
  }
  return found;
}

/** @param value of a capability; a value that is too short, or longer than it may be, is not that capability. */
function withCapability(found: FoundCapabilities, code: number, value: MessageReader): FoundCapabilities {
  if (code === 1 && value.left === 4) {
    const family = familyOf(value);
    const families = found.families ?? [];
    return { ...found, families: family === undefined ? families : [...new Set([...families, family])] };
  }
  if (code === 2) return { ...found, routeRefresh: true };
  if (code === 64 && value.left >= 2) return { ...found, gracefulRestart: decodeGracefulRestart(value) };
  if (code === 65 && value.left === 4) return { ...found, fourByteAs: true, as4: value.uint32() };
  return found;
}

function decodeGracefulRestart(value: MessageReader): GracefulRestart {
  const flagsAndTime = value.uint16();
  const families: { family: IPFamily; forwarding: boolean }[] = [];
  while (value.left >= 4) {
    const afi = value.uint16();
    const safi = value.uint8();
    const forwarding = (value.uint8() & 0x80) !== 0;
    const family = unicast(afi, safi);
    if (family !== undefined) families.push({ family, forwarding });
  }
  return { restarting: (flagsAndTime & 0x8000) !== 0, restartSeconds: flagsAndTime & 0xfff, families };
}

/** AFI, a reserved byte, SAFI. */
function familyOf(reader: MessageReader): IPFamily | undefined {
  const afi = reader.uint16();
  reader.uint8();
  return unicast(afi, reader.uint8());
}

function unicast(afi: number, safi: number): IPFamily | undefined {
  if (safi !== 1) return undefined;
  return afi === 1 ? 'IPv4' : afi === 2 ? 'IPv6' : undefined;
}

function decodeNotification(body: Uint8Array): Notification {
  const [code = 0, subcode = 0] = body;
  return { type: 'notification', code, subcode, data: body.slice(2) };
}

/**
 * An UPDATE. Its frame and its networks must be right, else the session ends; malformed attributes only
 * withdraw its routes (RFC 7606).
 */
function decodeUpdate(body: Uint8Array, fourByteAs: boolean): UpdateMessage {
  const malformed = (): ProtocolError => updateError('an UPDATE whose lengths do not fit', 1);
  const reader = new MessageReader(body, malformed);
  const withdrawn = decodePrefixes(reader.part(reader.uint16()), 'IPv4');
  const found = decodeAttributes(reader.part(reader.uint16()), fourByteAs);
  const announced = decodePrefixes(reader, 'IPv4');
  const isEmpty = body.length === 4;
  const { reached, unreached, isEndOfRib, ...parts } = found;
  return {
    type: 'update',
    withdrawn: [...withdrawn, ...unreached],
    announced: [...announced, ...reached.prefixes],
    attributes:
      announced.length + reached.prefixes.length === 0 ? undefined : wholeAttributes(parts, reached.nextHop),
    endOfRib: isEmpty ? 'IPv4' : isEndOfRib && announced.length + withdrawn.length === 0 ? 'IPv6' : undefined,
  };
}

function updateError(message: string, subcode: number): ProtocolError {
  return new ProtocolError(message, errorCode.updateMessage, subcode);
}

interface FoundAttributes {
  origin?: PathAttributes['origin'];
  asPath?: readonly number[];
  nextHop?: string;
  localPref?: number;
  communities: readonly number[];
  largeCommunities: readonly LargeCommunity[];
  isMalformed: boolean;
}

interface MultiprotocolAttributes {
  reached: { readonly prefixes: readonly Prefix[]; readonly nextHop?: string };
  unreached: readonly Prefix[];
  isEndOfRib: boolean;
}

function wholeAttributes(found: FoundAttributes, reachedBy: string | undefined): PathAttributes | undefined {
  const { origin, asPath, localPref, communities, largeCommunities, isMalformed } = found;
  const nextHop = reachedBy ?? found.nextHop;
  if (isMalformed || origin === undefined || asPath === undefined || nextHop === undefined) return undefined;
  return {
    ...{ origin, asPath, nextHop, communities, largeCommunities },
    ...(localPref === undefined ? {} : { localPref }),
  };
}

function decodeAttributes(
  reader: MessageReader,
  fourByteAs: boolean,
): FoundAttributes & MultiprotocolAttributes {
  const found: FoundAttributes & MultiprotocolAttributes = {
    ...{ communities: [], largeCommunities: [], isMalformed: false },
    ...{ reached: { prefixes: [] }, unreached: [], isEndOfRib: false },
  };
  const seen = new Set<number>();
  while (reader.left > 0) {
    const flags = reader.uint8();
    const type = reader.uint8();
    const length = (flags & 0x10) === 0 ? reader.uint8() : reader.uint16();
    const isMultiprotocol = type === 14 || type === 15;
    if (seen.has(type)) {
      // RFC 7606 §3 (g): of others, the first counts.
      if (isMultiprotocol) throw updateError(`attribute ${type} twice`, 1);
      reader.bytes(length);
      continue;
    }
    seen.add(type);
    const cutOff = (): Error => updateError(`attribute ${type} is cut off`, isMultiprotocol ? 9 : 5);
    const value = reader.part(length, cutOff);
    if (isMultiprotocol) decodeMultiprotocol(found, type, value);
    else found.isMalformed = !isRead(found, type, value, fourByteAs) || found.isMalformed;
  }
  return found;
}

/** Takes an attribute over. False: it does not say what it must. */
function isRead(found: FoundAttributes, type: number, value: MessageReader, fourByteAs: boolean): boolean {
  const { left } = value;
  switch (type) {
    case 1: {
      const origin = left === 1 ? (['IGP', 'EGP', 'INCOMPLETE'] as const)[value.uint8()] : undefined;
      if (origin !== undefined) found.origin = origin;
      return origin !== undefined;
    }
    case 2: {
      const asPath = decodeAsPath(value, fourByteAs);
      if (asPath !== undefined) found.asPath = asPath;
      return asPath !== undefined;
    }
    case 3:
      if (left !== 4) return false;
      found.nextHop = formatV4(value.uint32());
      return true;
    case 5:
      if (left !== 4) return false;
      found.localPref = value.uint32();
      return true;
    case 8:
      if (left % 4 !== 0) return false;
      found.communities = Array.from({ length: left / 4 }, () => value.uint32());
      return true;
    case 32:
      if (left % 12 !== 0) return false;
      found.largeCommunities = Array.from({ length: left / 12 }, (): LargeCommunity => [
        value.uint32(),
        value.uint32(),
        value.uint32(),
      ]);
      return true;
    default:
      return true;
  }
}

/** The numbers of all segments; undefined for what is no path. */
function decodeAsPath(value: MessageReader, fourByteAs: boolean): readonly number[] | undefined {
  const path: number[] = [];
  while (value.left >= 2) {
    const type = value.uint8();
    const count = value.uint8();
    if (type < 1 || type > 4 || count === 0 || value.left < count * (fourByteAs ? 4 : 2)) return undefined;
    for (let i = 0; i < count; i++) path.push(fourByteAs ? value.uint32() : value.uint16());
  }
  return value.left === 0 ? path : undefined;
}

/** MP_REACH_NLRI (14) and MP_UNREACH_NLRI (15), RFC 4760. Families that are not known are left out. */
function decodeMultiprotocol(found: MultiprotocolAttributes, type: number, value: MessageReader): void {
  const family = unicast(value.uint16(), value.uint8());
  if (type === 15) {
    if (family === undefined) return;
    found.isEndOfRib = value.left === 0 && family === 'IPv6';
    found.unreached = decodePrefixes(value, family);
    return;
  }
  const nextHop = value.part(value.uint8());
  value.uint8();
  if (family === undefined) return;
  const address = decodeNextHop(nextHop);
  const prefixes = decodePrefixes(value, family);
  found.reached = { prefixes, ...(address === undefined ? {} : { nextHop: address }) };
}

/** The first address: an IPv6 next hop may be followed by the link-local one. */
function decodeNextHop(reader: MessageReader): string | undefined {
  if (reader.left === 4) return formatV4(reader.uint32());
  if (reader.left !== 16 && reader.left !== 32) return undefined;
  return formatAddress('IPv6', bigOf(reader.bytes(16), 16));
}

function decodePrefixes(reader: MessageReader, family: IPFamily): Prefix[] {
  const prefixes: Prefix[] = [];
  const size = family === 'IPv4' ? 4 : 16;
  while (reader.left > 0) {
    const length = reader.uint8();
    const count = Math.ceil(length / 8);
    if (length > size * 8 || count > reader.left) {
      throw updateError(`a network of ${length} bits that is none`, 10);
    }
    const hostBits = BigInt(size * 8 - length);
    prefixes.push({ family, network: (bigOf(reader.bytes(count), size) >> hostBits) << hostBits, length });
  }
  return prefixes;
}

/** An address of `size` bytes whose first ones these are. */
function bigOf(bytes: Uint8Array, size: 4 | 16): bigint {
  let value = 0n;
  for (let i = 0; i < size; i++) value = (value << 8n) | BigInt(bytes[i] ?? 0);
  return value;
}

const markerLength = 16;
const headerLength = 19;

/** Bytes of the shortest message of each type (RFC 4271 §4), by its number; ROUTE-REFRESH is RFC 2918. */
const minLengths: Readonly<Record<number, number>> = { 1: 29, 2: 23, 3: 21, 4: 19, 5: 23 };

/** Cuts the stream of a TCP connection into messages. */
export class MessageStream {
  /** Whether AS paths have 4-byte numbers, which the OPEN messages of both sides decide. */
  fourByteAs = false;
  #rest: Uint8Array = new Uint8Array();

  /**
   * The messages that are complete with these bytes, in order; one at a time, so that those before a broken one are seen.
   *
   * @throws {ProtocolError} for what is no message; the stream cannot be read any further.
   */
  *push(chunk: Uint8Array): Generator<BGPMessage, void> {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= headerLength) {
      const length = checkHeader(bytes);
      if (bytes.length < length) break;
      const body = bytes.subarray(headerLength, length);
      const type = bytes[18] ?? 0;
      bytes = bytes.subarray(length);
      this.#rest = bytes;
      yield decodeMessageBody(type, body, this.fourByteAs);
    }
    // A copy: the chunk's memory is the socket's, and usually much larger.
    this.#rest = Uint8Array.from(bytes);
  }
}

/** The length in a header. @throws {ProtocolError} RFC 4271 §6.1. */
function checkHeader(bytes: Uint8Array): number {
  for (let i = 0; i < markerLength; i++) {
    if (bytes[i] !== 0xff) throw new ProtocolError('the marker is not all ones', errorCode.messageHeader, 1);
  }
  const length = ((bytes[16] ?? 0) << 8) | (bytes[17] ?? 0);
  const type = bytes[18] ?? 0;
  const minLength = minLengths[type];
  if (minLength === undefined) {
    throw new ProtocolError(
      `there is no message type ${type}`,
      errorCode.messageHeader,
      3,
      Uint8Array.of(type),
    );
  }
  const isExact = type === 4 || type === 5;
  if (length < minLength || length > maxMessageLength || (isExact && length !== minLength)) {
    const said = bytes.slice(16, 18);
    throw type === 5 && length > minLength && length <= maxMessageLength
      ? new ProtocolError(
          'a ROUTE-REFRESH of a wrong length',
          errorCode.routeRefresh,
          1,
          bytes.slice(0, headerLength),
        )
      : new ProtocolError(`a message of type ${type} with ${length} bytes`, errorCode.messageHeader, 2, said);
  }
  return length;
}
