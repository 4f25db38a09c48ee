import { Agent } from 'undici';
import type { StepRequest } from './transcript.ts';

/** Where a server is. `ca` is PEM; without it the certificate is not checked (loopback only). */
export interface ServerAddress {
  readonly url: string;
  readonly token: string;
  readonly ca?: string | undefined;
}

/** An answer as it came: `body` is JSON where the server says so, else text; absent when empty. */
export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly contentType: string;
  readonly warning?: string;
}

/** How long to read a watch. */
interface WatchLength {
  readonly milliseconds: number;
  /** No more events than these. */
  readonly count?: number | undefined;
  /** Events that the recorded server sent. */
  readonly expected: number;
}

const verbs = ['get', 'head', 'options', 'post', 'put', 'patch', 'delete'] as const;
const patchTypes = new Map([
  ['json', 'application/json-patch+json'],
  ['merge', 'application/merge-patch+json'],
  ['strategic', 'application/strategic-merge-patch+json'],
  ['apply', 'application/apply-patch+yaml'],
]);
/** No recorded answer takes longer than a watch of 6 s: more is a server that hangs, whatever else the machine does. */
const deadlineMs = 60_000;

/** HTTPS with keep-alive to one server. Paths go out as they are: no URL parser tidies them up. */
export class Connection {
  readonly #origin: string;
  readonly #token: string;
  readonly #agent: Agent;

  constructor({ url, token, ca }: ServerAddress) {
    this.#origin = new URL(url).origin;
    this.#token = token;
    this.#agent = new Agent({
      connections: 64,
      connect: ca === undefined ? { rejectUnauthorized: false } : { ca },
    });
  }

  /** Sends the one verb that a resolved step holds. */
  async send(request: StepRequest): Promise<Answer> {
    const verb = verbs.find((candidate) => request[candidate] !== undefined);
    if (verb === undefined) throw new Error('a step without a verb');
    const { statusCode, headers, body } = await this.#agent.request({
      origin: this.#origin,
      path: request[verb] ?? '',
      method: verb.toUpperCase(),
      headers: this.#headers(request),
      body: bodyOf(request) ?? null,
      signal: AbortSignal.timeout(deadlineMs),
    });
    const text = await body.text();
    const contentType = headerText(headers['content-type']) ?? '';
    const warning = headerText(headers['warning']);
    return {
      status: statusCode,
      ...(text === '' ? {} : { body: parsed(text, contentType) }),
      contentType,
      ...(warning === undefined ? {} : { warning }),
    };
  }

  /**
   * Reads a watch until `count` events came, `milliseconds` are over or the server ends it; on, at most a minute, while
   * less than the `expected` number has come, for a busy machine loses no events. An answer other than 200 is one
   * event: its body.
   */
  async watch(
    path: string,
    headers: Record<string, string> | undefined,
    { milliseconds, count = Infinity, expected }: WatchLength,
  ): Promise<{ status: number; events: unknown[] }> {
    const stop = new AbortController();
    let over = false;
    const events: unknown[] = [];
    const stopWhenOver = (): void => {
      if (over && events.length >= expected) stop.abort();
    };
    const timer = setTimeout(() => {
      over = true;
      stopWhenOver();
    }, milliseconds);
    const deadline = setTimeout(() => stop.abort(), deadlineMs);
    let status = 0;
    try {
      const answer = await this.#agent.request({
        origin: this.#origin,
        path,
        method: 'GET',
        headers: this.#headers({ get: path, headers }),
        signal: stop.signal,
      });
      status = answer.statusCode;
      if (status !== 200) {
        return {
          status,
          events: [parsed(await answer.body.text(), headerText(answer.headers['content-type']) ?? '')],
        };
      }
      let rest = '';
      answer.body.setEncoding('utf8');
      for await (const chunk of answer.body) {
        const lines = (rest + String(chunk)).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) if (line.trim() !== '') events.push(parsed(line, 'application/json'));
        if (events.length >= count) break;
        stopWhenOver();
      }
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    } finally {
      clearTimeout(timer);
      clearTimeout(deadline);
      stop.abort();
    }
    return { status, events: events.slice(0, count) };
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #headers(request: StepRequest): Record<string, string> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.#token}` };
    if (request.body !== undefined || request.raw !== undefined) headers['content-type'] = 'application/json';
    const { type } = request;
    if (type !== undefined) headers['content-type'] = patchTypes.get(type) ?? type;
    for (const [name, value] of Object.entries(request.headers ?? {})) headers[name.toLowerCase()] = value;
    // An empty value is the recorder's way to say that the header is not sent.
    return Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ''));
  }
}

function bodyOf(request: StepRequest): string | undefined {
  if (request.raw !== undefined) return request.raw;
  return request.body === undefined ? undefined : JSON.stringify(request.body);
}

function parsed(text: string, contentType: string): unknown {
  if (!contentType.startsWith('application/json')) return text;
  try {
    return JSON.parse(text);
  } catch {
    return `(not JSON, though it says ${contentType}) ${text}`;
  }
}

function headerText(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}
