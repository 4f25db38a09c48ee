import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createSecureContext } from 'node:tls';
import { Agent, request } from 'undici';
import type { RefuseRequest } from '../../../src/apiserver/http/exchange.ts';
import type { FastClock } from './fast-clock.ts';
import { LateCopies } from './late-copies.ts';
import { senderHeader } from './process.ts';
import type { Choices } from './random.ts';
import type { Trace } from './trace.ts';

/** What may happen to a request. */
type Fate =
  | 'pass'
  /** The connection ends before the server hears of it. */
  | 'drop'
  /** The server does it, and the answer is lost. */
  | 'lose-answer'
  /** Half of the answer comes. */
  | 'cut'
  /** The server gets it twice, and the first or the second answer comes. */
  | 'twice'
  /** It is answered, and the server gets it again: after a while, or as late as it can be. */
  | 'late-copy'
  /** The server never hears of it: 409, 410, 429, 500, 503. */
  | 'refuse'
  /** The same, with 409. */
  | 'conflict';

type Answer = Awaited<ReturnType<typeof request>>;

interface Refusal {
  readonly code: number;
  readonly reason: string;
}

const conflict: Refusal = { code: 409, reason: 'Conflict' };
const expired: Refusal = { code: 410, reason: 'Expired' };
const busy: readonly Refusal[] = [
  { code: 429, reason: 'TooManyRequests' },
  { code: 500, reason: 'InternalError' },
  { code: 503, reason: 'ServiceUnavailable' },
];

/** Between clients and an API server, as a hostile network would be, until {@link calm}. */
export class HostileProxy {
  /** What the clients changed: writes that the server accepted, with their paths and the beginning of their bodies. */
  readonly written: string[] = [];
  readonly copies: LateCopies;
  /** What it has done to the clients, by name, and how often: a simulation without faults shows nothing. */
  readonly faults = new Map<string, number>();
  /** The revisions, by path, that were said to be too old: a server would not know them again later. */
  readonly #forgotten = new Map<string, number>();
  /** Requests so far, and the highest one that the server has got: a lower one is overtaken. */
  #requests = 0;
  #latest = 0;
  #upstream: { url: string; token: string; agent: Agent } | undefined;
  readonly #server: Server;
  readonly #choices: Choices;
  readonly #delays: Choices;
  readonly #trace: Trace;
  readonly #clock: FastClock;
  readonly #pending = new Set<Promise<void>>();
  #isHostile = true;

