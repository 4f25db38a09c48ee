import type { Host } from '../../host/host.ts';
import { type IPFamily, parseAddress, ipFamilies } from '../../objects/address.ts';
import { isRecord } from '../../objects/json.ts';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Clock, Random, Timer } from '../../client/clock.ts';
import type { Peer, PeerRoute, BGPRoute } from '../../network/bgp/route.ts';
import { Session } from '../../network/bgp/session.ts';
import type { SessionAction, SessionReason, SessionState } from '../../network/bgp/session-io.ts';
import { errorMessage } from '../../objects/status.ts';

/** The node's own address of each family, where routes lead to; a family without one cannot be announced. */
export type NextHops = Readonly<Partial<Record<IPFamily, string>>>;

/**
 * The next hops of a session: its own end, and for the other family an address of the same interface, since routers take
 * only next hops that they reach on the link to the peer.
 *
 * @param local the node's end of the session.
 * @throws {Error} where `ip` fails.
 */
async function nextHopsOf(host: Host, local: string): Promise<NextHops> {
  const { exitCode, stdout, stderr } = await host.exec('ip', ['-json', 'address', 'show']);
  if (exitCode !== 0) throw new Error(`ip address show: ${stderr.trim()}`);
  const links: unknown = JSON.parse(stdout);
  return chooseNextHops(Array.isArray(links) ? links : [], local);
}

/** @param links as `ip -json address show` prints them. */
export function chooseNextHops(links: readonly unknown[], local: string): NextHops {
  const own = parseAddress(local);
  if (own === undefined) return {};
  const usable = links
    .map((link) => usableAddresses(link))
    .find((addresses) => addresses.some(({ value, family }) => value === own.value && family === own.family));
  const other = usable?.find(({ family }) => family !== own.family);
  return {
    [own.family]: own.canonical,
    ...(other === undefined ? {} : { [other.family]: other.canonical }),
  };
}

/** Addresses of an interface that others reach, and that stay: announced ones are deprecated. */
function usableAddresses(link: unknown) {
  const listed: unknown = isRecord(link) ? link['addr_info'] : undefined;
  if (!Array.isArray(listed)) return [];
  return listed.flatMap((entry: unknown) => {
    if (!isRecord(entry) || entry['scope'] !== 'global') return [];
    if (entry['deprecated'] === true || entry['temporary'] === true) return [];
    return typeof entry['local'] === 'string' ? (parseAddress(entry['local']) ?? []) : [];
  });
}

/** The state of a session. */
export interface BGPSessionStatus {
  readonly peer: string;
  readonly state: SessionState;
  readonly reason: SessionReason | 'Connecting';
  /** One sentence for people; empty where there is nothing to say. */
  readonly message: string;
  /** Milliseconds since 1970: since when it is so. */
  readonly sinceMs: number;
  readonly warnings: readonly BGPWarning[];
  /** Number of routes that the peer has been sent. */
  readonly advertised: number;
  /** Number of announcements that came from it, all ignored; and of those, how many are our own routes. */
  readonly routesReceived: number;
  readonly ownRoutesReceived: number;
}

/** Limits of an established session. */
export type BGPWarning =
  /** Routes of a family are not announced: the interface to the peer has no address of it for the next hop. */
  | 'NoNextHop'
  /** The peer announces our own routes back; they are ignored. */
  | 'OwnRoutesReceived';

export interface BGPSessionOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly peer: Peer;
  /** The status has another reason, or other warnings. */
  readonly changed: () => void;
  /** A session has ended, or did not come about; the same reason each time. */
  readonly failed?: (peer: string, reason: SessionReason) => void;
}

/** Milliseconds that a NOTIFICATION may take to go out before the connection is cut. */
const lingerMs = 500;

/**
 * A session with one peer over TCP: the sockets and timers around {@link Session}. Every failure ends in a reason and a
 * later attempt; none leaves this class.
 */
export class BGPSession {
  readonly peer: Peer;
  readonly #options: BGPSessionOptions;
  readonly #session: Session;
  #routes: ReadonlyMap<string, PeerRoute> = new Map();
  #nextHops: NextHops = {};
  #attempt = new AbortController();
  #socket: Socket | undefined;
  readonly #closing = new Set<Promise<void>>();
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #hasLeft = false;
  #reason: BGPSessionStatus['reason'] = 'Connecting';
  #message = '';
  #since: number;

