import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import type { Clock } from '../client/clock.ts';
import { ServerResponse } from '../host/node-http.ts';
import type { HttpDecision, HttpTable } from '../network/http/http-table.ts';
import { rewrittenPath } from '../network/http/route-annotations.ts';
import { type HttpRule, plainHost } from '../network/http/rules.ts';
import { LogThrottle } from '../telemetry/log.ts';
import type { ForwardTarget } from './backends.ts';
import { clientAddress, type ClientLimits } from './client-limits.ts';
import type { ClientRequest } from './exchange.ts';
import { answerItself, type ClientResponse, cut, type Forward, type ForwardProblem } from './forward.ts';
import { type ClientConnection, type ForwardedPolicy, requestHeaders } from './headers.ts';
import type { RouterMetrics } from './router-metrics.ts';
import type { Tunnels } from './tunnels.ts';

export interface RouterServingOptions {
  readonly table: HttpTable;
  readonly forward: Forward;
  readonly tunnels: Tunnels;
  readonly limits: ClientLimits;
  /** Protocols that connections may change to, in lower case. */
  readonly upgrades: readonly string[];
  /** Milliseconds that a backend may be silent. */
  readonly backendTimeout: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether each request is logged. */
  readonly accessLog: boolean;
  readonly forwardedPolicy: ForwardedPolicy;
  readonly metrics: RouterMetrics;
}

/** Milliseconds that a client may be silent longer than a backend: it gets the answer that the backend timed out. */
export const clientGraceMs = 5000;

/** The target that a request names, read once: the backend gets what was decided on. */
interface Asked {
  /** As the client wrote it, with its port. */
  readonly host: string;
  /** With the query. */
  readonly path: string;
}

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
  /** How many requests of a connection are not answered yet. */
  readonly #answering = new WeakMap<Duplex, number>();
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
      this.#answers(request.socket, 1);
      response.on('close', () => {
        this.#responses.delete(response);
        this.#answers(request.socket, -1);
      });
      response.on('finish', () => (this.#isEnding ? request.socket.end() : undefined));
    }
    this.#answer(request, response, scheme, record, undefined);
  }

  /** Whether an answer is on its way, or awaited: nothing else may be written to the connection. */
  isAnswering(socket: Duplex): boolean {
    return (this.#answering.get(socket) ?? 0) > 0;
  }

  #answers(socket: Duplex, more: number): void {
    this.#answering.set(socket, (this.#answering.get(socket) ?? 0) + more);
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
    if (!(duplex instanceof Socket)) {
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
    else this.#answer(request, response, scheme, record, upgrade, switched);
  }

  #answer(
    request: ClientRequest,
    response: ClientResponse,
    scheme: Scheme,
    record: RequestRecord,
    upgrade: Upgrade | undefined,
    switched: () => void = () => undefined,
  ): void {
    const { forward, table, limits, tunnels, backendTimeout } = this.#options;
    const asked = readAsked(request);
    if (typeof asked === 'number') {
      // How long the request is may be in doubt: what follows is not read.
      if (request.httpVersionMajor === 1) lastOfConnection(response);
      answerItself(response, asked, asked === 501 ? 'NotImplemented' : 'BadRequest');
      return;
    }
    const decision = table.resolve({ scheme, host: asked.host, path: withoutQuery(asked.path) });
    record.decided(decision, asked);
    if (decision.kind === 'refuse') {
      answerItself(response, decision.status, decision.reason);
      return;
    }
    if (decision.kind === 'redirect') {
      answerItself(response, decision.status, 'Redirect', { location: secureUrl(asked) });
      return;
    }
    const { rule } = decision;
    const address = clientAddress(request.socket);
    const ended = upgrade === undefined ? response : upgrade.socket;
    const leave = limits.enter(address);
    if (leave === undefined) {
      record.problem('TooManyRequests');
      answerItself(response, 429, 'TooManyRequests');
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
    const { timeoutMs = backendTimeout, tunnelTimeoutMs, hsts, rewriteTarget } = rule.settings ?? {};
    if (timeoutMs > backendTimeout) awaitLonger(request, timeoutMs + clientGraceMs);
    const headers = this.#headers(request, asked.host === '' ? ownNameOf(rule) : asked.host, scheme, rule);
    if (upgrade !== undefined) headers.push('Connection', 'Upgrade', 'Upgrade', upgrade.protocol);
    forward.start({
      ...{ request, response, rule, headers, timeoutMs },
      path: rewriteTarget === undefined ? asked.path : rewrittenPath(asked.path, rule.path, rewriteTarget),
      responseActions:
        hsts === undefined || scheme === 'http'
          ? rule.responseHeaders
          : [...rule.responseHeaders, { name: 'strict-transport-security', value: hsts }],
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

  #headers(request: ClientRequest, host: string, scheme: Scheme, rule: HttpRule): string[] {
    const client: ClientConnection = {
      address: clientAddress(request.socket),
      scheme,
      // A Service maps this port to the one that this process listens on.
      port: portOf(host) ?? defaultPort[scheme],
    };
    return requestHeaders(
      request.rawHeaders,
      host,
      client,
      this.#options.forwardedPolicy,
      rule.requestHeaders,
    );
  }

  #record(request: ClientRequest): RequestRecord {
    const { clock, log, metrics, accessLog } = this.#options;
    const began = clock.monotonic();
    let rule: HttpRule | undefined;
    let target: ForwardTarget | undefined;
    let reason: string | undefined;
    let host: string | undefined;
    return {
      decided: (decision: HttpDecision, asked: Asked): void => {
        ({ rule } = decision);
        ({ host } = asked);
        if (decision.kind === 'refuse') {
          ({ reason } = decision);
          metrics.problems.inc({ reason });
        }
      },
      target: (chosen: ForwardTarget): void => {
        target = chosen;
      },
      problem: (word: ForwardProblem, error?: Error): void => {
        reason = word;
        const source = rule?.source;
        const object = source === undefined ? '' : `${source.kind} ${source.namespace}/${source.name}`;
        const backend = target === undefined ? {} : { backend: `${target.address} ${target.port}` };
        this.problem(word, error, { object, ...backend });
      },
      end: (status: number): void => {
        const milliseconds = clock.monotonic() - began;
        metrics.count({ source: rule?.source, status, seconds: milliseconds / 1000 });
        if (!accessLog) return;
        const { method, httpVersion, url, socket } = request;
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
            ...(rule === undefined
              ? {}
              : { object: `${rule.source.kind} ${rule.source.namespace}/${rule.source.name}` }),
            ...(target === undefined ? {} : { backend: `${target.address} ${target.port}` }),
          },
          'request',
        );
      },
    };
  }
}

