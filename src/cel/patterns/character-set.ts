import { RE2JS } from 're2js';

/** Code points whose membership is kept together. */
const pageSize = 128;
/** The limit of pages, enough for the scripts of usual strings. */
const maxPages = 64;
const unknown = 0;
const outside = 1;
const inside = 2;

/** The characters that a class, an escape or a single character of a pattern matches. */
export class CharacterSet {
  readonly #pattern: string;
  /** Compiled on first use. */
  #compiled: RE2JS | undefined;
  /** The results of re2js, by code point divided by `pageSize`. */
  readonly #pages = new Map<number, Uint8Array>();

  /** @param pattern a valid pattern that matches one character each. */
  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  has(codePoint: number): boolean {
    const page = this.#page(Math.floor(codePoint / pageSize));
    const index = codePoint % pageSize;
    if (page[index] === unknown) {
      this.#compiled ??= RE2JS.compile(this.#pattern);
      page[index] = this.#compiled.testExact(String.fromCodePoint(codePoint)) ? inside : outside;
    }
    return page[index] === inside;
  }

  #page(number: number): Uint8Array {
    let page = this.#pages.get(number);
    if (page === undefined) {
      if (this.#pages.size >= maxPages) this.#pages.clear();
      page = new Uint8Array(pageSize);
      this.#pages.set(number, page);
    }
    return page;
  }
}
