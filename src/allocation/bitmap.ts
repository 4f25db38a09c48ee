/**
 * A set of offsets in `[0, size)` that finds free ones fast at any fill. Offsets are integers; the caller keeps
 * them in range.
 */
export interface Bitmap {
  /** Number of offsets, at most 2^53. */
  readonly size: number;
  /** Number of offsets in the set. */
  readonly count: number;
  has(offset: number): boolean;
  /** Adds an offset; false if it was there. */
  set(offset: number): boolean;
  /** Removes an offset; false if it was not there. */
  clear(offset: number): boolean;
  /** The lowest offset ≥ `from` that is not in the set, or -1. `from` may equal `size`. */
  nextFree(from: number): number;
}

/**
 * A free offset in `[low, high)`: the first one at or after a random start, with wrap; -1 if there is none.
 *
 * @param random gives numbers in [0, 1).
 */
export function randomFree(bitmap: Bitmap, low: number, high: number, random: () => number): number {
  if (high <= low) return -1;
  const start = low + Math.floor(random() * (high - low));
  const after = bitmap.nextFree(start);
  if (after >= 0 && after < high) return after;
  const before = bitmap.nextFree(low);
  return before >= 0 && before < start ? before : -1;
}

const allBits = 0xffff_ffff;

/**
 * All bits in 32-bit words, with a stack of summary words above them: bit i of a level says of word i of the level
 * below that it is full. A search looks to the right in its own word, climbs until some word has what it wants, and
 * comes down to it: at most five steps up and five down for 2^24 offsets, however full they are.
 *
 *     level 2              [ 1 · · · … ]             1: all 32 words of level 1 below are full
 *     level 1        [ 1 1 1 … 1 ] [ 1 · 1 … ] …     1: the word of level 0 below is full
 *     level 0   [11…1] [11…1] … [1·11…] [·11…] …     1: the offset is taken
 *
 * Bits beyond the end are set: no search for a free offset needs to know where the end is.
 */
export class DenseBitmap implements Bitmap {
  readonly size: number;
  readonly #words: Uint32Array;
  /** `[0]` is `#words` itself; the last level is one word. */
  readonly #levels: readonly Uint32Array[];
  #count = 0;

