/** Reads big-endian numbers from bytes, and never beyond their end. */
export class MessageReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #tooShort: () => Error;
  #at = 0;

  /** @param tooShort the error for a read beyond the end. */
  constructor(bytes: Uint8Array, tooShort: () => Error) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#tooShort = tooShort;
  }

  /** Bytes that are left. */
  get left(): number {
    return this.#bytes.length - this.#at;
  }

  uint8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  uint16(): number {
    return this.#view.getUint16(this.#take(2));
  }

  uint32(): number {
    return this.#view.getUint32(this.#take(4));
  }

  /** A view of the next bytes. */
  bytes(length: number): Uint8Array {
    const start = this.#take(length);
    return this.#bytes.subarray(start, start + length);
  }

  /** A reader of the next bytes alone. @param tooShort as in the constructor; default: the same. */
  part(length: number, tooShort = this.#tooShort): MessageReader {
    return new MessageReader(this.bytes(length), tooShort);
  }

  #take(length: number): number {
    if (length > this.left) throw this.#tooShort();
    const start = this.#at;
    this.#at += length;
    return start;
  }
}
