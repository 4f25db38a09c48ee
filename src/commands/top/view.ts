import type { Writable } from 'node:stream';
import { keyOf, type ObjectKey, type KubeObject } from '../../objects/meta.ts';
import type { EgressIP } from '../../objects/types/openshift.ts';
import { egressRows } from '../tables.ts';
import {
  type EventLine,
  type ServiceRow,
  poolRows,
  type ViewListener,
  type View,
  Follower,
} from './model.ts';
import { egressText, eventText, poolText, serviceText, plain, renderScreen, rowsOf } from './screen.ts';
import { hasScreen } from './terminal.ts';
import { readFileSync } from 'node:fs';
import type { ReadStream, WriteStream } from 'node:tty';
import type { Logger } from 'pino';
import { systemClock } from '../../client/clock.ts';
import { AvailabilityTracker } from '../../client/availability-tracker.ts';
import type { Transport } from '../../client/transport.ts';
import type { TopConfig } from '../../flags/reports.ts';
import { createLog } from '../../telemetry/log.ts';
import { connectCluster } from '../connect.ts';
import { untilSignal } from '../signals.ts';

/** The live view for files and pipes: one line for every change of a row, and one for each Event. */
class PlainLines implements ViewListener {
  readonly #output: Writable;
  /** The line that was last printed for an object. */
  readonly #printed = new Map<ObjectKey, string>();
  #begun = false;

  constructor(output: Writable) {
    this.#output = output;
  }

  /** Called when the first lists are read: their Events are old and not printed. */
  begin(services: readonly ServiceRow[]): void {
    this.#begun = true;
    for (const row of services) this.service(row);
  }

