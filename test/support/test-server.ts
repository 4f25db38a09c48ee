import { setImmediate } from 'node:timers/promises';
import { StatusError } from '../../src/objects/status.ts';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import { ConnectionError, type Query, type Transport } from '../../src/client/transport.ts';

/** What a request came to: an object or a Status, whatever the code. */
export interface Answer {
  readonly status: number;
  readonly body: JsonRecord;
  /** Texts of `Warning` headers. */
  readonly warnings: readonly string[];
}

interface Sent {
  readonly body?: unknown;
  readonly query?: Query;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request and answers also what is an error to the transport. */
export async function call(
  client: Transport,
  method: string,
  path: string,
  sent: Sent = {},
): Promise<Answer> {
  try {
    const response = await client.request(method, path, sent);
    const body = response.json();
    const warnings = warningsOf(response.headers['warning']);
    return { status: response.status, body: isRecord(body) ? body : {}, warnings };
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return { status: error.code, body: { ...error.toStatus() }, warnings: [] };
  }
}

/** Asks until the answer is no longer 404. The test's timeout bounds it. */
export async function untilFound(client: Transport, path: string): Promise<void> {
  while ((await call(client, 'GET', path)).status === 404) await setImmediate();
}

/** Reads a watch until so many events have come. Fails after ten seconds. */
export async function watchEvents(
  client: Transport,
  path: string,
  query: Query,
  count: number,
): Promise<JsonRecord[]> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), 10_000);
  const events: JsonRecord[] = [];
  let text = '';
  try {
    const stream = await client.stream(path, { query: { watch: true, ...query }, signal: controller.signal });
    for await (const chunk of stream.chunks) {
      text += chunk.toString();
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) {
        const event: unknown = JSON.parse(line);
        if (isRecord(event)) events.push(event);
      }
      if (events.length >= count) break;
    }
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error;
    throw new Error(`a watch had ${events.length} of ${count} events`, { cause: error });
  } finally {
    clearTimeout(timer);
    controller.abort();
  }
  return events.slice(0, count);
}

function warningsOf(header: string | string[] | undefined): string[] {
  const lines = header === undefined ? [] : typeof header === 'string' ? [header] : header;
  return lines.map((line) => /^299 - "(.*)"$/s.exec(line)?.[1]?.replaceAll('\\"', '"') ?? line);
}
