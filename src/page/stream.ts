import type { WebSocket } from 'ws';
import type { Clock, Timer } from '../client/clock.ts';
import { isRecord, parseRecord } from '../objects/json.ts';
import type { FollowerListener, FollowStatus } from '../view/follower.ts';
import type { RowChanges } from '../view/row-tables.ts';
import { Feed } from './feed.ts';
import type { Gate } from './gate.ts';
import { type ClusterInfo, type Follow, isViewName } from './messages.ts';
import type { Viewers } from './viewers.ts';

/** The first message has to come so soon. */
const firstMessageMs = 2000;
/** Bytes that wait to be sent, above which a tab gets no more rows until it has read all. */
const mostBuffered = 4 * 1024 * 1024;
/** Between two states: a tab that asks for one after the other gets the last. */
const stateMs = 250;

/** Codes of an end that has a cause. */
const unknownSession = 4401;
const notUnderstood = 4400;

export interface StreamOptions {
  readonly gate: Gate;
  readonly viewers: Viewers;
  readonly cluster: ClusterInfo;
  readonly clock: Clock;
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
  /** Changes that were not sent, as the tab has not read what came before. */
  #hasMissed = false;
  #leave: (() => void) | undefined;

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
      this.#leave?.();
    });
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      const message = isBinary ? undefined : parseRecord(data.toString('utf8'));
      if (message === undefined) this.#end(notUnderstood, 'BadRequest');
      else this.#said(message);
    });
  }

  changed(changes: RowChanges): void {
    if (this.#feed === undefined) return;
    if (this.#isBehind()) {
      this.#hasMissed = true;
      return;
    }
    const text = this.#feed.changes(changes);
    if (text !== undefined) this.#send(text);
  }

  stands(status: FollowStatus): void {
    if (this.#feed !== undefined) this.#send(JSON.stringify({ status }));
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
    const { clock } = this.#options;
    const waitMs = Math.max(0, this.#stateAt + stateMs - clock.monotonic());
    this.#timer ??= clock.after(waitMs, () => this.#begin());
  }

  /** Sends the state of what is followed now. */
  #begin(): void {
    this.#timer = undefined;
    const { viewers, cluster, clock } = this.#options;
    if (this.#wanted === undefined || this.#socket.readyState !== this.#socket.OPEN) return;
    this.#stateAt = clock.monotonic();
    const { follower } = viewers;
    // Its rows are then those that changes begin from.
    follower.flush();
    this.#hasMissed = false;
    this.#feed = new Feed(this.#wanted, follower, cluster, this.#feed?.seq ?? 0, () => clock.now());
    this.#send(`{"state":${this.#feed.state()}}`);
  }

  #isBehind(): boolean {
    return this.#hasMissed || this.#socket.bufferedAmount > mostBuffered;
  }

  #send(text: string): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    this.#socket.send(text, () => {
      if (this.#hasMissed && this.#socket.bufferedAmount === 0) this.#begin();
    });
  }

  #end(code: number, reason: string): void {
    this.#leave?.();
    this.#socket.close(code, reason);
  }
}

/** @param only the one namespace that is shown; undefined: all are. */
export function readFollow(value: unknown, only: string | undefined): Follow | undefined {
  if (!isRecord(value)) return undefined;
  const { view, namespace = only, name, all } = value;
  if (typeof view !== 'string' || !isViewName(view)) return undefined;
  const isText = (given: unknown): given is string | undefined =>
    given === undefined || (typeof given === 'string' && given.length <= 253);
  if (!isText(namespace) || !isText(name)) return undefined;
  if (view === 'service' && (namespace === undefined || name === undefined)) return undefined;
  return {
    view,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(all === true ? { all } : {}),
  };
}
