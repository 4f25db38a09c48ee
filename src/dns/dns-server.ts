import { pushAll } from '../objects/lists.ts';
import { createServer, isIPv6, type Server, type Socket } from 'node:net';
import { framed, MessageFrames, Forwarder, type Upstream } from './forwarder.ts';
import { DnsResponder } from './responder.ts';
import type { CacheHandler } from '../client/informers/cache.ts';
import type { Clock, Random } from '../client/clock.ts';
import type { Informer, Informers } from '../client/informers/informer.ts';
import { endpointSlices, namespaces, pods, services } from '../client/resources.ts';
import { Zone, type ZoneOptions } from '../network/dns/zone.ts';
import { keyOf, type KubeObject } from '../objects/meta.ts';
import type { Socket as DatagramSocket, RemoteInfo } from 'node:dgram';
import type { Logger } from 'pino';
import type { Host } from '../host/host.ts';
import { sendDatagram } from '../host/sockets.ts';
import type { HealthCheck } from '../telemetry/health.ts';
import { LogThrottle } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { DnsMetrics } from './dns-metrics.ts';

/** Milliseconds without a whole query or an answer after which a connection is closed (RFC 7766, 6.2.3; CoreDNS has 10 s too). */
const idleTimeoutMs = 10_000;
/** Connections at one time. One more takes the place of another, of whichever client has most. */
const maxConnections = 1000;
/** Milliseconds of a turn of the event loop for the queries of all connections. Those by UDP are answered in between. */
const sliceMs = 5;
/** Queries of one connection that wait for an upstream; more are not read meanwhile. */
const maxWaiting = 64;

/** A TCP server of DNS that does not listen yet, and what closes its connections. */
export interface TcpClients {
  readonly server: Server;
  readonly closeAll: () => void;
}

/** Answers queries of TCP connections, each as soon as its answer is there (RFC 7766, 6.2.1.1). */
function tcpClients(
  responder: DnsResponder,
  slices: Slices,
  signal: AbortSignal,
  onAnswer: DnsServerOptions['onAnswer'],
): TcpClients {
  /** By client, each with the connection first that has been idle for longest. */
  const open = new Map<string, Set<Socket>>();
  let count = 0;
  const server = createServer({ noDelay: true }, (socket) => {
    const client = socket.remoteAddress ?? '';
    const own = open.get(client) ?? new Set();
    open.set(client, own.add(socket));
    count++;
    socket.on('close', () => {
      count--;
      own.delete(socket);
      if (own.size === 0 && open.get(client) === own) open.delete(client);
    });
    const active = (): void => {
      if (own.delete(socket)) own.add(socket);
    };
    serve(socket, responder, slices, signal, active, (answer) => onAnswer?.(answer, client));
    if (count > maxConnections) longestIdle(open)?.destroy();
  });
  return {
    server,
    closeAll: () => {
      for (const sockets of open.values()) for (const socket of sockets) socket.destroy();
    },
  };
}

function longestIdle(open: ReadonlyMap<string, ReadonlySet<Socket>>): Socket | undefined {
  let most: ReadonlySet<Socket> | undefined;
  for (const sockets of open.values()) if (most === undefined || sockets.size > most.size) most = sockets;
  return [...(most ?? [])].find((socket) => !socket.destroyed);
}

/** Work in slices, one a turn of the event loop, whoever has asked for them. */
class Slices {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #steps = new Set<() => boolean>();
  #isDue = false;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** @param step does a piece of the work. @returns whether it has more. The same one is kept once. */
  add(step: () => boolean): void {
    this.#steps.add(step);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => this.#slice());
  }

