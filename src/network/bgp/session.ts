import type { IPFamily } from '../../objects/address.ts';
import { pushAll } from '../../objects/lists.ts';
import {
  type Dialect,
  encodeNotification,
  encodeOpen,
  encodeUpdates,
  endOfRib,
  keepalive,
  shutdownText,
} from './encode.ts';
import { MessageStream } from './framing.ts';
import {
  describeNotification,
  errorCode,
  type Message,
  type Notification,
  type Open,
  ProtocolError,
} from './message.ts';
import { ofFamilies, type Route, routeChanges } from './route.ts';

/** States of RFC 4271 §8.2.2. `active` is absent: a speaker that does not listen has no use for it. */
export type SessionState = 'idle' | 'connect' | 'openSent' | 'openConfirm' | 'established';

export interface SessionOptions {
  readonly localAs: number;
  /** An IPv4 address; not 0.0.0.0. */
  readonly routerId: string;
  /** 1 to 4,294,967,295. */
  readonly peerAs: number;
  /** Seconds: what is offered; 3 to 65,535. The smaller of both counts. */
  readonly holdTime: number;
  /** Families that are announced. */
  readonly families: readonly IPFamily[];
  /**
   * Seconds that the peer is to keep routes for when this speaker goes without a word (RFC 4724); 0: not at all. Only for
   * a speaker whose forwarding outlives it.
   */
  readonly restartTime: number;
  /** Whether this speaker has just started again, and forwarding went on meanwhile. */
  readonly restarting: boolean;
  /** 0 to less than 1. */
  readonly random: () => number;
}

/** What the owner of the socket is to do, in order. */
export type Action =
  /** Open a TCP connection to the peer's port 179. A former one is closed. */
  | { readonly do: 'connect' }
  | { readonly do: 'send'; readonly bytes: Uint8Array }
  /** Close the connection once all that was sent is out; soon in any case. */
  | { readonly do: 'close' }
  /** For the log and the metrics. */
  | { readonly do: 'report'; readonly state: SessionState; readonly why: string };

/** RFC 4271 §8: a large hold time until the peer's OPEN has come. Milliseconds. */
const openHoldMs = 240_000;
const connectTimeoutMs = 5_000;
const minRetryMs = 1_000;
const maxRetryMs = 30_000;
/** After so long in established, the next failure is retried as the first one is. */
const stableMs = 60_000;

/**
 * The state machine of one BGP session that this speaker opens (RFC 4271 §8), without sockets and clocks: it takes events
 * with the time at which they came, and returns what to do. Times are milliseconds of a monotonic clock.
 *
 * Nothing is learned from the peer: its routes are read, and dropped.
 */
