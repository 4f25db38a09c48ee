import type { Bitmap } from './bitmap.ts';

const allBits = 0xffff_ffff;

/**
 * All bits in 32-bit words, with two stacks of summary words above them: bit i of a level says of word i of the
 * level below that it is full (`#full`), or that it is not empty (`#used`). A search looks to the right in its own
 * word, climbs until some word has what it wants, and comes down to it: at most five steps up and five down for
 * 2^24 offsets, however full they are.
 *
 *     full, level 2              [ 1 · · · … ]             1: all 32 words of level 1 below are full
 *     full, level 1        [ 1 1 1 … 1 ] [ 1 · 1 … ] …     1: the word of level 0 below is full
 *     level 0         [11…1] [11…1] … [1·11…] [·11…] …     1: the offset is taken
 *
 * Bits beyond the end are set: no search for a free offset needs to know where the end is.
 */
export class DenseBitmap implements Bitmap {
  readonly size: number;
  readonly #words: Uint32Array;
  /** `[0]` is `#words` itself in both stacks; the last level is one word. */
  readonly #full: readonly Uint32Array[];
  readonly #used: readonly Uint32Array[];
  #count = 0;

  /** @param size 0 to 2^31. */
  constructor(size: number) {
    this.size = size;
    this.#words = new Uint32Array(Math.max(1, Math.ceil(size / 32)));
    setFrom(this.#words, size);
    const full = [this.#words];
    const used = [this.#words];
    for (let bits = this.#words.length; bits > 1; bits = Math.ceil(bits / 32)) {
      const level = new Uint32Array(Math.ceil(bits / 32));
      used.push(new Uint32Array(level.length));
      setFrom(level, bits);
      full.push(level);
    }
    this.#full = full;
    this.#used = used;
    if (size % 32 !== 0) raise(used, this.#words.length - 1, isUsed);
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
    if (before === 0) raise(this.#used, index, isUsed);
    if (after === allBits) raise(this.#full, index, isFull);
    return true;
  }

  clear(offset: number): boolean {
    const index = offset >>> 5;
    const before = this.#words[index] ?? 0;
    const after = (before & ~(1 << (offset & 31))) >>> 0;
    if (after === before) return false;
    this.#words[index] = after;
    this.#count--;
    if (after === 0) lower(this.#used, index, isUsed);
    if (before === allBits) lower(this.#full, index, isFull);
    return true;
  }

  nextFree(from: number): number {
    return search(this.#full, from, allBits);
  }

  nextUsed(from: number): number {
    const found = search(this.#used, from, 0);
    return found < this.size ? found : -1;
  }
}

function isFull(word: number): boolean {
  return word === allBits;
}

function isUsed(word: number): boolean {
  return word !== 0;
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

/** Word `index` of level 0 came to satisfy `holds`: says so above, as far up as that makes a word satisfy it too. */
function raise(levels: readonly Uint32Array[], index: number, holds: (word: number) => boolean): void {
  let bit = index;
  for (let depth = 1; depth < levels.length; depth++) {
    const level = levels[depth];
    if (level === undefined) return;
    const at = bit >>> 5;
    const before = level[at] ?? 0;
    const after = (before | (1 << (bit & 31))) >>> 0;
    level[at] = after;
    if (holds(before) || !holds(after)) return;
    bit = at;
  }
}

/** Word `index` of level 0 ceased to satisfy `holds`: the reverse of {@link raise}. */
function lower(levels: readonly Uint32Array[], index: number, holds: (word: number) => boolean): void {
  let bit = index;
  for (let depth = 1; depth < levels.length; depth++) {
    const level = levels[depth];
    if (level === undefined) return;
    const at = bit >>> 5;
    const before = level[at] ?? 0;
    const after = (before & ~(1 << (bit & 31))) >>> 0;
    level[at] = after;
    if (!holds(before) || holds(after)) return;
    bit = at;
  }
}

/** The lowest bit ≥ `from` of level 0 that differs from `flip`'s bits, or -1. */
function search(levels: readonly Uint32Array[], from: number, flip: 0 | typeof allBits): number {
  let bit = from;
  for (let depth = 0; depth < levels.length; depth++) {
    const level = levels[depth];
    const at = bit >>> 5;
    if (level === undefined || at >= level.length) return -1;
    const rest = ((level[at] ?? flip) ^ flip) & (allBits << (bit & 31));
    if (rest !== 0) return descend(levels, depth, at * 32 + lowestBit(rest), flip);
    bit = at + 1;
  }
  return -1;
}

/** From the wanted bit of a level down to the lowest wanted bit of level 0 below it. */
function descend(
  levels: readonly Uint32Array[],
  depth: number,
  bit: number,
  flip: 0 | typeof allBits,
): number {
  let found = bit;
  for (let below = depth - 1; below >= 0; below--) {
    const word = (levels[below]?.[found] ?? flip) ^ flip;
    found = found * 32 + lowestBit(word);
  }
  return found;
}

function lowestBit(word: number): number {
  return 31 - Math.clz32(word & -word);
}
