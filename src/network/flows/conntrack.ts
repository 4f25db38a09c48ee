import { parseAddress, formatV4, formatV6Words, joinHostPort } from '../../objects/address.ts';
import type { Protocol } from '../forwarding/forwarding-plan.ts';
import type { AddressPair, SeenConnection } from '../path/way.ts';

/** Two ends of a connection, as packets of one direction have them. */
export interface Tuple {
  /** Canonical. */
  readonly source: string;
  readonly sourcePort: number;
  /** Canonical. */
  readonly destination: string;
  readonly destinationPort: number;
}

/** A connection of the kernel's connection tracking: an event of netlink, or a line of `conntrack -L`. */
export interface TrackedConnection {
  /** `listed`: it was there. */
  readonly event: 'new' | 'update' | 'destroy' | 'listed';
  readonly protocol: Protocol;
  /** As its first packet was sent. */
  readonly original: Tuple;
  /** As its answers come: its source is where the first packet was led to, its destination the client that is seen there. */
  readonly reply: Tuple;
  /** Whether any answer came. */
  readonly isReplied: boolean;
  /** Seconds since it began; 0 where the line does not say. */
  readonly ageSeconds: number;
}

const protocolsByWord: ReadonlyMap<string, Protocol> = new Map([
  ['tcp', 'TCP'],
  ['udp', 'UDP'],
  ['sctp', 'SCTP'],
]);

const headPattern = /^(?:ipv[46]\s+\d+\s+)?([a-z]+)\s/;
const agePattern = /\bdelta-time=(\d+)/;
/** The ends of one direction, in the order in which conntrack prints them. */
const tuplePattern = /\bsrc=(\S{1,45}) dst=(\S{1,45}) sport=(\d+) dport=(\d+)/g;

/** Reads a line of either family. @returns undefined for what is no connection of TCP, UDP or SCTP. */
export function readConntrackLine(line: string): TrackedConnection | undefined {
  const [, protocolWord = ''] = headPattern.exec(line) ?? [];
  const protocol = protocolsByWord.get(protocolWord);
  const [original, reply] = Array.from(line.matchAll(tuplePattern), tupleOf);
  if (protocol === undefined || original === undefined || reply === undefined) return undefined;
  const ageSeconds = Number(agePattern.exec(line)?.[1] ?? 0);
  return { event: 'listed', protocol, original, reply, isReplied: !line.includes('[UNREPLIED]'), ageSeconds };
}

function tupleOf([, source = '', destination = '', sourcePort, destinationPort]: RegExpExecArray):
  Tuple | undefined {
  const [from, to] = [canonical(source), canonical(destination)];
  if (from === undefined || to === undefined) return undefined;
  return {
    ...{ source: from, sourcePort: Number(sourcePort) },
    ...{ destination: to, destinationPort: Number(destinationPort) },
  };
}

/** The C library shortens IPv6 addresses in another way than RFC 5952 here and there. */
function canonical(text: string): string | undefined {
  return text.includes(':') ? parseAddress(text)?.canonical : text;
}

/**
 * What the kernel says of connections to the groups of NETLINK_NETFILTER: `nfnetlink.h`, `nfnetlink_conntrack.h` and
 * `nf_conntrack_common.h` of linux/netfilter. Numbers of netlink have the byte order of the machine, which is
 * little-endian; those of attributes that of the network.
 */

/** The protocol of netlink, and the groups of beginnings, changes and ends. */
export const conntrackEvents = { protocol: 12, groups: 0b111 } as const;

/** Bytes of `struct nlmsghdr`, of `struct nfgenmsg` behind it, and of `struct nlattr`. */
const messageHeader = 16;
const netfilterHeader = 4;
const attributeHeader = 4;

/** NFNL_SUBSYS_CTNETLINK with IPCTNL_MSG_CT_NEW, which is also of changes, and IPCTNL_MSG_CT_DELETE. */
const connectionNew = 0x100;
const connectionDelete = 0x102;
/** NLM_F_CREATE and NLM_F_EXCL: it has begun. */
const hasBegun = 0x600;

/** Enum `ctattr_type`, and within a tuple `ctattr_tuple`, `ctattr_ip` and `ctattr_l4proto`. */
const attribute = { original: 1, reply: 2, status: 3 } as const;
const ofTuple = { addresses: 1, protocol: 2 } as const;
const ofAddresses = { source4: 1, destination4: 2, source6: 3, destination6: 4 } as const;
const ofProtocol = { number: 1, sourcePort: 2, destinationPort: 3 } as const;
/** Flags of an attribute stand beside its type. */
const typeMask = 0x3fff;
/** IPS_SEEN_REPLY */
const seenReply = 2;

const protocolsByNumber: ReadonlyMap<number, Protocol> = new Map([
  [6, 'TCP'],
  [17, 'UDP'],
  [132, 'SCTP'],
]);

/**
 * Reads the messages of one datagram of the kernel.
 *
 * @returns the connections of TCP, UDP and SCTP; nothing of what is cut or is no event.
 */
export function readConntrackEvents(datagram: Buffer): readonly TrackedConnection[] {
  const connections: TrackedConnection[] = [];
  for (let at = 0; at + messageHeader <= datagram.length;) {
    const length = datagram.readUInt32LE(at);
    if (length < messageHeader || at + length > datagram.length) break;
    const connection = readEvent(datagram, at, at + length);
    if (connection !== undefined) connections.push(connection);
    at += aligned(length);
  }
  return connections;
}

