import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Clock, Random } from '../client/clock.ts';
import type { Host } from '../host/host.ts';
import { backendEndpoints, endpointWeights } from '../network/http/backends.ts';
import type { BackendTls, HttpRule } from '../network/http/rules.ts';
import { joinKey, type ObjectKey } from '../objects/meta.ts';
import type { Service } from '../objects/types/core.generated.ts';
import type { EndpointSlice } from '../objects/types/discovery.generated.ts';
import { handshake } from '../tls/handshake.ts';
import { PeerTrust } from '../tls/peer-trust.ts';
import type { AnswerHandler, BackendExchange, BackendRequest } from './http/exchange.ts';
import { Http1Connections } from './http/http1.ts';
import { Http2Session } from './http/http2.ts';

/** The target of one request. */
export interface ForwardTarget {
  readonly address: string;
  readonly port: number;
  /** `https` and `h2`, which is HTTP/2, encrypt. */
  readonly protocol: 'http' | 'h2c' | 'https' | 'h2';
  /**
   * The name that the certificate of an `https` target must have, unless {@link ca} is given:
   * `<Service>.<namespace>.svc`.
   */
  readonly serverName: string;
  /** PEM of whom it is trusted by, as Go trusts; undefined: the authorities of Node.js. */
  readonly ca: string | undefined;
  /** By a BackendTLSPolicy: counts in the place of the two before. */
  readonly tls: BackendTls | undefined;
}

export interface ConnectionOptions {
  readonly host: Host;
  readonly clock: Clock;
  /** Milliseconds to connect, TLS included. */
  readonly connectTimeoutMs: number;
}

/** The connections to one target. */
interface Connections {
  send(request: BackendRequest, handler: AnswerHandler, onOver: () => void): BackendExchange;
  /** Cuts them. */
  destroy(): void;
}

/** What is kept for a target between requests. */
interface Entry {
  readonly connections: Connections;
  running: number;
  usedAt: number;
}

/** Milliseconds after its last request until what is kept for a target is closed. */
const idleTimeMs = 60_000;

/** The connections to backends: kept open between requests, one request on each at a time. */
export class BackendConnections {
  readonly #options: ConnectionOptions;
  readonly #entries = new Map<string, Entry>();
  #sweep: { cancel(): void } | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /**
   * Sends a request to a target. What happens is said to the handler, never before this returns.
   *
   * @throws {Error} of Node.js for what cannot be written, such as a blank in the path.
   */
  send(given: ForwardTarget, request: BackendRequest, handler: AnswerHandler): BackendExchange {
    const { clock } = this.#options;
    // A connection changes its protocol over HTTP/1.1 only.
    const target = request.upgrade === undefined ? given : withHttp1(given);
    const key = keyOf(target);
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = { connections: this.#connectionsOf(target), running: 0, usedAt: 0 };
      this.#entries.set(key, entry);
      this.#sweepLater();
    }
    const used = entry;
    const sent = used.connections.send(request, handler, () => {
      used.running--;
      used.usedAt = clock.monotonic();
    });
    used.running++;
    return sent;
  }