  /** One piece of each in turn. */
  #slice(): void {
    this.#isDue = false;
    const end = this.#clock.monotonic() + sliceMs;
    for (const step of this.#steps) {
      this.#steps.delete(step);
      if (step()) this.add(step);
      if (this.#clock.monotonic() >= end) break;
    }
    if (this.#steps.size > 0) this.#schedule();
  }
}

/** @param active is called with each whole query. @param answered with each answer. */
function serve(
  socket: Socket,
  responder: DnsResponder,
  slices: Slices,
  signal: AbortSignal,
  active: () => void,
  answered: (answer: Buffer) => void,
): void {
  const frames = new MessageFrames();
  /** Queries that were read, in their order. */
  const unanswered: Buffer[] = [];
  const idle = setTimeout(() => socket.destroy(), idleTimeoutMs);
  idle.unref();
  const family = isIPv6(socket.remoteAddress ?? '') ? 2 : 1;
  let waiting = 0;
  const send = (response: Buffer | undefined): void => {
    if (response === undefined) socket.destroy();
    else if (!socket.destroyed) {
      answered(response);
      socket.write(framed(response));
      idle.refresh();
    }
  };
  // Clients that do not read their answers get no more.
  const isFull = (): boolean => waiting >= maxWaiting || socket.writableNeedDrain;
  const answerOne = (): boolean => {
    if (socket.destroyed || isFull()) return false;
    const message = unanswered.shift();
    if (message !== undefined) {
      const response = responder.respond(message, { protocol: 'tcp', family }, signal);
      if (response instanceof Promise) {
        waiting++;
        void response.then((later) => {
          waiting--;
          send(later);
          readOn();
        });
      } else send(response);
    }
    if (unanswered.length > 0) return !isFull();
    if (!isFull()) socket.resume();
    return false;
  };
  const readOn = (): void => {
    if (!isFull()) slices.add(answerOne);
  };
  socket.on('close', () => clearTimeout(idle));
  // Clients may close a connection at any time.
  socket.on('error', () => socket.destroy());
  socket.on('drain', readOn);
  socket.on('data', (chunk) => {
    const messages = frames.push(chunk);
    if (messages.length === 0) return;
    pushAll(unanswered, messages);
    idle.refresh();
    active();
    socket.pause();
    readOn();
  });
}

/** Follows the objects that names depend on, and keeps the zone. */
export class ZoneView {
  readonly zone: Zone;
  readonly #sources: readonly Informer<KubeObject>[];

  /** @param informers without selectors: kube-proxy's leave out the slices of headless Services. */
  constructor(informers: Informers, clock: Clock, options: ZoneOptions) {
    const zone = new Zone(options);
    this.zone = zone;
    const follow = <T extends KubeObject>(
      informer: Informer<T>,
      set: (key: string, object: T | undefined) => void,
    ): Informer<T> => {
      const change = (object: T, now: T | undefined): void => {
        set(keyOf(object), now);
        zone.serial = Math.floor(clock.now() / 1000);
      };
      const handler: CacheHandler<T> = {
        added: (object) => change(object, object),
        updated: (object) => change(object, object),
        deleted: (object) => change(object, undefined),
      };
      informer.addHandler(handler);
      return informer;
    };
    this.#sources = [
      follow(informers.informer(namespaces), (name, namespace) =>
        zone.setNamespace(name, namespace !== undefined),
      ),
      follow(informers.informer(services), (key, service) => zone.setService(key, service)),
      follow(informers.informer(endpointSlices), (key, slice) => zone.setSlice(key, slice)),
      ...(options.pods === 'verified'
        ? [follow(informers.informer(pods), (key, pod) => zone.setPod(key, pod))]
        : []),
    ];
  }

  /** Whether all that the API server has is in the zone. Never turns false again. */
  get hasSynced(): boolean {
    return this.#sources.every((source) => source.hasSynced);
  }

  /** Resolves true when synced, false when the signal aborts first. */
  async synced(signal: AbortSignal): Promise<boolean> {
    await Promise.all(this.#sources.map((source) => source.synced(signal)));
    return this.hasSynced;
  }
}

export interface DnsServerOptions {
  /**
   * Without selectors on Services and EndpointSlices: those of the node agent leave out headless Services. The
   * constructor makes the informers; the caller starts them.
   */
  readonly informers: Informers;
  /** The machine whose addresses the server listens on, and which queries upstreams. */
  readonly host: Host;
  readonly clock: Clock;
  /** For the order of addresses. */
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly zone: ZoneOptions;
  /** Each is bound by itself: a UDP socket of all addresses may answer from another one than was asked. */
  readonly addresses: readonly string[];
  /** For UDP and TCP; 0: any free one, a different one for each address. */
  readonly port: number;
  readonly upstreams: readonly Upstream[];
  /** Is given each answer, and the address of its client. */
  readonly onAnswer?: (answer: Buffer, client: string) => void;
}

/** Milliseconds that a start waits for the caches; CoreDNS' kubernetes plugin has the same. */
const syncTimeoutMs = 5000;
/** Bytes that the kernel keeps for a socket that is busy: about 500 queries fit the usual default. */
const receiveBuffer = 4 * 1024 * 1024;

/** The DNS server of a cluster: answers for the objects of its API server, by UDP and TCP. */
export class DnsServer {
  readonly #options: DnsServerOptions;
  readonly #view: ZoneView;
  readonly #stopping = new AbortController();
  readonly #sockets: DatagramSocket[] = [];
  readonly #tcp: TcpClients[] = [];
  readonly #throttle: LogThrottle;
  readonly #slices: Slices;
  #isServing = false;

  constructor(options: DnsServerOptions) {
    this.#options = options;
    this.#slices = new Slices(options.clock);
    this.#view = new ZoneView(options.informers, options.clock, options.zone);
    this.#throttle = new LogThrottle(() => options.clock.monotonic());
  }

