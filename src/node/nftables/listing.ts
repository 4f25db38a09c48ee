import { parseAddress } from '../../objects/address.ts';
import { type Element, type ElementValue, type KeyPart, protocolName } from './elements.ts';
import { protocolIndex, type SetName, setNames } from './sets.ts';

/**
 * Reads the elements in what `nft -j list set` and `list map` print, piece by piece: as a whole, the listing of 10,000
 * Services would take 100 MiB, and 150 ms to parse.
 */
export class ListingReader {
  readonly #each: (element: Element) => void;
  /** The unread text: from the start of an element on, or from somewhere between two arrays of elements. */
  #rest = '';
  /** The set whose array of elements this is in; undefined: none. */
  #set: SetName | undefined;
  #named: string | undefined;

  /** @param each is called for every element of our sets. */
  constructor(each: (element: Element) => void) {
    this.#each = each;
  }

  /**
   * Takes the next piece of the text.
   *
   * @throws {Error} for elements of a kind that we never write.
   */
  read(piece: string): void {
    this.#rest += piece;
    for (;;) {
      const isDone = this.#set === undefined ? this.#skipToElements() : this.#readElements(this.#set);
      if (isDone) return;
    }
  }

  /** @returns true: the text has ended before any elements. */
  #skipToElements(): boolean {
    const text = this.#rest;
    for (const { 0: found, 1: name, index } of text.matchAll(/"name": "([^"]*)"|"elem": \[/g)) {
      if (name === undefined) this.#set = setNames.find((set) => set === this.#named);
      else this.#named = name;
      if (this.#set === undefined) continue;
      this.#rest = text.slice(index + found.length);
      return false;
    }
    this.#rest = text.slice(-maxMarkLength);
    return true;
  }

  /** @returns true: the text has ended before the elements. */
  #readElements(set: SetName): boolean {
    const text = this.#rest;
    let start = 0;
    let depth = 0;
    let inText = false;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code === quote) inText = !inText; // Addresses and names of chains have no quotes in them.
      if (inText) continue;
      if (code === openBrace || code === openBracket) depth++;
      else if (code === closeBrace || code === closeBracket) depth--;
      if ((code === comma && depth === 0) || depth < 0) {
        if (i > start) this.#each(toElement(set, JSON.parse(text.slice(start, i))));
        start = i + 1;
      }
      if (depth < 0) {
        this.#rest = text.slice(start);
        this.#set = undefined;
        this.#named = undefined;
        return false;
      }
    }
    this.#rest = text.slice(start);
    return true;
  }
}

/** Characters: longer than a name of ours with what is around it. */
const maxMarkLength = 100;

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** An element as nft writes it: a key, or `[key, value]`. */
function toElement(set: SetName, json: unknown): Element {
  const pair: unknown[] | undefined = Array.isArray(json) ? json : undefined;
  if (pair === undefined) return { set, key: toKey(set, json) };
  return { set, key: toKey(set, pair[0]), value: toValue(pair[1]) };
}

function toKey(set: SetName, json: unknown): readonly KeyPart[] {
  const protocolAt = protocolIndex(set);
  return toParts(json).map((part, index) =>
    index === protocolAt && typeof part === 'number' ? (protocolName(part) ?? part) : part,
  );
}

function toParts(json: unknown): readonly KeyPart[] {
  const parts: unknown = member(json, 'concat');
  return Array.isArray(parts) ? parts.map(toPart) : [toPart(json)];
}

function toPart(json: unknown): KeyPart {
  if (typeof json === 'number') return json;
  if (typeof json === 'string') return canonical(json);
  const prefix = member(json, 'prefix');
  const address = member(prefix, 'addr');
  const length = member(prefix, 'len');
  if (typeof address === 'string' && typeof length === 'number') return `${canonical(address)}/${length}`;
  throw unknownElement(json);
}

/** The C library shortens IPv6 addresses in another way than RFC 5952 here and there. */
function canonical(text: string): string {
  return text.includes(':') ? (parseAddress(text)?.canonical ?? text) : text;
}

function toValue(json: unknown): ElementValue {
  if (member(json, 'drop') === null) return 'drop';
  const target = member(member(json, 'goto'), 'target');
  if (typeof target === 'string') return { goto: target };
  const [first, second] = toParts(json);
  if (typeof first === 'string' && typeof second === 'number') return [first, second];
  if (typeof first === 'number' && second === undefined) return [first];
  throw unknownElement(json);
}

function member(json: unknown, name: string): unknown {
  return typeof json === 'object' && json !== null ? Reflect.get(json, name) : undefined;
}

function unknownElement(json: unknown): Error {
  return new Error(`an element that is not ours: ${JSON.stringify(json).slice(0, 200)}`);
}
