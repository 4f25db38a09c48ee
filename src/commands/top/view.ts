import { existsSync } from 'node:fs';
import type { Writable } from 'node:stream';
import type { WriteStream } from 'node:tty';
import type { Logger } from 'pino';
import { AvailabilityTracker } from '../../client/availability-tracker.ts';
import { systemClock } from '../../client/clock.ts';
import { askFlows } from '../../host/control-client.ts';
import type { Transport } from '../../client/transport.ts';
import type { RequestSettings } from '../../controllers/load-balancer/request.ts';
import type { TopConfig } from '../../flags/reports.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import { type AskFlows, FlowWatch, type PresentFlows } from '../../page/flow-watch.ts';
import { plain } from '../../objects/plain.ts';
import { createLog } from '../../telemetry/log.ts';
import { byPod } from '../../view/caches.ts';
import { Follower, type FollowerListener } from '../../view/follower.ts';
import { type RowChanges, rowsIn, type Tables } from '../../view/stored-rows.ts';
import { serviceOf } from '../../view/rows/pods.ts';
import type { EgressAddressRow, PoolRow, ServiceRow } from '../../view/rows/rows.ts';
import { clusterFlagsOf, connectCluster, reportedCluster } from '../connect.ts';
import { untilSignal } from '../signals.ts';
import type { AnswerSources } from './answer.ts';
import { type Content, type LastAnswer, lastAnswer } from './lists.ts';
import { eventText, usageText } from './words.ts';
import { renderScreen } from './screen.ts';
import { type Key, hasScreen, openScreen, type Screen } from './terminal.ts';
import {
  firstLook,
  type Look,
  nothingSeen,
  pressed,
  type Question,
  type Seen,
  type Tab,
  tabs,
} from './state.ts';
import { type Line, rowsOf } from './text.ts';

/** A Service as one line, for outputs that are not a terminal. */
function serviceText(row: ServiceRow): string {
  const ready = row.endpoints === undefined ? '' : `  ${row.endpoints.ready}/${row.endpoints.total} ready`;
  return `${[row.key, row.type, row.clusterIP, row.external, row.ports].join('  ')}${ready}`;
}

/** An egress address as one line. */
function egressText({ address, egressIP, node }: EgressAddressRow): string {
  return `egress ${address}  ${egressIP}  ${node === undefined ? 'on no node' : `on ${node}`}`;
}

/** A pool as lines, one for each family of its addresses. */
function poolTexts({ name, families }: PoolRow): readonly string[] {
  return families.map((family) => `pool/${name}  ${family.family}  ${usageText(family)}`);
}

/** The live view for files and pipes: one line for every change of a row, and one for each Event. */
class PlainLines {
  readonly #output: Writable;
  /** What was last printed of an object. */
  readonly #printed = new Map<string, string>();
  #begun = false;

  constructor(output: Writable) {
    this.#output = output;
  }

  /** Called when the first lists are read: their Events are old and not printed. */
  begin({ service, pool, egressAddress, event }: Tables): void {
    this.#begun = true;
    const inOrder = rowsIn(service).toSorted((a, b) => (a.key < b.key ? -1 : 1));
    for (const row of inOrder) this.#print(`service ${row.key}`, [serviceText(row)]);
    for (const row of rowsIn(pool)) this.#print(`pool ${row.key}`, poolTexts(row));
    for (const row of rowsIn(egressAddress)) this.#print(`egress ${row.key}`, [egressText(row)]);
    for (const row of rowsIn(event)) this.#printed.set(`event ${row.key}`, eventText(row));
  }

  changed({ service, pool, egressAddress, event }: RowChanges): void {
    if (!this.#begun) return;
    for (const [key, stored] of service) {
      if (stored !== undefined) this.#print(`service ${key}`, [serviceText(stored.row)]);
      else if (this.#printed.delete(`service ${key}`)) this.#write(`${key}  deleted`);
    }
    for (const [key, stored] of pool) {
      if (stored !== undefined) this.#print(`pool ${key}`, poolTexts(stored.row));
    }
    for (const [key, stored] of egressAddress) {
      if (stored !== undefined) this.#print(`egress ${key}`, [egressText(stored.row)]);
    }
    const inOrder = [...event].toSorted(([, a], [, b]) =>
      (a?.row.time ?? '') < (b?.row.time ?? '') ? -1 : 1,
    );
    for (const [key, stored] of inOrder) {
      if (stored === undefined) this.#printed.delete(`event ${key}`);
      else this.#print(`event ${key}`, [eventText(stored.row)]);
    }
  }

  #print(key: string, lines: readonly string[]): void {
    const text = lines.join('\n');
    if (this.#printed.get(key) === text) return;
    this.#printed.set(key, text);
    for (const line of lines) this.#write(line);
  }

  #write(text: string): void {
    this.#output.write(`${plain(text)}\n`);
  }
}

/** How often Pods have answered, by the Services that they are endpoints of. */
class Answers {
  /** By Service: how much each Pod has answered; the last one of both is last. */
  readonly #counts = new Map<ObjectKey, Map<ObjectKey, number>>();

