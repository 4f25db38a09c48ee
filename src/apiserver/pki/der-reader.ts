/** A DER value (X.690). */
export interface DerValue {
  readonly tag: number;
  readonly content: Buffer;
  /** Tag and length included. */
  readonly whole: Buffer;
}

const truncated = 'asn1: syntax error: data truncated';

/** The value that starts at `at`. @throws {Error} with Go's message when it is truncated. */
function derValue(bytes: Buffer, at: number): DerValue {
  const tag = bytes[at];
  const first = bytes[at + 1];
  if (tag === undefined || first === undefined) throw new Error(truncated);
  let length = first;
  let start = at + 2;
  if (first >= 0x80) {
    const octets = first & 0x7f;
    if (octets === 0 || octets > 4) throw new Error('asn1: structure error: length too large');
    length = 0;
    for (const octet of bytes.subarray(start, start + octets)) length = length * 256 + octet;
    start += octets;
  }
  const end = start + length;
  if (end > bytes.length) throw new Error(truncated);
  return { tag, content: bytes.subarray(start, end), whole: bytes.subarray(at, end) };
}

/** The values in the content of a constructed value. @throws {Error} with Go's message when one is truncated. */
export function derValues(bytes: Buffer): DerValue[] {
  const values: DerValue[] = [];
  for (let at = 0; at < bytes.length;) {
    const value = derValue(bytes, at);
    values.push(value);
    at += value.whole.length;
  }
  return values;
}

/** The dotted form of an object identifier. */
export function oidText({ content }: DerValue): string {
  const arcs: number[] = [];
  let arc = 0;
  for (const octet of content) {
    arc = arc * 128 + (octet & 0x7f);
    if (octet < 0x80) {
      arcs.push(arc);
      arc = 0;
    }
  }
  const [first = 0, ...rest] = arcs;
  const top = Math.min(2, Math.floor(first / 40));
  return [top, first - top * 40, ...rest].join('.');
}
