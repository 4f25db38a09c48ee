import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import type { Clock } from '../client/clock.ts';
import type { HttpDecision, HttpTable } from '../network/http/http-table.ts';
import { type HttpRule, plainHost } from '../network/http/rules.ts';
import { LogThrottle } from '../telemetry/log.ts';
import type { ForwardTarget } from './backends.ts';
import {
  answerItself,
  type ClientRequest,
  type ClientResponse,
  type Forward,
  type ForwardProblem,
} from './forward.ts';
import { type ClientConnection, type ForwardedPolicy, requestHeaders } from './headers.ts';
import type { RouterMetrics } from './router-metrics.ts';
import type { Tunnels } from './tunnels.ts';

export interface RouterServingOptions {
  readonly table: HttpTable;
  readonly forward: Forward;
  readonly tunnels: Tunnels;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether each request is logged. */
  readonly accessLog: boolean;
  readonly forwardedPolicy: ForwardedPolicy;
  readonly metrics: RouterMetrics;
}

/** The target that a request names, read once: the backend gets what was decided on. */
interface Asked {
  /** As the client wrote it, with its port. */
  readonly host: string;
  /** With the query. */
  readonly path: string;
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
  serve(request: ClientRequest, response: ClientResponse, scheme: 'http' | 'https'): void {
    const { forward, table } = this.#options;
    const record = this.#record(request);
    response.on('close', () => record.end(response.headersSent ? response.statusCode : 499));
    if (request.httpVersionMajor === 1) {
      if (this.#isDraining) lastOfConnection(response);
      this.#responses.add(response);
      response.on('close', () => this.#responses.delete(response));
      response.on('finish', () => (this.#isEnding ? request.socket.end() : undefined));
    }
    const asked = readAsked(request);
    if (asked === undefined) {
      answerItself(response, 400, 'BadRequest');
      return;
    }
    const decision = table.resolve({ scheme, host: asked.host, path: withoutQuery(asked.path) });
    record.decided(decision, asked);
    switch (decision.kind) {
      case 'refuse':
        answerItself(response, decision.status, decision.reason);
        return;
      case 'redirect':
        answerItself(response, decision.status, 'Redirect', { location: secureUrl(asked) });
        return;
      case 'forward':
        forward.start({
          ...{ request, response, rule: decision.rule, path: asked.path },
          headers: this.#headers(request, asked.host, scheme, decision.rule),
          onTarget: record.target,
          onProblem: record.problem,
        });
    }
  }

  /** Answers a request to change the protocol. Only the status of a refusal is sent. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, scheme: 'http' | 'https'): void {
    // Node.js takes its own listener off a socket that it hands over: without another, a reset ends the process.
    socket.on('error', () => socket.destroy());
    const { table, tunnels } = this.#options;
    const record = this.#record(request);
    let status = 499;
    socket.once('close', () => record.end(status));
    const asked = readAsked(request);
    const decision =
      asked === undefined
        ? undefined
        : table.resolve({ scheme, host: asked.host, path: withoutQuery(asked.path) });
    if (asked === undefined || decision?.kind !== 'forward') {
      status = decision === undefined || decision.kind === 'forward' ? 400 : decision.status;
      if (decision !== undefined && asked !== undefined) record.decided(decision, asked);
      const location =
        decision?.kind === 'redirect' && asked !== undefined ? `Location: ${secureUrl(asked)}\r\n` : '';
      socket.end(`HTTP/1.1 ${status} \r\n${location}Connection: close\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    record.decided(decision, asked);
    const { rule } = decision;
    const headers = this.#headers(request, asked.host, scheme, rule);
    headers.push('Connection', 'Upgrade', 'Upgrade', request.headers.upgrade ?? '');
    void tunnels.upgrade({
      ...{ request, socket, head, rule, path: asked.path, headers },
      onTarget: record.target,
      onStatus: (sent) => {
        status = sent;
      },
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

  #headers(request: ClientRequest, host: string, scheme: 'http' | 'https', rule: HttpRule): string[] {
    const { remoteAddress = '' } = request.socket;
    const address = remoteAddress.startsWith('::ffff:') ? remoteAddress.slice(7) : remoteAddress;
    const client: ClientConnection = {
      address,
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

  #record(request: ClientRequest) {
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

const defaultPort = { http: 80, https: 443 } as const;

/** Undefined for a request that RFC 9112 (3.2) has refused: no or several hosts, a target of another form. */
function readAsked(request: ClientRequest): Asked | undefined {
  const { rawHeaders, url = '' } = request;
  let host: string | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const isHost = name === ':authority' || (name.length === 4 && name.toLowerCase() === 'host');
    if (!isHost) continue;
    const value = rawHeaders[i + 1] ?? '';
    // HTTP/2 may have both, if they are the same (RFC 9113, 8.3.1).
    if (host !== undefined && (host !== value || request.httpVersionMajor === 1)) return undefined;
    host = value;
  }
  if (url.includes('#') || request.method === 'CONNECT') return undefined;
  if (url.startsWith('/')) return host === undefined || !isHost(host) ? undefined : { host, path: url };
  if (url === '*') return undefined;
  // The absolute form: it goes before the header.
  const [, authority = '', path = ''] = /^https?:\/\/([^/?]+)(.*)$/i.exec(url) ?? [];
  if (!isHost(authority)) return undefined;
  return { host: authority, path: path.startsWith('/') ? path : `/${path}` };
}

/** A name or address, and a port: no user, no blanks, no list. */
function isHost(host: string): boolean {
  return /^(?:[\w.~%!$&'()*+;=-]{1,255}|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i.test(host);
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
