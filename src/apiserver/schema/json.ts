import { setMember } from './schema.ts';
import { isRecord } from '../../objects/json.ts';

/**
 * - The exact JSON parser of parse-json.ts: it reports repeated keys, number literals, and the position of errors.
 * - JSON with the error texts of Go's encoding/json, which reach clients inside 400 answers. The value itself comes
 *   from the native parser; a linear scan beside it finds what that parser hides (repeated keys, the spelling of
 *   numbers). Only a text that has such things, or an error, is read again by the slow parser.
 */

/** A number whose spelling matters: `80.0`, `8e1`, an integer that a double cannot hold. */
export class RawNumber {
  readonly literal: string;
  constructor(literal: string) {
    this.literal = literal;
  }
  /** Go reads an integer into an int64 where it fits, and everything else into a float64. */
  get isInteger(): boolean {
    // An int64 has 19 digits; BigInt takes the square of a text's length.
    return (
      /^-?\d{1,19}$/.test(this.literal) && BigInt.asIntN(64, BigInt(this.literal)) === BigInt(this.literal)
    );
  }
  toJSON(): number {
    return Number(this.literal);
  }
}

/** A text that is no JSON; the message is Go's. */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError';
}

export interface ParsedJson {
  /** Plain JSON, but for {@link RawNumber}. */
  readonly value: unknown;
  /** Objects that repeat a key, with all their members as sent; undefined when no object does. */
  readonly repeated: ReadonlyMap<object, readonly (readonly [key: string, value: unknown])[]> | undefined;
  /** False: the value holds no RawNumber. */
  readonly hasRawNumbers: boolean;
}

/** A text that is no YAML; the message is yaml.v2's, beginning with `yaml: `. */
export class YamlSyntaxError extends Error {
  override readonly name = 'YamlSyntaxError';
}

/**
 * Go stops at 10,000 levels (`maxNestingDepth`). No object of any kind needs a hundred, and everything behind the
 * parser may recurse over what it lets through.
 */
const maxDepth = 1_000;

interface OpenContainer {
  readonly value: unknown[] | Record<string, unknown>;
  /** The key whose value comes next, for an object. */
  key: string;
  /** All members as sent, from the first repeated key on. */
  entries: [string, unknown][] | undefined;
}

/** As parseJson, for every text. Iterative: nesting costs no stack. @throws {JsonSyntaxError} */
export function parseJsonSlowly(text: string): ParsedJson {
  return new SlowParser(text).parse();
}

class SlowParser {
  readonly #text: string;
  #at = 0;
  readonly #open: OpenContainer[] = [];
  #repeated: Map<object, [string, unknown][]> | undefined;
  #hasRawNumbers = false;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): ParsedJson {
    let value = this.#beginValue();
    for (;;) {
      const container = this.#open.at(-1);
      if (container === undefined) break;
      if (value !== opened) this.#add(container, value);
      value = this.#continueContainer(container, value === opened);
    }
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#unexpected('after top-level value');
    return { value, repeated: this.#repeated, hasRawNumbers: this.#hasRawNumbers };
  }

  /** Reads a scalar, or opens a container and answers `opened`. */
  #beginValue(): unknown {
    this.#skipSpace();
    const c = this.#text.charCodeAt(this.#at);
    if (c === 0x7b || c === 0x5b) {
      if (this.#open.length >= maxDepth) throw new JsonSyntaxError('exceeded max depth');
      this.#at++;
      this.#open.push({ value: c === 0x7b ? {} : [], key: '', entries: undefined });
      return opened;
    }
    if (c === 0x22) return this.#string();
    if (c === 0x2d || (c >= 0x30 && c <= 0x39)) return this.#number();
    if (c === 0x74) return this.#literal('true', true);
    if (c === 0x66) return this.#literal('false', false);
    if (c === 0x6e) return this.#literal('null', null);
    throw this.#unexpected('looking for beginning of value');
  }

