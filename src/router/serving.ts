import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import type { Clock } from '../client/clock.ts';
import { ServerResponse } from '../host/node-http.ts';
import type { RefusedRequest } from '../network/flows/tracker.ts';
import type { HttpRule, RuleSource } from '../network/http/rules.ts';
import { LogThrottle } from '../telemetry/log.ts';
import { unanswered } from '../tls/unanswered.ts';
import { type Asked, portOf, readAsked } from './asked.ts';
import type { ForwardTarget } from './backends.ts';
import { clientAddress, type ClientLimits } from './client-limits.ts';
import type { Decide, ForwardedRequest, OwnAnswer, Scheme } from './decisions.ts';
import type { ClientRequest } from './http/exchange.ts';
import { answerItself, type ClientResponse, cut, type Forward, type ForwardProblem } from './forward.ts';
import { type ClientConnection, type ForwardedPolicy, requestHeaders } from './headers.ts';
import type { RouterMetrics } from './router-metrics.ts';
import type { Tunnels } from './tunnels.ts';

export interface RouterServingOptions {
  readonly decide: Decide;
  readonly forward: Forward;
  readonly tunnels: Tunnels;
  readonly limits: ClientLimits;
  /** Protocols that connections may change to, in lower case. */
  readonly upgrades: readonly string[];
  /** Milliseconds that a backend may be silent. */
  readonly backendTimeoutMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether each request is logged. */
  readonly accessLog: boolean;
  readonly forwardedPolicy: ForwardedPolicy;
  readonly metrics: RouterMetrics;
  /** Is told each request that the router itself refuses; undefined: nobody is. */
  readonly onRefused: ((request: RefusedRequest) => void) | undefined;
}

/** Milliseconds that a client may be silent longer than a backend: it gets the answer that the backend timed out. */
export const clientGraceMs = 5000;

/** A client's connection that Node.js no longer reads requests from. */
interface Upgrade {
  readonly protocol: string;
  readonly socket: Socket;
  /** Bytes that came after the request. */
  readonly head: Buffer;
}

/** Decides about requests, and does what was decided. */
export class RouterServing {
  readonly #options: RouterServingOptions;
  readonly #throttle: LogThrottle;
  /** Of HTTP/1.1, whose heads may still say that the connection ends with them. */
  readonly #responses = new Set<ClientResponse>();
  #isDraining = false;
  #isEnding = false;