  constructor(options: BGPSessionOptions) {
    const { peer, random, clock } = options;
    this.#options = options;
    this.peer = peer;
    this.#since = clock.now();
    this.#session = new Session({
      ...peer,
      families: ['IPv4', 'IPv6'],
      // Without routes of ours at the peer the bit has no effect; with them it is true.
      restarting: peer.restartSeconds > 0,
      random,
    });
  }

  get status(): BGPSessionStatus {
    const { state, advertised, routesReceived, ownRoutesReceived } = this.#session;
    return {
      ...{ peer: this.peer.name, state, advertised, routesReceived, ownRoutesReceived },
      ...{ reason: this.#reason, message: this.#message, sinceMs: this.#since },
      warnings: state === 'established' ? this.#warnings() : [],
    };
  }

  /** Whether there are routes that the peer is to keep for the next process. */
  get isKept(): boolean {
    return this.peer.restartSeconds > 0 && this.#routes.size > 0;
  }

  /** Opens the session, and again whenever it ends. To be called once the routes are known: the first ones replace those of the last process. */
  start(): void {
    this.#do(this.#session.start(this.#now()));
  }

  /** The routes that are announced from now on, by `prefixKey`. */
  announce(routes: ReadonlyMap<string, PeerRoute>): void {
    this.#routes = routes;
    this.#do(this.#session.announce(this.#withNextHops(), this.#now()));
  }

  /**
   * Ends the session so that the peer drops the routes at once.
   *
   * @param text for the peer's operator (RFC 9003).
   * @returns once the NOTIFICATION is out, or could not be sent within half a second.
   */
  async stop(text: string): Promise<void> {
    this.#do(this.#session.stop(text));
    await Promise.all(this.#closing);
  }

  /** Ends the session so that a peer that knows graceful restart keeps the routes for the restart time. */
  async leave(): Promise<void> {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#timer?.cancel();
    this.#hasLeft = true;
    this.#attempt.abort();
    if (socket !== undefined) this.#close(socket);
    await Promise.all(this.#closing);
  }

  #now(): number {
    return this.#options.clock.monotonic();
  }

  #do(actions: readonly SessionAction[]): void {
    for (const action of actions) {
      switch (action.do) {
        case 'connect':
          this.#connect();
          break;
        case 'send':
          this.#send(action.bytes);
          break;
        case 'close':
          this.#disconnect();
          break;
        case 'report':
          this.#report(action);
      }
    }
    this.#schedule();
  }

  #connect(): void {
    this.#disconnect();
    const attempt = new AbortController();
    this.#attempt = attempt;
    this.#open(attempt.signal).catch((error: unknown) => {
      if (attempt.signal.aborted) return;
      const { reason, message } = whyUnconnected(error, this.peer);
      this.#do(this.#session.disconnected(reason, message, this.#now()));
    });
  }

  /** @throws the system's error. */
  async #open(signal: AbortSignal): Promise<void> {
    const { host } = this.#options;
    const { address, port, sourceAddress } = this.peer;
    const from = sourceAddress === undefined ? {} : { from: sourceAddress };
    const socket = await host.connect(address, port, { signal, ...from });
    if (signal.aborted) {
      socket.destroy();
      return;
    }
    socket.on('error', (error) => {
      if (this.#socket !== socket) return;
      this.#do(this.#session.disconnected('ConnectionClosed', error.message, this.#now()));
    });
    socket.on('close', () => {
      if (this.#socket !== socket) return;
      this.#do(this.#session.disconnected('ConnectionClosed', 'the peer closed the connection', this.#now()));
    });
    this.#socket = socket;
    socket.setNoDelay(true);
    this.#nextHops = await nextHopsOf(host, socket.localAddress ?? '');
    if (this.#socket !== socket) return;
    socket.on('data', (bytes: Buffer) => {
      if (this.#socket === socket) this.#receive(bytes);
    });
    socket.resume();
    this.#session.announce(this.#withNextHops(), this.#now());
    this.#do(this.#session.connected(this.#now()));
  }

  #receive(bytes: Uint8Array): void {
    const before = this.#session.ownRoutesReceived;
    this.#do(this.#session.received(bytes, this.#now()));
    if (before === 0 && this.#session.ownRoutesReceived > 0) this.#options.changed();
  }

  #warnings(): readonly BGPWarning[] {
    const lacking = ipFamilies.filter((family) => this.#nextHops[family] === undefined);
    const isLacking = [...this.#routes.values()].some(({ prefix }) => lacking.includes(prefix.family));
    return [
      ...(lacking.length > 0 && isLacking ? (['NoNextHop'] as const) : []),
      ...(this.#session.ownRoutesReceived > 0 ? (['OwnRoutesReceived'] as const) : []),
    ];
  }

  #send(bytes: Uint8Array): void {
    const socket = this.#socket;
    socket?.write(bytes, (error) => {
      if (error instanceof Error || this.#socket !== socket || socket.writableLength > 0) return;
      // The kernel has taken all that was written.
      this.#do(this.#session.drained(this.#now()));
    });
  }

  #disconnect(): void {
    this.#attempt.abort();
    const socket = this.#socket;
    this.#socket = undefined;
    if (socket !== undefined) this.#close(socket);
  }

  /** Flushes what was written, and waits for the peer to close too: a connection closed with unread bytes is reset. */
  #close(socket: Socket): void {
    if (socket.closed) return;
    const { clock } = this.#options;
    const closing = new Promise<void>((resolve) => {
      const cut = clock.after(lingerMs, () => socket.destroy());
      socket.once('close', () => {
        cut.cancel();
        this.#closing.delete(closing);
        resolve();
      });
    });
    this.#closing.add(closing);
    socket.resume();
    socket.end();
  }

  #report({ reason, why }: { readonly reason: SessionReason; readonly why: string }): void {
    const { log, clock, changed, failed } = this.#options;
    const key = this.peer.name;
    if (reason !== 'Established' && reason !== 'Stopped') failed?.(key, reason);
    // The same failure again is not logged.
    if (reason === this.#reason && why === this.#message) return;
    if (reason === 'Established') log.info({ key, peer: this.peer.address }, 'BGP session established');
    else if (reason === 'Stopped') log.info({ key, peer: this.peer.address, why }, 'BGP session ended');
    else log.warn({ key, peer: this.peer.address, reason, why }, 'no BGP session, will retry');
    this.#reason = reason;
    this.#message = why;
    this.#since = clock.now();
    changed();
  }

  #withNextHops(): ReadonlyMap<string, BGPRoute> {
    const routes = new Map<string, BGPRoute>();
    for (const [key, route] of this.#routes) {
      const nextHop = this.#nextHops[route.prefix.family];
      if (nextHop !== undefined) routes.set(key, { ...route, nextHop });
    }
    return routes;
  }

  #schedule(): void {
    const { deadline } = this.#session;
    if (deadline === this.#timerAt || this.#hasLeft) return;
    this.#timer?.cancel();
    this.#timerAt = deadline;
    if (deadline === Number.POSITIVE_INFINITY) return;
    // After the sockets have been read: a process that was stopped for a while may have heard its peer.
    const tick = (): void => {
      setImmediate(() => {
        if (this.#timerAt !== deadline || this.#hasLeft) return;
        this.#timerAt = Number.POSITIVE_INFINITY;
        this.#do(this.#session.tick(this.#now()));
      });
    };
    this.#timer = this.#options.clock.after(deadline - this.#now(), tick);
  }
}

function whyUnconnected(error: unknown, peer: Peer): { reason: SessionReason; message: string } {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const message = errorMessage(error);
  if (code === 'ECONNREFUSED')
    return { reason: 'ConnectionRefused', message: `nothing listens on ${peer.address} port ${peer.port}` };
  if (code === 'EADDRNOTAVAIL' && peer.sourceAddress !== undefined) {
    return { reason: 'NoSourceAddress', message: `the node does not have ${peer.sourceAddress}` };
  }
  return { reason: code === 'ECONNRESET' ? 'ConnectionRefused' : 'PeerUnreachable', message };
}
