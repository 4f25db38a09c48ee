import { readFileSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import type { ReadStream, WriteStream } from 'node:tty';

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

/** Whether a terminal can be drawn on: terminals without a name, or of `TERM=dumb`, take lines alone. */
export function hasScreen(stream: WriteStream): boolean {
  const { TERM: term } = process.env;
  return stream.isTTY && term !== undefined && !['', 'dumb', 'unknown'].includes(term);
}

/** What is drawn on a terminal. */
export interface Screen {
  /** Whether keys are text. */
  readonly isTyping: boolean;
  press(key: Key): void;
  open(): void;
  close(): void;
}

/** What may be the beginning of a sequence waits so long for the rest: else it is Escape. */
const escapeMs = 50;

/**
 * Shows a screen. `q` on its terminal is what Ctrl-C is, and keys are not echoed. Ctrl-Z stops the process group as
 * everywhere, with the terminal as it was before; `fg` shows the screen again. So is the terminal when the process exits.
 *
 * @returns what ends it.
 */
export function openScreen(screen: Screen, input: ReadStream): () => void {
  const decoder = new StringDecoder();
  let begun = '';
  let late: NodeJS.Timeout | undefined;
  const onKey = (key: Key): void => {
    const isQuit = 'text' in key && key.text === 'q' && !screen.isTyping;
    const name = 'name' in key ? key.name : '';
    if (isQuit || name === 'interrupt') process.kill(process.pid, 'SIGINT');
    // The whole group, as the terminal does it: a shell waits for npm where that has started this process.
    else if (name === 'suspend') process.kill(0, 'SIGTSTP');
    else screen.press(key);
  };
  const onData = (chunk: Buffer): void => {
    clearTimeout(late);
    const { keys, rest } = keysOf(begun + decoder.write(chunk));
    begun = rest;
    for (const key of keys) onKey(key);
    if (rest === '') return;
    late = setTimeout(() => {
      begun = '';
      onKey({ name: 'escape' });
    }, escapeMs);
  };
  const enter = (): void => {
    if (input.isTTY && isInForeground()) {
      input.setRawMode(true);
      input.off('data', onData).on('data', onData);
      input.resume();
    }
    screen.open();
  };
  const leave = (): void => {
    if (input.isTTY && input.isRaw) {
      input.off('data', onData);
      clearTimeout(late);
      input.setRawMode(false);
      input.pause();
      input.unref();
    }
    screen.close();
  };
  const onStop = (): void => {
    leave();
    process.kill(process.pid, 'SIGSTOP');
  };
  // It is continued in the background too, where the terminal is another program's.
  const onContinue = (): void => {
    if (isInForeground()) enter();
  };
  process.on('SIGTSTP', onStop);
  process.on('SIGCONT', onContinue);
  process.on('exit', leave);
  enter();
  return () => {
    process.off('SIGTSTP', onStop);
    process.off('SIGCONT', onContinue);
    process.off('exit', leave);
    leave();
  };
}

/** A process in the background is stopped by the kernel when it changes its terminal (tcsetattr(3), SIGTTOU). */
function isInForeground(): boolean {
  if (process.platform !== 'linux') return true;
  const stat = readFileSync('/proc/self/stat', 'utf8');
  // Behind the command, which may have spaces: state, parent, process group, session, terminal, its foreground group.
  const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return group === foreground;
}
