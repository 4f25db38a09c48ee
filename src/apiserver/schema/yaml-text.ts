/** How yaml.v2 writes a text: without quotes, in single or double ones, or as a block (its `emitterc.go`). */
import { isPlainText } from './yaml-scalar.ts';

export type Style = 'plain' | 'single' | 'double' | 'literal';

const lineBreak = /[\r\n\x85\u2028\u2029]/;
const notPrintable = /[^\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]/u;
/** What a line cannot begin with, or what ends a text within it. */
const indicator =
  /^(?:---|\.\.\.|[#,[\]{}&*!|>'"%@`]|[?:\-](?:[ \t]|$))|:(?:[ \t]|$)|[ \t\r\n\x85\u2028\u2029]#/;

/** Whether a character ends a line. */
export function isBreak(character: string): boolean {
  return lineBreak.test(character);
}

/** @param isKey of a key in front of a colon, which is in one line. */
export function styleOf(text: string, isKey: boolean): Style {
  const broken = lineBreak.test(text);
  const special = notPrintable.test(text) || / [\r\n\x85\u2028\u2029]/.test(text);
  const indented = /[\r\n\x85\u2028\u2029] /.test(text);
  if (text.includes('\n')) return special || text.endsWith(' ') || isKey ? 'double' : 'literal';
  if (!isPlainText(text)) return 'double';
  if (special || indented || (isKey && broken)) return 'double';
  return broken || text.startsWith(' ') || text.endsWith(' ') || indicator.test(text) ? 'single' : 'plain';
}

/** What stands behind the bar of a block: how it is indented where that cannot be seen, and how it ends. */
export function blockHints(text: string): string {
  const characters = Array.from(text.slice(-4));
  const last = characters.at(-1) ?? '';
  const before = characters.at(-2);
  const chomping = !isBreak(last) ? '-' : before === undefined || isBreak(before) ? '+' : '';
  return `${/^[ \r\n\x85\u2028\u2029]/.test(text) ? '2' : ''}${chomping}`;
}

const shortEscapes: ReadonlyMap<string, string> = new Map([
  ['\0', '\\0'],
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\t', '\\t'],
  ['\n', '\\n'],
  ['\v', '\\v'],
  ['\f', '\\f'],
  ['\r', '\\r'],
  ['\x1b', '\\e'],
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\x85', '\\N'],
  ['\xa0', '\\_'],
  ['\u2028', '\\L'],
  ['\u2029', '\\P'],
]);

/**
 * A character in double quotes.
 *
 * @param always behind a byte order mark at the beginning, yaml.v2 takes every character for one.
 */
export function escaped(character: string, always: boolean): string {
  const special =
    notPrintable.test(character) || isBreak(character) || character === '"' || character === '\\';
  if (!special && !always) return character;
  const short = shortEscapes.get(character);
  if (short !== undefined) return short;
  const code = character.codePointAt(0) ?? 0;
  const [letter, width] = code <= 0xff ? ['x', 2] : code <= 0xffff ? ['u', 4] : ['U', 8];
  return `\\${letter}${code.toString(16).toUpperCase().padStart(width, '0')}`;
}
