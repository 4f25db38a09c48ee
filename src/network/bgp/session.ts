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
import { MessageStream } from './decode.ts';
import {
  describeNotification,
  errorCode,
  type BGPMessage,
  notification,
  type Notification,
  type Open,
  ProtocolError,
  type UpdateMessage,
} from './message.ts';
import { changesOfFamilies, prefixKey, type BGPRoute, routeChanges } from './route.ts';
import {
  openOf,
  type SessionAction,
  type SessionOptions,
  type SessionReason,
  type SessionState,
} from './session-io.ts';

/** RFC 4271 §8: a large hold time until the peer's OPEN has come. Milliseconds. */
const openHoldMs = 240_000;
const connectTimeoutMs = 5_000;
const minRetryMs = 1_000;
const maxRetryMs = 30_000;
/** After this time in established, the next failure is retried like a first one. */
const stableMs = 60_000;

/**
 * The state machine of one BGP session that this speaker opens (RFC 4271 §8), without sockets and clocks: it takes events
 * with the time at which they came, and returns what to do. Times are milliseconds of a monotonic clock.
 *
 * Nothing is learned from the peer: its routes are read, counted, and dropped. While bytes wait to be sent, changes and
 * answers to ROUTE-REFRESH wait too, so that a peer that does not read costs no memory.
 */
export class Session {
  readonly #options: SessionOptions;
  #state: SessionState = 'idle';
  #stream = new MessageStream();
  /** The peer's OPEN, from openConfirm on. */
  #peer: Open | undefined;
  /** The routes to announce, and those that the peer has been sent. */
  #wanted: ReadonlyMap<string, BGPRoute> = new Map();
  #sent: ReadonlyMap<string, BGPRoute> = new Map();
  /** When something happens without an event. */
  #retryAt = Number.POSITIVE_INFINITY;
  #holdUntil = Number.POSITIVE_INFINITY;
  #keepaliveAt = Number.POSITIVE_INFINITY;
  #sendHoldUntil = Number.POSITIVE_INFINITY;
  #retryMs = minRetryMs;
  #establishedAt = Number.POSITIVE_INFINITY;
  #restarting: boolean;
  #hasUnsent = false;
  /** Families for which the peer requested a route refresh. */
  readonly #refreshing = new Set<IPFamily>();
  #received = 0;
  #receivedOwn = 0;

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

  /** Number of announcements that came from the peer in this session, and were dropped. */
  get routesReceived(): number {
    return this.#received;
  }

  /** Of those, how many are of networks that this session announces. */
  get ownRoutesReceived(): number {
    return this.#receivedOwn;
  }

