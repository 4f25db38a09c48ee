import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Clock } from '../../client/clock.ts';
import { httpsServer } from '../../host/http-server.ts';
import { flowsPath } from '../../network/flows/agents.ts';
import type { Flow, FlowNews } from '../../network/flows/flow.ts';
import { isDNS1123Label } from '../../objects/names.ts';
import type { RequestTarget } from '../../objects/formats/go-url.ts';
import { errorMessage } from '../../objects/status.ts';
import type { CertificatePair } from '../../tls/certificates.ts';
import { type FlowAccess, TooManyTokens } from './access.ts';
import type { FlowCollector } from './flow-collector.ts';

/** At a time. */
const maxViewers = 16;
const maxConnections = 64;
/** Bytes that a viewer may leave unread; beyond, it is cut. */
const maxUnread = 4 * 1024 * 1024;
/** Batches that wait for the API server to say who may see them; beyond, their flows are counted. */
const maxWaiting = 25;
/** A token may be long. */
const maxHeadBytes = 32 * 1024;
const headMs = 10_000;
/** Between two lines at most: a viewer knows that the agent lives, and the agent asks again whether it may look. */
const beatMs = 10_000;
const usualLast = 200;
const mostLast = 10_000;

export interface FlowServerOptions {
  readonly certificate: CertificatePair;
  readonly access: FlowAccess;
  readonly collector: Pick<FlowCollector, 'watch'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What a request asks for. */
interface Asked {
  readonly namespace: string | undefined;
  readonly all: boolean;
  readonly last: number;
}

/** An answer that is none. */
interface Refusal {
  readonly status: number;
  readonly message: string;
}

/**
 * Tells flows of this node to those who may look: `GET /flows` with a bearer token, answered by lines of JSON until the
 * viewer goes away: `{"known":[…]}`, then `{"flows":[…],"lost":0}` for what comes, ten seconds apart at most.
 */
export class FlowServer {
  readonly #options: FlowServerOptions;
  #viewers = 0;

  constructor(options: FlowServerOptions) {
    this.#options = options;
  }

  /** A server for one address. */
  open(): Server {
    const { certificate, key } = this.#options.certificate;
    const server = httpsServer(
      {
        ...{ cert: certificate, key, minVersion: 'TLSv1.2', handshakeTimeout: headMs },
        ...{ maxHeaderSize: maxHeadBytes, headersTimeout: headMs, requestTimeout: headMs },
      },
      (request, response, target) => this.#answer(request, response, target),
    );
    server.maxConnections = maxConnections;
    return server;
  }

  async #answer(request: IncomingMessage, response: ServerResponse, target: RequestTarget): Promise<void> {
    // A request has no body, and a connection one request: what else comes is not read.
    response.setHeader('Connection', 'close');
    const asked = readRequest(request, target);
    if ('status' in asked) {
      refuse(response, asked);
      return;
    }
    const token = bearerToken(request);
    if (token === undefined) {
      refuse(response, { status: 401, message: 'a bearer token is needed' });
      return;
    }
    const refusal = await this.#admit(token);
    if (refusal !== undefined) {
      refuse(response, refusal);
      return;
    }
    if (this.#viewers >= maxViewers) {
      refuse(response, { status: 429, message: `${maxViewers} look at the flows of this node already` });
      return;
    }
    this.#viewers++;
    try {
      await this.#show(response, token, asked);
    } finally {
      this.#viewers--;
    }
  }

  /** Whether the user of a token may look. @returns why not. */
  async #admit(token: string): Promise<Refusal | undefined> {
    const { access, log } = this.#options;
    try {
      const user = await access.userOf(token);
      if (user === undefined) return { status: 401, message: 'the token is not valid' };
      if (await access.mayLook(user)) return undefined;
      const message = `the user "${user.name}" may not get ${flowsPath}: a ClusterRole with nonResourceURLs [${flowsPath}] allows it`;
      return { status: 403, message };
    } catch (error) {
      if (error instanceof TooManyTokens) return { status: 429, message: error.message };
      log.warn(
        { reason: 'FlowsNotReviewed', err: error },
        'cannot ask the API server who may look at flows: nobody new may',
      );
      return { status: 503, message: `the API server does not say who may look: ${errorMessage(error)}` };
    }
  }

  async #show(response: ServerResponse, token: string, { namespace, all, last }: Asked): Promise<void> {
    const { collector, log } = this.#options;
    const filter = { namespace, all, from: undefined, to: undefined, outcomes: undefined, by: undefined };
    const viewer = new Viewer(response, token, this.#options);
    const closed = new Promise<void>((resolve) => {
      response.once('close', resolve);
      if (response.destroyed) resolve();
    });
    let looking: Awaited<ReturnType<FlowCollector['watch']>>;
    try {
      looking = await collector.watch(filter, (news) => viewer.tell(news));
    } catch (error) {
      const message = `flows cannot be had on this node: ${errorMessage(error)}`;
      log.warn({ reason: 'NoFlows', err: error }, message);
      refuse(response, { status: 500, message });
      return;
    }
    try {
      viewer.begin(last === 0 ? [] : looking.known.slice(-last));
      await closed;
    } finally {
      viewer.end();
      await looking.end();
    }
  }
}