  service(row: ServiceRow): void {
    if (this.#begun) this.#print(`${row.namespace}/${row.name}`, serviceText(row));
  }

  gone(key: ObjectKey): void {
    if (this.#printed.delete(key)) this.#write(`${plain(key)}  deleted`);
  }

  pool(pool: KubeObject): void {
    for (const row of poolRows(pool)) this.#print(`pool ${keyOf(pool)} ${row.family}`, poolText(row));
  }

  egress(object: EgressIP): void {
    for (const row of egressRows(object))
      this.#print(`egress ${row.egressIP} ${row.address}`, egressText(row));
  }

  event(line: EventLine): void {
    if (this.#begun) this.#write(eventText(line));
  }

  changed(): void {
    // Every change has a line of its own.
  }

  #print(key: string, text: string): void {
    if (this.#printed.get(key) === text) return;
    this.#printed.set(key, text);
    this.#write(text);
  }

  #write(text: string): void {
    this.#output.write(`${text}\n`);
  }
}

/** The time between two redraws. */
const redrawMs = 250;

const usualSize = { columns: 80, rows: 24 };

const alternateScreen = '\u001b[?1049h\u001b[?25l';
const ordinaryScreen = '\u001b[?25h\u001b[?1049l';
const home = '\u001b[H';
const restOfLine = '\u001b[K';
const restOfScreen = '\u001b[J';

/** Draws the live view on a terminal's alternate screen; the previous screen is restored at the end. */
class LiveScreen {
  readonly #stream: WriteStream;
  readonly #title: readonly string[];
  readonly #hints: readonly string[];
  readonly #view: () => View;
  readonly #colour: boolean;
  #timer: NodeJS.Timeout | undefined;
  #isOpen = false;
  readonly #onResize = (): void => this.changed();

  /** @param hints commands to try, which stay on the screen. */
  constructor(stream: WriteStream, title: readonly string[], hints: readonly string[], view: () => View) {
    this.#stream = stream;
    this.#title = title;
    this.#hints = hints;
    this.#view = view;
    this.#colour = stream.hasColors() && process.env['NO_COLOR'] === undefined;
  }

  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#stream.write(alternateScreen);
    this.#stream.on('resize', this.#onResize);
    this.#draw();
  }

  /** Schedules a redraw, which includes all changes until then. */
  changed(): void {
    if (this.#isOpen) this.#timer ??= setTimeout(() => this.#draw(), redrawMs);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    clearTimeout(this.#timer);
    this.#timer = undefined;
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
    this.#stream.write(`${home}${lines.map((line) => drawn(line, columns)).join('')}${restOfScreen}`);
  }
}

/**
 * A line on rows that were cleared before: what clears behind the last column of a row would clear that column. The
 * terminal itself goes on in the next row, so that what is copied from there is one line.
 */
function drawn(line: string, columns: number): string {
  const further = rowsOf(line, columns) - 1;
  const back = further === 0 ? '' : `\u001b[${further}A`;
  return `${restOfLine}${`\n${restOfLine}`.repeat(further)}${back}${line}\n`;
}

/** Keys that a terminal makes signals of, unless it is in raw mode. */
const interrupt = '\u0003';
const suspend = '\u001a';

/**
 * Shows a screen. `q` on its terminal is what Ctrl-C is, and keys are not echoed. Ctrl-Z stops the process group as
 * everywhere, with the terminal as it was before; `fg` shows the screen again.
 *
 * @returns what ends it.
 */
function openScreen(screen: LiveScreen, input: ReadStream): () => void {
  const onKeys = (keys: Buffer): void => {
    const text = keys.toString();
    if (text === 'q' || text.includes(interrupt)) process.kill(process.pid, 'SIGINT');
    // The whole group, as the terminal does it: a shell waits for npm where that has started this process.
    else if (text.includes(suspend)) process.kill(0, 'SIGTSTP');
  };
  const enter = (): void => {
    if (input.isTTY && isInForeground()) {
      input.setRawMode(true);
      input.off('data', onKeys).on('data', onKeys);
      input.resume();
    }
    screen.open();
  };
  const leave = (): void => {
    if (input.isTTY && input.isRaw) {
      input.off('data', onKeys);
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
  enter();
  return () => {
    process.off('SIGTSTP', onStop);
    process.off('SIGCONT', onContinue);
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

/** Options of {@link showLiveView}. */
export interface LiveViewOptions {
  readonly transport: Transport;
  readonly log: Logger;
  /** Only this namespace, for Services and Events; undefined: all. */
  readonly namespace: string | undefined;
  /** The first lines on a screen. */
  readonly title: readonly string[];
  /** Commands to try, which stay on a screen. */
  readonly hints?: readonly string[];
  /** Takes a listener for how often Pods have answered, by their keys. Absent: that is not counted. */
  readonly onResponses?: (
    tell: (answers: Iterable<readonly [ObjectKey, number, ...unknown[]]>) => void,
  ) => void;
}

/**
 * Shows Services, pools and Events on standard output as they change, until the signal aborts: on a terminal as a screen,
 * with `q` as what Ctrl-C is, else as lines.
 */
export async function showLiveView(options: LiveViewOptions, signal: AbortSignal): Promise<void> {
  const { transport, log, namespace, title, hints = [] } = options;
  const output = process.stdout;
  if (hasScreen(output)) {
    let problem: string | undefined;
    const view = (): View => ({ ...follower.view(), ...(problem === undefined ? {} : { problem }) });
    const screen = new LiveScreen(output, title, hints, view);
    // A line of the log would be drawn into the screen.
    const silent = log.child({}, { level: 'silent' });
    const watched = new AvailabilityTracker(transport, silent, systemClock, (present) => {
      problem = present;
      screen.changed();
    });
    const follower = new Follower(watched, log, namespace, { changed: () => screen.changed() });
    options.onResponses?.((answers) => follower.answered(answers));
    const closeScreen = openScreen(screen, process.stdin);
    try {
      await follower.start(signal);
      await follower.finished();
    } finally {
      closeScreen();
    }
    return;
  }
  const lines = new PlainLines(output);
  const watched = new AvailabilityTracker(transport, log, systemClock);
  const follower = new Follower(watched, log, namespace, lines);
  await follower.start(signal);
  lines.begin(follower.view().services);
  await follower.finished();
}

/** Shows a cluster's Services, pools and Events as they change, until a signal comes. */
export async function top({ cluster, namespace }: TopConfig): Promise<void> {
  const log = createLog({ level: 'error', format: process.stderr.isTTY ? 'pretty' : 'json' });
  const stop = untilSignal(log);
  const transport = await connectCluster(cluster);
  const ending = new AbortController();
  void stop.received.then(() => ending.abort());
  try {
    const title = [`servicenet top: ${transport.server}  (q ends it)`];
    await showLiveView({ transport, log, namespace, title }, ending.signal);
  } finally {
    await transport.close();
    stop.release();
  }
}