  constructor(options: RouterServingOptions) {
    this.#options = options;
    this.#throttle = new LogThrottle(() => options.clock.monotonic());
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /**
   * From now on each answer is the last of its connection. One whose head has gone already is not: its client may have
   * sent the next request, which is answered.
   */
  drain(): void {
    this.#isDraining = true;
    for (const response of this.#responses) lastOfConnection(response);
  }

  /** From now on connections end with their answer, whatever was negotiated. */
  end(): void {
    this.drain();
    this.#isEnding = true;
  }

  /** Answers a request. */
  serve(request: ClientRequest, response: ClientResponse, scheme: Scheme): void {
    const record = this.#record(request);
    response.on('close', () => record.end(response.headersSent ? response.statusCode : 499));
    if (request.httpVersionMajor === 1) {
      if (this.#isDraining) lastOfConnection(response);
      this.#responses.add(response);
      response.on('close', () => this.#responses.delete(response));
      response.on('finish', () => (this.#isEnding ? request.socket.end() : undefined));
    }
    this.#bounded(response, record, () => this.#answer(request, response, scheme, record, undefined));
  }

  /** Whatever a request does to us, it does to its own answer alone. */
  #bounded(response: ClientResponse, record: RequestRecord, answer: () => void): void {
    // Its end is seen by `close`.
    response.on('error', () => undefined);
    try {
      answer();
    } catch (error) {
      record.problem('InternalError', error instanceof Error ? error : new Error(String(error)));
      if (response.headersSent) cut(response);
      else answerItself(response, 500, 'InternalError');
    }
  }

  /** The protocol that a request may change its connection to (RFC 9110, 7.8); undefined: it is served as any other. */
  upgradeOf({ method, httpVersion, headers }: IncomingMessage): string | undefined {
    if (method !== 'GET' || httpVersion !== '1.1') return undefined;
    const asked = headers.upgrade?.split(',').map((one) => one.trim()) ?? [];
    return asked.find((one) => this.#options.upgrades.includes(one.toLowerCase()));
  }

  /**
   * Answers a request whose connection Node.js hands over, since it asks for another protocol. Without a tunnel the
   * answer is the last of the connection.
   */
  upgrade(request: IncomingMessage, duplex: Duplex, head: Buffer, scheme: Scheme): void {
    // Node.js takes its own listener off a socket that it hands over: without another, a reset ends the process.
    duplex.on('error', () => duplex.destroy());
    if (!(duplex instanceof Socket) || !unanswered(duplex)()) {
      duplex.destroy();
      return;
    }
    const socket = duplex;
    const record = this.#record(request);
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    // What the client sends meanwhile is of no use, and its end has to be seen.
    response.on('finish', () => socket.resume().destroySoon());
    let status: number | undefined;
    socket.once('close', () => record.end(status ?? (response.headersSent ? response.statusCode : 499)));
    const protocol = this.upgradeOf(request);
    const upgrade = protocol === undefined ? undefined : { protocol, socket, head };
    const switched = (): void => {
      response.detachSocket(socket);
      status = 101;
    };
    // Where Node.js does not ask first, a body of another protocol's request is not read.
    const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
    if (upgrade === undefined && (length !== '0' || coding !== undefined))
      answerItself(response, 501, 'BadUpgrade');
    else {
      this.#bounded(response, record, () =>
        this.#answer(request, response, scheme, record, upgrade, switched),
      );
    }
  }

  #answer(
    request: ClientRequest,
    response: ClientResponse,
    scheme: Scheme,
    record: RequestRecord,
    upgrade: Upgrade | undefined,
    switched: () => void = () => undefined,
  ): void {
    const { decide, forward, limits, tunnels, backendTimeoutMs } = this.#options;
    const asked = readAsked(request);
    if (typeof asked === 'number') {
      // How long the request is may be in doubt: what follows is not read.
      if (request.httpVersionMajor === 1) lastOfConnection(response);
      answerItself(response, asked, asked === 501 ? 'NotImplemented' : 'BadRequest');
      return;
    }
    const treatment = decide(request, asked, scheme);
    record.decided(treatment, asked);
    if (treatment.kind === 'answer') {
      answerItself(response, treatment.status, treatment.reason, treatment);
      return;
    }
    const { rule, path, responseActions, gateway, tunnelTimeoutMs } = treatment;
    const address = clientAddress(request.socket);
    const ended = upgrade === undefined ? response : upgrade.socket;
    const leave = limits.enter(address);
    if (leave === undefined) {
      record.problem('TooManyRequests');
      answerItself(response, 429, 'TooManyRequests', gateway);
      return;
    }
    ended.on('close', leave);
    const leaveRoute = limits.enterRoute(rule, address, connectionOf(request));
    if (typeof leaveRoute === 'string') {
      // As OpenShift's router does, which answers nothing.
      record.problem(leaveRoute);
      cut(response);
      return;
    }
    ended.on('close', leaveRoute);
    const {
      timeoutMs = Math.max(backendTimeoutMs, gateway?.requestTimeoutMs ?? gateway?.tryTimeoutMs ?? 0),
    } = treatment;
    if (timeoutMs > backendTimeoutMs) awaitLonger(request, timeoutMs + clientGraceMs);
    const host = asked.host === '' ? ownNameOf(rule) : asked.host;
    const headers = this.#headers(request, host, scheme, treatment);
    if (upgrade !== undefined) headers.push('Connection', 'Upgrade', 'Upgrade', upgrade.protocol);
    forward.start({
      ...{ request, response, rule, headers, path, responseActions, timeoutMs, gateway },
      upgrade: upgrade?.protocol,
      onUpgrade: (text, backend, first) => {
        if (upgrade === undefined) return;
        const { socket, head } = upgrade;
        switched();
        socket.write(text, 'latin1');
        if (first.length > 0) socket.write(first);
        if (head.length > 0) backend.write(head);
        tunnels.join(socket, backend, tunnelTimeoutMs);
      },
      onTarget: record.target,
      onProblem: record.problem,
    });
  }

  /** Counts and logs why a connection with TLS was cut. */
  problem = (reason: string, error?: Error, more: object = {}): void => {
    const { log, metrics } = this.#options;
    metrics.problems.inc({ reason });
    if (reason === 'ClientGone' || !this.#throttle.isDue(`${reason} ${JSON.stringify(more)}`)) return;
    log.warn({ reason, ...more, ...(error === undefined ? {} : { err: error }) }, 'a request failed');
  };

  #headers(
    request: ClientRequest,
    host: string,
    scheme: Scheme,
    { rule, gateway }: ForwardedRequest,
  ): string[] {
    const client: ClientConnection = {
      address: clientAddress(request.socket),
      scheme,
      // A Service maps this port to the one that this process listens on.
      port: portOf(host) ?? defaultPort[scheme],
    };
    const { forwardedPolicy } = this.#options;
    const headers = requestHeaders(request.rawHeaders, host, client, forwardedPolicy, rule.requestHeaders);
    return gateway === undefined ? headers : [...gateway.changeHeaders(headers)];
  }

  #record(request: ClientRequest): RequestRecord {
    const { clock, log, metrics, accessLog, onRefused } = this.#options;
    const began = clock.monotonic();
    let source: RuleSource | undefined;
    let target: ForwardTarget | undefined;
    let reason: string | undefined;
    let host: string | undefined;
    let client = { client: '', clientPort: 0 };
    const refuse = (word: string): void => {
      reason = word;
      // Later, the connection may be gone.
      const { remoteAddress = '', remotePort = 0 } = request.socket;
      client = { client: remoteAddress, clientPort: remotePort };
    };
    return {
      decided: (treatment: OwnAnswer | ForwardedRequest, asked: Asked): void => {
        ({ source } = treatment);
        ({ host } = asked);
        if (treatment.kind === 'answer' && treatment.isRefusal) {
          refuse(treatment.reason);
          metrics.problems.inc({ reason: treatment.reason });
        }
      },
      target: (chosen: ForwardTarget): void => {
        target = chosen;
      },
      problem: (word: ForwardProblem, error?: Error): void => {
        refuse(word);
        const object = source === undefined ? '' : `${source.kind} ${source.namespace}/${source.name}`;
        const backend = target === undefined ? {} : { backend: `${target.address} ${target.port}` };
        this.problem(word, error, { object, ...backend });
      },
      end: (status: number): void => {
        const milliseconds = clock.monotonic() - began;
        metrics.count({ source, status, seconds: milliseconds / 1000 });
        const { method = '', httpVersion, url = '', socket } = request;
        const object = source === undefined ? undefined : `${source.kind} ${source.namespace}/${source.name}`;
        if (reason !== undefined)
          onRefused?.({ ...client, method, host: host ?? '', path: url, status, reason, object });
        if (!accessLog) return;
        log.info(
          {
            ...{
              status,
              method,
              host,
              path: url,
              protocol: `HTTP/${httpVersion}`,
              client: socket.remoteAddress,
            },
            ...{ milliseconds: Math.round(milliseconds * 10) / 10, reason },
            ...(object === undefined ? {} : { object }),
            ...(target === undefined ? {} : { backend: `${target.address} ${target.port}` }),
          },
          'request',
        );
      },
    };
  }
}

/** What is known of a request, for its log line and the metrics. */
interface RequestRecord {
  readonly decided: (treatment: OwnAnswer | ForwardedRequest, asked: Asked) => void;
  readonly target: (chosen: ForwardTarget) => void;
  readonly problem: (word: ForwardProblem, error?: Error) => void;
  readonly end: (status: number) => void;
}

const defaultPort = { http: 80, https: 443 } as const;

/** The client's connection, which has many requests over HTTP/2. */
function connectionOf(request: ClientRequest): object {
  return 'stream' in request ? (request.stream.session ?? request.stream) : request.socket;
}

/** The limit of a silent client is that of the router: a backend that may take longer needs more. */
function awaitLonger(request: ClientRequest, milliseconds: number): void {
  if ('stream' in request) request.stream.session?.setTimeout(milliseconds);
  else request.setTimeout(milliseconds);
}

/** Backends want a host in each request, and a client of HTTP/1.0 may name none. */
function ownNameOf({ backends: [backend] }: HttpRule): string {
  return backend === undefined ? 'localhost' : `${backend.service}.${backend.namespace}.svc`;
}

function lastOfConnection(response: ClientResponse): void {
  if (!response.headersSent) response.setHeader('connection', 'close');
}
