import fs from 'node:fs';
import { crc32 } from 'node:zlib';
import {
  decodeFileHeader,
  decodeFrameHeader,
  fileHeaderSize,
  type FileHeader,
  frameHeaderSize,
  frameSize,
  type Magic,
} from './frames.ts';

/** The frame at a position of a file, or its lack. */
export type FoundFrame =
  | { readonly kind: 'frame'; readonly payload: Buffer }
  /** The file ends here, as it should. */
  | { readonly kind: 'end' }
  /**
   * A write that was cut off, and nothing behind it. It was never acknowledged, unless the disk lost what it had
   * confirmed: the two cannot be distinguished.
   */
  | { readonly kind: 'torn'; readonly reason: string }
  /** Bytes that were once written completely are different now. */
  | { readonly kind: 'damaged'; readonly reason: string };

/** Bytes are read in pieces of this size. Versions keep slices of the pieces, so a piece is not used again. */
const pieceBytes = 1024 * 1024;
const sectorBytes = 512;

/** Reads a file of frames from its start. Synchronous: nothing else runs while a store is opened. */
export class FrameReader {
  readonly #file: number;
  readonly #size: number;
  #piece = Buffer.alloc(0);
  #pieceStart = 0;
  #header: FileHeader | undefined;
  /** Where the next frame begins. */
  offset = 0;

  constructor(path: string) {
    this.#file = fs.openSync(path, 'r');
    this.#size = fs.fstatSync(this.#file).size;
  }

  close(): void {
    fs.closeSync(this.#file);
  }

  /** The file header, first of all. */
  readHeader(magic: Magic): FileHeader | Exclude<FoundFrame, { kind: 'frame' | 'end' }> {
    if (this.#size < fileHeaderSize) return { kind: 'torn', reason: 'the file header is incomplete' };
    const bytes = this.#bytes(0, fileHeaderSize);
    const header = decodeFileHeader(magic, bytes);
    if (header === undefined) {
      // It is durable before the first frame is written.
      const reason = 'this is no file header';
      return { kind: isZero(bytes) && this.#size === fileHeaderSize ? 'torn' : 'damaged', reason };
    }
    this.#header = header;
    this.offset = fileHeaderSize;
    return header;
  }

  /** The next frame, or why there is none. */
  next(): FoundFrame {
    const salt = this.#header?.salt ?? 0;
    const start = this.offset;
    if (start >= this.#size) return { kind: 'end' };
    if (this.#size - start < frameHeaderSize) return { kind: 'torn', reason: 'a frame header is incomplete' };
    const head = this.#bytes(start, frameHeaderSize);
    const header = decodeFrameHeader(head, 0, salt);
    if (header === undefined) {
      // A sector holds the whole header: it reached the disk or it did not, which leaves zeros.
      if (!isZero(head)) return { kind: 'damaged', reason: 'this is no frame header' };
      if (this.#hasFrameBehind(start, salt)) return { kind: 'damaged', reason: 'a frame is missing' };
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
    // A frame is written only after the one before it is durable: bytes behind a frame prove that it was
    // complete.
    const reason = 'the checksum of a frame is wrong';
    const torn = this.#isZeroFrom(end) && hasZeroSector(payload, start + frameHeaderSize);
    return { kind: torn ? 'torn' : 'damaged', reason };
  }

  #hasFrameBehind(start: number, salt: number): boolean {
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

  /** Bytes of the file, which must be there. */
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

/** Whether a whole sector, or the part of one at either end, holds only zeros. JSON text has none. */
function hasZeroSector(bytes: Buffer, fileOffset: number): boolean {
  for (let at = 0; at < bytes.length;) {
    const end = Math.min(bytes.length, at + sectorBytes - ((fileOffset + at) % sectorBytes));
    if (isZero(bytes.subarray(at, end))) return true;
    at = end;
  }
  return false;
}
