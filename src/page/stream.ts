import type { Logger } from 'pino';
import type { WebSocket } from 'ws';
import type { Clock, Timer } from '../client/clock.ts';
import { isRecord, parseRecord } from '../objects/json.ts';
import { turnForLongWork } from '../telemetry/time-slice.ts';
import type { FollowerListener, FollowStatus } from '../view/follower.ts';
import { noRows, type RowChanges } from '../view/stored-rows.ts';
import { formatTime, parseTime } from '../objects/formats/time.ts';
import { Feed, type Followed } from './feed.ts';
import { type AskFlows, FlowWatch, type PresentFlows } from './flow-watch.ts';
import type { Gate } from './gate.ts';
import { type ClusterInfo, type FollowedFlows, type Follow, isViewName, rowsOfView } from './messages.ts';
import type { Viewers } from './viewers.ts';

/** The first message has to come so soon. */
const firstMessageMs = 2000;
/** Bytes that wait to be sent beside a state, above which a tab gets no more rows until it has read all. */
const mostBuffered = 4 * 1024 * 1024;
/** Between two states: a tab that asks for one after the other gets the last. */
const stateMs = 250;
/** Between two rows of what has changed of late. */
const journalMs = 2000;

/** Codes of an end that has a cause. */
const unknownSession = 4401;
const notUnderstood = 4400;
/** RFC 6455, 7.4.1. */
const serverError = 1011;

export interface StreamOptions {
  readonly log: Logger;
  readonly gate: Gate;
  readonly viewers: Viewers;
  readonly cluster: ClusterInfo;
  readonly clock: Clock;
  /** Undefined: there are no flows; `cluster.whyNoFlows` says why. */
  readonly askFlows: AskFlows | undefined;
}

/** Serves a tab: first its session, then what it follows. */
export class Stream implements FollowerListener {
  readonly #socket: WebSocket;
  readonly #options: StreamOptions;
  #isKnown = false;
  #feed: Feed | undefined;
  #wanted: Follow | undefined;
  #timer: Timer | undefined;
  #stateAt = -stateMs;
  #isBeginning = false;
  /** Bytes of a state that the tab has not read to its end. */
  #stateBytes = 0;
  /** Changes that were not sent, as the tab has not read what came before. */
  #hasMissed = false;
  #leave: (() => void) | undefined;
  #journal: Timer | undefined;
  #flows: FlowWatch | undefined;

  constructor(socket: WebSocket, options: StreamOptions) {
    this.#socket = socket;
    this.#options = options;
    const late = options.clock.after(firstMessageMs, () => {
      if (!this.#isKnown) this.#end(unknownSession, 'SessionUnknown');
    });
    // Every error is followed by close.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      late.cancel();
      this.#timer?.cancel();
      this.#journal?.cancel();
      this.#flows?.end();
      this.#leave?.();
    });
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      const message = isBinary ? undefined : parseRecord(data.toString('utf8'));
      if (message === undefined) this.#end(notUnderstood, 'BadRequest');
      else this.#said(message);
    });
  }

  changed(changes: RowChanges): void {
    // What was does not change.
    if (this.#feed?.isPast !== true) this.#sendChanges((feed) => feed.changes(changes));
    this.#journal ??= this.#options.clock.after(journalMs, () => this.#tellJournal());
  }

  stands(status: FollowStatus): void {
    if (this.#feed !== undefined) this.#send(JSON.stringify({ status: this.#feed.statusAfter(status) }));
  }

  #tellJournal(): void {
    this.#journal = undefined;
    const { row } = this.#options.viewers.journal;
    this.#sendChanges((feed) => feed.journal(row));
  }

  #sendChanges(textOf: (feed: Feed) => string | undefined): void {
    if (this.#feed === undefined) return;
    if (this.#isBehind()) {
      this.#hasMissed = true;
      return;
    }
    const text = textOf(this.#feed);
    if (text !== undefined) this.#send(text);
  }

  #said(message: Readonly<Record<string, unknown>>): void {
    if (!this.#isKnown) {
      const { session } = message;
      if (typeof session !== 'string' || !this.#options.gate.isKnown(session)) {
        this.#end(unknownSession, 'SessionUnknown');
        return;
      }
      this.#isKnown = true;
      this.#leave = this.#options.viewers.add(this);
      return;
    }
    const follow = readFollow(message['follow'], this.#options.cluster.onlyNamespace);
    if (follow === undefined) {
      this.#end(notUnderstood, 'BadRequest');
      return;
    }
    this.#wanted = follow;
    this.#beginLater();
  }

  #beginLater(): void {
    const { clock } = this.#options;
    const waitMs = Math.max(0, this.#stateAt + stateMs - clock.monotonic());
    this.#timer ??= clock.after(waitMs, () => {
      this.#timer = undefined;
      this.#beginOnce();
    });
  }

  /** One state after the other: where another is wanted by the end of one, that comes next. */
  #beginOnce(): void {
    const wanted = this.#wanted;
    if (this.#isBeginning || wanted === undefined) return;
    this.#isBeginning = true;
    this.#begin(wanted)
      .then(() => {
        this.#isBeginning = false;
        if (this.#wanted !== wanted) this.#beginLater();
      })
      .catch((error: unknown) => {
        this.#options.log.error({ err: error }, 'the page cannot make the state of a tab');
        this.#end(serverError, 'InternalError');
      });
  }

  /** Sends the state of what is followed now. */
  async #begin(wanted: Follow): Promise<void> {
    if (!this.#isOpen()) return;
    const { viewers, cluster, clock, askFlows } = this.#options;
    this.#stateAt = clock.monotonic();
    const { follower } = viewers;
    // The one before ends last: flows go on to be collected.
    const before = this.#flows;
    const why = cluster.whyNoFlows ?? '';
    const tell = (present: PresentFlows): void => this.#sendChanges((feed) => feed.flows(present));
    if (wanted.at === undefined) {
      // Its rows are then those that changes begin from.
      follower.flush();
      await this.#sendState(new Feed(wanted, follower, cluster, this.#feed?.seq ?? 0, () => clock.now()));
    }
    if (!this.#isOpen()) return;
    this.#flows = showsFlows(wanted) ? new FlowWatch(wanted, { ask: askFlows, why }, clock, tell) : undefined;
    before?.end();
    if (wanted.at !== undefined) await this.#beginPast(wanted, timeOf(wanted.at) ?? 0);
  }

  /** Sends the state of what was followed at a time. */
  async #beginPast(wanted: Follow, atMs: number): Promise<void> {
    const { viewers, cluster } = this.#options;
    const followed = await pastToFollow(viewers, atMs);
    // Another place may be wanted by now.
    if (this.#wanted !== wanted) return;
    await this.#sendState(new Feed(wanted, followed, cluster, this.#feed?.seq ?? 0, () => atMs));
  }

  /** The state of a large cluster is long work. */
  async #sendState(feed: Feed): Promise<void> {
    this.#hasMissed = false;
    this.#feed = feed;
    const text = await feed.state();
    await turnForLongWork();
    // That of a large cluster waits for longer than the next change.
    const before = this.#socket.bufferedAmount;
    this.#send(`{"state":${text}}`, () => (this.#stateBytes = 0));
    this.#stateBytes = this.#socket.bufferedAmount - before;
    for (const changes of feed.changedMeanwhile()) {
      const next = feed.changes(changes);
      if (next !== undefined) this.#send(next);
    }
    this.#tellJournal();
  }

  #isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN;
  }

  #isBehind(): boolean {
    return this.#hasMissed || this.#socket.bufferedAmount > this.#stateBytes + mostBuffered;
  }

  #send(text: string, sent?: () => void): void {
    if (!this.#isOpen()) return;
    this.#socket.send(text, () => {
      sent?.();
      if (this.#hasMissed && this.#socket.bufferedAmount === 0) this.#beginOnce();
    });
  }

  #end(code: number, reason: string): void {
    this.#leave?.();
    this.#socket.close(code, reason);
  }
}