function readEvent(bytes: Buffer, start: number, end: number): TrackedConnection | undefined {
  const type = bytes.readUInt16LE(start + 4);
  if (type !== connectionNew && type !== connectionDelete) return undefined;
  const isNew = (bytes.readUInt16LE(start + 6) & hasBegun) !== 0;
  const first = start + messageHeader + netfilterHeader;
  const originalAt = find(bytes, first, end, attribute.original, 0);
  const replyAt = find(bytes, first, end, attribute.reply, 0);
  const statusAt = find(bytes, first, end, attribute.status, 4);
  if (originalAt < 0 || replyAt < 0 || statusAt < 0) return undefined;
  const protocol = readProtocol(bytes, originalAt);
  const [original, reply] = [readTuple(bytes, originalAt), readTuple(bytes, replyAt)];
  if (protocol === undefined || original === undefined || reply === undefined) return undefined;
  return {
    event: type === connectionDelete ? 'destroy' : isNew ? 'new' : 'update',
    ...{ protocol, original, reply, ageSeconds: 0 },
    isReplied: (bytes.readUInt32BE(statusAt) & seenReply) !== 0,
  };
}

/** @param at where the contents of a tuple begin. */
function readProtocol(bytes: Buffer, at: number): Protocol | undefined {
  const partAt = find(bytes, at, endOf(bytes, at), ofTuple.protocol, 0);
  const numberAt = partAt < 0 ? -1 : find(bytes, partAt, endOf(bytes, partAt), ofProtocol.number, 1);
  return numberAt < 0 ? undefined : protocolsByNumber.get(bytes.readUInt8(numberAt));
}

function readTuple(bytes: Buffer, at: number): Tuple | undefined {
  const end = endOf(bytes, at);
  const addressesAt = find(bytes, at, end, ofTuple.addresses, 0);
  const portsAt = find(bytes, at, end, ofTuple.protocol, 0);
  if (addressesAt < 0 || portsAt < 0) return undefined;
  const source = readAddress(bytes, addressesAt, ofAddresses.source4, ofAddresses.source6);
  const destination = readAddress(bytes, addressesAt, ofAddresses.destination4, ofAddresses.destination6);
  const portsEnd = endOf(bytes, portsAt);
  const sourcePortAt = find(bytes, portsAt, portsEnd, ofProtocol.sourcePort, 2);
  const destinationPortAt = find(bytes, portsAt, portsEnd, ofProtocol.destinationPort, 2);
  if (source === undefined || destination === undefined || sourcePortAt < 0 || destinationPortAt < 0)
    return undefined;
  return {
    ...{ source, sourcePort: bytes.readUInt16BE(sourcePortAt) },
    ...{ destination, destinationPort: bytes.readUInt16BE(destinationPortAt) },
  };
}

/** Of either family. */
function readAddress(bytes: Buffer, at: number, type4: number, type6: number): string | undefined {
  const end = endOf(bytes, at);
  const at4 = find(bytes, at, end, type4, 4);
  if (at4 >= 0) return formatV4(bytes.readUInt32BE(at4));
  const at6 = find(bytes, at, end, type6, 16);
  if (at6 < 0) return undefined;
  const word = (n: number): number => bytes.readUInt32BE(at6 + 4 * n);
  return formatV6Words(word(0), word(1), word(2), word(3));
}

/** Where the contents of an attribute begin that has so many bytes at least; -1: there is none. */
function find(bytes: Buffer, start: number, end: number, type: number, size: number): number {
  for (let at = start; at + attributeHeader <= end;) {
    const length = bytes.readUInt16LE(at);
    if (length < attributeHeader || at + length > end) return -1;
    if ((bytes.readUInt16LE(at + 2) & typeMask) === type)
      return length - attributeHeader < size ? -1 : at + attributeHeader;
    at += aligned(length);
  }
  return -1;
}

/** Where the contents of an attribute end that begin at an offset. */
function endOf(bytes: Buffer, at: number): number {
  return at - attributeHeader + bytes.readUInt16LE(at - attributeHeader);
}

/** What follows begins at a multiple of four bytes. */
function aligned(length: number): number {
  return (length + 3) & ~3;
}

/**
 * Follows one connection through nodes, which may translate its addresses.
 *
 * @param first its first packet, as its source sends it.
 * @param trackedAt the connections of TCP that each node tracks from a source port.
 * @returns what each node knows of it, in the order of the way.
 */
export async function followConnection(
  first: Tuple,
  trackedAt: (sourcePort: number) => Promise<readonly (readonly [node: string, TrackedConnection])[]>,
): Promise<readonly SeenConnection[]> {
  const found: SeenConnection[] = [];
  const known = new Map<number, Awaited<ReturnType<typeof trackedAt>>>();
  const sought: Tuple[] = [first];
  for (let packet = sought.shift(); packet !== undefined; packet = sought.shift()) {
    const { sourcePort } = packet;
    const tracked = known.get(sourcePort) ?? (await trackedAt(sourcePort));
    known.set(sourcePort, tracked);
    const received = pairOf(packet);
    for (const [node, { original, reply }] of tracked) {
      if (!isSame(pairOf(original), received) || found.some((each) => each.node === node)) continue;
      const sent: Tuple = {
        ...{ source: reply.destination, sourcePort: reply.destinationPort },
        ...{ destination: reply.source, destinationPort: reply.sourcePort },
      };
      found.push({ node, received, sent: pairOf(sent) });
      // The next node has it as this one has sent it.
      if (!isSame(pairOf(sent), received)) sought.push(sent);
    }
  }
  return found;
}

function pairOf({ source, sourcePort, destination, destinationPort }: Tuple): AddressPair {
  return {
    source: joinHostPort(source, sourcePort),
    destination: joinHostPort(destination, destinationPort),
  };
}

function isSame(a: AddressPair, b: AddressPair): boolean {
  return a.source === b.source && a.destination === b.destination;
}
