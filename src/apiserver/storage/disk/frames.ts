import { crc32 } from 'node:zlib';

/**
 * The format of logs and snapshots: a file header, then frames. Each frame of a log is written and synced in one piece,
 * so after a power cut at most the last frame of the last log is incomplete.
 *
 *     file header, 32 bytes   magic 8 | revision 8 | salt 4 | 0 8 | CRC-32 of the 28 bytes before
 *     frame header, 16 bytes  payload length 4 | CRC-32 of the payload 4 | salt 4 | CRC-32 of the 12 bytes before
 *     payload, padded with zeros to a multiple of 16
 *
 * All numbers are little-endian. The padding keeps each header inside one disk sector, so that it is never written in
 * part. The salt is random for each file, so that no content of an object looks like a frame.
 */
export const fileHeaderSize = 32;
/** Bytes of a frame header. */
export const frameHeaderSize = 16;

/** The first bytes of a log and of a snapshot. */
export type Magic = 'SNETLOG1' | 'SNETSNP1';

/** The header of a file. */
export interface FileHeader {
  /** The revision of the state before the first frame of a log, or of the state in a snapshot. */
  readonly revision: number;
  readonly salt: number;
}

/** The header of a file, encoded. */
export function encodeFileHeader(magic: Magic, { revision, salt }: FileHeader): Buffer {
  const header = Buffer.alloc(fileHeaderSize);
  header.write(magic, 0, 'latin1');
  header.writeBigUInt64LE(BigInt(revision), 8);
  header.writeUInt32LE(salt, 16);
  header.writeUInt32LE(crc32(header.subarray(0, 28)), 28);
  return header;
}

/** The header of a file; undefined when the bytes are not a header with this magic. */
export function decodeFileHeader(magic: Magic, header: Buffer): FileHeader | undefined {
  if (header.length < fileHeaderSize || header.toString('latin1', 0, 8) !== magic) return undefined;
  if (header.readUInt32LE(28) !== crc32(header.subarray(0, 28))) return undefined;
  return { revision: Number(header.readBigUInt64LE(8)), salt: header.readUInt32LE(16) };
}

/** The bytes of a frame with a payload of this length. */
export function frameSize(payloadLength: number): number {
  return frameHeaderSize + Math.ceil(payloadLength / 16) * 16;
}

/** A frame without its payload, which starts at {@link frameHeaderSize}, and its header, see {@link sealFrame}. */
export function allocateFrame(payloadLength: number): Buffer {
  const frame = Buffer.allocUnsafe(frameSize(payloadLength));
  frame.fill(0, frameHeaderSize + payloadLength);
  return frame;
}

/** Writes the header of a frame whose payload is complete. */
export function sealFrame(frame: Buffer, payloadLength: number, salt: number): void {
  frame.writeUInt32LE(payloadLength, 0);
  frame.writeUInt32LE(crc32(frame.subarray(frameHeaderSize, frameHeaderSize + payloadLength)), 4);
  frame.writeUInt32LE(salt, 8);
  frame.writeUInt32LE(crc32(frame.subarray(0, 12)), 12);
}

/** The header of a frame; undefined when the bytes at `offset` are not a header of this file. */
export function decodeFrameHeader(
  bytes: Buffer,
  offset: number,
  salt: number,
): { payloadLength: number; checksum: number } | undefined {
  if (bytes.readUInt32LE(offset + 8) !== salt) return undefined;
  if (bytes.readUInt32LE(offset + 12) !== crc32(bytes.subarray(offset, offset + 12))) return undefined;
  return { payloadLength: bytes.readUInt32LE(offset), checksum: bytes.readUInt32LE(offset + 4) };
}