  private constructor(choices: Choices, clock: FastClock, trace: Trace) {
    this.#clock = clock;
    this.#choices = choices;
    this.#trace = trace;
    this.copies = new LateCopies(choices.fork(), clock);
    this.#delays = choices.fork();
    this.#server = createServer((incoming, outgoing) => {
      const work = this.#serve(incoming, outgoing)
        .catch(() => {
          outgoing.destroy();
        })
        .finally(() => this.#pending.delete(work));
      this.#pending.add(work);
    });
  }

  /** Writes that the server accepted. */
  get writes(): number {
    return this.written.length;
  }

  static async start(choices: Choices, clock: FastClock, trace: Trace): Promise<HostileProxy> {
    const proxy = new HostileProxy(choices, clock, trace);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('not listening');
    return `http://127.0.0.1:${address.port}`;
  }

  /** What the server itself puts off, as kube-apiserver does for a moment after a definition was created. */
  readonly putOff: RefuseRequest = () => {
    if (!this.#isHostile || !this.#delays.chance(0.02)) return undefined;
    this.note('put off by the server');
    return { code: this.#delays.chance(0.5) ? 429 : 503, retryAfterSeconds: 0 };
  };

  /** Where requests go from now on; undefined: nowhere, the server is away. */
  async connect(upstream: { url: string; token: string; ca: string } | undefined): Promise<void> {
    const old = this.#upstream;
    this.#upstream =
      upstream === undefined
        ? undefined
        : {
            ...upstream,
            agent: new Agent({
              // One for all connections: they are many.
              connect: { secureContext: createSecureContext({ ca: upstream.ca }) },
              bodyTimeout: 0,
              // A watch keeps one for itself, and the garbage collector watches every kind.
              connections: 1024,
            }),
          };
    await old?.agent.destroy();
  }

  /** From now on every request is answered, once. What is on its way for the second time arrives first. */
  async calm(): Promise<void> {
    this.#isHostile = false;
    await this.copies.arrive();
  }

  /** Counts what was done to the clients. */
  note(fault: string): void {
    this.faults.set(fault, (this.faults.get(fault) ?? 0) + 1);
  }

  async close(): Promise<void> {
    await this.connect(undefined);
    await this.copies.arrive();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    await Promise.all(this.#pending);
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const number = ++this.#requests;
    const fate = this.#fate(incoming);
    if (!['pass', 'refuse', 'conflict', 'cut'].includes(fate)) this.note(fate);
    const sender = String(incoming.headers[senderHeader]);
    this.#trace?.(
      `#${number} ${sender} ${incoming.method ?? ''} ${incoming.url ?? ''} ${fate} ${body.toString()}`,
    );
    // A long wait lets later requests overtake this one, those of a client that is gone, too.
    if (this.#isHostile)
      await this.#clock.pause(this.#choices.chance(0.1) ? this.#choices.below(60) : this.#choices.below(5));
    if (number < this.#latest) this.note('overtaken');
    this.#latest = Math.max(number, this.#latest);
    if (fate === 'drop') {
      outgoing.destroy();
      return;
    }
    if (fate === 'refuse' || fate === 'conflict') {
      this.#refuse(incoming, outgoing, fate);
      return;
    }
    if (this.#isForgotten(incoming)) {
      this.#answerStatus(outgoing, expired);
      return;
    }
    const first = await this.#forward(incoming, body);
    const second = fate === 'twice' ? await this.#forward(incoming, body) : undefined;
    const answer = second !== undefined && this.#choices.chance(0.5) ? second : first;
    if (answer !== first) await first.body.dump();
    else await second?.body.dump();
    this.#trace?.(`#${number} answered ${answer.statusCode}`);
    if (fate === 'lose-answer') {
      outgoing.destroy();
      await answer.body.dump().catch(() => undefined);
      return;
    }
    if (fate === 'late-copy') await this.#answerWhole(incoming, outgoing, body, answer, number);
    else await this.#answer(incoming, outgoing, answer, fate, number);
  }

  /** Answers, and lets the request arrive a second time. */
  async #answerWhole(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    body: Buffer,
    answer: Answer,
    number: number,
  ): Promise<void> {
    const told = await answer.body.text();
    outgoing.writeHead(answer.statusCode, headersOf(answer));
    outgoing.end(told);
    const { method = '' } = incoming;
    const what = `${method} ${pathOf(incoming)} ${body.toString('utf8', 0, 300)}`;
    const first = { code: answer.statusCode, told };
    this.copies.send({ method, what, first, isConditional: isWorkOf(incoming) }, async () => {
      const copy = await this.#forward(incoming, body);
      this.#trace?.(`#${number} again, answered ${copy.statusCode}`);
      return { code: copy.statusCode, told: await copy.body.text() };
    });
  }

  #fate(incoming: IncomingMessage): Fate {
    if (!this.#isHostile) return 'pass';
    const roll = this.#choices.next();
    const isWrite = incoming.method !== 'GET';
    if (roll < 0.04) return 'drop';
    if (roll < 0.08) return 'lose-answer';
    if (roll < 0.11) return 'cut';
    if (roll < 0.17) return 'refuse';
    if (roll < 0.19 && isWrite) return 'twice';
    if (roll < 0.21 && isWrite) return 'late-copy';
    // Most requests renew leases: those that matter meet more of it.
    if (roll < 0.29 && isWorkOf(incoming)) return 'conflict';
    if (roll < 0.5 && isWorkOf(incoming)) return 'late-copy';
    return 'pass';
  }

  #refuse(incoming: IncomingMessage, outgoing: ServerResponse, fate: 'refuse' | 'conflict'): void {
    const fitting = incoming.method === 'GET' ? [expired, ...busy] : [conflict, ...busy];
    const refusal = fate === 'conflict' ? conflict : this.#choices.pick(fitting);
    this.note(String(refusal.code));
    if (refusal === expired) this.#forget(incoming, watchedFrom(incoming));
    this.#answerStatus(outgoing, refusal);
  }

  #answerStatus(outgoing: ServerResponse, { code, reason }: Refusal): void {
    // With Retry-After the transport asks again, without it the refusal reaches the caller.
    const putsOff = (code === 429 || code === 503) && (this.faults.get(String(code)) ?? 0) % 2 === 0;
    const headers = putsOff ? { 'retry-after': '0' } : {};
    outgoing.writeHead(code, { 'content-type': 'application/json', ...headers });
    outgoing.end(JSON.stringify(statusOf(code, reason)));
  }

  /** From now on a watch of this path from this revision, or an older one, is answered 410. */
  #forget(incoming: IncomingMessage, revision: number): void {
    const path = pathOf(incoming);
    this.#forgotten.set(path, Math.max(revision, this.#forgotten.get(path) ?? 0));
  }

  #isForgotten(incoming: IncomingMessage): boolean {
    const from = watchedFrom(incoming);
    return from > 0 && from <= (this.#forgotten.get(pathOf(incoming)) ?? 0);
  }

  async #forward(incoming: IncomingMessage, body: Buffer) {
    const upstream = this.#upstream;
    if (upstream === undefined) {
      this.note('server away');
      throw new Error('the server is away');
    }
    const { 'content-type': contentType, accept, 'user-agent': userAgent } = incoming.headers;
    const answer = await request(upstream.url + (incoming.url ?? ''), {
      method: methodOf(incoming.method),
      dispatcher: upstream.agent,
      headers: {
        authorization: `Bearer ${upstream.token}`,
        ...(contentType === undefined ? {} : { 'content-type': contentType }),
        ...(accept === undefined ? {} : { accept }),
        ...(userAgent === undefined ? {} : { 'user-agent': userAgent }),
      },
      ...(body.length === 0 ? {} : { body }),
    });
    answer.body.on('error', () => undefined);
    if (isWorkOf(incoming) && answer.statusCode < 300)
      this.written.push(`${incoming.method ?? ''} ${pathOf(incoming)} ${body.toString('utf8', 0, 500)}`);
    return answer;
  }

  async #answer(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    answer: Answer,
    fate: Fate,
    number: number,
  ): Promise<void> {
    outgoing.on('close', () => answer.body.destroy());
    outgoing.writeHead(answer.statusCode, headersOf(answer));
    const isWatch = incoming.url?.includes('watch=true') === true;
    if (isWatch) outgoing.flushHeaders();
    let cutAfter = fate === 'cut' ? 1 + this.#choices.below(4) : Infinity;
    for await (const chunk of answer.body) {
      if (!Buffer.isBuffer(chunk)) continue;
      if (outgoing.destroyed) return;
      if (isWatch) this.#trace?.(`#${number} event of ${pathOf(incoming)}: ${chunk.toString()}`);
      if (isWatch && this.#isHostile) {
        await this.#clock.pause(this.#choices.below(4));
        if (this.#choices.chance(0.02)) cutAfter = 1;
        if (this.#choices.chance(0.02) && chunk.at(-1) === 10) {
          this.note('410 in a watch');
          outgoing.write(chunk);
          this.#forget(incoming, lastRevisionIn(chunk));
          outgoing.end(`${JSON.stringify({ type: 'ERROR', object: statusOf(410, 'Expired') })}\n`);
          return;
        }
      }
      if (--cutAfter <= 0 || (fate === 'cut' && !isWatch)) {
        this.note(isWatch ? 'cut in a watch' : 'cut in an answer');
        outgoing.write(chunk.subarray(0, chunk.length >> 1));
        outgoing.destroy();
        return;
      }
      outgoing.write(chunk);
    }
    outgoing.end();
  }
}

