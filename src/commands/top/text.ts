import { stripVTControlCharacters } from 'node:util';
import { plain } from '../../objects/plain.ts';

/** Text in the columns of a terminal. Pure. */

/** Marks that stand over the character before, and what joins emoji. */
const withoutWidth = /^[\p{Mn}\p{Me}\u200b-\u200d\ufe00-\ufe0f]$/u;
/** East Asian wide and fullwidth characters (UAX #11), and emoji. */
const wide =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}\p{Emoji_Presentation}]$/u;

/** How many columns a text without controls takes. */
export function widthOf(text: string): number {
  // oxlint-disable-next-line no-control-regex
  if (/^[\u0000-\u02ff]*$/.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += widthOfOne(character);
  return width;
}

function widthOfOne(character: string): number {
  return withoutWidth.test(character) ? 0 : wide.test(character) ? 2 : 1;
}

/** How many rows of a screen a line takes. */
export function rowsOf(line: string, columns: number): number {
  return Math.max(1, Math.ceil(widthOf(stripVTControlCharacters(line)) / columns));
}

/**
 * The text in lines of a width, without a loss but that of spaces: at spaces and commas, and within a word that is longer.
 *
 * @param indent columns before all lines but the first.
 */
export function fold(text: string, width: number, indent = 0): readonly string[] {
  if (widthOf(text) <= width) return [text];
  const before = indent < width / 2 ? ' '.repeat(indent) : '';
  const lines: string[] = [];
  let line = '';
  const end = (): void => {
    if (line.trim() !== '') lines.push(line.trimEnd());
    line = before;
  };
  for (const word of text.split(/(?<=[ ,])/)) {
    if (widthOf(line + word.trimEnd()) > width) end();
    for (const character of word) {
      if (character === ' ' && lines.length > 0 && line === before) continue;
      if (widthOf(line) + widthOfOne(character) > width && character !== ' ') end();
      line += character;
    }
  }
  end();
  return lines;
}

export type Style = 'bold' | 'dim' | 'red' | 'yellow' | 'green' | 'inverse';

export interface Line {
  readonly text: string;
  readonly style?: Style;
  /** It is one line for who copies it: on a narrow screen the terminal itself goes on in the next row. */
  readonly isCopied?: boolean;
  /** Columns before what goes on in further lines. */
  readonly indent?: number;
}

function foldLine(line: Line, columns: number): readonly Line[] {
  const text = plain(line.text);
  if (line.isCopied === true) return [{ ...line, text }];
  return fold(text, columns, line.indent ?? 0).map((each) => ({ ...line, text: each }));
}

/** Lines that go on in further ones where they are longer than a screen is wide. */
export function folded(lines: readonly Line[], columns: number): readonly Line[] {
  return lines.flatMap((line) => foldLine(line, columns));
}

/** How many rows of a screen lines take. */
export function height(lines: readonly Line[], columns: number): number {
  return lines.reduce((sum, { text }) => sum + rowsOf(text, columns), 0);
}

/** The first lines, as many as have room. */
export function firstWithin(lines: readonly Line[], rows: number, columns: number): Line[] {
  const shown: Line[] = [];
  let left = rows;
  for (const line of lines) {
    left -= rowsOf(line.text, columns);
    if (left < 0) break;
    shown.push(line);
  }
  return shown;
}