type Scheme = 'http' | 'https';

/** What is known of a request, for its log line and the metrics. */
interface RequestRecord {
  readonly decided: (decision: HttpDecision, asked: Asked) => void;
  readonly target: (chosen: ForwardTarget) => void;
  readonly problem: (word: ForwardProblem, error?: Error) => void;
  readonly end: (status: number) => void;
}

const defaultPort = { http: 80, https: 443 } as const;

/**
 * What a request asks for; else the status of its refusal: 400 for no or several hosts, a target of another form, a length
 * in doubt (RFC 9112, 3.2 and 6.3), 501 for CONNECT and for codings other than chunked (RFC 9112, 6.1).
 */
function readAsked(request: ClientRequest): Asked | 400 | 501 {
  const { rawHeaders, url = '', httpVersion } = request;
  let host: string | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const isHost = name === ':authority' || (name.length === 4 && name.toLowerCase() === 'host');
    if (!isHost) continue;
    const value = rawHeaders[i + 1] ?? '';
    // HTTP/2 may have both, if they are the same (RFC 9113, 8.3.1).
    if (host !== undefined && (host !== value || request.httpVersionMajor === 1)) return 400;
    host = value;
  }
  if (request.method === 'CONNECT') return 501;
  const codingRefusal = refusedCoding(request);
  if (codingRefusal !== undefined) return codingRefusal;
  if (url.includes('#')) return 400;
  // HTTP/1.0 knows no Host: such a request is for rules without one.
  if (host === undefined && httpVersion === '1.0') host = '';
  if (url.startsWith('/')) {
    if (host === undefined || !(isHost(host) || (httpVersion === '1.0' && host === ''))) return 400;
    return { host, path: url };
  }
  // The absolute form: it goes before the header.
  const [, authority = '', path = ''] = /^https?:\/\/([^/?]+)(.*)$/i.exec(url) ?? [];
  if (!isHost(authority)) return 400;
  return { host: authority, path: path.startsWith('/') ? path : `/${path}` };
}

/** Undefined: the body has no coding, or is in chunks. */
function refusedCoding({ headers, httpVersion }: ClientRequest): 400 | 501 | undefined {
  const coding = headers['transfer-encoding']?.toLowerCase();
  if (coding === undefined || httpVersion === '2.0') return undefined;
  // Its length is in doubt (RFC 9112, 6.1).
  if (httpVersion === '1.0') return 400;
  if (coding === 'chunked') return undefined;
  const codings = coding.split(',').map((one) => one.trim());
  return codings.at(-1) === 'chunked' && codings.indexOf('chunked') === codings.length - 1 ? 501 : 400;
}

/** A name or address, and a port: no user, no blanks, no list. */
function isHost(host: string): boolean {
  return /^(?:[\w.~%!$&'()*+;=-]{1,255}|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i.test(host);
}

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

function portOf(host: string): number | undefined {
  const [, port = ''] = /:(\d+)$/.exec(host) ?? [];
  return port === '' ? undefined : Number(port);
}

function withoutQuery(path: string): string {
  const query = path.indexOf('?');
  return query === -1 ? path : path.slice(0, query);
}

function secureUrl({ host, path }: Asked): string {
  return `https://${plainHost(host)}${path}`;
}

function lastOfConnection(response: ClientResponse): void {
  if (!response.headersSent) response.setHeader('connection', 'close');
}
