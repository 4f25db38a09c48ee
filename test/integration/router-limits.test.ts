/** What one client may take of the router: streams, connections to backends, heads, time. */
import { once } from 'node:events';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createCertificateAuthority, issueServerCertificate } from '../../src/tls/certificates.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { ask } from '../support/router/requests.ts';
import { Objects, type RunningRouter, startPlainBackend, startRouter } from '../support/router/router.ts';

const host = 'limits.test';
let api: TestServer;
let router: RunningRouter;
let ca: string;
const closing: (() => Promise<void>)[] = [];
/** Connections that the backend has. */
const connections = new Set<Socket>();
/** The most that it had at a time. */
let peak = 0;
const maxClientRequests = 200;

beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0 });
  const objects = new Objects(api.client);
  await objects.create('/api/v1/namespaces', { metadata: { name: 'shop' } });
  // Says nothing, so that requests stay.
  const silent = await startPlainBackend((socket) => {
    connections.add(socket);
    peak = Math.max(peak, connections.size);
    socket.on('close', () => connections.delete(socket));
    socket.resume();
  });
  closing.push(() => silent.close());
  await objects.service('silent', [silent.port]);
  const authority = createCertificateAuthority('test', { now: new Date() });
  ca = authority.certificate;
  const pair = issueServerCertificate(authority, host, [host], { now: new Date() });
  await objects.tlsIngress('silent', host, pair);
  router = await startRouter(api.client, { backendTimeoutMs: 60_000, maxClientRequests });
  const { table } = router.router;
  await vi.waitUntil(() => table.resolve({ scheme: 'https', host, path: '/' }).kind === 'forward', 20_000);
});
afterAll(async () => {
  await router.stop();
  for (const close of closing) await close();
  await api.stop();
});

async function openSession(): Promise<ClientHttp2Session> {
  const session = connectHttp2(`https://127.0.0.1:${router.ports.https}`, { ca, servername: host });
  session.on('error', () => undefined);
  await once(session, 'remoteSettings');
  return session;
}

describe('HTTP/2', () => {
  test('a connection has 128 streams at a time, and heads of 16 KiB: the client is told', async () => {
    const session = await openSession();
    expect(session.remoteSettings).toMatchObject({ maxConcurrentStreams: 128, maxHeaderListSize: 16_384 });
    session.destroy();
  });

  test('a client that opens more streams all the same gets none of them to a backend', async () => {
    const client = await openRaw();
    for (let id = 1; id < 2 * 2000; id += 2) client.write(headersFrame(id, request, endHeaders | endStream));
    await vi.waitUntil(() => client.destroyed || connections.size >= 128, 60_000);
    expect(peak).toBeLessThanOrEqual(128);
    client.destroy();
    await vi.waitUntil(() => connections.size === 0, 60_000);
  });

  test('a head of 58 KB is not served', async () => {
    const client = await openRaw();
    client.write(headersFrame(1, request, endStream));
    const piece = Buffer.alloc(14_000, 'a');
    // Literals without indexing, each a header of its own.
    for (let i = 0; i < 4; i++) {
      const name = Buffer.from(`x-${i}`);
      const literal = Buffer.concat([
        Buffer.from([0, name.length]),
        name,
        Buffer.from([0x7f, ((piece.length - 127) & 0x7f) | 0x80, (piece.length - 127) >> 7]),
        piece,
      ]);
      client.write(frame(9, i === 3 ? endHeaders : 0, 1, literal));
    }
    const answered = await firstOf(client, [1, 3, 7]);
    expect(answered.type).not.toBe(1);
    expect(connections.size).toBe(0);
    client.destroy();
  });

  test.concurrent.each([
    ['at once', async () => Promise.resolve()],
    [
      'after the answer to a PING',
      async (client: TLSSocket) => {
        const [ping] = [await firstOf(client, [6])];
        client.write(frame(6, 1, 0, ping.payload));
      },
    ],
  ])(
    'a head that is not ended is cut as over HTTP/1.1: %s',
    async (_, before) => {
      const client = await openRaw();
      await before(client);
      client.write(headersFrame(1, request, endStream));
      const closed = once(client, 'close');
      // Byte by byte, as slow clients do.
      const dripping = setInterval(() => client.write(frame(9, 0, 1, Buffer.alloc(0))), 3000);
      await closed;
      clearInterval(dripping);
    },
    60_000,
  );
});

test('requests of one client beyond the limit are refused, and those of before go on', async () => {
  const clients: Socket[] = [];
  for (let i = 0; i < maxClientRequests; i++) {
    const socket = connect(router.ports.http, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    clients.push(socket);
  }
  await vi.waitUntil(() => connections.size === maxClientRequests, 60_000);
  expect(await ask(router.ports.http, host)).toMatchObject({ status: 429, body: '429 TooManyRequests\n' });
  const refusedUpgrade = ask(router.ports.http, host, {
    headers: { connection: 'upgrade', upgrade: 'websocket' },
  });
  expect(await refusedUpgrade).toMatchObject({ status: 429 });
  expect(connections.size).toBe(maxClientRequests);
  clients[0]?.destroy();
  await vi.waitUntil(() => connections.size === maxClientRequests - 1, 60_000);
  const session = await openSession();
  session.request({ ':path': '/', ':authority': host }).on('error', () => undefined);
  await vi.waitUntil(() => connections.size === maxClientRequests, 60_000);
  session.destroy();
  for (const socket of clients) socket.destroy();
  await vi.waitUntil(() => connections.size === 0, 60_000);
});

const endStream = 1;
const endHeaders = 4;
/** HPACK: GET, https, the path / and the host, not indexed. */
const request = Buffer.concat([Buffer.from([0x82, 0x87, 0x84, 0x01, host.length]), Buffer.from(host)]);

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

function headersFrame(stream: number, block: Buffer, flags: number): Buffer {
  return frame(1, flags, stream, block);
}

/** A connection that speaks frames by hand. */
async function openRaw(): Promise<TLSSocket> {
  const options = { ca, servername: host, ALPNProtocols: ['h2'] };
  const client = connectTls(router.ports.https, '127.0.0.1', options);
  client.on('error', () => client.destroy());
  await once(client, 'secureConnect');
  client.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  client.write(frame(4, 0, 0, Buffer.alloc(0)));
  client.write(frame(4, 1, 0, Buffer.alloc(0)));
  client.resume();
  return client;
}

/** The first frame of one of these types that comes. */
async function firstOf(
  client: TLSSocket,
  types: readonly number[],
): Promise<{ type: number; payload: Buffer }> {
  let bytes = Buffer.alloc(0);
  return await new Promise((resolve) => {
    client.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      while (bytes.length >= 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3)) {
        const length = bytes.readUIntBE(0, 3);
        const type = bytes.readUInt8(3);
        const payload = Buffer.from(bytes.subarray(9, 9 + length));
        bytes = bytes.subarray(9 + length);
        if (types.includes(type)) resolve({ type, payload });
      }
    });
    client.on('close', () => resolve({ type: -1, payload: Buffer.alloc(0) }));
  });
}