  /** Continues after `{`, `[` or a finished element: to the next element, or to the end of the container. */
  #continueContainer(container: OpenContainer, first: boolean): unknown {
    this.#skipSpace();
    const isList = Array.isArray(container.value);
    const c = this.#text.charCodeAt(this.#at);
    if (c === (isList ? 0x5d : 0x7d)) {
      this.#at++;
      this.#open.pop();
      if (container.entries !== undefined)
        (this.#repeated ??= new Map()).set(container.value, container.entries);
      return container.value;
    }
    if (!first) {
      if (c !== 0x2c) throw this.#unexpected(isList ? 'after array element' : 'after object key:value pair');
      this.#at++;
    }
    if (!isList) {
      this.#skipSpace();
      if (this.#text.charCodeAt(this.#at) !== 0x22) {
        throw this.#unexpected('looking for beginning of object key string');
      }
      container.key = this.#string();
      this.#skipSpace();
      if (this.#text.charCodeAt(this.#at) !== 0x3a) throw this.#unexpected('after object key');
      this.#at++;
    }
    return this.#beginValue();
  }

  #add(container: OpenContainer, value: unknown): void {
    if (Array.isArray(container.value)) {
      container.value.push(value);
      return;
    }
    const { key } = container;
    if (container.entries === undefined && Object.hasOwn(container.value, key)) {
      container.entries = Object.entries(container.value);
    }
    container.entries?.push([key, value]);
    setMember(container.value, key, value);
  }

  #string(): string {
    const start = ++this.#at;
    let plain = true;
    for (;;) {
      const c = this.#text.charCodeAt(this.#at);
      if (c === 0x22) break;
      if (c !== c || c < 0x20) throw this.#unexpected('in string literal');
      this.#at++;
      if (c === 0x5c) {
        plain = false;
        this.#escape();
      }
    }
    // JSON.parse makes a string of its own; a slice would keep the whole body in memory.
    const literal = this.#text.slice(start - 1, ++this.#at);
    const value: unknown = JSON.parse(literal);
    const text = typeof value === 'string' ? value : '';
    return plain ? text : text.toWellFormed();
  }

  /** Behind a backslash. */
  #escape(): void {
    const c = this.#text.charAt(this.#at);
    if (c !== 'u') {
      if (c === '' || !'"\\/bfnrt'.includes(c)) throw this.#unexpected('in string escape code');
      this.#at++;
      return;
    }
    for (let n = 0; n < 4; n++) {
      this.#at++;
      if (!/^[0-9a-fA-F]$/.test(this.#text.charAt(this.#at))) {
        throw this.#unexpected('in \\u hexadecimal character escape');
      }
    }
    this.#at++;
  }

  #number(): number | RawNumber {
    const start = this.#at;
    if (this.#text.charAt(this.#at) === '-') this.#at++;
    if (this.#text.charAt(this.#at) === '0') this.#at++;
    else this.#digits('in numeric literal');
    if (this.#text.charAt(this.#at) === '.') {
      this.#at++;
      this.#digits('after decimal point in numeric literal');
    }
    if (this.#text.charAt(this.#at).toLowerCase() === 'e') {
      this.#at++;
      if ('+-'.includes(this.#text.charAt(this.#at)) && this.#at < this.#text.length) this.#at++;
      this.#digits('in exponent of numeric literal');
    }
    const literal = this.#text.slice(start, this.#at);
    const value = Number(literal);
    if (String(value) === literal) return value;
    this.#hasRawNumbers = true;
    return new RawNumber(literal);
  }

  #digits(context: string): void {
    const start = this.#at;
    for (;;) {
      const c = this.#text.charCodeAt(this.#at);
      if (!(c >= 0x30 && c <= 0x39)) break;
      this.#at++;
    }
    if (this.#at === start) throw this.#unexpected(context);
  }

  #literal<T>(word: string, value: T): T {
    for (let i = 0; i < word.length; i++) {
      if (this.#text.charAt(this.#at) !== word.charAt(i)) {
        throw this.#unexpected(`in literal ${word} (expecting '${word.charAt(i)}')`);
      }
      this.#at++;
    }
    return value;
  }

  #skipSpace(): void {
    for (;;) {
      const c = this.#text.charCodeAt(this.#at);
      if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return;
      this.#at++;
    }
  }

  #unexpected(context: string): JsonSyntaxError {
    if (this.#at >= this.#text.length) return new JsonSyntaxError('unexpected end of JSON input');
    const character = quoteByte(this.#text.codePointAt(this.#at) ?? 0);
    return new JsonSyntaxError(`invalid character ${character} ${context}`);
  }
}

/** The marker of a container that has just been opened; no JSON value equals it. */
const opened = Symbol('opened');

const escapes = new Map<number, string>([
  [0x07, '\\a'],
  [0x08, '\\b'],
  [0x09, '\\t'],
  [0x0a, '\\n'],
  [0x0b, '\\v'],
  [0x0c, '\\f'],
  [0x0d, '\\r'],
  [0x27, "\\'"],
  [0x5c, '\\\\'],
]);

/** Go's quoteChar, which sees bytes: of a character beyond ASCII it shows the first byte as if it were one. */
function quoteByte(codePoint: number): string {
  const first = Buffer.from(String.fromCodePoint(codePoint)).readUInt8(0);
  const escape = escapes.get(first);
  if (escape !== undefined) return `'${escape}'`;
  if (first < 0x20 || first === 0x7f) return `'\\x${first.toString(16).padStart(2, '0')}'`;
  if (first >= 0x80 && first < 0xa1) return `'\\u00${first.toString(16)}'`;
  return `'${String.fromCharCode(first)}'`;
}

/** Nesting from which the slow parser is used, which checks the limit. */
const fastDepth = 200;

/**
 * Parses UTF-8 text; invalid bytes count as U+FFFD. @throws {JsonSyntaxError} with the message of Go's
 * encoding/json, `exceeded max depth` beyond 1,000 levels included.
 */
export function parseJson(bytes: Buffer): ParsedJson {
  const text = bytes.toString('utf8');
  const members = countMembers(bytes);
  if (members >= 0) {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return parseJsonSlowly(text);
    }
    if (countKeys(value) === members) return { value, repeated: undefined, hasRawNumbers: false };
  }
  return parseJsonSlowly(text);
}

