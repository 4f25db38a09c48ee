import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { makeNamespace } from '../support/api-operations.ts';
import { call, revisionOf, watchEvents, watchUntil } from '../support/test-server.ts';

/** Watches under load: nothing is lost, doubled or out of order, for the quick and for the slow. */
let server: TestServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(async () => server.stop());

const versionOf = (event: unknown): number =>
  Number(textAt(recordAt(event)['object'], 'metadata', 'resourceVersion'));

const nameOf = (event: unknown): string => textAt(recordAt(event)['object'], 'metadata', 'name');

const now = (path: string): Promise<string> => revisionOf(server.client, path);

/** `count` objects, eight at once. */
async function write(path: string, count: number, padding = ''): Promise<void> {
  await Promise.all(
    Array.from({ length: 8 }, async (_, worker) => {
      for (let n = worker; n < count; n += 8) {
        await call(server.client, 'POST', path, {
          body: { metadata: { name: `m-${n}` }, data: { padding } },
        });
      }
    }),
  );
}

test('100 watchers see the same events in the same order', async () => {
  const path = `/api/v1/namespaces/${await makeNamespace(server, 'fan-out')}/configmaps`;
  const resourceVersion = await now(path);
  const count = 100;
  const watching = Array.from({ length: 100 }, async () =>
    (await watchEvents(server.client, path, { resourceVersion }, count)).map(versionOf),
  );
  await write(path, count);
  const [first = [], ...rest] = await Promise.all(watching);
  expect(first).toHaveLength(count);
  expect(first).toEqual(first.toSorted((a, b) => a - b));
  expect(new Set(first).size).toBe(count);
  for (const each of rest) expect(each).toEqual(first);
});

test('watchers of the same events each see their own share', async () => {
  const path = `/api/v1/namespaces/${await makeNamespace(server, 'shares')}/configmaps`;
  const resourceVersion = await now(path);
  const count = 240;
  const share = 3;
  const all = Array.from({ length: 10 }, async () =>
    (await watchEvents(server.client, path, { resourceVersion }, count)).map(nameOf),
  );
  const selected = Array.from({ length: 10 }, async (_, i) =>
    (
      await watchEvents(
        server.client,
        path,
        { resourceVersion, labelSelector: `share=${i % share}` },
        count / share,
      )
    ).map(nameOf),
  );
  await Promise.all(
    Array.from({ length: 8 }, async (_, worker) => {
      for (let n = worker; n < count; n += 8) {
        await call(server.client, 'POST', path, {
          body: { metadata: { name: `m-${n}`, labels: { share: String(n % share) } } },
        });
      }
    }),
  );
  const [order = [], ...others] = await Promise.all(all);
  expect(new Set(order).size).toBe(count);
  for (const other of others) expect(other).toEqual(order);
  for (const [i, names] of (await Promise.all(selected)).entries()) {
    expect(names).toEqual(order.filter((name) => Number(name.slice(2)) % share === i % share));
  }
});

/** A watch on a socket of its own, that reads only when asked to. */
class SlowWatcher {
  readonly #socket: TLSSocket;
  readonly #versions: number[] = [];
  #rest = '';
  #wake: () => void = () => undefined;
  #closed = false;

  constructor(socket: TLSSocket) {
    this.#socket = socket;
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => this.#take(chunk));
    socket.on('error', () => undefined);
    socket.once('close', () => {
      this.#closed = true;
      this.#wake();
    });
    socket.pause();
  }