  #connectionsOf(target: ForwardTarget): Connections {
    const open = () => this.connect(target);
    const { address, port, protocol } = target;
    if (protocol === 'http' || protocol === 'https') return new Http1Connections(open);
    const host = address.includes(':') ? `[${address}]` : address;
    return new Http2Session(`${protocol === 'h2' ? 'https' : 'http'}://${host}:${port}`, open);
  }

  /**
   * Opens a connection, re-encrypted if the target requires it.
   *
   * @throws {Error} of the system, TLS, trust, or the timeout.
   */
  async connect(target: ForwardTarget): Promise<Socket | TLSSocket> {
    const { host, clock, connectTimeoutMs } = this.#options;
    const { address, port, protocol, serverName, ca, tls } = target;
    const signal = AbortSignal.timeout(connectTimeoutMs);
    const socket = await host.connect(address, port, { signal });
    socket.setNoDelay(true);
    // Whoever uses it sees its end; its error has a listener from now on to its last moment.
    socket.on('error', () => socket.destroy());
    if (protocol === 'http' || protocol === 'h2c') return socket;
    if (tls !== undefined) return await this.#secured(socket, tls, protocol, signal);
    const trust = new PeerTrust(ca);
    const options = { socket, servername: serverName, ALPNProtocols: ['http/1.1'], ...trust.options };
    const secure = await handshake(options, signal);
    // The router of OpenShift checks the name only where the authority is a common one.
    const fault = trust.fault(secure, ca === undefined ? serverName : undefined, clock.now());
    if (fault === undefined) return secure;
    secure.destroy();
    throw fault;
  }

  /** As a BackendTLSPolicy asks. @throws {Error} */
  async #secured(
    socket: Socket,
    { serverName, ca, names, client }: BackendTls,
    protocol: 'https' | 'h2',
    signal: AbortSignal,
  ): Promise<TLSSocket> {
    let trust: PeerTrust;
    try {
      trust = new PeerTrust(ca);
    } catch (error) {
      socket.destroy();
      throw error;
    }
    const options = {
      ...{ socket, servername: serverName, ...trust.options },
      ALPNProtocols: [protocol === 'h2' ? 'h2' : 'http/1.1'],
      ...(client === undefined ? {} : { cert: client.certificate, key: client.key }),
    };
    const secure = await handshake(options, signal);
    const fault =
      names.length === 0
        ? trust.fault(secure, serverName, this.#options.clock.now())
        : trust.namesFault(secure, names, this.#options.clock.now());
    const isOther = protocol === 'h2' && secure.alpnProtocol !== 'h2';
    if (fault === undefined && !isOther) return secure;
    secure.destroy();
    throw fault ?? new Error('the backend does not speak HTTP/2');
  }

  /** Cuts all connections. */
  close(): void {
    this.#sweep?.cancel();
    for (const { connections } of this.#entries.values()) connections.destroy();
    this.#entries.clear();
  }

  #sweepLater(): void {
    const { clock } = this.#options;
    this.#sweep ??= clock.after(idleTimeMs, () => {
      this.#sweep = undefined;
      for (const [key, { running, usedAt, connections }] of this.#entries) {
        if (running > 0 || clock.monotonic() - usedAt < idleTimeMs) continue;
        this.#entries.delete(key);
        connections.destroy();
      }
      if (this.#entries.size > 0) this.#sweepLater();
    });
  }
}

const keys = new WeakMap<ForwardTarget, string>();

/** The key of what is kept for a target; the texts of certificates are long, and joined once. */
function keyOf(target: ForwardTarget): string {
  let key = keys.get(target);
  if (key === undefined) {
    const { address, port, protocol, serverName, ca = '', tls } = target;
    key = `${protocol} ${address} ${port}`;
    if (tls !== undefined) key += ` ${JSON.stringify(tls)}`;
    else if (protocol === 'https') key += ` ${serverName} ${ca}`;
    keys.set(target, key);
  }
  return key;
}

const overHttp1: Readonly<Record<ForwardTarget['protocol'], ForwardTarget['protocol']>> = {
  ...{ http: 'http', h2c: 'http', https: 'https', h2: 'https' },
};

/** A connection changes its protocol over HTTP/1.1 only. */
function withHttp1(target: ForwardTarget): ForwardTarget {
  const protocol = overHttp1[target.protocol];
  return protocol === target.protocol ? target : { ...target, protocol };
}

/** The known Services. */
export interface ServiceReader {
  service(key: ObjectKey): Service | undefined;
  slices(key: ObjectKey): readonly EndpointSlice[];
}

/** Why no endpoint can get a rule's requests. */
export type TargetProblem = 'NoService' | 'NoPort' | 'NoEndpoints' | 'NoWeight' | 'ExternalName';

interface Targets {
  readonly list: readonly ForwardTarget[];
  /** The sum of the weights up to each target, itself included. */
  readonly sums: readonly number[];
  readonly problem: TargetProblem;
}

/** Milliseconds that a target is avoided after it could not be connected to, while there are others. */
const avoidedMs = 5000;
/** The number of other targets that are tried before one that failed. */
const tries = 8;

