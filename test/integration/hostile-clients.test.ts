import { once } from 'node:events';
import { text as readAll } from 'node:stream/consumers';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { drawsOf } from '../support/fuzz/hostile-bytes.ts';
import { http2 } from '../support/hostile/clients.ts';
import { call } from '../support/test-server.ts';

/** Clients that no HTTP library would be: raw TLS sockets against the whole server. */
let server: TestServer;
let port = 0;
beforeAll(async () => {
  server = await startApiServer();
  port = Number(new URL(server.url).port);
});
afterAll(async () => server.stop());

async function open(): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, ca: server.ca });
  // what a hostile client gets is a reset as often as an answer
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  return socket;
}

/** Milliseconds to wait for an answer after which the server closes. */
const timeoutMs = 60_000;

/** All that the server says until it closes, or is silent for so long. */
async function answerOf(socket: TLSSocket, silence = 1000): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(text);
    };
    let timer = setTimeout(finish, silence);
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      clearTimeout(timer);
      timer = setTimeout(finish, silence);
    });
    socket.once('end', finish).once('close', finish);
  });
}

const head = (method: string, path: string, ...headers: string[]): string =>
  [
    `${method} ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    `Authorization: Bearer ${server.token}`,
    ...headers,
    '',
    '',
  ].join('\r\n');

const codes = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, code]) => Number(code));

async function isWell(): Promise<void> {
  expect((await server.client.request('GET', '/readyz')).bytes.toString()).toBe('ok');
  const made = await call(server.client, 'POST', '/api/v1/namespaces/default/configmaps', {
    body: { metadata: { generateName: 'well-' } },
  });
  expect(made.status).toBe(201);
}

const configMaps = '/api/v1/namespaces/default/configmaps';
/** What a smuggled request would make. */
const smuggled = (): string =>
  head('POST', '/api/v1/namespaces', 'Content-Type: application/json', 'Content-Length: 32') +
  '{"metadata":{"name":"smuggled"}}';

describe('request smuggling', () => {
  test.each<[string, () => string]>([
    [
      'a length and chunks',
      () =>
        head('POST', configMaps, 'Content-Length: 4', 'Transfer-Encoding: chunked') +
        `0\r\n\r\n${smuggled()}`,
    ],
    ['two lengths', () => head('POST', configMaps, 'Content-Length: 0', 'Content-Length: 99') + smuggled()],
    ['a list of lengths', () => head('POST', configMaps, 'Content-Length: 0, 99') + smuggled()],
    ['a signed length', () => head('POST', configMaps, 'Content-Length: +0') + smuggled()],
    ['a negative length', () => head('POST', configMaps, 'Content-Length: -1') + smuggled()],
    [
      'an unknown encoding',
      () => head('POST', configMaps, 'Transfer-Encoding: xchunked') + `0\r\n\r\n${smuggled()}`,
    ],
    [
      'a blank before the colon',
      () => head('POST', configMaps, 'Transfer-Encoding : chunked') + `0\r\n\r\n${smuggled()}`,
    ],
    [
      'a folded header',
      () => head('POST', configMaps, 'Transfer-Encoding:', ' chunked') + `0\r\n\r\n${smuggled()}`,
    ],
    [
      'a chunk size that is none',
      () => head('POST', configMaps, 'Transfer-Encoding: chunked') + `0x0\r\n\r\n${smuggled()}`,
    ],
    [
      'a bare line feed in a chunk',
      () => head('POST', configMaps, 'Transfer-Encoding: chunked') + `1\nx\n0\r\n\r\n${smuggled()}`,
    ],
    ['a line feed in a header', () => head('POST', configMaps, 'X: a\nContent-Length: 0') + smuggled()],
  ])('with %s makes nothing', async (_, text) => {
    const socket = await open();
    socket.write(text());
    const [first = 400, ...more] = codes(await answerOf(socket, 300));
    expect(first).toBeGreaterThanOrEqual(400);
    expect(first).toBeLessThan(500);
    expect(more).toEqual([]);
    expect((await call(server.client, 'GET', '/api/v1/namespaces/smuggled')).status).toBe(404);
  });
});

describe('floods', () => {
  test.each<[string, () => string]>([
    ['a header of 2 MiB', () => head('GET', '/api', `X-Large: ${'x'.repeat(2 * 2 ** 20)}`)],
    ['a path of 2 MiB', () => head('GET', `/${'x'.repeat(2 * 2 ** 20)}`)],
    [
      '100,000 headers',
      () => head('GET', '/api', ...Array.from({ length: 100_000 }, (_, n) => `X-${n}: ${'y'.repeat(20)}`)),
    ],
  ])('%s are refused', async (_, text) => {
    const socket = await open();
    socket.write(text());
    const answer = await answerOf(socket);
    // the connection may be reset before the answer is read
    for (const code of codes(answer)) expect([400, 414, 431]).toContain(code);
    await isWell();
  });

  test('uploads of 100 MB are refused at 3 MiB, also ten at a time', async () => {
    const before = process.memoryUsage().rss;
    const piece = Buffer.alloc(2 ** 20, ' ');
    await Promise.all(
      Array.from({ length: 10 }, async (_, n) => {
        const socket = await open();
        const announced = n % 2 === 0 ? 'Content-Length: 104857600' : 'Transfer-Encoding: chunked';
        socket.write(head('POST', configMaps, 'Content-Type: application/json', announced));
        const answer = answerOf(socket, 5000);
        // one write each: what is refused in the middle leaves no half of a chunk
        const bytes =
          n % 2 === 0 ? piece : Buffer.concat([Buffer.from('100000\r\n'), piece, Buffer.from('\r\n')]);
        for (let sent = 0; sent < 100 && socket.writable; sent++) {
          if (socket.write(bytes)) continue;
          await new Promise<void>((resolve) => {
            const go = (): void => {
              socket.off('drain', go).off('close', go);
              resolve();
            };
            socket.on('drain', go).on('close', go);
          });
        }
        const text = await answer;
        expect(codes(text).filter((code) => code !== 413)).toEqual([]);
      }),
    );
    // in one process with the clients: their buffers count too
    expect(process.memoryUsage().rss - before).toBeLessThan(400 * 2 ** 20);
    await isWell();
  });
});

describe('clients that give up', () => {
  test('300 aborted uploads leave no request in flight', async () => {
    for (let round = 0; round < 6; round++) {
      await Promise.all(
        Array.from({ length: 50 }, async (_, n) => {
          const socket = await open();
          socket.write(
            head('POST', configMaps, 'Content-Type: application/json', 'Content-Length: 1000') +
              '{"metadata":',
          );
          if (n % 2 === 0) socket.end();
          socket.destroy();
          await once(socket, 'close');
        }),
      );
    }
    // 200 writes may be in flight: leaked ones would leave no room
    const answers = await Promise.all(
      Array.from({ length: 64 }, async () =>
        call(server.client, 'POST', configMaps, { body: { metadata: { generateName: 'after-' } } }),
      ),
    );
    expect(answers.filter(({ status }) => status !== 201)).toEqual([]);
  });

  test('a half-closed socket still gets its answer, in the middle of a head it gets none', async () => {
    const whole = await open();
    whole.end(head('GET', '/version'));
    expect(codes(await answerOf(whole, timeoutMs))).toEqual([200]);
    const half = await open();
    half.end('GET /version HTT');
    expect(codes(await answerOf(half)).filter((code) => code !== 400)).toEqual([]);
    await isWell();
  });

  test('100 watches that vanish are forgotten', async () => {
    const path = `${configMaps}?watch=true`;
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        const socket = await open();
        socket.write(head('GET', path));
        await once(socket, 'data');
        socket.destroy();
      }),
    );
    for (let n = 0; n < 50; n++) await isWell();
  });
});

describe('slow and strange senders', () => {
  test('do not keep others waiting', async () => {
    const slow = await Promise.all(Array.from({ length: 50 }, open));
    for (const socket of slow)
      socket.write('POST /api/v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ');
    const trickle = setInterval(() => {
      for (const socket of slow) if (socket.writable) socket.write('x');
    }, 50);
    for (let n = 0; n < 20; n++) await isWell();
    clearInterval(trickle);
    for (const socket of slow) socket.destroy();
  });

  test('pipelined requests are answered in order', async () => {
    const socket = await open();
    socket.write(
      head('GET', '/version') + head('GET', '/nope') + head('GET', '/readyz', 'Connection: close'),
    );
    expect(codes(await answerOf(socket, timeoutMs))).toEqual([200, 404, 200]);
  });

  test.each([
    ['what is no request', () => '\u0000\u0001\r\n\r\n'],
    ['an upgrade', () => head('GET', configMaps, 'Connection: Upgrade', 'Upgrade: websocket')],
  ])('%s behind a watch is not answered into it', async (_, next) => {
    const socket = await open();
    socket.write(head('GET', `${configMaps}?watch=true`));
    await once(socket, 'data');
    const rest = answerOf(socket, timeoutMs);
    socket.write(next());
    expect(await rest).not.toContain('HTTP/1.1');
    await isWell();
  });

  test.each<[string, string, readonly number[]]>([
    ['no path', 'GET  HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n', [400]],
    ['no method', ' / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n', [400]],
    ['another protocol', 'GET / HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n', [400, 505]],
    ['HTTP/2 without asking', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400, 404, 405, 505]],
    ['no host', 'GET / HTTP/1.1\r\n\r\n', [400]],
    ['binary', '\u0000\u0001\u0002\u0003\r\n\r\n', [400]],
    [
      'a raw byte above 127 in the path',
      'GET /\u00ff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n',
      [400, 401, 403, 404],
    ],
    ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n', [400, 401, 404, 405]],
  ])('%s is refused', async (_, text, allowed) => {
    const socket = await open();
    socket.write(Buffer.from(text, 'latin1'));
    const answer = await answerOf(socket, 500);
    for (const code of codes(answer)) expect(allowed).toContain(code);
    expect(answer).not.toMatch(/node:internal|\/work\/|\.ts:/);
    await isWell();
  });

  test('HTTP/1.0 is served, and no TLS at all is not', async () => {
    const socket = await open();
    socket.write(`GET /version HTTP/1.0\r\nAuthorization: Bearer ${server.token}\r\n\r\n`);
    expect(await answerOf(socket, timeoutMs)).toMatch(/^HTTP\/1\.1 200/);
    const plain = (await import('node:net')).connect({ host: '127.0.0.1', port });
    plain.on('error', () => undefined);
    plain.write('GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
    expect(await readAll(plain)).toMatch(
      /^HTTP\/1\.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS/,
    );
    await isWell();
  });
});

test('bytes that are almost HTTP/2 or frames of a WebSocket end their connection, and nothing else', async () => {
  const random = drawsOf(36);
  const path = '/api/v1/namespaces/default/configmaps?watch=true';
  const key = Buffer.alloc(16, 1).toString('base64');
  const upgrade = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${key}`,
  ];
  const beginnings = [
    [['h2'], Buffer.concat([http2.preface, http2.frame(1, 4, 1, http2.head)])],
    [['http/1.1'], Buffer.from(head('GET', path, ...upgrade))],
  ] as const;
  for (let round = 0; round < 200; round++) {
    const [protocols, beginning] = beginnings[round % 2] ?? beginnings[0];
    const socket = connect({ host: '127.0.0.1', port, ca: server.ca, ALPNProtocols: [...protocols] });
    socket.on('error', () => undefined).resume();
    socket.write(beginning);
    const noise = Buffer.from(Array.from({ length: random(200) }, () => random(256)));
    // Every other time, frames whose fields may mean anything.
    if (round % 4 < 2) socket.write(noise);
    else socket.write(http2.frame(random(12), random(256), random(5), noise));
    if (round % 3 === 0) socket.end();
    await once(socket, 'secureConnect').catch(() => undefined);
    setTimeout(() => socket.destroy(), 20);
  }
  await isWell();
});
