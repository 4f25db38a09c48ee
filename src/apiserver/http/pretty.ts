import type { LongBody } from './long-body.ts';

/**
 * Whether an answer is indented: `?pretty=true`, or a client that shows text to people (apiserver
 * `handlers/negotiation`, isPrettyPrint).
 */
export function wantsPretty(query: string, userAgent: string | undefined): boolean {
  // Without parsing the query: it may be refused for its length.
  const [, value = ''] = /(?:^|&)pretty=([^&]*)/.exec(query) ?? [];
  if (value !== '') return goTrue.has(value);
  if (userAgent === undefined) return false;
  return userAgent.startsWith('curl') || userAgent.startsWith('Wget') || userAgent.startsWith('Mozilla/5.0');
}

const goTrue: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);

/** Characters that are indented at a time, in a few milliseconds. */
const maxSlice = 64 * 1024;

/**
 * Indents valid JSON text by two spaces, changing no value: numbers stay as they are written, which a parser
 * would not promise.
 */
export function indentJson(text: string): string {
  return [...indented([text])].join('');
}

/** The text of {@link indentJson} in parts, for a body that comes in parts. */
export function* indented(parts: LongBody): Generator<string> {
  const indenter = new Indenter();
  for (const part of parts) {
    const text = part.toString();
    let at = 0;
    while (at < text.length) {
      // Not between the halves of a character: each slice is encoded on its own.
      const isHalf = (text.codePointAt(at + maxSlice - 1) ?? 0) > 0xffff;
      const end = at + maxSlice + (isHalf ? 1 : 0);
      yield indenter.next(text.slice(at, end));
      at = end;
    }
  }
}

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const opening: ReadonlySet<number> = new Set([0x7b, 0x5b]);
const closing: ReadonlySet<number> = new Set([0x7d, 0x5d]);
/** Outside of strings: the text may be indented already. */
const space: ReadonlySet<number> = new Set([0x20, 0x0a, 0x0d, 0x09]);

class Indenter {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** Behind a bracket that stays on its line when the next one closes it. */
  #isOpened = false;

  /** The next piece of the text, indented. */
  next(text: string): string {
    let made = '';
    let runStart = 0;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === backslash) this.#isEscaped = true;
        else if (code === quote) this.#isInString = false;
        continue;
      }
      if (space.has(code)) {
        made += text.slice(runStart, i);
        runStart = i + 1;
        continue;
      }
      const isClosing = closing.has(code);
      if (isClosing) this.#depth--;
      if (isClosing !== this.#isOpened) {
        made += text.slice(runStart, i) + this.#newline();
        runStart = i;
      }
      this.#isOpened = opening.has(code);
      if (this.#isOpened) this.#depth++;
      else if (code === quote) this.#isInString = true;
      else if (code === comma || code === colon) {
        made += text.slice(runStart, i + 1) + (code === comma ? this.#newline() : ' ');
        runStart = i + 1;
      }
    }
    return made + text.slice(runStart);
  }

  #newline(): string {
    return `\n${'  '.repeat(this.#depth)}`;
  }
}
