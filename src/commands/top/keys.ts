/** The keys of a terminal in raw mode. Pure. */

/** A key: one that types something, or another by its name (`up`, `return`). */
export type Key = { readonly text: string } | { readonly name: string };

/** A sequence of ECMA-48 or of the application mode of cursor keys, an Escape alone, or a character. */
const each = /\u001b\[[0-?]*[ -/]*[@-~]|\u001bO[@-~]|[^]/gu;
/** The beginning of a sequence. */
const begun = /\u001b(?:\[[0-?]*[ -/]*|O)?$/;

/** By the last character of a sequence. */
const byEnd: Readonly<Record<string, string>> = {
  ...{ A: 'up', B: 'down', C: 'right', D: 'left', H: 'home', F: 'end', Z: 'backtab' },
};
/** By the number before `~` (VT220). */
const byNumber: Readonly<Record<string, string>> = {
  ...{ 1: 'home', 4: 'end', 5: 'pageup', 6: 'pagedown', 7: 'home', 8: 'end' },
};
const controls: Readonly<Record<string, string>> = {
  ...{ '\r': 'return', '\n': 'return', '\t': 'tab', '\u007f': 'backspace', '\b': 'backspace' },
  ...{ '\u0003': 'interrupt', '\u001a': 'suspend', '\u0015': 'clear', '\u001b': 'escape' },
};

/**
 * The keys of what a terminal has sent.
 *
 * @returns `rest`: what is an Escape, unless more of a sequence follows soon.
 */
export function keysOf(sent: string): { readonly keys: readonly Key[]; readonly rest: string } {
  const rest = begun.exec(sent)?.[0] ?? '';
  const whole = sent.slice(0, sent.length - rest.length);
  return { keys: [...whole.matchAll(each)].flatMap(([sequence]) => keyOf(sequence) ?? []), rest };
}

function keyOf(sequence: string): Key | undefined {
  const control = controls[sequence];
  if (control !== undefined) return { name: control };
  if (!sequence.startsWith('\u001b')) return sequence < ' ' ? undefined : { text: sequence };
  const [number = ''] = /\d+/.exec(sequence) ?? [];
  const name = sequence.endsWith('~') ? byNumber[number] : byEnd[sequence.at(-1) ?? ''];
  return name === undefined ? undefined : { name };
}