  /** @param servicesOf a Pod. */
  add(
    answers: Iterable<readonly [ObjectKey, number, ...unknown[]]>,
    servicesOf: (pod: ObjectKey) => readonly ObjectKey[],
  ): void {
    for (const [pod, count] of answers) {
      for (const service of new Set(servicesOf(pod))) {
        const counts = this.#counts.get(service) ?? new Map<ObjectKey, number>();
        this.#counts.delete(service);
        this.#counts.set(service, counts);
        const sum = (counts.get(pod) ?? 0) + count;
        counts.delete(pod);
        counts.set(pod, sum);
      }
    }
  }

  /** The latest first. @param isThere whether a Service is. */
  latest(isThere: (service: ObjectKey) => boolean): readonly LastAnswer[] {
    for (const service of this.#counts.keys()) if (!isThere(service)) this.#counts.delete(service);
    return [...this.#counts].map(([service, counts]) => lastAnswer(service, counts)).toReversed();
  }
}

/** The flows of a cluster, while its screen shows them: only then they are collected. */
class ShownFlows {
  readonly #ask: AskFlows;
  readonly #changed: () => void;
  #watch: FlowWatch | undefined;
  present: PresentFlows | undefined;

  constructor(ask: AskFlows, changed: () => void) {
    this.#ask = ask;
    this.#changed = changed;
  }

  /** @param isShown whether they are from now on. */
  show(isShown: boolean): void {
    if (isShown === (this.#watch !== undefined)) return;
    this.#watch?.end();
    this.present = undefined;
    this.#watch = isShown
      ? new FlowWatch({ view: 'flows' }, { ask: this.#ask, why: '' }, systemClock, (present) => {
          this.present = present;
          this.#changed();
        })
      : undefined;
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
class LiveScreen implements Screen {
  readonly #stream: WriteStream;
  readonly #title: readonly string[];
  readonly #hints: readonly string[];
  readonly #content: () => Omit<Content, 'answer'>;
  readonly #answerTo: (question: Question) => Promise<readonly Line[]>;
  readonly #shows: (tab: Tab) => void;
  readonly #colour: boolean;
  #answer: readonly Line[] | undefined;
  #look: Look;
  #seen: Seen = nothingSeen;
  #timer: NodeJS.Timeout | undefined;
  #isOpen = false;
  readonly #onResize = (): void => this.changed();

  /** @param hints commands, printed below the lists. @param shows is called with the list that is shown. */
  constructor(
    stream: WriteStream,
    title: readonly string[],
    hints: readonly string[],
    content: () => Omit<Content, 'answer'>,
    answerTo: (question: Question) => Promise<readonly Line[]>,
    look: Look,
    shows: (tab: Tab) => void,
  ) {
    this.#stream = stream;
    this.#title = title;
    this.#hints = hints;
    this.#content = content;
    this.#answerTo = answerTo;
    this.#look = look;
    this.#shows = shows;
    this.#colour = stream.hasColors() && process.env['NO_COLOR'] === undefined;
  }

  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#stream.write(alternateScreen);
    this.#stream.on('resize', this.#onResize);
    this.#draw();
  }

  /** Whether keys are typed into the filter. */
  get isTyping(): boolean {
    return this.#look.isTyping;
  }

  /** Shows at once what a key leads to. */
  press(key: Key): void {
    const { question: before } = this.#look;
    this.#look = pressed(this.#look, key, this.#seen);
    const { question } = this.#look;
    if (question !== undefined && question !== before) this.#ask(question);
    this.#shows(this.#look.tab);
    this.#draw();
  }

  /** Shows the answer when it comes, unless something else was asked since. */
  #ask(question: Question): void {
    this.#answer = undefined;
    void this.#answerTo(question).then((answer) => {
      if (this.#look.question !== question) return;
      this.#answer = answer;
      this.changed();
    });
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
    const frame = { title: this.#title, hints: this.#hints, size, colour: this.#colour };
    const { lines, seen } = renderScreen({ ...this.#content(), answer: this.#answer }, this.#look, frame);
    this.#seen = seen;
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

/** Options of {@link showLiveView}. */
export interface LiveViewOptions extends AnswerSources {
  readonly log: Logger;
  /** Only this namespace, for Services and Events; undefined: all. */
  readonly namespace: string | undefined;
  readonly settings: RequestSettings;
  /** The first lines on a screen. */
  readonly title: readonly string[];
  /** Commands to try, which stay on a screen. */
  readonly hints?: readonly string[];
  /** Absent: the cluster has no flows to show. */
  readonly askFlows?: AskFlows | undefined;
  /** Takes a listener for how often Pods have answered, by their keys. Absent: that is not counted. */
  readonly onResponses?: (
    tell: (answers: Iterable<readonly [ObjectKey, number, ...unknown[]]>) => void,
  ) => void;
}

/**
 * Shows a cluster on standard output as it changes, until the signal aborts: on a terminal as a screen with lists, with `q`
 * as what Ctrl-C is, else as lines for Services, pools and Events.
 */
export async function showLiveView(options: LiveViewOptions, signal: AbortSignal): Promise<void> {
  const { transport, log, namespace, settings } = options;
  const clock = systemClock;
  const following = { log, clock, random: Math.random, namespace, settings };
  const follow = async (
    tracked: Transport,
    listener: FollowerListener,
    begin: (of: Follower) => () => void,
  ) => {
    const follower = new Follower({ ...following, transport: tracked }, listener);
    const end = begin(follower);
    try {
      if (signal.aborted) return;
      follower.start();
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    } finally {
      end();
      await follower.stop();
    }
  };
  if (hasScreen(process.stdout)) {
    let screen: LiveScreen | undefined;
    const redraw = (): void => screen?.changed();
    await follow(transport, { changed: redraw, stands: redraw }, (follower) => {
      const { askFlows } = options;
      const flows = askFlows && new ShownFlows(askFlows, redraw);
      screen = screenOf(follower, options, flows, redraw);
      const close = openScreen(screen, process.stdin);
      return () => {
        flows?.show(false);
        close();
      };
    });
    return;
  }
  const lines = new PlainLines(process.stdout);
  const listener = { changed: (changes: RowChanges) => lines.changed(changes), stands: () => undefined };
  // There is a log to say it.
  await follow(new AvailabilityTracker(transport, log, clock), listener, (follower) => {
    void follower.complete().then(() => lines.begin(follower.tables.rows));
    return () => undefined;
  });
}

function screenOf(
  follower: Follower,
  { title, hints = [], onResponses, transport, pageLink, clusterFlags }: LiveViewOptions,
  flows: ShownFlows | undefined,
  redraw: () => void,
): LiveScreen {
  const { tables, caches } = follower;
  const answers = new Answers();
  onResponses?.((counts) => {
    answers.add(counts, (pod) =>
      caches.slices.cache.byIndex(byPod, pod).flatMap((slice) => serviceOf(slice) ?? []),
    );
    redraw();
  });
  const content = () => ({
    ...{ tables: tables.rows, status: follower.status },
    answers: answers.latest((service) => tables.rows.service.has(service)),
    detailOf: (service: ObjectKey) => tables.detailOf(service),
    flows: flows?.present,
  });
  const answer = async (question: Question): Promise<readonly Line[]> => {
    const { answerTo } = await import('./answer.ts');
    return await answerTo(question, { transport, pageLink, clusterFlags });
  };
  const look = flows === undefined ? firstLook : { ...firstLook, tabs };
  const shows = (tab: Tab): void => flows?.show(tab === 'flows');
  return new LiveScreen(process.stdout, title, hints, content, answer, look, shows);
}

/** Shows a cluster as it changes, until a signal comes. */
export async function top({ cluster: given, namespace, settings }: TopConfig): Promise<void> {
  const log = createLog({ level: 'error', format: process.stderr.isTTY ? 'pretty' : 'json' });
  const stop = untilSignal(log);
  const cluster = await reportedCluster(given);
  const transport = await connectCluster(cluster);
  const ending = new AbortController();
  void stop.received.then(() => ending.abort());
  try {
    const title = [`servicenet top: ${transport.server}  (q ends it)`];
    const pageLink = async (): Promise<string | undefined> => {
      const { linkOfUp } = await import('../page.ts');
      return await linkOfUp(cluster);
    };
    const clusterFlags = clusterFlagsOf(given);
    const { socketOfUp } = await import('../page.ts');
    const socket = socketOfUp(cluster);
    const hasUp = socket !== undefined && existsSync(socket);
    const asking: AskFlows | undefined = hasUp
      ? (request, signal) => askFlows(socket, request, signal)
      : undefined;
    const view = { transport, log, namespace, settings, title, pageLink, clusterFlags, askFlows: asking };
    await showLiveView(view, ending.signal);
  } finally {
    await transport.close();
    stop.release();
  }
}
