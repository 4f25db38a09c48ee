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

/** A counted repetition, which multiplies its atom: re2js compiles `{2,5}` to 5 copies. */
const repetition = /\{(0|[1-9]\d{0,3})(,?)(0|[1-9]\d{0,3})?\}/y;
const postfix = new Set('*+?');
const namedClass = /\[:\^?\w{1,9}:\]/y;

/** The instructions of an empty pattern. */
const ends = 3;
/** Steps of both compilers, re2js's and ours, per instruction, and per Unicode class such as `\pL`. */
const perInstruction = 500;
const perUnicodeClass = 15_000;

/** The limit of steps to compile a pattern: 20,000 instructions, about 0.1 s. */
export const maxCompileSteps = 10_000_000;

/**
 * An upper bound of the steps to compile a pattern, estimated from its text: the short `.{0,1000}` has 2,000
 * instructions. Invalid patterns, which re2js refuses later, have a number too.
 */
export function compileSteps(pattern: string): number {
  /** Instructions of the open groups, outermost first, and of the atom that a repetition would multiply. */
  const open: number[] = [];
  let done = 0;
  let atom = 0;
  let classes = 0;
  let at = 0;
  while (at < pattern.length) {
    const repeated = repetitionAt(pattern, at);
    const character = pattern.charAt(at);
    if (repeated !== undefined) {
      const [least, most] = repeated.times;
      atom = (atom + 1) * Math.max(most === Infinity ? least : most, 1) + 1;
      at += repeated.length;
      continue;
    }
    if (postfix.has(character)) {
      atom += 1;
      at += 1;
      continue;
    }
    done += atom;
    atom = 1;
    if (character === '(') {
      open.push(done);
      done = 0;
      atom = 2;
    } else if (character === ')') {
      atom = done + 2;
      done = open.pop() ?? 0;
    } else if (character === '[') {
      const end = classEnd(pattern, at);
      classes += pattern.slice(at, end).split(/\\p/i).length - 1;
      at = end;
      continue;
    } else if (character === '\\') {
      const kind = pattern.charAt(at + 1);
      if (kind === 'p' || kind === 'P') classes += 1;
      // The braces of `\x{1000}` are not a repetition.
      at += pattern.startsWith('x{', at + 1) ? 3 : 2;
      continue;
    }
    at += 1;
  }
  const instructions = open.reduce((sum, before) => sum + before, done + atom) + ends;
  return instructions * perInstruction + classes * perUnicodeClass;
}

/** The counted repetition at an offset, such as `{2,5}`. `most` is Infinity for `{2,}`. */
function repetitionAt(
  pattern: string,
  at: number,
): { readonly times: readonly [least: number, most: number]; readonly length: number } | undefined {
  repetition.lastIndex = at;
  const [text, least, comma, most] = repetition.exec(pattern) ?? [];
  if (text === undefined || (comma === '' && most !== undefined)) return undefined;
  const end = comma === '' ? Number(least) : Number(most ?? Infinity);
  return { times: [Number(least), end], length: text.length };
}

/** The offset after the character class that begins at an offset. */
function classEnd(pattern: string, start: number): number {
  let at = start + 1;
  if (pattern.charAt(at) === '^') at += 1;
  if (pattern.charAt(at) === ']') at += 1;
  while (at < pattern.length && pattern.charAt(at) !== ']') {
    namedClass.lastIndex = at;
    const named = namedClass.exec(pattern);
    if (named !== null) at += named[0].length;
    else at += pattern.charAt(at) === '\\' ? 2 : 1;
  }
  return Math.min(at + 1, pattern.length);
}

/**
 * The syntax tree of a pattern in Go's syntax (`regexp/syntax/parse.go`). Only patterns that re2js compiles are parsed
 * here, so that there are no errors to detect.
 */

/** Conditions between two characters, as bits (Go's `regexp/syntax` EmptyOp). */
export const assertions = {
  lineStart: 1,
  lineEnd: 2,
  textStart: 4,
  textEnd: 8,
  wordBoundary: 16,
  noWordBoundary: 32,
} as const;

/** A part of a pattern. `most` is Infinity for an unlimited repetition. */
export type Part =
  | { readonly kind: 'character'; readonly set: CharacterSet }
  | { readonly kind: 'assertion'; readonly condition: number }
  | { readonly kind: 'sequence'; readonly parts: readonly Part[] }
  | { readonly kind: 'choice'; readonly parts: readonly Part[] }
  | {
      readonly kind: 'repetition';
      readonly part: Part;
      readonly least: number;
      readonly most: number;
      readonly greedy: boolean;
    };

/** The flags that are set: `i`, `m`, `s`, `U`. */
type Flags = ReadonlySet<string>;

