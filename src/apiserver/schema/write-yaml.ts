import { goFloat } from '../../objects/go-float.ts';
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { RawNumber } from './go-json.ts';
import { compareKeys } from './yaml-key-order.ts';
import { blockHints, escaped, isBreak, styleOf } from './yaml-text.ts';

/** Lines are folded at the first space behind this column. */
const width = 80;
/** Longer keys, in bytes, stand behind a question mark. */
const maxSimpleKeyLength = 128;

/** A JSON value as sigs.k8s.io/yaml writes it, with yaml.v2: two blanks a level, lists at the depth of their key. */
export function writeYaml(value: unknown): string {
  const page = new Page();
  page.value(value, -2);
  page.toLine(0);
  return page.text;
}

class Page {
  text = '';
  #column = 0;
  /** Nothing but blanks and indicators stand in the line. */
  #isBlank = true;
  /** The last character is a blank, or there is none. */
  #isSpaced = true;

  /** @param indent of the collection that the value is in; -2 for the whole. */
  value(value: unknown, indent: number): void {
    const plain = value instanceof RawNumber ? value.toJSON() : value;
    if (Array.isArray(plain)) this.#list(plain, indent + 2);
    else if (isRecord(plain)) this.#map(plain, indent + 2);
    else if (typeof plain === 'string') this.#scalar(plain, Math.max(indent + 2, 2), false);
    else if (typeof plain === 'number') this.#word(numberText(plain));
    else this.#word(typeof plain === 'boolean' ? String(plain) : 'null');
  }

  /** Begins a line with so many blanks, unless one is begun. */
  toLine(indent: number): void {
    const begun = this.#isBlank && (this.#column < indent || (this.#column === indent && this.#isSpaced));
    if (!begun) this.#break('\n');
    const missing = Math.max(indent - this.#column, 0);
    this.#put(' '.repeat(missing), missing);
    this.#isBlank = true;
    this.#isSpaced = true;
  }

  #put(text: string, columns: number): void {
    this.text += text;
    this.#column += columns;
  }

  #break(character: string): void {
    this.text += character;
    this.#column = 0;
    this.#isBlank = true;
  }

  /** `-`, `?`, or `:` behind which a collection begins in the same line. */
  #indicator(mark: string): void {
    this.#word(mark);
    this.#isBlank = true;
  }

  /** What stands alone, without folding. */
  #word(text: string): void {
    const spaced = this.#isSpaced ? text : ` ${text}`;
    this.#put(spaced, spaced.length);
    this.#isSpaced = false;
    this.#isBlank = false;
  }

  #list(items: readonly unknown[], indent: number): void {
    if (items.length === 0) this.#word('[]');
    for (const item of items) {
      this.toLine(indent);
      this.#indicator('-');
      this.value(item, indent);
    }
  }

  #map(map: JsonRecord, indent: number): void {
    const keys = Object.keys(map)
      .filter((key) => map[key] !== undefined)
      .sort(compareKeys);
    if (keys.length === 0) this.#word('{}');
    for (const key of keys) {
      this.toLine(indent);
      const value = map[key];
      if (Buffer.byteLength(key) > maxSimpleKeyLength || Array.from(key).some(isBreak)) {
        this.#indicator('?');
        this.#scalar(key, indent + 2, false);
        this.toLine(indent);
        this.#indicator(':');
        this.value(value, indent);
      } else {
        this.#scalar(key, indent + 2, true);
        this.#put(':', 1);
        // A list in a map is no deeper than its key.
        this.value(value, Array.isArray(value) ? indent - 2 : indent);
      }
    }
  }

  #scalar(text: string, indent: number, isKey: boolean): void {
    const style = styleOf(text, isKey);
    if (style === 'literal') this.#block(text, indent);
    else if (style === 'double') this.#doubleQuoted(text, indent, isKey);
    else this.#flowing(text, indent, isKey, style === 'single' ? "'" : '');
  }

  #block(text: string, indent: number): void {
    this.#word(`|${blockHints(text)}`);
    this.#break('\n');
    this.#isSpaced = true;
    let fresh = true;
    for (const character of text) {
      if (isBreak(character)) this.#break(character);
      else {
        if (fresh) this.toLine(indent);
        this.#put(character, 1);
        this.#isBlank = false;
      }
      fresh = isBreak(character);
    }
  }

  /** Without quotes or in single ones. */
  #flowing(text: string, indent: number, isKey: boolean, quote: string): void {
    this.#word(quote);
    const fits = isKey || this.#column + text.length <= width;
    if (fits && !(quote !== '' && /['\u2028\u2029]/.test(text))) {
      this.#put(text + quote, text.length + quote.length);
      return;
    }
    const characters = Array.from(text);
    let before = '';
    characters.forEach((character, i) => {
      const inside = quote === '' || (i > 0 && i < characters.length - 1);
      const folds = character === ' ' && before !== ' ' && characters[i + 1] !== ' ' && inside;
      if (folds && !isKey && this.#column > width) this.toLine(indent);
      else if (isBreak(character)) this.#break(character);
      else {
        if (before !== '' && isBreak(before) && character !== ' ') this.toLine(indent);
        this.#put(
          character === "'" && quote !== '' ? "''" : character,
          character === "'" && quote !== '' ? 2 : 1,
        );
        if (character !== ' ') this.#isBlank = false;
      }
      before = character;
    });
    this.#put(quote, quote.length);
    this.#isSpaced = false;
    this.#isBlank = false;
  }

  #doubleQuoted(text: string, indent: number, isKey: boolean): void {
    this.#word('"');
    const characters = Array.from(text);
    const always = text.startsWith('\ufeff');
    let afterSpace = false;
    characters.forEach((character, i) => {
      const isSpace = character === ' ' && !always;
      const inside = i > 0 && i < characters.length - 1;
      if (isSpace && !isKey && !afterSpace && this.#column > width && inside) {
        this.toLine(indent);
        if (characters[i + 1] === ' ') this.#put('\\', 1);
      } else {
        const written = escaped(character, always);
        this.#put(written, written === character ? 1 : written.length);
        if (!isSpace) this.#isBlank = false;
      }
      afterSpace = isSpace;
    });
    this.#put('"', 1);
    this.#isSpaced = false;
    this.#isBlank = false;
  }
}

/** Integers of 64 bits have all their digits. */
function numberText(value: number): string {
  const isInteger = Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 64;
  return isInteger ? BigInt(value).toString() : goFloat(value);
}
