import { type Answer, type DecodedPacket, decode } from 'dns-packet';
import type { Question, DnsRecord } from '../network/dns/records.ts';
import { parseAddress } from '../objects/address.ts';

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

/** RFC 1035, 4.1.1; RFC 6891 for BADVERS. */
const rcodes = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  BADVERS: 16,
} as const;
export type Rcode = keyof typeof rcodes;

const types = { A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, TXT: 16, AAAA: 28, SRV: 33 } as const;
const optType = 41;
const internetClass = 1;
/** The name, type, class, TTL and length of an OPT record without options. */
const optLength = 11;
const dnssecOk = 0x8000;
/** The bits of a pointer to a name (RFC 1035, 4.1.4), and where it can lead. */
const pointer = 0xc000;
const maxPointed = 0x3fff;
/** A name of 255 bytes, and the fixed part of the longest record. */
const maxRecord = 1024;

/** An answer to a query, or to a packet that could not be read: then without a question. */
export interface DnsReply {
  readonly query: Pick<DnsQuery, 'id' | 'recursionDesired'> &
    Partial<
      Pick<DnsQuery, 'questionBytes' | 'name' | 'edns' | 'checkingDisabled'> & Pick<RefusedQuery, 'opcode'>
    >;
  readonly rcode: Rcode;
  readonly authoritative: boolean;
  readonly answers: readonly DnsRecord[];
  readonly authorities: readonly DnsRecord[];
  readonly additionals: readonly DnsRecord[];
}

/**
 * Writes replies. dns-packet writes no compressed names: a reply would be truncated at a third of its records. Names
 * within SRV records are not compressed (RFC 2782).
 */
export class MessageWriter {
  readonly #bytes = Buffer.alloc(65_535 + maxRecord);
  #at = 0;
  /** Offsets of names, by their text; of the question only once it is needed. */
  readonly #names = new Map<string, number>();
  #question = '';

  /**
   * @param limit bytes, 512 to 65535: records that do not fit are left out, and TC is set; but not for additional
   *   records, which are not worth a TCP connection (RFC 2181, 9).
   */
  write({ query, rcode, authoritative, answers, authorities, additionals }: DnsReply, limit: number): Buffer {
    const bytes = this.#bytes;
    const code = rcodes[rcode];
    this.#names.clear();
    this.#question = query.name ?? '';
    this.#at = headerLength;
    const { questionBytes, edns } = query;
    if (questionBytes !== undefined) this.#at += questionBytes.copy(bytes, this.#at);
    const end = limit - (edns === undefined ? 0 : optLength);
    const answerCount = this.#section(answers, end);
    const authorityCount = this.#section(authorities, end);
    const additionalCount = this.#section(additionals, end);
    if (edns !== undefined) this.#opt(edns.dnssecOk, code >> 4);
    const isTruncated = answerCount < answers.length || authorityCount < authorities.length;
    bytes.writeUInt16BE(query.id, 0);
    bytes.writeUInt16BE(
      0x8080 |
        ((query.opcode ?? 0) << 11) |
        (authoritative ? 0x0400 : 0) |
        (isTruncated ? 0x0200 : 0) |
        (query.recursionDesired ? 0x0100 : 0) |
        (query.checkingDisabled === true ? 0x0010 : 0) |
        (code & 15),
      2,
    );
    bytes.writeUInt16BE(questionBytes === undefined ? 0 : 1, 4);
    bytes.writeUInt16BE(answerCount, 6);
    bytes.writeUInt16BE(authorityCount, 8);
    bytes.writeUInt16BE(additionalCount + (edns === undefined ? 0 : 1), 10);
    return Buffer.from(bytes.subarray(0, this.#at));
  }

  /** @returns how many records fit. */
  #section(records: readonly DnsRecord[], end: number): number {
    let count = 0;
    for (const record of records) {
      const start = this.#at;
      this.#record(record);
      if (this.#at > end) {
        this.#at = start;
        // No pointer may lead into what was cut off.
        for (const [name, at] of this.#names) if (at >= start) this.#names.delete(name);
        return count;
      }
      count++;
    }
    return count;
  }

  #record(record: DnsRecord): void {
    this.#name(record.name);
    this.#uint16(types[record.type]);
    this.#uint16(internetClass);
    this.#uint32(record.ttl);
    const length = this.#at;
    this.#at += 2;
    switch (record.type) {
      case 'A':
      case 'AAAA':
        this.#address(record.type, record.address);
        break;
      case 'CNAME':
      case 'NS':
      case 'PTR':
        this.#name(record.target);
        break;
      case 'SRV':
        this.#uint16(record.priority);
        this.#uint16(record.weight);
        this.#uint16(record.port);
        this.#name(record.target, false);
        break;
      case 'SOA':
        this.#name(record.mname);
        this.#name(record.rname);
        for (const field of ['serial', 'refresh', 'retry', 'expire', 'minimum'] as const) {
          this.#uint32(record[field]);
        }
        break;
      case 'TXT':
        this.#text(record.text);
        break;
    }
    this.#bytes.writeUInt16BE(this.#at - length - 2, length);
  }

  #name(name: string, compress = true): void {
    if (compress && name === this.#question && name !== '') {
      this.#uint16(pointer | headerLength);
      return;
    }
    if (this.#names.size === 0) this.#note(this.#question, headerLength);
    // dns-packet reads the root as a dot.
    for (let rest = name === '.' ? '' : name; rest !== '';) {
      const known = compress ? this.#names.get(rest) : undefined;
      if (known !== undefined) {
        this.#uint16(pointer | known);
        return;
      }
      if (this.#at <= maxPointed && !this.#names.has(rest)) this.#names.set(rest, this.#at);
      const end = rest.indexOf('.');
      this.#text(end < 0 ? rest : rest.slice(0, end));
      rest = end < 0 ? '' : rest.slice(end + 1);
    }
    this.#bytes[this.#at++] = 0;
  }

  /** Files a name of the question, and the names above it. */
  #note(name: string, start: number): void {
    for (let rest = name, at = start; rest !== '';) {
      this.#names.set(rest, at);
      const end = rest.indexOf('.');
      if (end < 0) return;
      at += end + 1;
      rest = rest.slice(end + 1);
    }
  }

  /** A length in one byte, and the text: a label, or a string of TXT. */
  #text(text: string): void {
    this.#bytes[this.#at] = this.#bytes.write(text, this.#at + 1, 'latin1');
    this.#at += text.length + 1;
  }

  #address(type: 'A' | 'AAAA', text: string): void {
    const value = parseAddress(text)?.value ?? 0n;
    if (type === 'A') {
      this.#uint32(Number(value));
      return;
    }
    this.#bytes.writeBigUInt64BE(value >> 64n, this.#at);
    this.#bytes.writeBigUInt64BE(BigInt.asUintN(64, value), this.#at + 8);
    this.#at += 16;
  }

  #opt(wantsDnssec: boolean, extendedRcode: number): void {
    this.#bytes[this.#at++] = 0;
    this.#uint16(optType);
    this.#uint16(maxUdpSize);
    this.#bytes[this.#at++] = extendedRcode;
    this.#bytes[this.#at++] = 0; // version
    this.#uint16(wantsDnssec ? dnssecOk : 0);
    this.#uint16(0);
  }

  #uint16(value: number): void {
    this.#at = this.#bytes.writeUInt16BE(value, this.#at);
  }

  #uint32(value: number): void {
    this.#at = this.#bytes.writeUInt32BE(value, this.#at);
  }
}