  static async open(path: string): Promise<SlowWatcher> {
    const { hostname, port } = new URL(server.url);
    const socket = connect({ host: hostname, port: Number(port), ca: server.ca });
    await once(socket, 'secureConnect');
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${server.token}\r\nConnection: close\r\n\r\n`,
    );
    return new SlowWatcher(socket);
  }

  /** Reads on until the server ends the watch, or until `enough`. Returns the revisions of all whole events. */
  async rest(enough: number): Promise<number[]> {
    this.#socket.resume();
    while (!this.#closed && this.#versions.length < enough) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    this.#socket.destroy();
    return this.#versions;
  }

  /** One event per line; chunk sizes stand on lines of their own. */
  #take(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line.startsWith('{"type"')) this.#versions.push(versionOf(JSON.parse(line)));
    }
    this.#wake();
  }
}

test('a watcher that does not read is no burden, and loses nothing when it comes back', async () => {
  const path = `/api/v1/namespaces/${await makeNamespace(server, 'slow')}/configmaps`;
  const resourceVersion = await now(path);
  const slow = await SlowWatcher.open(`${path}?watch=true&resourceVersion=${resourceVersion}`);
  const count = 300;
  // 30 MB: more than the buffers of a socket hold
  await write(path, count, 'x'.repeat(100_000));
  const written = listAt((await call(server.client, 'GET', path)).body, 'items')
    .map((item) => Number(textAt(item, 'metadata', 'resourceVersion')))
    .toSorted((a, b) => a - b);
  const seen = await slow.rest(count);
  expect(seen).toEqual(written.slice(0, seen.length));
  // each try may be ended in its turn, never without having brought something
  while (seen.length < count) {
    const last = String(seen.at(-1) ?? resourceVersion);
    const rest = await watchEvents(server.client, path, { resourceVersion: last }, count - seen.length);
    expect(rest.length).toBeGreaterThan(0);
    seen.push(...rest.map(versionOf));
  }
  expect(seen).toEqual(written);
});

test('a watch ends in its time, also if its first events are not read', async () => {
  const path = `/api/v1/namespaces/${await makeNamespace(server, 'unread')}/configmaps`;
  const count = 200;
  await write(path, count, 'x'.repeat(100_000));
  const slow = await SlowWatcher.open(`${path}?watch=true&timeoutSeconds=1`);
  // One that began later is over.
  for (let n = 0; n < 2; n++) {
    const { chunks } = await server.client.stream('/api/v1/services', {
      query: { watch: true, timeoutSeconds: 1 },
    });
    for await (const _ of chunks);
  }
  expect((await slow.rest(count)).length).toBeLessThan(count);
});

test('a watch may last for months', async () => {
  const path = `/api/v1/namespaces/${await makeNamespace(server, 'months')}/configmaps`;
  const { chunks } = await server.client.stream(path, {
    query: { watch: true, resourceVersion: await now(path), timeoutSeconds: 10_000_000 },
  });
  await write(path, 20);
  const seen: string[] = [];
  for await (const chunk of chunks) {
    for (const [name] of String(chunk).matchAll(/"name":"m-\d+"/g)) seen.push(name);
    if (seen.length === 20) break;
  }
  expect(seen).toHaveLength(20);
});

test('bookmarks tell how far a quiet watch is', async () => {
  const quiet = `/api/v1/namespaces/${await makeNamespace(server, 'quiet')}/secrets`;
  const busy = `/api/v1/namespaces/${await makeNamespace(server, 'busy')}/configmaps`;
  const resourceVersion = await now(quiet);
  await write(busy, 20);
  const latest = Number(await now(busy));
  // A bookmark comes shortly before the end of a watch, unless the machine had no time for it: then with the next one.
  const query = { allowWatchBookmarks: true, resourceVersion, timeoutSeconds: 3 };
  let reached = 0;
  while (reached < latest) {
    await watchUntil(server.client, quiet, query, (event) => {
      expect(textAt(event, 'type')).toBe('BOOKMARK');
      reached = versionOf(event);
      return reached >= latest;
    });
  }
});

test('a watch from a revision that is gone gets 410 inside of its stream, and a list a way on', async () => {
  const path = `/api/v1/namespaces/${await makeNamespace(server, 'expired')}/configmaps`;
  const [event] = await watchEvents(server.client, path, { resourceVersion: '1' }, 1);
  expect(event).toMatchObject({
    type: 'ERROR',
    object: {
      kind: 'Status',
      code: 410,
      reason: 'Expired',
      message: expect.stringMatching(/^too old resource version: 1 \(\d+\)$/) as string,
    },
  });
  const fresh = await watchEvents(
    server.client,
    '/api/v1/namespaces/default/services',
    { resourceVersion: '0' },
    1,
  );
  expect(fresh).toMatchObject([{ type: 'ADDED', object: { kind: 'Service' } }]);
});
