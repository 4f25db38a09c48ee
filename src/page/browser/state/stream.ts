import { isRecord } from '../../../objects/json.ts';
import type { ClientMessage, Follow, ServerMessage } from '../../messages.ts';
import { plainDeep } from './plain-deep.ts';
import { RowStore } from './row-store.ts';

/** How the browser stands to the page's server. */
export type Connection =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  /** Cut since, and when it is tried again: milliseconds since 1970. */
  | { readonly kind: 'cut'; readonly sinceMs: number; readonly retryMs: number }
  /** The server does not know the session: it ended, or another one has its port now. */
  | { readonly kind: 'no session' };

const firstRetryMs = 500;
const lastRetryMs = 10_000;
/** Code of the WebSocket's end: the session is not known. */
const sessionUnknown = 4401;

/** Keeps the rows of what is followed, through cuts, until the session ends. */
export class Stream {
  readonly rows = new RowStore();
  readonly #session: string;
  readonly #changed: () => void;
  #follow: Follow;
  #socket: WebSocket | undefined;
  #retryTimer = 0;
  readonly #closed = new AbortController();
  #nextRetryMs = firstRetryMs;
  #connection: Connection = { kind: 'connecting' };

  /** @param changed called after each change of rows or connection. */
  constructor(session: string, follow: Follow, changed: () => void) {
    this.#session = session;
    this.#follow = follow;
    this.#changed = changed;
    const atOnce = (): void => {
      if (this.#connection.kind === 'cut' && document.visibilityState === 'visible') this.#open();
    };
    const { signal } = this.#closed;
    addEventListener('online', atOnce, { signal });
    addEventListener('focus', atOnce, { signal });
    document.addEventListener('visibilitychange', atOnce, { signal });
    this.#open();
  }

  get connection(): Connection {
    return this.#connection;
  }

  /** Rows of another view come with the next state; the same one is not asked for again. */
  follow(follow: Follow): void {
    if (JSON.stringify(follow) === JSON.stringify(this.#follow)) return;
    this.#follow = follow;
    this.#say({ follow });
  }

  /** The rows are of what is followed, and not of the view before. */
  get isCurrent(): boolean {
    const { view, namespace, name, all, flows, at } = this.#follow;
    const of = this.rows.follow;
    const isSame = of?.view === view && of.namespace === namespace && of.name === name && of.all === all;
    return isSame && of.at === at && JSON.stringify(of.flows) === JSON.stringify(flows);
  }

  /** Ends it, without a further change. */
  close(): void {
    this.#closed.abort();
    clearTimeout(this.#retryTimer);
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
  }

  #open(): void {
    clearTimeout(this.#retryTimer);
    const socket = new WebSocket(
      `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/data/stream`,
    );
    this.#socket = socket;
    socket.addEventListener('open', () => {
      this.#say({ session: this.#session });
      this.#say({ follow: this.#follow });
    });
    socket.addEventListener('message', ({ data }) => {
      if (socket === this.#socket) this.#take(JSON.parse(String(data)));
    });
    socket.addEventListener('close', ({ code }) => {
      if (socket === this.#socket) this.#cut(code);
    });
  }

  #take(message: unknown): void {
    if (!isRecord(message)) return;
    // The server that sends it has given out this script too: both are of one build.
    const said = plainDeep(message) as ServerMessage;
    if ('status' in said) this.rows.status = said.status;
    else if ('state' in said) {
      this.rows.take(said.state);
      this.#connection = { kind: 'live' };
      this.#nextRetryMs = firstRetryMs;
    } else if (!this.rows.change(said)) this.#say({ follow: this.#follow });
    this.#changed();
  }

  #cut(code: number): void {
    if (code === sessionUnknown) this.#connection = { kind: 'no session' };
    else {
      const now = Date.now();
      const sinceMs = this.#connection.kind === 'cut' ? this.#connection.sinceMs : now;
      this.#connection = { kind: 'cut', sinceMs, retryMs: now + this.#nextRetryMs };
      this.#retryTimer = window.setTimeout(() => this.#open(), this.#nextRetryMs);
      this.#nextRetryMs = Math.min(2 * this.#nextRetryMs, lastRetryMs);
    }
    this.#changed();
  }

  #say(message: ClientMessage): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }
}
