import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { ask, sendText } from '../support/router/requests.ts';
import {
  Objects,
  type RunningRouter,
  startBackend,
  startPlainBackend,
  startRouter,
} from '../support/router/router.ts';

let api: TestServer;
let objects: Objects;
let router: RunningRouter;
const closing: (() => Promise<void>)[] = [];
/** Requests that came to the Service web. */
let reached = 0;

/** A backend that speaks what a test wants, at a host of its own. */
async function plain(name: string, talk: (socket: Socket) => void): Promise<void> {
  const backend = await startPlainBackend(talk);
  closing.push(() => backend.close());
  await objects.service(name, [backend.port]);
  await objects.ingress(name, `${name}.test`, name);
  await served(`${name}.test`);
}

/** Until the router knows a host; no request is sent to a backend for it. */
async function served(host: string): Promise<void> {
  const { table } = router.router;
  await vi.waitUntil(() => table.resolve({ scheme: 'http', host, path: '/' }).kind === 'forward', 20_000);
}

beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0 });
  objects = new Objects(api.client);
  await objects.create('/api/v1/namespaces', { metadata: { name: 'shop' } });
  router = await startRouter(api.client, { backendTimeoutMs: 1500 });
  const web = await startBackend((request, response) => {
    reached++;
    let bytes = 0;
    request.on('data', (chunk: Buffer) => (bytes += chunk.length));
    request.on('end', () => response.end(String(bytes)));
  });
  closing.push(() => web.close());
  await objects.service('web', [web.port]);
  await objects.ingress('web', 'web.test', 'web');
  await served('web.test');
});
afterAll(async () => {
  await router.stop();
  for (const close of closing) await close();
  await api.stop();
});

describe('backends', () => {
  test('one that resets: 502', async () => {
    await plain('reset', (socket) => socket.on('data', () => socket.resetAndDestroy()));
    expect(await ask(router.ports.http, 'reset.test', { method: 'POST', body: 'x' })).toMatchObject({
      status: 502,
      body: '502 BackendFailed\n',
    });
  });

  test('one that says nothing: 504', async () => {
    await plain('silent', (socket) => socket.resume());
    expect(await ask(router.ports.http, 'silent.test')).toMatchObject({ status: 504 });
  });

  test('one that talks no HTTP: 502', async () => {
    await plain('garbage', (socket) => socket.on('data', () => socket.end('220 mail.test ESMTP\r\n')));
    expect(await ask(router.ports.http, 'garbage.test')).toMatchObject({ status: 502 });
  });

  test('one that sends both lengths: 502, and none of its bytes', async () => {
    await plain('both', (socket) =>
      socket.on('data', () =>
        socket.write(
          'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nevil',
        ),
      ),
    );
    expect(await ask(router.ports.http, 'both.test')).toMatchObject({
      status: 502,
      body: '502 BackendFailed\n',
    });
  });

  test.each([
    ['half a body by length', 'Content-Length: 100\r\n\r\nhalf'],
    ['half a body in chunks', 'Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
  ])('%s: the client sees that it is not the whole', async (what, rest) => {
    const name = what.replaceAll(' ', '-');
    await plain(name, (socket) => socket.on('data', () => socket.end(`HTTP/1.1 200 OK\r\n${rest}`)));
    await expect(ask(router.ports.http, `${name}.test`)).rejects.toThrow();
  });

  test('one that goes away between two requests: the next is sent again', async () => {
    let connections = 0;
    await plain('closing', (socket) => {
      connections++;
      socket.on('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
        // Without a word: the router may be sending the next request already.
        setImmediate(() => socket.resetAndDestroy());
      });
    });
    for (let i = 0; i < 10; i++)
      expect(await ask(router.ports.http, 'closing.test')).toMatchObject({ status: 200 });
    expect(connections).toBeGreaterThanOrEqual(10);
  });
});

