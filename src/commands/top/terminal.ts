import type { WriteStream } from 'node:tty';
import type { View } from './model.ts';
import { renderScreen } from './screen.ts';

/** Milliseconds between two redraws. */
const pause = 250;

const alternateScreen = '\u001b[?1049h\u001b[?25l';
const ordinaryScreen = '\u001b[?25h\u001b[?1049l';
const home = '\u001b[H';
const restOfLine = '\u001b[K';
const restOfScreen = '\u001b[J';

/** Draws the live view on a terminal's alternate screen; the previous screen is restored at the end. */
export class LiveScreen {
  readonly #stream: WriteStream;
  readonly #title: string;
  readonly #view: () => View;
  readonly #colour: boolean;
  #timer: NodeJS.Timeout | undefined;
  readonly #onResize = (): void => this.changed();

  constructor(stream: WriteStream, title: string, view: () => View) {
    this.#stream = stream;
    this.#title = title;
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
    const { columns, rows } = this.#stream;
    // One line less than the terminal has: a line end on the last one would scroll.
    const lines = renderScreen(this.#view(), this.#title, { columns, rows: rows - 1 }, this.#colour);
    this.#stream.write(`${home}${lines.map((line) => `${line}${restOfLine}\n`).join('')}${restOfScreen}`);
  }
}
