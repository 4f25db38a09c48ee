import { readFileSync } from 'node:fs';
import type { ReadStream, WriteStream } from 'node:tty';
import type { View } from './model.ts';
import { renderScreen } from './screen.ts';

/** Milliseconds between two redraws. */
const pause = 250;

const usualSize = { columns: 80, rows: 24 };

const alternateScreen = '\u001b[?1049h\u001b[?25l';
const ordinaryScreen = '\u001b[?25h\u001b[?1049l';
const home = '\u001b[H';
const restOfLine = '\u001b[K';
const restOfScreen = '\u001b[J';

/** Draws the live view on a terminal's alternate screen; the previous screen is restored at the end. */
export class LiveScreen {
  readonly #stream: WriteStream;
  readonly #title: string;
  readonly #hints: readonly string[];
  readonly #view: () => View;
  readonly #colour: boolean;
  #timer: NodeJS.Timeout | undefined;
  readonly #onResize = (): void => this.changed();

  /** @param hints commands to try, which stay on the screen. */
  constructor(stream: WriteStream, title: string, hints: readonly string[], view: () => View) {
    this.#stream = stream;
    this.#title = title;
    this.#hints = hints;
    this.#view = view;
    this.#colour = stream.hasColors() && process.env['NO_COLOR'] === undefined;
  }

  open(): void {
    this.#stream.write(alternateScreen);
    this.#stream.on('resize', this.#onResize);
    this.#draw();
  }

  /** Schedules a redraw, which includes all changes until then. */
  changed(): void {
    this.#timer ??= setTimeout(() => this.#draw(), pause);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#stream.off('resize', this.#onResize);
    this.#stream.write(ordinaryScreen);
  }

  #draw(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // A serial console has no size.
    const { columns, rows } = this.#stream.columns > 0 ? this.#stream : usualSize;
    // One line less than the terminal has: a line end on the last one would scroll.
    const size = { columns, rows: rows - 1 };
    const lines = renderScreen(this.#view(), this.#title, size, this.#colour, this.#hints);
    this.#stream.write(`${home}${lines.map((line) => `${line}${restOfLine}\n`).join('')}${restOfScreen}`);
  }
}

const interrupt = '\u0003';

/**
 * Makes `q` on a terminal what Ctrl-C is: this process gets SIGINT. Keys are not echoed meanwhile.
 *
 * @returns what ends it.
 */
export function interruptByKey(input: ReadStream): () => void {
  if (!input.isTTY || !isInForeground()) return () => undefined;
  const onKeys = (keys: Buffer): void => {
    const text = keys.toString();
    if (text === 'q' || text.includes(interrupt)) process.kill(process.pid, 'SIGINT');
  };
  input.setRawMode(true);
  input.on('data', onKeys);
  return () => {
    input.off('data', onKeys);
    input.setRawMode(false);
    input.pause();
    input.unref();
  };
}

/** A process in the background is stopped by the kernel when it changes its terminal (tcsetattr(3), SIGTTOU). */
function isInForeground(): boolean {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  // Behind the command, which may have spaces: state, parent, process group, session, terminal, its foreground group.
  const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return group === foreground;
}