describe('clients', () => {
  test('100 MB pass', async () => {
    const body = Buffer.alloc(100 * 1024 * 1024);
    const answered = await ask(router.ports.http, 'web.test', { method: 'POST', body });
    expect(answered).toMatchObject({ status: 200, body: String(body.length) });
  });

  test('what a backend does not read is not taken from the client, whatever it sends', async () => {
    await plain('unread', (socket) => socket.pause());
    const socket = connect(router.ports.http, '127.0.0.1');
    socket.on('error', () => socket.destroy());
    socket.write('POST / HTTP/1.1\r\nHost: unread.test\r\nContent-Length: 104857600\r\n\r\n');
    const chunk = Buffer.alloc(1024 * 1024);
    let sent = 0;
    // Half a second without room: it is taken no more.
    for (let isTaken = true; isTaken && sent < 100; sent++) {
      if (socket.write(chunk)) continue;
      const drained = once(socket, 'drain', { signal: AbortSignal.timeout(500) });
      isTaken = await drained.then(
        () => true,
        () => false,
      );
    }
    socket.destroy();
    expect(sent).toBeLessThan(50);
  });

  test.each([
    [
      'CL with TE',
      'POST / HTTP/1.1\r\nHost: web.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG',
    ],
    [
      'two lengths',
      'POST / HTTP/1.1\r\nHost: web.test\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello',
    ],
    [
      'an encoding that is not chunked',
      'POST / HTTP/1.1\r\nHost: web.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
    ],
    ['a blank before the colon', 'POST / HTTP/1.1\r\nHost: web.test\r\nContent-Length : 5\r\n\r\nhello'],
    ['a folded header', 'GET / HTTP/1.1\r\nHost: web.test\r\nX-A: b\r\n c: d\r\n\r\n'],
    ['two hosts', 'GET / HTTP/1.1\r\nHost: web.test\r\nHost: other.test\r\nConnection: close\r\n\r\n'],
    ['no host', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n'],
    ['a fragment', 'GET /a#b HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n\r\n'],
    ['a user in the host', 'GET / HTTP/1.1\r\nHost: a@web.test\r\nConnection: close\r\n\r\n'],
    ['garbage', 'hello\r\n\r\n'],
  ])('%s: 400, or no answer, no backend gets a part of it, and the connection ends', async (_, text) => {
    const before = reached;
    // What would be another request, were the first one shorter than it says.
    const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: web.test\r\n\r\n';
    expect(await sendText(router.ports.http, text + smuggled)).toMatch(/^(HTTP\/1\.1 400 |$)/);
    expect(reached).toBe(before);
  });

  test('headers without end: 431', async () => {
    const text = `GET / HTTP/1.1\r\nHost: web.test\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`;
    expect(await sendText(router.ports.http, text)).toMatch(/^HTTP\/1\.1 431 /);
  });

  test('the absolute form goes before the header', async () => {
    const text = 'GET http://web.test/ HTTP/1.1\r\nHost: unknown.test\r\nConnection: close\r\n\r\n';
    expect(await sendText(router.ports.http, text)).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('one that leaves in the middle ends its request at the backend', async () => {
    let isOpen: boolean | undefined;
    await plain('left', (socket) => {
      isOpen = true;
      socket.on('close', () => (isOpen = false));
      socket.resume();
    });
    const socket = connect(router.ports.http, '127.0.0.1', () =>
      socket.write('GET / HTTP/1.1\r\nHost: left.test\r\n\r\n'),
    );
    await expect.poll(() => isOpen).toBe(true);
    socket.destroy();
    await expect.poll(() => isOpen).toBe(false);
  });
});

describe('a client that asks for another protocol and resets', () => {
  test.each([
    ['an unknown host', 'zzz.test'],
    ['a backend that is there', 'web.test'],
  ])('ends nothing but its connection: %s', async (_, host) => {
    const asked = `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
    for (let each = 0; each < 50; each++) {
      const socket = connect(router.ports.http, '127.0.0.1');
      socket.on('error', () => undefined);
      await once(socket, 'connect');
      socket.write(asked, () => socket.resetAndDestroy());
      await once(socket, 'close');
    }
    // An unhandled error would have failed this run.
    expect(await ask(router.ports.http, 'web.test')).toMatchObject({ status: 200 });
  });

  test.each([
    ['an expectation that is none', 'GET / HTTP/1.1\r\nHost: web.test\r\nExpect: nothing\r\n\r\n'],
    ['no host', 'GET / HTTP/1.1\r\n\r\n'],
    ['an answer of ours', 'GET / HTTP/1.1\r\nHost: zzz.test\r\n\r\n'],
    ['an answer of a backend', 'GET / HTTP/1.1\r\nHost: web.test\r\n\r\n'],
  ])('ends nothing but its connection, behind a request for %s in the same packet', async (_, before) => {
    for (const method of ['GET', 'CONNECT']) {
      const asked = `${method} / HTTP/1.1\r\nHost: web.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
      await sendText(router.ports.http, before + asked);
    }
    expect(await ask(router.ports.http, 'web.test')).toMatchObject({ status: 200 });
  });
});
