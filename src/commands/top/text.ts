/**
 * Text for a terminal. Values from a cluster may contain control characters, with which an Event could draw over the
 * screen: they are shown as `?`.
 */
import { stripVTControlCharacters } from 'node:util';

/** The text on one line, without control characters. */
export function plain(text: string): string {
  let result = '';
  for (const character of stripVTControlCharacters(text)) {
    result += isCommand(character.codePointAt(0) ?? 0) ? '?' : character;
  }
  return result;
}

/** C0 and C1 controls, line and paragraph separators, and marks that change the direction of text. */
function isCommand(code: number): boolean {
  return (
    code < 0x20 ||
    (code >= 0x7f && code <= 0x9f) ||
    code === 0x200e ||
    code === 0x200f ||
    (code >= 0x2028 && code <= 0x202e) ||
    (code >= 0x2066 && code <= 0x2069)
  );
}

/** The text cut to a width, with `…` where it was cut. */
export function fit(text: string, width: number): string {
  if (width <= 0) return '';
  let kept = '';
  let count = 0;
  for (const character of text) {
    count++;
    if (count > width) return `${kept}…`;
    if (count < width) kept += character;
  }
  return text;
}