export class Session {
  readonly #options: SessionOptions;
  #state: SessionState = 'idle';
  #stream = new MessageStream();
  /** The peer's OPEN, from openConfirm on. */
  #peer: Open | undefined;
  /** What is to be announced, and what the peer has been sent. */
  #wanted: ReadonlyMap<string, Route> = new Map();
  #sent: ReadonlyMap<string, Route> = new Map();
  /** When something happens without an event. */
  #retryAt = Number.POSITIVE_INFINITY;
  #holdUntil = Number.POSITIVE_INFINITY;
  #keepaliveAt = Number.POSITIVE_INFINITY;
  #sendHoldUntil = Number.POSITIVE_INFINITY;
  #retryMs = minRetryMs;
  #establishedAt = Number.POSITIVE_INFINITY;
  #restarting: boolean;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#restarting = options.restarting;
  }

  get state(): SessionState {
    return this.#state;
  }

  /** Number of routes that the peer has been sent. */
  get advertised(): number {
    return this.#sent.size;
  }

  /** When {@link tick} is due next; infinite: never. */
  get deadline(): number {
    return Math.min(this.#retryAt, this.#holdUntil, this.#keepaliveAt, this.#sendHoldUntil);
  }

  /** Begins; a session that runs is left alone. */
  start(now: number): Action[] {
    return this.#state === 'idle' && this.#retryAt === Number.POSITIVE_INFINITY ? this.#connect(now) : [];
  }

  /**
   * Ends the session with a NOTIFICATION, so that the peer drops the routes at once; `text` is for its operator
   * (RFC 9003). The session may be started again.
   */
  stop(text: string): Action[] {
    const wasOpen = this.#state !== 'idle' && this.#state !== 'connect';
    const cease: Notification = {
      type: 'notification',
      code: errorCode.cease,
      subcode: 2,
      data: shutdownText(text),
    };
    const actions: Action[] = wasOpen ? [send(encodeNotification(cease))] : [];
    if (this.#state !== 'idle') actions.push({ do: 'close' });
    this.#reset();
    this.#retryAt = Number.POSITIVE_INFINITY;
    return [...actions, this.#report('stopped')];
  }

  /** What is to be announced from now on, by `prefixKey`. */
  announce(routes: ReadonlyMap<string, Route>, now: number): Action[] {
    this.#wanted = routes;
    return this.#state === 'established' ? this.#sendChanges(now) : [];
  }

  /** The TCP connection is open. */
  connected(now: number): Action[] {
    if (this.#state !== 'connect') return [];
    this.#state = 'openSent';
    this.#stream = new MessageStream();
    this.#retryAt = Number.POSITIVE_INFINITY;
    this.#holdUntil = now + openHoldMs;
    return [this.#send(encodeOpen(this.#open()), now)];
  }

  /** The connection could not be opened, or has been closed by the peer. @param why for the log. */
  disconnected(why: string, now: number): Action[] {
    return this.#state === 'idle' ? [] : this.#retry(why, now);
  }

  /** Bytes came from the peer. */
  received(bytes: Uint8Array, now: number): Action[] {
    const actions: Action[] = [];
    if (this.#peer === undefined && this.#state !== 'openSent') return actions;
    try {
      for (const message of this.#stream.push(bytes)) {
        pushAll(actions, this.#handle(message, now));
        if (this.#state === 'idle') break;
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      pushAll(actions, this.#fail(error.notification, error.message, now));
    }
    return actions;
  }

  /** All that was sent has gone out: the peer reads. */
  drained(): void {
    this.#sendHoldUntil = Number.POSITIVE_INFINITY;
  }

  /** Time has passed: to be called at {@link deadline}, or later. */
  tick(now: number): Action[] {
    if (now >= this.#sendHoldUntil) return this.#retry('the peer does not read (send hold timer)', now);
    if (now >= this.#holdUntil) {
      const expired = { type: 'notification', code: errorCode.holdTimerExpired, subcode: 0 } as const;
      return this.#fail({ ...expired, data: new Uint8Array() }, 'the peer is silent', now);
    }
    if (now >= this.#retryAt)
      return this.#state === 'connect' ? this.#retry('no connection', now) : this.#connect(now);
    if (now >= this.#keepaliveAt) return [this.#sendKeepalive(now)];
    return [];
  }

  #handle(message: Message, now: number): Action[] {
    if (message.type === 'notification')
      return this.#retry(`the peer: ${describeNotification(message)}`, now);
    switch (this.#state) {
      case 'openSent':
        return message.type === 'open' ? this.#opened(message, now) : this.#unexpected(message, 1, now);
      case 'openConfirm':
        return message.type === 'keepalive' ? this.#establish(now) : this.#unexpected(message, 2, now);
      case 'established':
        if (message.type === 'open') return this.#unexpected(message, 3, now);
        this.#heard(now);
        return message.type === 'route-refresh' ? this.#refresh(message.family, now) : [];
      default:
        return [];
    }
  }

  #opened(open: Open, now: number): Action[] {
    const { peerAs, routerId, localAs } = this.#options;
    if (open.as !== peerAs) return this.#refuse(2, `the peer is AS ${open.as}, not ${peerAs}`, now);
    if (open.routerId === routerId && peerAs === localAs) {
      return this.#refuse(3, `the peer has our BGP identifier ${routerId}`, now);
    }
    this.#peer = open;
    this.#stream.fourByteAs = open.capabilities.fourByteAs;
    if (this.#families.length === 0)
      return this.#refuse(7, 'the peer takes no family that is announced', now);
    this.#state = 'openConfirm';
    this.#heard(now);
    return [this.#sendKeepalive(now)];
  }

  #establish(now: number): Action[] {
    this.#state = 'established';
    this.#establishedAt = now;
    this.#sent = new Map();
    this.#heard(now);
    const actions = [this.#report('established'), ...this.#sendChanges(now)];
    for (const family of this.#families) actions.push(this.#send(endOfRib(family), now));
    // The R bit is for the first session after a start.
    this.#restarting = false;
    return actions;
  }

  #sendChanges(now: number): Action[] {
    const changes = ofFamilies(routeChanges(this.#sent, this.#wanted), this.#families);
    this.#sent = this.#wanted;
    return encodeUpdates(changes, this.#dialect).map((bytes) => this.#send(bytes, now));
  }

  /** All routes of a family again (RFC 2918 §4). */
  #refresh(family: IPFamily | undefined, now: number): Action[] {
    if (family === undefined || !this.#families.includes(family)) return [];
    const announced = [...this.#sent.values()].filter(({ prefix }) => prefix.family === family);
    return encodeUpdates({ withdrawn: [], announced }, this.#dialect).map((bytes) => this.#send(bytes, now));
  }

  /** Those that both have; without the capability, a peer has IPv4. */
  get #families(): readonly IPFamily[] {
    const theirs = this.#peer?.capabilities.families ?? ['IPv4'];
    return this.#options.families.filter((family) => theirs.includes(family));
  }

  get #dialect(): Dialect {
    const { localAs, peerAs } = this.#options;
    const fourByteAs = this.#peer?.capabilities.fourByteAs ?? false;
    return { localAs, isInternal: localAs === peerAs, fourByteAs };
  }

  #open(): Open {
    const { localAs, routerId, holdTime, families, restartTime } = this.#options;
    const preserved = families.map((family) => ({ family, forwarding: true }));
    return {
      ...{ type: 'open', as: localAs, holdTime, routerId },
      capabilities: {
        ...{ families, routeRefresh: true, fourByteAs: true },
        gracefulRestart:
          restartTime === 0 ? undefined : { restarting: this.#restarting, restartTime, families: preserved },
      },
    };
  }

  /** Seconds; 0: neither side sends keepalives. */
  get #holdTime(): number {
    return Math.min(this.#options.holdTime, this.#peer?.holdTime ?? 0);
  }

  #heard(now: number): void {
    const ms = this.#holdTime * 1000;
    this.#holdUntil = ms === 0 ? Number.POSITIVE_INFINITY : now + ms;
  }

  #sendKeepalive(now: number): Action {
    const ms = (this.#holdTime * 1000) / 3;
    this.#keepaliveAt = ms === 0 ? Number.POSITIVE_INFINITY : now + ms;
    return this.#send(keepalive, now);
  }

  /** RFC 9687: a peer that takes nothing for twice the hold time is gone. */
  #send(bytes: Uint8Array, now: number): Action {
    const ms = this.#peer === undefined ? openHoldMs : this.#holdTime * 2000;
    if (ms > 0 && this.#sendHoldUntil === Number.POSITIVE_INFINITY) this.#sendHoldUntil = now + ms;
    return send(bytes);
  }

  #connect(now: number): Action[] {
    this.#state = 'connect';
    this.#retryAt = now + connectTimeoutMs;
    return [{ do: 'connect' }];
  }

  #unexpected(message: Message, subcode: number, now: number): Action[] {
    const notification = { type: 'notification', code: errorCode.finiteStateMachine, subcode } as const;
    return this.#fail(
      { ...notification, data: new Uint8Array() },
      `unexpected ${message.type} in ${this.#state}`,
      now,
    );
  }

  #refuse(subcode: number, why: string, now: number): Action[] {
    const notification = { type: 'notification', code: errorCode.openMessage, subcode } as const;
    return this.#fail({ ...notification, data: new Uint8Array() }, why, now);
  }

  #fail(notification: Notification, why: string, now: number): Action[] {
    return [send(encodeNotification(notification)), ...this.#retry(why, now)];
  }

  /** Closes, and tries again after a while that doubles; up to a quarter less, so that nodes do not come together. */
  #retry(why: string, now: number): Action[] {
    if (now - this.#establishedAt >= stableMs) this.#retryMs = minRetryMs;
    const wait = this.#retryMs * (1 - this.#options.random() / 4);
    this.#retryMs = Math.min(this.#retryMs * 2, maxRetryMs);
    this.#reset();
    this.#retryAt = now + wait;
    return [{ do: 'close' }, this.#report(why)];
  }

  #reset(): void {
    this.#state = 'idle';
    this.#peer = undefined;
    this.#sent = new Map();
    this.#establishedAt = Number.POSITIVE_INFINITY;
    this.#holdUntil = Number.POSITIVE_INFINITY;
    this.#keepaliveAt = Number.POSITIVE_INFINITY;
    this.#sendHoldUntil = Number.POSITIVE_INFINITY;
  }

  #report(why: string): Action {
    return { do: 'report', state: this.#state, why };
  }
}

function send(bytes: Uint8Array): Action {
  return { do: 'send', bytes };
}