/** One who looks, from its admission on. */
class Viewer {
  readonly #response: ServerResponse;
  readonly #token: string;
  readonly #options: FlowServerOptions;
  readonly #waiting: FlowNews[] = [];
  /** Flows that came while too much waited. */
  #untold = 0;
  #hasBegun = false;
  #isWriting = false;
  #lost = 0;
  #beat: { cancel(): void } | undefined;

  constructor(response: ServerResponse, token: string, options: FlowServerOptions) {
    this.#response = response;
    this.#token = token;
    this.#options = options;
  }

  /** Writes what is known, then what has come since. */
  begin(known: readonly Flow[]): void {
    this.#hasBegun = true;
    this.#isWriting = true;
    this.#response.writeHead(200, { 'Content-Type': 'application/x-ndjson', 'Cache-Control': 'no-store' });
    void this.#write(known, 'known').finally(() => {
      this.#isWriting = false;
      this.#drain();
    });
  }

  tell(news: FlowNews): void {
    if (this.#waiting.length >= maxWaiting) this.#untold += news.flows.length;
    else this.#waiting.push(news);
    this.#drain();
  }

  end(): void {
    this.#beat?.cancel();
  }

  #drain(): void {
    if (this.#isWriting || !this.#hasBegun || this.#response.destroyed) return;
    const news = this.#waiting.shift();
    if (news === undefined) return;
    this.#isWriting = true;
    this.#lost = news.lost;
    void this.#write(news.flows, 'flows').finally(() => {
      this.#isWriting = false;
      this.#drain();
    });
  }

  /** Writes those that its user may see; what fails ends the answer. */
  async #write(flows: readonly Flow[], member: 'known' | 'flows'): Promise<void> {
    const { access, clock } = this.#options;
    try {
      const visible = await this.#visible(access, flows);
      if (visible === undefined) {
        this.#fail('the user may not look at flows any more');
        return;
      }
      const lost = this.#lost + this.#untold;
      this.#line(member === 'known' ? { known: visible } : { flows: visible, lost });
      this.#beat?.cancel();
      this.#beat = clock.after(beatMs, () => this.tell({ flows: [], lost: this.#lost }));
    } catch (error) {
      this.#fail(errorMessage(error));
    }
  }

  /** Undefined where the user may not look any more. A server that does not answer takes no right away. */
  async #visible(access: FlowAccess, flows: readonly Flow[]): Promise<readonly Flow[] | undefined> {
    try {
      const user = await access.userOf(this.#token);
      if (user === undefined || !(await access.mayLook(user))) return undefined;
      return await access.visibleTo(user, flows);
    } catch {
      this.#untold += flows.length;
      return [];
    }
  }

  #line(value: object): void {
    const response = this.#response;
    if (response.destroyed) return;
    response.write(`${JSON.stringify(value)}\n`);
    if (response.writableLength > maxUnread) response.destroy();
  }

  #fail(error: string): void {
    if (!this.#response.destroyed) this.#response.end(`${JSON.stringify({ error })}\n`);
  }
}

function readRequest(
  { method }: IncomingMessage,
  { pathname, searchParams: query }: RequestTarget,
): Asked | Refusal {
  if (pathname !== flowsPath) return { status: 404, message: '404 page not found' };
  if (method !== 'GET') return { status: 405, message: 'method not allowed' };
  const unknown = [...query.keys()].find((name) => !['namespace', 'all', 'last'].includes(name));
  const namespace = query.get('namespace') ?? undefined;
  const last = query.get('last') ?? String(usualLast);
  if (unknown !== undefined) return { status: 400, message: 'the query takes namespace, all and last' };
  if (namespace !== undefined && isDNS1123Label(namespace).length > 0)
    return { status: 400, message: 'namespace is not the name of a namespace' };
  if (!/^\d{1,5}$/.test(last) || Number(last) > mostLast)
    return { status: 400, message: `last is a number up to ${mostLast}` };
  return { namespace, all: query.get('all') === 'true', last: Number(last) };
}

function bearerToken({ headers: { authorization = '' } }: IncomingMessage): string | undefined {
  const [scheme = '', token = ''] = authorization.trim().split(' ', 2);
  return scheme.toLowerCase() === 'bearer' && token !== '' ? token : undefined;
}

function refuse(response: ServerResponse, { status, message }: Refusal): void {
  if (response.destroyed) return;
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
    ...(status === 401 ? { 'WWW-Authenticate': 'Bearer realm="servicenet-flows"' } : {}),
    ...(status === 429 ? { 'Retry-After': '5' } : {}),
  });
  response.end(`${message}\n`);
}
