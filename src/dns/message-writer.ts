import type { DnsRecord } from '../network/dns/records.ts';
import { parseAddress } from '../objects/address.ts';
import { headerLength, maxUdpSize, type DnsQuery, type RefusedQuery } from './query.ts';

/** RFC 1035, 4.1.1; RFC 6891 for BADVERS. */
export const rcodes = {
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
