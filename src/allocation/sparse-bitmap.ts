import type { Bitmap } from './bitmap.ts';
import { DenseBitmap } from './dense-bitmap.ts';

/** Offsets per page: 8 KiB of bits and a little for the summaries. */
const pageSize = 2 ** 16;

/**
 * A bitmap for ranges far larger than what is ever taken from them (an IPv6 /64): pages exist only while something
 * of them is taken. Which pages are full is a bitmap again, over page numbers, so a search jumps over them at once;
 * which pages exist is another, for the search for taken offsets.
 */
export class SparseBitmap implements Bitmap {
  readonly size: number;
  readonly #pages = new Map<number, DenseBitmap>(); // page number -> its bits
  readonly #fullPages: Bitmap;
  readonly #usedPages: Bitmap;
  #count = 0;

  /**
   * @param size 0 to 2^53.
   * @param create makes the bitmaps over page numbers.
   */
  constructor(size: number, create: (size: number) => Bitmap) {
    this.size = size;
    this.#fullPages = create(Math.ceil(size / pageSize));
    this.#usedPages = create(Math.ceil(size / pageSize));
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
      this.#usedPages.set(number);
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
    if (page.count === 0) {
      this.#pages.delete(number);
      this.#usedPages.clear(number);
    }
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

  nextUsed(from: number): number {
    if (from >= this.size) return -1;
    const number = pageOf(from);
    const here = this.#pages.get(number)?.nextUsed(from % pageSize) ?? -1;
    if (here >= 0) return number * pageSize + here;
    const next = this.#usedPages.nextUsed(number + 1);
    return next < 0 ? -1 : next * pageSize + (this.#pages.get(next)?.nextUsed(0) ?? 0);
  }
}

function pageOf(offset: number): number {
  return Math.floor(offset / pageSize);
}