  /** When {@link tick} is due next; infinite: never. */
  get deadline(): number {
    return Math.min(this.#retryAt, this.#holdUntil, this.#keepaliveAt, this.#sendHoldUntil);
  }

  /** Begins; a session that runs is left alone. */
  start(now: number): SessionAction[] {
    return this.#state === 'idle' && this.#retryAt === Number.POSITIVE_INFINITY ? this.#connect(now) : [];
  }

  /**
   * Ends the session with a NOTIFICATION, so that the peer drops the routes at once; `text` is for its operator
   * (RFC 9003). The session may be started again.
   */
  stop(text: string): SessionAction[] {
    const wasOpen = this.#state !== 'idle' && this.#state !== 'connect';
    const cease = notification(errorCode.cease, 2, shutdownText(text));
    const actions: SessionAction[] = wasOpen ? [send(encodeNotification(cease))] : [];
    if (this.#state !== 'idle') actions.push({ do: 'close' });
    this.#reset();
    this.#retryAt = Number.POSITIVE_INFINITY;
    return [...actions, this.#report('Stopped', text)];
  }

  /** The routes to announce from now on, by `prefixKey`. */
  announce(routes: ReadonlyMap<string, BGPRoute>, now: number): SessionAction[] {
    this.#wanted = routes;
    return this.#sendWaiting(now);
  }

  /** The TCP connection is open. */
  connected(now: number): SessionAction[] {
    if (this.#state !== 'connect') return [];
    this.#state = 'openSent';
    this.#stream = new MessageStream();
    this.#retryAt = Number.POSITIVE_INFINITY;
    this.#holdUntil = now + openHoldMs;
    return [this.#send(encodeOpen(openOf(this.#options, this.#restarting)), now)];
  }

  /** The connection could not be opened, or has been closed by the peer. @param why for the log. */
  disconnected(reason: SessionReason, why: string, now: number): SessionAction[] {
    return this.#state === 'idle' ? [] : this.#retry(reason, why, now);
  }

  /** Bytes came from the peer. */
  received(bytes: Uint8Array, now: number): SessionAction[] {
    const actions: SessionAction[] = [];
    if (this.#peer === undefined && this.#state !== 'openSent') return actions;
    try {
      for (const message of this.#stream.push(bytes)) {
        pushAll(actions, this.#handle(message, now));
        if (this.#state === 'idle') break;
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      pushAll(actions, this.#fail(error.notification, 'InvalidMessage', error.message, now));
    }
    return [...actions, ...this.#sendWaiting(now)];
  }

  /** All that was sent has gone out: the peer reads. */
  drained(now: number): SessionAction[] {
    this.#sendHoldUntil = Number.POSITIVE_INFINITY;
    this.#hasUnsent = false;
    return this.#sendWaiting(now);
  }

  /** Time has passed: to be called at {@link deadline}, or later. */
  tick(now: number): SessionAction[] {
    if (now >= this.#sendHoldUntil) return this.#retry('SendHoldTimerExpired', 'the peer does not read', now);
    if (now >= this.#holdUntil) {
      const expired = notification(errorCode.holdTimerExpired, 0);
      return this.#fail(expired, 'HoldTimerExpired', 'the peer is silent', now);
    }
    if (now >= this.#retryAt) {
      if (this.#state !== 'connect') return this.#connect(now);
      return this.#retry('PeerUnreachable', `no connection within ${connectTimeoutMs / 1000} s`, now);
    }
    if (now >= this.#keepaliveAt) return [this.#sendKeepalive(now)];
    return [];
  }

  #handle(message: BGPMessage, now: number): SessionAction[] {
    if (message.type === 'notification')
      return this.#retry('NotificationReceived', `the peer: ${describeNotification(message)}`, now);
    switch (this.#state) {
      case 'openSent':
        return message.type === 'open' ? this.#opened(message, now) : this.#unexpected(message, 1, now);
      case 'openConfirm':
        return message.type === 'keepalive' ? this.#establish(now) : this.#unexpected(message, 2, now);
      case 'established':
        if (message.type === 'open') return this.#unexpected(message, 3, now);
        this.#heard(now);
        if (message.type === 'update') this.#count(message);
        if (message.type === 'route-refresh' && message.family !== undefined)
          this.#refreshing.add(message.family);
        return [];
      default:
        return [];
    }
  }

  #opened(open: Open, now: number): SessionAction[] {
    const { peerAs, routerId, localAs } = this.#options;
    if (open.as !== peerAs)
      return this.#refuse(2, 'WrongPeerAS', `the peer is AS ${open.as}, not ${peerAs}`, now);
    if (open.routerId === routerId && peerAs === localAs) {
      return this.#refuse(3, 'SameRouterID', `the peer has our BGP identifier ${routerId}`, now);
    }
    this.#peer = open;
    this.#stream.fourByteAs = open.capabilities.fourByteAs;
    if (this.#families.length === 0)
      return this.#refuse(7, 'NoCommonFamily', 'the peer takes no family that is announced', now);
    this.#state = 'openConfirm';
    this.#heard(now);
    return [this.#sendKeepalive(now)];
  }

  #establish(now: number): SessionAction[] {
    this.#state = 'established';
    this.#establishedAt = now;
    this.#sent = new Map();
    this.#heard(now);
    const actions = [this.#report('Established', ''), ...this.#sendChanges(now)];
    for (const family of this.#families) actions.push(this.#send(endOfRib(family), now));
    // The R bit is for the first session after a start.
    this.#restarting = false;
    return actions;
  }

  #count({ announced }: UpdateMessage): void {
    this.#received += announced.length;
    for (const prefix of announced) if (this.#sent.has(prefixKey(prefix))) this.#receivedOwn++;
  }

  #sendWaiting(now: number): SessionAction[] {
    if (this.#state !== 'established' || this.#hasUnsent) return [];
    const refreshed = this.#families.filter((family) => this.#refreshing.has(family));
    this.#refreshing.clear();
    // Before the changes, which begin from what was sent.
    return [...refreshed.flatMap((family) => this.#refresh(family, now)), ...this.#sendChanges(now)];
  }

  #sendChanges(now: number): SessionAction[] {
    if (this.#sent === this.#wanted) return [];
    const changes = changesOfFamilies(routeChanges(this.#sent, this.#wanted), this.#families);
    this.#sent = this.#wanted;
    return encodeUpdates(changes, this.#dialect).map((bytes) => this.#send(bytes, now));
  }

  /** All routes of a family again (RFC 2918 §4). */
  #refresh(family: IPFamily, now: number): SessionAction[] {
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

  /** Seconds; 0: neither side sends keepalives. */
  get #holdSeconds(): number {
    return Math.min(this.#options.holdSeconds, this.#peer?.holdSeconds ?? 0);
  }

  #heard(now: number): void {
    const ms = this.#holdSeconds * 1000;
    this.#holdUntil = ms === 0 ? Number.POSITIVE_INFINITY : now + ms;
  }

  #sendKeepalive(now: number): SessionAction {
    const ms = (this.#holdSeconds * 1000) / 3;
    this.#keepaliveAt = ms === 0 ? Number.POSITIVE_INFINITY : now + ms;
    return this.#send(keepalive, now);
  }

  /** RFC 9687: a peer that takes nothing for twice the hold time is gone. */
  #send(bytes: Uint8Array, now: number): SessionAction {
    const ms = this.#peer === undefined ? openHoldMs : this.#holdSeconds * 2000;
    this.#hasUnsent = true;
    if (ms > 0 && this.#sendHoldUntil === Number.POSITIVE_INFINITY) this.#sendHoldUntil = now + ms;
    return send(bytes);
  }

  #connect(now: number): SessionAction[] {
    this.#state = 'connect';
    this.#retryAt = now + connectTimeoutMs;
    return [{ do: 'connect' }];
  }

  #unexpected(message: BGPMessage, subcode: number, now: number): SessionAction[] {
    const why = `unexpected ${message.type} in ${this.#state}`;
    return this.#fail(notification(errorCode.finiteStateMachine, subcode), 'InvalidMessage', why, now);
  }

  #refuse(subcode: number, reason: SessionReason, why: string, now: number): SessionAction[] {
    return this.#fail(notification(errorCode.openMessage, subcode), reason, why, now);
  }

  #fail(last: Notification, reason: SessionReason, why: string, now: number): SessionAction[] {
    return [send(encodeNotification(last)), ...this.#retry(reason, why, now)];
  }

  /** Closes, and tries again after a while that doubles; up to a quarter less, so that nodes do not come together. */
  #retry(reason: SessionReason, why: string, now: number): SessionAction[] {
    if (now - this.#establishedAt >= stableMs) this.#retryMs = minRetryMs;
    const wait = this.#retryMs * (1 - this.#options.random() / 4);
    this.#retryMs = Math.min(this.#retryMs * 2, maxRetryMs);
    this.#reset();
    this.#retryAt = now + wait;
    return [{ do: 'close' }, this.#report(reason, why)];
  }

  #reset(): void {
    this.#state = 'idle';
    this.#peer = undefined;
    this.#sent = new Map();
    this.#establishedAt = Number.POSITIVE_INFINITY;
    this.#holdUntil = Number.POSITIVE_INFINITY;
    this.#keepaliveAt = Number.POSITIVE_INFINITY;
    this.#sendHoldUntil = Number.POSITIVE_INFINITY;
    this.#hasUnsent = false;
    this.#refreshing.clear();
    this.#received = 0;
    this.#receivedOwn = 0;
  }

  #report(reason: SessionReason, why: string): SessionAction {
    return { do: 'report', state: this.#state, reason, why };
  }
}

function send(bytes: Uint8Array): SessionAction {
  return { do: 'send', bytes };
}
