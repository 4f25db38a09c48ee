/** Encodes the ASN.1 types of X.509 certificates in DER (X.690). */
import { pushAll } from '../objects/lists.ts';

const tag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  sequence: 0x30,
  set: 0x31,
  utcTime: 0x17,
  generalizedTime: 0x18,
} as const;

function lengthOctets(length: number): number[] {
  if (length < 0x80) return [length];
  const octets: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) octets.unshift(rest % 256);
  return [0x80 | octets.length, ...octets];
}

function encode(tagOctet: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tagOctet, ...lengthOctets(content.length)]), content]);
}

/** A SEQUENCE. */
export function sequence(...items: readonly Uint8Array[]): Buffer {
  return encode(tag.sequence, ...items);
}

/** A SET OF one item. (DER sorts the items of larger sets.) */
export function setOfOne(item: Uint8Array): Buffer {
  return encode(tag.set, item);
}

/** NULL. */
export const nothing = Buffer.from([0x05, 0x00]);

/** A BOOLEAN. */
export function boolean(value: boolean): Buffer {
  return encode(tag.boolean, Buffer.from([value ? 0xff : 0]));
}

/** A non-negative INTEGER. @param magnitude big-endian, of any length. */
export function integer(magnitude: Uint8Array): Buffer {
  let start = 0;
  while (start < magnitude.length - 1 && magnitude[start] === 0) start++;
  const bytes = magnitude.subarray(start);
  const hasSignBit = ((bytes[0] ?? 0) & 0x80) !== 0;
  return encode(tag.integer, ...(hasSignBit ? [Buffer.from([0]), bytes] : [bytes]));
}

/** A BIT STRING. @param unusedBits of the last byte, 0 to 7. */
export function bitString(bytes: Uint8Array, unusedBits = 0): Buffer {
  return encode(tag.bitString, Buffer.from([unusedBits]), bytes);
}

/** An OCTET STRING. */
export function octetString(bytes: Uint8Array): Buffer {
  return encode(tag.octetString, bytes);
}

/** A UTF8String. */
export function utf8String(text: string): Buffer {
  return encode(tag.utf8String, Buffer.from(text, 'utf8'));
}

/** Values with the explicit tag `[n]`. */
export function explicit(n: number, ...items: readonly Uint8Array[]): Buffer {
  return encode(0xa0 | n, ...items);
}

/** The content of a primitive value with the implicit tag `[n]`. */
export function implicit(n: number, bytes: Uint8Array): Buffer {
  return encode(0x80 | n, bytes);
}

/** An object identifier in dotted form, such as `2.5.4.3`. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const octets: number[] = [first * 40 + second];
  for (const arc of rest) {
    const group = [arc % 128];
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) {
      group.unshift(0x80 | (left % 128));
    }
    pushAll(octets, group);
  }
  return encode(tag.oid, Buffer.from(octets));
}

/** A time in whole seconds: UTCTime until 2049, GeneralizedTime from 2050 on (RFC 5280, 4.1.2.5). */
export function time(date: Date): Buffer {
  const digits = date
    .toISOString()
    .replaceAll(/[-:T]/g, '')
    .replace(/\.\d+Z$/, 'Z');
  return date.getUTCFullYear() < 2050
    ? encode(tag.utcTime, Buffer.from(digits.slice(2), 'latin1'))
    : encode(tag.generalizedTime, Buffer.from(digits, 'latin1'));
}
