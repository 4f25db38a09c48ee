import { crc32 } from 'node:zlib';
import fs from 'node:fs';

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
function decodeFileHeader(magic: Magic, header: Buffer): FileHeader | undefined {
  if (header.length < fileHeaderSize || header.toString('latin1', 0, 8) !== magic) return undefined;
  if (header.readUInt32LE(28) !== crc32(header.subarray(0, 28))) return undefined;
  return { revision: Number(header.readBigUInt64LE(8)), salt: header.readUInt32LE(16) };
}

/** The bytes of a frame with a payload of this length. */
function frameSize(payloadLength: number): number {
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
function decodeFrameHeader(
  bytes: Buffer,
  offset: number,
  salt: number,
): { payloadLength: number; checksum: number } | undefined {
  if (bytes.readUInt32LE(offset + 8) !== salt) return undefined;
  if (bytes.readUInt32LE(offset + 12) !== crc32(bytes.subarray(offset, offset + 12))) return undefined;
  return { payloadLength: bytes.readUInt32LE(offset), checksum: bytes.readUInt32LE(offset + 4) };
}

/** The result of reading a frame. */
export type FoundFrame =
  | { readonly kind: 'frame'; readonly payload: Buffer }
  /** The file ends after a complete frame. */
  | { readonly kind: 'end' }
  /**
   * An incomplete frame with nothing after it. Its write was not acknowledged, unless the disk lost what it had
   * confirmed, which looks the same.
   */
  | { readonly kind: 'torn'; readonly reason: string }
  /** A frame that was written completely has changed. */
  | { readonly kind: 'damaged'; readonly reason: string };

/** The file is read in pieces of this size. Payloads are slices of the pieces, so a piece is not reused. */
const pieceBytes = 1024 * 1024;
const sectorBytes = 512;

/** Reads a file of frames from its start, synchronously: nothing else runs while a store is opened. */
export class FrameReader {
  readonly #file: number;
  readonly #size: number;
  #piece = Buffer.alloc(0);
  #pieceStart = 0;
  #header: FileHeader | undefined;
  /** The position of the next frame. */
  offset = 0;

  constructor(path: string) {
    this.#file = fs.openSync(path, 'r');
    this.#size = fs.fstatSync(this.#file).size;
  }

  close(): void {
    fs.closeSync(this.#file);
  }

  /** Reads the file header; to be called before {@link next}. */
  readHeader(magic: Magic): FileHeader | Exclude<FoundFrame, { kind: 'frame' | 'end' }> {
    if (this.#size < fileHeaderSize) return { kind: 'torn', reason: 'the file header is incomplete' };
    const bytes = this.#bytes(0, fileHeaderSize);
    const header = decodeFileHeader(magic, bytes);
    if (header === undefined) {
      // The header is durable before the first frame is written: with frames after it, it is damaged.
      const reason = 'this is no file header';
      return { kind: isZero(bytes) && this.#size === fileHeaderSize ? 'torn' : 'damaged', reason };
    }
    this.#header = header;
    this.offset = fileHeaderSize;
    return header;
  }

  /** Reads the next frame. */
  next(): FoundFrame {
    const salt = this.#header?.salt ?? 0;
    const start = this.offset;
    if (start >= this.#size) return { kind: 'end' };
    if (this.#size - start < frameHeaderSize) return { kind: 'torn', reason: 'a frame header is incomplete' };
    const head = this.#bytes(start, frameHeaderSize);
    const header = decodeFrameHeader(head, 0, salt);
    if (header === undefined) {
      // A header is inside one sector: it was written completely, or not at all, which leaves zeros.
      if (!isZero(head)) return { kind: 'damaged', reason: 'this is no frame header' };
      if (this.#hasFrameAfter(start, salt)) return { kind: 'damaged', reason: 'a frame is missing' };
      return { kind: 'torn', reason: 'a frame header was not written' };
    }
    const payloadEnd = start + frameHeaderSize + header.payloadLength;
    if (payloadEnd > this.#size) return { kind: 'torn', reason: 'a frame is incomplete' };
    const payload = this.#bytes(start + frameHeaderSize, header.payloadLength);
    const end = start + frameSize(header.payloadLength);
    if (crc32(payload) === header.checksum) {
      this.offset = end;
      return { kind: 'frame', payload };
    }
    // A frame is written after the one before it is durable: bytes after a frame prove that it was complete.
    const reason = 'the checksum of a frame is wrong';
    const torn = this.#isZeroFrom(end) && hasZeroSector(payload, start + frameHeaderSize);
    return { kind: torn ? 'torn' : 'damaged', reason };
  }

  #hasFrameAfter(start: number, salt: number): boolean {
    for (let at = start + frameHeaderSize; at + frameHeaderSize <= this.#size; at += frameHeaderSize) {
      if (decodeFrameHeader(this.#bytes(at, frameHeaderSize), 0, salt) !== undefined) return true;
    }
    return false;
  }

  #isZeroFrom(start: number): boolean {
    for (let at = start; at < this.#size; at += sectorBytes) {
      if (!isZero(this.#bytes(at, Math.min(sectorBytes, this.#size - at)))) return false;
    }
    return true;
  }

  /** Bytes of the file. @throws {Error} where the file ends before. */
  #bytes(start: number, length: number): Buffer {
    if (start < this.#pieceStart || start + length > this.#pieceStart + this.#piece.length) {
      this.#pieceStart = start;
      this.#piece = Buffer.allocUnsafeSlow(Math.min(Math.max(length, pieceBytes), this.#size - start));
      for (let done = 0; done < this.#piece.length;) {
        const read = fs.readSync(this.#file, this.#piece, done, this.#piece.length - done, start + done);
        if (read === 0) throw new Error('the file became shorter while it was read');
        done += read;
      }
    }
    return this.#piece.subarray(start - this.#pieceStart, start - this.#pieceStart + length);
  }
}

function isZero(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0);
}

/** Whether a sector, or the part of one at either end, has only zeros, which JSON does not contain. */
function hasZeroSector(bytes: Buffer, fileOffset: number): boolean {
  for (let at = 0; at < bytes.length;) {
    const end = Math.min(bytes.length, at + sectorBytes - ((fileOffset + at) % sectorBytes));
    if (isZero(bytes.subarray(at, end))) return true;
    at = end;
  }
  return false;
}
