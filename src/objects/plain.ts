/** Control sequences of terminals (ECMA-48): of cursor, colours and screen, and the strings that OSC begins. */
const controlSequences =
  // oxlint-disable-next-line no-control-regex
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b\]|\u009d)[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)/g;

/**
 * The text on one line, for terminals, pages and pictures. Values from a cluster may contain control characters, with
 * which an Event could draw over a screen, and marks that turn the direction of what follows: they are shown as `?`.
 */
export function plain(text: string): string {
  let result = '';
  for (const character of text.replaceAll(controlSequences, '')) {
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