const flagGroup = /\(\?([imsU]*)(?:-([imsU]+))?([:)])/y;
const namedGroup = /\(\?P?<\w+>/y;
const postfixes: Readonly<Record<string, readonly [least: number, most: number]>> = {
  '*': [0, Infinity],
  '+': [1, Infinity],
  '?': [0, 1],
};
/** An escape for one character or a set of them: octal, hexadecimal, Unicode class, or any other. */
const escape = /\\(?:[0-7]{1,3}|x\{[^}]*\}|x..|[pP]\{[^}]*\}|[pP]?[^])/y;
const assertionEscapes: Readonly<Record<string, number>> = {
  '\\A': assertions.textStart,
  '\\z': assertions.textEnd,
  '\\b': assertions.wordBoundary,
  '\\B': assertions.noWordBoundary,
};

/** Parses a pattern that re2js compiles. */
export function parsePattern(pattern: string): Part {
  return new PatternParser(pattern).parse();
}

class PatternParser {
  readonly #pattern: string;
  /** By flags and text, so that equal sets share their results. */
  readonly #sets = new Map<string, CharacterSet>();
  #at = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  parse(): Part {
    return this.#choice(new Set());
  }

  /** The part before the end of the group, or of the pattern. */
  #choice(outer: Flags): Part {
    let flags = outer;
    let parts: Part[] = [];
    const branches: Part[] = [];
    const end = (): number => branches.push({ kind: 'sequence', parts });
    while (this.#at < this.#pattern.length && !this.#has(')')) {
      const set = this.#match(flagGroup);
      if (set !== undefined) {
        const inner = changed(flags, set[1] ?? '', set[2] ?? '');
        if (set[3] === ')') flags = inner;
        else parts.push(this.#group(inner));
      } else if (this.#match(namedGroup) !== undefined || this.#take('(')) parts.push(this.#group(flags));
      else if (this.#take('|')) {
        end();
        parts = [];
      } else if (this.#take('\\Q')) this.#quoted(parts, flags);
      else if (!this.#repeat(parts, flags)) parts.push(this.#atom(flags));
    }
    end();
    const [first, ...others] = branches;
    return first !== undefined && others.length === 0 ? first : { kind: 'choice', parts: branches };
  }

  #group(flags: Flags): Part {
    const part = this.#choice(flags);
    this.#take(')');
    return part;
  }

  /** Repeats the last part where an operator follows. */
  #repeat(parts: Part[], flags: Flags): boolean {
    const counted = repetitionAt(this.#pattern, this.#at);
    const [least, most] = counted?.times ?? postfixes[this.#pattern.charAt(this.#at)] ?? [];
    const part = parts.at(-1);
    if (least === undefined || most === undefined || part === undefined) return false;
    this.#at += counted?.length ?? 1;
    const isLazy = this.#take('?');
    parts[parts.length - 1] = { kind: 'repetition', part, least, most, greedy: isLazy === flags.has('U') };
    return true;
  }

  #quoted(parts: Part[], flags: Flags): void {
    while (this.#at < this.#pattern.length && !this.#take('\\E')) parts.push(this.#character(flags));
  }

  #atom(flags: Flags): Part {
    if (this.#take('^')) return assertion(flags.has('m') ? assertions.lineStart : assertions.textStart);
    if (this.#take('$')) return assertion(flags.has('m') ? assertions.lineEnd : assertions.textEnd);
    if (this.#has('[')) return this.#set(classEnd(this.#pattern, this.#at) - this.#at, flags);
    if (this.#has('.')) return this.#set(1, flags);
    if (!this.#has('\\')) return this.#character(flags);
    escape.lastIndex = this.#at;
    const [text = '\\'] = escape.exec(this.#pattern) ?? [];
    const condition = assertionEscapes[text];
    if (condition === undefined) return this.#set(text.length, flags);
    this.#at += text.length;
    return assertion(condition);
  }

  /** The character itself, without its meaning in patterns. */
  #character(flags: Flags): Part {
    const codePoint = this.#pattern.codePointAt(this.#at) ?? 0;
    this.#at += codePoint > 0xffff ? 2 : 1;
    return this.#setOf(`\\x{${codePoint.toString(16)}}`, flags);
  }

  #set(length: number, flags: Flags): Part {
    const text = this.#pattern.slice(this.#at, this.#at + length);
    this.#at += length;
    return this.#setOf(text, flags);
  }

  #setOf(text: string, flags: Flags): Part {
    const key = `(?${flags.has('i') ? 'i' : ''}${flags.has('s') ? 's' : ''}:${text})`;
    const known = this.#sets.get(key) ?? new CharacterSet(key);
    this.#sets.set(key, known);
    return { kind: 'character', set: known };
  }

  #has(text: string): boolean {
    return this.#pattern.startsWith(text, this.#at);
  }

  #take(text: string): boolean {
    const has = this.#has(text);
    if (has) this.#at += text.length;
    return has;
  }

  #match(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = this.#at;
    const found = expression.exec(this.#pattern) ?? undefined;
    this.#at += found?.[0].length ?? 0;
    return found;
  }
}

function assertion(condition: number): Part {
  return { kind: 'assertion', condition };
}

function changed(flags: Flags, added: string, removed: string): Flags {
  return new Set([...flags, ...added.split('')].filter((flag) => !removed.includes(flag)));
}