/** Chooses the endpoint of each request: at random, by the weights of Services. */
export class TargetChoice {
  readonly #reader: ServiceReader;
  readonly #clock: Clock;
  readonly #random: Random;
  #known = new WeakMap<HttpRule, Targets>();
  readonly #failed = new Map<string, number>();

  constructor(reader: ServiceReader, clock: Clock, random: Random) {
    this.#reader = reader;
    this.#clock = clock;
    this.#random = random;
  }

  /** To be called when a Service or slice changed: targets are found anew when they are asked for. */
  changed(): void {
    this.#known = new WeakMap();
  }

  /** @param tried targets of the same request, which are avoided as failed ones are. */
  choose(rule: HttpRule, tried: readonly ForwardTarget[] = []): ForwardTarget | TargetProblem {
    const { list, sums, problem } = this.#targets(rule);
    const total = sums.at(-1) ?? 0;
    if (total === 0) return problem;
    let chosen: ForwardTarget | undefined;
    for (let i = 0; i < tries; i++) {
      chosen = list[firstAbove(sums, this.#random() * total)];
      if (chosen !== undefined && !tried.includes(chosen) && !this.#hasFailed(chosen)) break;
    }
    return chosen ?? problem;
  }

  /** Whether a target is still one of a rule. */
  includes(rule: HttpRule, { address, port }: ForwardTarget): boolean {
    return this.#targets(rule).list.some((target) => target.address === address && target.port === port);
  }

  /** To be called when a target could not be connected to. */
  failed(target: ForwardTarget): void {
    const now = this.#clock.monotonic();
    for (const [name, until] of this.#failed) if (until <= now) this.#failed.delete(name);
    this.#failed.set(nameOf(target), now + avoidedMs);
  }

  #hasFailed(target: ForwardTarget): boolean {
    return this.#failed.size > 0 && (this.#failed.get(nameOf(target)) ?? 0) > this.#clock.monotonic();
  }

  #targets(rule: HttpRule): Targets {
    let targets = this.#known.get(rule);
    if (targets === undefined) {
      targets = this.#targetsOf(rule);
      this.#known.set(rule, targets);
    }
    return targets;
  }

  #targetsOf(rule: HttpRule): Targets {
    const { kind } = rule.source;
    const found = rule.backends.map((backend) => {
      const key = joinKey(backend.namespace, backend.service);
      const reached = backendEndpoints(backend, kind, this.#reader.service(key), this.#reader.slices(key));
      return { backend, ...reached };
    });
    const weights = endpointWeights(
      found.map(({ backend, endpoints }) => ({ weight: backend.weight, endpoints: endpoints.length })),
    );
    const list: ForwardTarget[] = [];
    const sums: number[] = [];
    found.forEach(({ backend, endpoints, isH2c }, i) => {
      const weight = weights[i] ?? 0;
      for (const { address, port } of weight === 0 ? [] : endpoints) {
        const isSecure = rule.termination === 'reencrypt' || rule.backendTls !== undefined;
        // gRPC is HTTP/2 always; an Ingress or Route of OpenShift re-encrypts HTTP/1.1.
        const isHttp2 = kind === 'GRPCRoute' || (isH2c && rule.termination !== 'reencrypt');
        const protocol = isSecure ? (isHttp2 ? 'h2' : 'https') : isHttp2 ? 'h2c' : 'http';
        const serverName = `${backend.service}.${backend.namespace}.svc`;
        list.push({ address, port, protocol, serverName, ca: rule.destinationCA, tls: rule.backendTls });
        sums.push((sums.at(-1) ?? 0) + weight);
      }
    });
    const problems = found.map(({ problem }) => problem).filter((problem) => problem !== undefined);
    return { list, sums, problem: problems[0] ?? 'NoWeight' };
  }
}

function nameOf({ address, port }: ForwardTarget): string {
  return `${address} ${port}`;
}

/** The index of the first sum above a number. */
function firstAbove(sums: readonly number[], number: number): number {
  let low = 0;
  let high = sums.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sums[middle] ?? 0) > number) high = middle;
    else low = middle + 1;
  }
  return low;
}
