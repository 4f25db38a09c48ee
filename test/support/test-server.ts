import { setImmediate } from 'node:timers/promises';
import { StatusError } from '../../src/objects/status.ts';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import { textAt } from '../../src/objects/json.ts';
import { ConnectionError, type QueryParameters, type Transport } from '../../src/client/transport.ts';

/** What a request came to: an object or a Status, whatever the code. */
export interface Answer {
  readonly status: number;
  readonly body: JsonRecord;
  /** Texts of `Warning` headers. */
  readonly warnings: readonly string[];
}

interface Sent {
  readonly body?: unknown;
  readonly query?: QueryParameters;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request once, and answers also what is an error to the transport. */
export async function call(
  client: Transport,
  method: string,
  path: string,
  sent: Sent = {},
): Promise<Answer> {
  try {
    const response = await client.request(method, path, { maxRetries: 0, ...sent });
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

/** The revision of a list, for a watch that misses nothing of what comes next. */
export async function revisionOf(client: Transport, path: string): Promise<string> {
  return textAt(
    (await call(client, 'GET', path, { query: { limit: 1 } })).body,
    'metadata',
    'resourceVersion',
  );
}

/** Reads a watch until so many events have come, or the server ends it. Fails after a minute. */
export async function watchEvents(
  client: Transport,
  path: string,
  query: QueryParameters,
  count: number,
): Promise<JsonRecord[]> {
  const events: JsonRecord[] = [];
  await watchUntil(client, path, query, (event) => events.push(event) >= count);
  return events;
}

/**
 * Reads a watch until an event meets the condition, or the server ends it. A watch from a {@link revisionOf} sees what
 * lasted a moment only, which asking again and again may miss. Fails after a minute.
 */
export async function watchUntil(
  client: Transport,
  path: string,
  query: QueryParameters,
  done: (event: JsonRecord) => boolean,
): Promise<void> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), 60_000);
  let count = 0;
  let text = '';
  try {
    const stream = await client.stream(path, { query: { watch: true, ...query }, signal: controller.signal });
    for await (const chunk of stream.chunks) {
      text += chunk.toString();
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) {
        const event: unknown = JSON.parse(line);
        if (!isRecord(event)) continue;
        count++;
        if (done(event)) return;
      }
    }
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error;
    throw new Error(`a watch had ${count} events, and not what was waited for`, { cause: error });
  } finally {
    clearTimeout(timer);
    controller.abort();
  }
}

function warningsOf(header: string | string[] | undefined): string[] {
  const lines = header === undefined ? [] : typeof header === 'string' ? [header] : header;
  return lines.map((line) => /^299 - "(.*)"$/s.exec(line)?.[1]?.replaceAll('\\"', '"') ?? line);
}
