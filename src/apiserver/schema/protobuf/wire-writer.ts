/**
 * Writes Protocol buffers' wire format from the last byte to the first: the length of a message is known when it is
 * written, and nothing is copied. So fields are written in descending order, and the items of a list from behind.
 */
export class WireWriter {
  #bytes = Buffer.allocUnsafe(1024);
  /** The position of the last written byte. */
  #at = this.#bytes.length;

  /** The bytes so far, for `lengthFrom`. */
  get length(): number {
    return this.#bytes.length - this.#at;
  }

  /** What was written. The writer must not be used after it. */
  take(): Buffer {
    return this.#bytes.subarray(this.#at);
  }

  /** The length and the tag of a field whose content was written since `length` was `before`. */
  delimit(field: number, before: number): void {
    this.#unsigned(this.length - before);
    this.#unsigned(field * 8 + 2);
  }

  text(field: number, text: string): void {
    const length = Buffer.byteLength(text);
    this.#reserve(length);
    this.#at -= length;
    this.#bytes.write(text, this.#at, 'utf8');
    this.delimit(field, this.length - length);
  }

  bytes(field: number, bytes: Buffer): void {
    this.raw(bytes);
    this.delimit(field, this.length - bytes.length);
  }

  /** Bytes without a tag. */
  raw(bytes: Buffer): void {
    this.#reserve(bytes.length);
    this.#at -= bytes.length;
    bytes.copy(this.#bytes, this.#at);
  }

  /** A whole number as int32, int64 or bool: a negative one takes ten bytes. */
  integer(field: number, value: number): void {
    if (value >= 0) this.#unsigned(value);
    else this.#long(BigInt.asUintN(64, BigInt(value)));
    this.#unsigned(field * 8);
  }

  double(field: number, value: number): void {
    this.#reserve(8);
    this.#at -= 8;
    this.#bytes.writeDoubleLE(value, this.#at);
    this.#unsigned(field * 8 + 1);
  }

  /** At most 2^53. */
  #unsigned(value: number): void {
    if (value >= 2 ** 31) {
      this.#long(BigInt(value));
      return;
    }
    const size = value < 128 ? 1 : Math.ceil((32 - Math.clz32(value)) / 7);
    this.#reserve(size);
    this.#at -= size;
    let at = this.#at;
    let rest = value;
    for (; rest > 127; rest >>>= 7) this.#bytes[at++] = (rest & 127) | 128;
    this.#bytes[at] = rest;
  }

  #long(value: bigint): void {
    const digits: number[] = [];
    let rest = value;
    for (; rest > 127n; rest >>= 7n) digits.push(Number(rest & 127n) | 128);
    this.raw(Buffer.from([...digits, Number(rest)]));
  }

  /** Makes room in front. */
  #reserve(size: number): void {
    if (size <= this.#at) return;
    const used = this.length;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, used + size));
    this.#bytes.copy(larger, larger.length - used, this.#at);
    this.#at = larger.length - used;
    this.#bytes = larger;
  }
}
