/**
 * A text as what differs from another one, its sample: literal bytes and copies of pieces of the sample in turns,
 *
 *     length of the literal · literal · length of the copy · way to it · length of the next literal · literal · …
 *
 * where the last literal, which may be empty, ends the text, and the way leads from the end of the copy before (at first
 * from 0) to the start of this one. Numbers are in groups of seven bits, the low ones first, the high bit set in all but
 * the last; the sign of a way is its lowest bit.
 *
 * Objects of a kind have nearly all of their text in common: the names of fields, the managedFields, and what they got
 * by default. A Pod becomes a seventh of its text, in 3 µs; to read it takes less than 1 µs, most of it in copies.
 */

/** Bytes of the sample that are looked up together. */
const WINDOW = 8;
/** The text is looked up at every so many bytes; what is equal in front of where it is found is found from there. */
const STRIDE = 8;
/** A shorter piece is not worth a copy: each takes three bytes, and time when it is read. */
const SHORTEST_COPY = 24;
/** What three numbers take at most: texts are shorter than 2^21 bytes. */
const NUMBERS = 9;
/** Below it a loop is faster than a call of `copy`. */
const SHORT = 24;

/** A text that others are told by, and where in it what is. */
export class Sample {
  readonly bytes: Buffer;
  /** Hash of a window → where one with that hash is, from 1 on; 0: nowhere. */
  private readonly places: Uint16Array;
  /** What a hash of 32 bits is shifted by to be an index of it. */
  private readonly shift: number;

  /** @param bytes from 1 to 65,534; they are not to change. */
  constructor(bytes: Buffer) {
    this.bytes = bytes;
    this.shift = Math.clz32(bytes.length) - 1;
    this.places = new Uint16Array(2 ** (32 - this.shift));
    const view = viewOf(bytes);
    // Of equal windows the first wins.
    for (let i = bytes.length - WINDOW; i >= 0; i--) this.places[hashAt(view, i) >>> this.shift] = i + 1;
  }

  /** Where the window at `at` may be in the sample; -1: nowhere. */
  find(view: DataView, at: number): number {
    return (this.places[hashAt(view, at) >>> this.shift] ?? 0) - 1;
  }
}

/** A view of all that a buffer holds, for {@link writeDifferences}. */
export function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/**
 * Writes the first `length` bytes of `text` as differences from the sample, to the front of `target`.
 *
 * @param view of `text`.
 * @returns how many bytes that took; undefined when it would take more than `most`.
 */
export function writeDifferences(
  sample: Sample,
  text: Buffer,
  view: DataView,
  length: number,
  target: Buffer,
  most: number,
): number | undefined {
  const { bytes } = sample;
  let end = 0; // in `target`
  let literal = 0; // where in `text` what is not written begins
  let before = 0; // where in the sample the last copy ended
  let at = 0;
  while (at <= length - WINDOW) {
    let from = sample.find(view, at);
    const copied = from < 0 ? 0 : equalBytes(text, at, length, bytes, from);
    if (copied < WINDOW) {
      at += STRIDE;
      continue;
    }
    let start = at;
    while (start > literal && from > 0 && text[start - 1] === bytes[from - 1]) {
      start--;
      from--;
    }
    const stop = at + copied;
    const size = stop - start;
    if (size < SHORTEST_COPY) {
      at += STRIDE;
      continue;
    }
    if (end + start - literal + NUMBERS > most) return undefined;
    end = writeLiteral(text, literal, start, target, end);
    const way = from - before;
    end = writeNumber(target, end, size);
    end = writeNumber(target, end, way < 0 ? -way * 2 + 1 : way * 2);
    before = from + size;
    literal = at = stop;
  }
  if (end + length - literal + NUMBERS > most) return undefined;
  return writeLiteral(text, literal, length, target, end);
}

/**
 * Writes the text that the bytes of `source` from `start` to `stop` tell, where there is room for it.
 *
 * @param sample the bytes of the sample that they were made from.
 * @returns where it ends in `target`.
 */
export function readDifferences(
  sample: Buffer,
  source: Buffer,
  start: number,
  stop: number,
  target: Buffer,
  targetStart: number,
): number {
  let end = targetStart;
  let from = 0;
  cursor = start;
  for (;;) {
    const literal = readNumber(source);
    copyBytes(source, cursor, literal, target, end);
    end += literal;
    cursor += literal;
    if (cursor >= stop) return end;
    const size = readNumber(source);
    const way = readNumber(source);
    from += (way & 1) === 0 ? way >>> 1 : -(way >>> 1);
    copyBytes(sample, from, size, target, end);
    end += size;
    from += size;
  }
}

/** Where {@link readNumber} reads: a number and where it ends would be an object for each. */
let cursor = 0;

function readNumber(source: Buffer): number {
  let number = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = source[cursor++] ?? 0;
    number |= (byte & 0x7f) << shift;
    if (byte < 0x80) return number;
  }
}

function writeNumber(target: Buffer, at: number, number: number): number {
  let end = at;
  let rest = number;
  for (; rest > 0x7f; rest >>>= 7) target[end++] = (rest & 0x7f) | 0x80;
  target[end++] = rest;
  return end;
}

function writeLiteral(text: Buffer, from: number, to: number, target: Buffer, at: number): number {
  const start = writeNumber(target, at, to - from);
  copyBytes(text, from, to - from, target, start);
  return start + to - from;
}

function copyBytes(source: Buffer, from: number, length: number, target: Buffer, at: number): void {
  if (length > SHORT) source.copy(target, at, from, from + length);
  else for (let i = 0; i < length; i++) target[at + i] = source[from + i] ?? 0;
}

/** How many bytes are equal from here on. */
function equalBytes(text: Buffer, at: number, length: number, bytes: Buffer, from: number): number {
  const most = Math.min(length - at, bytes.length - from);
  let count = 0;
  while (count < most && text[at + count] === bytes[from + count]) count++;
  return count;
}

/** A hash of 32 bits, the high ones the best: a product with an odd number whose bits are mixed, for each half. */
function hashAt(view: DataView, at: number): number {
  return (
    Math.imul(view.getUint32(at, true), 0x9e37_79b1) ^ Math.imul(view.getUint32(at + 4, true), 0x85eb_ca6b)
  );
}
