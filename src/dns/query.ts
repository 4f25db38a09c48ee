import { type Answer, type DecodedPacket, decode } from 'dns-packet';
import type { Question } from '../network/dns/records.ts';

/** RFC 1035, 4.1.1. */
export const headerLength = 12;
/** RFC 6891: what clients without EDNS take by UDP. */
const plainUdpSize = 512;
/** The most that is sent by UDP: it fits any path without fragments (DNS flag day 2020). */
export const maxUdpSize = 1232;

/** Types that dns-packet has no names for and that clients ask for each day. */
const typeNames = new Map<string, string>([['UNKNOWN_65', 'HTTPS']]);

/** The query of a client. */
export interface DnsQuery extends Question {
  readonly id: number;
  readonly recursionDesired: boolean;
  readonly checkingDisabled: boolean;
  /** The question as it was sent, in its own case: name, type and class. */
  readonly questionBytes: Buffer;
  /** False for a name that has no text form: its labels have dots or bytes beyond ASCII. */
  readonly isPlain: boolean;
  /** `IN`, … */
  readonly class: string;
  /** Undefined without EDNS. */
  readonly edns: { readonly dnssecOk: boolean; readonly version: number } | undefined;
  /** The bytes that the client takes by UDP, 512 to {@link maxUdpSize}. */
  readonly udpSize: number;
}

/** A packet that is answered without records. */
export interface RefusedQuery {
  readonly id: number;
  /** 0 to 15; it is repeated. */
  readonly opcode: number;
  readonly recursionDesired: boolean;
  readonly refused: 'FORMERR' | 'NOTIMP';
}

/**
 * Reads what a client sent.
 *
 * @returns undefined for what may not be answered: an answer (two servers would answer each other for ever), and what
 * is shorter than a header.
 */
export function readQuery(bytes: Buffer): DnsQuery | RefusedQuery | undefined {
  if (bytes.length < headerLength) return undefined;
  const flags = bytes.readUInt16BE(2);
  if ((flags & 0x8000) !== 0) return undefined;
  const id = bytes.readUInt16BE(0);
  const recursionDesired = (flags & 0x0100) !== 0;
  const opcode = (flags >> 11) & 15;
  const refused = (rcode: RefusedQuery['refused']): RefusedQuery => ({
    id,
    opcode,
    recursionDesired,
    refused: rcode,
  });
  if (opcode !== 0) return refused('NOTIMP');
  // As miekg/dns' DefaultMsgAcceptFunc; dns-packet reserves memory by these counts.
  const [questions = 0, answers = 0, authorities = 0, additionals = 0] = [4, 6, 8, 10].map((at) =>
    bytes.readUInt16BE(at),
  );
  if (questions !== 1 || answers > 1 || authorities > 1 || additionals > 2) return refused('FORMERR');
  const packet = decoded(bytes);
  const question = packet?.questions?.[0];
  const end = nameEnd(bytes);
  if (packet === undefined || question === undefined || end === undefined) return refused('FORMERR');
  const options = (packet.additionals ?? []).filter((record) => record.type === 'OPT');
  if (options.length > 1) return refused('FORMERR');
  const [opt] = options;
  return {
    id,
    recursionDesired,
    checkingDisabled: (flags & 0x0010) !== 0,
    name: question.name === '.' ? '' : question.name,
    type: typeNames.get(question.type) ?? question.type,
    class: question.class ?? 'IN',
    questionBytes: bytes.subarray(headerLength, end.at + 4),
    isPlain: end.isPlain,
    edns: opt === undefined ? undefined : { dnssecOk: opt.flag_do, version: opt.ednsVersion },
    udpSize: opt === undefined ? plainUdpSize : sizeWithin(opt.udpPayloadSize),
  };
}

/**
 * The records of an upstream's answer.
 *
 * @returns undefined for a packet that is broken.
 */
export function readAnswers(bytes: Buffer): readonly Answer[] | undefined {
  return decoded(bytes)?.answers;
}

function sizeWithin(asked: number): number {
  return Math.min(Math.max(asked, plainUdpSize), maxUdpSize);
}

/** dns-packet throws for names beyond 255 bytes, circles of pointers, and everything that is cut off. */
function decoded(bytes: Buffer): DecodedPacket | undefined {
  try {
    return decode(bytes);
  } catch {
    return undefined;
  }
}

const dot = 0x2e;
const maxLabel = 63;

/** The end of the first question's name; undefined for one with pointers: there is nothing to point to. */
function nameEnd(bytes: Buffer): { readonly at: number; readonly isPlain: boolean } | undefined {
  let isPlain = true;
  for (let at = headerLength; at < bytes.length;) {
    const length = bytes[at++] ?? 0;
    if (length === 0) return { at, isPlain };
    if (length > maxLabel) return undefined;
    for (const end = at + length; at < end; at++) {
      const byte = bytes[at] ?? 0;
      if (byte === dot || byte > 0x7e || byte <= 0x20) isPlain = false;
    }
  }
  return undefined;
}