  /** @param size 0 to 2^31. */
  constructor(size: number) {
    this.size = size;
    this.#words = new Uint32Array(Math.max(1, Math.ceil(size / 32)));
    setFrom(this.#words, size);
    const levels = [this.#words];
    for (let bits = this.#words.length; bits > 1; bits = Math.ceil(bits / 32)) {
      const level = new Uint32Array(Math.ceil(bits / 32));
      setFrom(level, bits);
      levels.push(level);
    }
    this.#levels = levels;
  }

  get count(): number {
    return this.#count;
  }

  has(offset: number): boolean {
    return bitAt(this.#words, offset);
  }

  set(offset: number): boolean {
    const index = offset >>> 5;
    const before = this.#words[index] ?? allBits;
    const after = (before | (1 << (offset & 31))) >>> 0;
    if (after === before) return false;
    this.#words[index] = after;
    this.#count++;
    if (after === allBits) raise(this.#levels, index);
    return true;
  }

  clear(offset: number): boolean {
    const index = offset >>> 5;
    const before = this.#words[index] ?? 0;
    const after = (before & ~(1 << (offset & 31))) >>> 0;
    if (after === before) return false;
    this.#words[index] = after;
    this.#count--;
    if (before === allBits) lower(this.#levels, index);
    return true;
  }

  nextFree(from: number): number {
    return search(this.#levels, from);
  }
}

/** Sets all bits from `start` on. */
function setFrom(words: Uint32Array, start: number): void {
  const first = start >>> 5;
  if (first >= words.length) return;
  words[first] = (words[first] ?? 0) | (allBits << (start & 31));
  words.fill(allBits, first + 1);
}

function bitAt(words: Uint32Array, bit: number): boolean {
  return (((words[bit >>> 5] ?? 0) >>> (bit & 31)) & 1) === 1;
}

/** Word `index` of level 0 became full: says so above, as far up as that makes a word full too. */
function raise(levels: readonly Uint32Array[], index: number): void {
  let bit = index;
  for (let depth = 1; depth < levels.length; depth++) {
    const level = levels[depth];
    if (level === undefined) return;
    const at = bit >>> 5;
    const before = level[at] ?? 0;
    const after = (before | (1 << (bit & 31))) >>> 0;
    level[at] = after;
    if (after !== allBits) return;
    bit = at;
  }
}

/** Word `index` of level 0 is no longer full: the reverse of {@link raise}. */
function lower(levels: readonly Uint32Array[], index: number): void {
  let bit = index;
  for (let depth = 1; depth < levels.length; depth++) {
    const level = levels[depth];
    if (level === undefined) return;
    const at = bit >>> 5;
    const before = level[at] ?? 0;
    level[at] = (before & ~(1 << (bit & 31))) >>> 0;
    if (before !== allBits) return;
    bit = at;
  }
}

/** The lowest bit ≥ `from` of level 0 that is not set, or -1. */
function search(levels: readonly Uint32Array[], from: number): number {
  let bit = from;
  for (let depth = 0; depth < levels.length; depth++) {
    const level = levels[depth];
    const at = bit >>> 5;
    if (level === undefined || at >= level.length) return -1;
    const rest = ~(level[at] ?? allBits) & (allBits << (bit & 31));
    if (rest !== 0) return descend(levels, depth, at * 32 + lowestBit(rest));
    bit = at + 1;
  }
  return -1;
}

/** From a bit of a level that is not set down to the lowest such bit of level 0 below it. */
function descend(levels: readonly Uint32Array[], depth: number, bit: number): number {
  let found = bit;
  for (let below = depth - 1; below >= 0; below--) {
    found = found * 32 + lowestBit(~(levels[below]?.[found] ?? allBits));
  }
  return found;
}

function lowestBit(word: number): number {
  return 31 - Math.clz32(word & -word);
}

/** Offsets per page: 8 KiB of bits and a little for the summaries. */
const pageSize = 2 ** 16;

/**
 * A bitmap for ranges far larger than what is ever taken from them (an IPv6 /64): pages exist only while something
 * of them is taken. Which pages are full is a bitmap again, over page numbers, so a search jumps over them at once.
 */
export class SparseBitmap implements Bitmap {
  readonly size: number;
  readonly #pages = new Map<number, DenseBitmap>(); // page number -> its bits
  readonly #fullPages: Bitmap;
  #count = 0;

  /**
   * @param size 0 to 2^53.
   * @param create makes the bitmap over page numbers.
   */
  constructor(size: number, create: (size: number) => Bitmap) {
    this.size = size;
    this.#fullPages = create(Math.ceil(size / pageSize));
  }

  get count(): number {
    return this.#count;
  }

  has(offset: number): boolean {
    return this.#pages.get(pageOf(offset))?.has(offset % pageSize) ?? false;
  }

  set(offset: number): boolean {
    const number = pageOf(offset);
    let page = this.#pages.get(number);
    if (page === undefined) {
      page = new DenseBitmap(Math.min(pageSize, this.size - number * pageSize));
      this.#pages.set(number, page);
    }
    if (!page.set(offset % pageSize)) return false;
    this.#count++;
    if (page.count === page.size) this.#fullPages.set(number);
    return true;
  }

  clear(offset: number): boolean {
    const number = pageOf(offset);
    const page = this.#pages.get(number);
    if (page?.clear(offset % pageSize) !== true) return false;
    this.#count--;
    this.#fullPages.clear(number);
    if (page.count === 0) this.#pages.delete(number);
    return true;
  }

  nextFree(from: number): number {
    if (from >= this.size) return -1;
    const number = pageOf(from);
    const page = this.#pages.get(number);
    if (page === undefined) return from;
    const here = page.nextFree(from % pageSize);
    if (here >= 0) return number * pageSize + here;
    const next = this.#fullPages.nextFree(number + 1);
    return next < 0 ? -1 : next * pageSize + (this.#pages.get(next)?.nextFree(0) ?? 0);
  }
}

function pageOf(offset: number): number {
  return Math.floor(offset / pageSize);
}

/** Up to here all words are there from the start: 2 MiB and a bit for 2^24 offsets (an IPv4 /8). */
const denseLimit = 2 ** 24;

/**
 * The bitmap that fits a range: dense for what fits in memory, else sparse.
 *
 * @param size 0 to 2^53.
 */
export function createBitmap(size: number): Bitmap {
  return size <= denseLimit ? new DenseBitmap(size) : new SparseBitmap(size, createBitmap);
}
