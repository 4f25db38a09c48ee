/** Protocol buffers' wire format, with the error texts of gogo/protobuf, which reach clients inside 400 answers. */

/** Bytes that are no message. */
export class ProtobufError extends Error {
  override readonly name = 'ProtobufError';
}

/** A field as it is on the wire: `bytes` for length-delimited and fixed ones, else `number`. */
export interface WireValue {
  readonly field: number;
  readonly wireType: number;
  readonly number: bigint;
  readonly bytes: Buffer;
}

const noBytes = Buffer.alloc(0);
const varint = 0;
const fixed64 = 1;
const delimited = 2;
const fixed32 = 5;

/** The fields of a message in the order in which they were sent. @throws {ProtobufError} */
export function* wireValues(bytes: Buffer): Generator<WireValue> {
  let at = 0;
  const readVarint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      if (shift >= 64n) throw new ProtobufError('proto: integer overflow');
      const byte = bytes[at++];
      if (byte === undefined) throw new ProtobufError('unexpected EOF');
      // most are one byte long
      if (byte < 128 && shift === 0n) return BigInt(byte);
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asUintN(64, value);
    }
  };
  const take = (length: number): Buffer => {
    if (length > bytes.length - at) throw new ProtobufError('unexpected EOF');
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const key = readVarint();
    const field = Number(BigInt.asIntN(32, key >> 3n));
    const wireType = Number(key & 7n);
    if (field <= 0) throw new ProtobufError(`proto: illegal tag ${field} (wire type ${key})`);
    if (wireType === varint) yield { field, wireType, number: readVarint(), bytes: noBytes };
    else if (wireType === delimited) {
      const length = readVarint();
      if (length > 0x7fffffffn) throw new ProtobufError('proto: negative length found during unmarshaling');
      yield { field, wireType, number: 0n, bytes: take(Number(length)) };
    } else if (wireType === fixed64) yield { field, wireType, number: 0n, bytes: take(8) };
    else if (wireType === fixed32) yield { field, wireType, number: 0n, bytes: take(4) };
    else throw new ProtobufError(`proto: illegal wireType ${wireType}`);
  }
}
