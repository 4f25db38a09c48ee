/** Control sequences of terminals (ECMA-48): of cursor, colours and screen, and the strings that OSC begins. */
const controlSequences =
  // oxlint-disable-next-line no-control-regex
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b\]|\u009d)[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)/g;

/** C0 and C1 controls, line and paragraph separators, and marks that change the direction of text. */
const commands =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

/**
 * The text on one line, for terminals, pages and pictures. Values from a cluster may contain control characters, with
 * which an Event could draw over a screen, and marks that turn the direction of what follows: they are shown as `?`.
 */
export function plain(text: string): string {
  // Nearly every text is plain, and tabs have tens of thousands.
  if (!commands.test(text)) return text;
  let result = '';
  for (const character of text.replaceAll(controlSequences, '')) {
    result += commands.test(character) ? '?' : character;
  }
  return result;
}