/** What clients look at in the head of an answer. */
function headersOf({ headers }: Answer): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const name of ['content-type', 'retry-after']) {
    const value = headers[name];
    if (typeof value === 'string') passed[name] = value;
  }
  return passed;
}

function methodOf(method: string | undefined): 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' {
  if (method === 'POST' || method === 'PUT' || method === 'PATCH' || method === 'DELETE') return method;
  return 'GET';
}

function statusOf(code: number, reason: string): object {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message: reason, reason, code };
}

function isWorkOf({ method = '', url = '' }: IncomingMessage): boolean {
  return isWork(method, url);
}

/** Whether a request is a write; Leases and Events are no work of a controller. */
export function isWork(method: string, path: string): boolean {
  return method !== 'GET' && !/\/(leases|events)\b/.test(path);
}

function pathOf(incoming: IncomingMessage): string {
  return incoming.url?.split('?', 1)[0] ?? '';
}

/** The revision that a watch resumes from; 0: it is no watch, or one that begins with a list. */
function watchedFrom(incoming: IncomingMessage): number {
  const query = new URL(incoming.url ?? '', 'http://proxy').searchParams;
  return query.get('watch') === 'true' ? Number(query.get('resourceVersion') ?? '0') : 0;
}

/** The highest revision of the events in a piece of a watch. */
function lastRevisionIn(chunk: Buffer): number {
  const all = chunk.toString().matchAll(/"resourceVersion":"(\d+)"/g);
  return Math.max(0, ...Array.from(all, ([, digits]) => Number(digits)));
}