  /** Fails until the server listens and has all names. */
  get healthCheck(): HealthCheck {
    return {
      name: 'dns',
      check: () => {
        if (!this.#isServing) return 'not listening yet';
        return this.#view.hasSynced ? undefined : 'not all names are known yet';
      },
    };
  }

  /**
   * Answers from now on; waits for the caches first, 5 s at most. After that, names that are not known yet are answered
   * with SERVFAIL.
   *
   * @returns where it answers; nowhere where it was closed meanwhile.
   * @throws the system's error where it cannot listen (`EADDRINUSE`, `EACCES`).
   */
  async start(): Promise<readonly { readonly address: string; readonly port: number }[]> {
    const { clock, log, metrics, host, upstreams, zone, random } = this.#options;
    await this.#waitForNames();
    if (this.#stopping.signal.aborted) return [];
    const responder = new DnsResponder({
      zone: this.#view.zone,
      hasSynced: () => this.#view.hasSynced,
      forwarder: new Forwarder({ host, clock, upstreams: this.#otherServers(upstreams) }),
      clock,
      random,
      log,
      metrics: new DnsMetrics(metrics, this.#options.port),
    });
    const bound: { address: string; port: number }[] = [];
    try {
      for (const address of this.#options.addresses) {
        bound.push({ address, port: await this.#listen(responder, address) });
      }
    } catch (error) {
      await this.close();
      throw error;
    }
    this.#isServing = true;
    log.info({ zone: zone.domain, bound }, 'serving DNS');
    return bound;
  }

  /** Ends queries to upstreams, closes all connections and sockets. */
  async close(): Promise<void> {
    this.#isServing = false;
    this.#stopping.abort(new Error('the server is stopping'));
    for (const socket of this.#sockets.splice(0)) socket.close();
    await Promise.all(
      this.#tcp.splice(0).map(
        ({ server, closeAll }) =>
          new Promise<void>((resolve) => {
            server.close(() => resolve());
            closeAll();
          }),
      ),
    );
  }

  async #waitForNames(): Promise<void> {
    const { clock, log } = this.#options;
    const late = new AbortController();
    const timer = clock.after(syncTimeoutMs, () => late.abort());
    const synced = await this.#view.synced(AbortSignal.any([late.signal, this.#stopping.signal]));
    timer.cancel();
    if (!synced && !this.#stopping.signal.aborted) {
      log.warn(
        { reason: 'NotSynced' },
        'the API server has not sent all objects yet: names that are not known are answered with SERVFAIL until then',
      );
    }
  }

  /** A server that forwards to itself would never end. */
  #otherServers(upstreams: readonly Upstream[]): Upstream[] {
    const { addresses, port, log } = this.#options;
    return upstreams.filter((upstream) => {
      if (upstream.port !== port || !addresses.includes(upstream.address)) return true;
      log.warn({ reason: 'UpstreamLoop', upstream }, 'an upstream is this server itself, and is not asked');
      return false;
    });
  }

  async #listen(responder: DnsResponder, address: string): Promise<number> {
    const { host } = this.#options;
    const socket = await host.datagram(address, this.#options.port);
    this.#sockets.push(socket);
    this.#serveUdp(socket, responder, isIPv6(address) ? 2 : 1);
    const { port } = socket.address();
    const clients = tcpClients(responder, this.#slices, this.#stopping.signal, this.#options.onAnswer);
    clients.server.on('error', (error) => this.#tell(error));
    await host.listen(clients.server, address, port);
    this.#tcp.push(clients);
    return port;
  }

  #serveUdp(socket: DatagramSocket, responder: DnsResponder, family: 1 | 2): void {
    const { signal } = this.#stopping;
    const channel = { protocol: 'udp', family } as const;
    const send = (response: Buffer | undefined, client: RemoteInfo): void => {
      if (response !== undefined && !signal.aborted) {
        this.#options.onAnswer?.(response, client.address);
        sendDatagram(socket, response, client, (error) => this.#tell(error));
      }
    };
    socket.on('error', (error) => this.#tell(error));
    socket.on('message', (bytes, client) => {
      // No answer can be sent to it.
      if (client.port === 0) return;
      const response = responder.respond(bytes, channel, signal);
      if (response instanceof Promise) void response.then((later) => send(later, client));
      else send(response, client);
    });
    socket.setRecvBufferSize(receiveBuffer);
  }

  #tell(error: Error): void {
    if (this.#throttle.isDue(error.message)) {
      this.#options.log.warn({ reason: 'SendFailed', err: error }, 'a DNS socket failed; it goes on');
    }
  }
}