/** Whether flows have to be collected. There are none of what was, and Reach begins with the choice of a namespace. */
function showsFlows({ view, namespace, at }: Follow): boolean {
  if (at !== undefined) return false;
  return view === 'reach' ? namespace !== undefined : rowsOfView[view].some((kind) => kind === 'flowGroup');
}

/** Milliseconds since 1970 of a time in RFC 3339; undefined: it is none. */
export function timeOf(text: string): number | undefined {
  const atMs = parseTime(text);
  return atMs === undefined ? undefined : Math.round(atMs);
}

/** What a feed reads of a cluster as it was at a time, in milliseconds since 1970. */
export async function pastToFollow(viewers: Viewers, atMs: number): Promise<Followed> {
  const past = await viewers.past(atMs);
  const { forbidden } = viewers.follower.status;
  const knownSince = formatTime(viewers.journal.beginMs ?? 0);
  return past === undefined
    ? { status: { loading: [], forbidden, knownSince }, tables: noTables }
    : { status: { loading: [], forbidden }, tables: past.tables };
}

const noTables = { rows: noRows, detailOf: () => undefined };

/** @param only the one namespace that is shown; undefined: all are. */
export function readFollow(value: unknown, only: string | undefined): Follow | undefined {
  if (!isRecord(value)) return undefined;
  const { view, namespace = only, name, all, flows, at } = value;
  if (typeof view !== 'string' || !isViewName(view)) return undefined;
  const isText = (given: unknown): given is string | undefined =>
    given === undefined || (typeof given === 'string' && given.length <= 253);
  if (!isText(namespace) || !isText(name) || !isText(at)) return undefined;
  if (at !== undefined && parseTime(at) === undefined) return undefined;
  if (view === 'service' && (namespace === undefined || name === undefined)) return undefined;
  return {
    view,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(all === true ? { all } : {}),
    ...(isRecord(flows) ? { flows: readFlows(flows) } : {}),
    ...(at === undefined ? {} : { at }),
  };
}

/** What they ask for is read by who tells the flows. */
function readFlows(value: Readonly<Record<string, unknown>>): FollowedFlows {
  const { from, to, outcomes, by, all, each } = value;
  const isText = (given: unknown): given is string => typeof given === 'string' && given.length <= 512;
  return {
    ...(isText(from) ? { from } : {}),
    ...(isText(to) ? { to } : {}),
    ...(Array.isArray(outcomes) ? { outcomes: outcomes.filter(isText) } : {}),
    ...(isText(by) ? { by } : {}),
    ...(all === true ? { all } : {}),
    ...(each === true ? { each } : {}),
  };
}