/**
 * The number of `key: value` pairs of a JSON text, or -1 if it needs the slow parser: numbers that JavaScript would
 * spell otherwise, escaped surrogates, deep nesting. The text may be invalid.
 */
function countMembers(bytes: Buffer): number {
  const end = bytes.length;
  let members = 0;
  let depth = 0;
  let digits = 0;
  for (let i = 0; i < end; i++) {
    const c = bytes[i] ?? 0;
    if (c >= 0x30 && c <= 0x39) {
      if (++digits > 15) return -1;
      continue;
    }
    if (c === 0x22) {
      for (i++; i < end; i++) {
        const inside = bytes[i];
        if (inside === 0x22) break;
        // \uD800 to \uDFFF: Go replaces a surrogate without its other half.
        if (inside === 0x5c && bytes[++i] === 0x75 && ((bytes[i + 1] ?? 0) | 0x20) === 0x64) return -1;
      }
    } else if (c === 0x3a) {
      members++;
    } else if (c === 0x7b || c === 0x5b) {
      if (++depth > fastDepth) return -1;
    } else if (c === 0x7d || c === 0x5d) {
      depth--;
    } else if (c === 0x2e || c === 0x2b || c === 0x45 || (c === 0x65 && digits > 0)) {
      return -1;
    } else if (c === 0x2d && bytes[i + 1] === 0x30) {
      return -1;
    }
    digits = 0;
  }
  return members;
}

/** The members of a parsed value and of all below it. */
function countKeys(value: unknown): number {
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object') count += countKeys(item);
  } else if (isRecord(value)) {
    // for-in needs no list of keys; what JSON.parse makes inherits nothing that is enumerable.
    for (const key in value) {
      count++;
      const member = value[key];
      if (typeof member === 'object') count += countKeys(member);
    }
  }
  return count;
}
