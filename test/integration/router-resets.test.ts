/** Clients and backends that reset at any moment, on each way into the router: nothing but their connection ends. */
import { once } from 'node:events';
import { connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createCertificateAuthority, issueServerCertificate } from '../../src/tls/certificates.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { ask } from '../support/router/requests.ts';
import { Objects, type RunningRouter, startPlainBackend, startRouter } from '../support/router/router.ts';

const host = 'resets.test';
const hidden = 'hidden.test';
let api: TestServer;
let router: RunningRouter;
let ca: string;
let backend: { readonly port: number; close(): Promise<void> };
/** What the backend does with a connection that said something. */
let talk: (socket: Socket) => void = () => undefined;
const whole = (socket: Socket): void => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');

beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0, platform: 'openshift' });
  const objects = new Objects(api.client);
  await objects.create('/api/v1/namespaces', { metadata: { name: 'shop' } });
  backend = await startPlainBackend((socket) => socket.on('data', () => talk(socket)));
  await objects.service('web', [backend.port]);
  const authority = createCertificateAuthority('test', { now: new Date() });
  ca = authority.certificate;
  const { certificate, key } = issueServerCertificate(authority, host, [host], { now: new Date() });
  const routes = '/apis/route.openshift.io/v1/namespaces/shop/routes';
  const route = (name: string, spec: object): object => ({
    ...{ apiVersion: 'route.openshift.io/v1', kind: 'Route', metadata: { name } },
    spec: { to: { kind: 'Service', name: 'web' }, ...spec },
  });
  const tls = { termination: 'edge', insecureEdgeTerminationPolicy: 'Allow', certificate, key };
  await objects.create(routes, route('edge', { host, tls }));
  await objects.create(routes, route('hidden', { host: hidden, tls: { termination: 'passthrough' } }));
  router = await startRouter(api.client, { backendTimeoutMs: 5000 });
  const { table } = router.router;
  await vi.waitUntil(() => table.hasPassthrough && table.admissionOf('shop/edge') !== undefined, 20_000);
});
afterAll(async () => {
  await router.stop();
  await backend.close();
  await api.stop();
});

/** An unhandled error would fail this run. */
async function isAlive(): Promise<void> {
  talk = whole;
  expect(await ask(router.ports.http, host)).toMatchObject({ status: 200 });
  expect(await ask(router.ports.https, host, { ca })).toMatchObject({ status: 200 });
}

async function resetAfter(port: number, bytes: string | Buffer): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  if (bytes.length > 0) await new Promise((resolve) => socket.write(bytes, 'latin1', resolve));
  socket.resetAndDestroy();
}

const upgrade = (to: string, protocol: string): string =>
  `GET / HTTP/1.1\r\nHost: ${to}\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;

describe('clients', () => {
  test.each([
    ['nothing', ''],
    ['half a head', `GET / HTTP/1.1\r\nHost: ${host}\r\nX-`],
    ['a request', `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['two requests', `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(2)],
    ['half a body', `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 9\r\n\r\nhalf`],
    ['half a chunk', `POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf`],
    [
      'an expectation',
      `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n`,
    ],
    ['a coding', `POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n`],
    ['garbage', 'hello\r\n\r\n'],
    ['an unknown method', `BREW / HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['CONNECT', `CONNECT ${host}:80 HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    [
      'paths that are none',
      `GET // HTTP/1.1\r\nHost: ${host}\r\n\r\nGET http://[ HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    ],
    ['an upgrade', upgrade(host, 'websocket')],
    ['an upgrade for an unknown host', upgrade('zzz.test', 'websocket')],
    ['an upgrade to another protocol', upgrade(host, 'h2c')],
    ['an upgrade without a host that could be', upgrade('a b', 'websocket')],
    ['an upgrade behind a request', `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n${upgrade(host, 'websocket')}`],
    [
      'CONNECT behind a request',
      `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\nCONNECT ${host}:80 HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    ],
  ])('that reset after %s', async (_, bytes) => {
    for (const answer of [whole, () => undefined]) {
      talk = answer;
      for (let each = 0; each < 10; each++) await resetAfter(router.ports.http, bytes);
      for (let each = 0; each < 3; each++) {
        const secure = connectTls(router.ports.https, '127.0.0.1', { ca, servername: host });
        secure.on('error', () => undefined);
        await once(secure, 'secureConnect');
        if (bytes !== '') await new Promise((resolve) => secure.write(bytes, 'latin1', resolve));
        secure.destroy();
      }
    }
    await isAlive();
  });

  test.each([host, hidden, 'zzz.test'])('that reset at each byte of a handshake for %s', async (name) => {
    const hello = await helloOf(name);
    for (let length = 0; length <= hello.length; length += 40) {
      await resetAfter(router.ports.https, hello.subarray(0, length));
    }
    for (let each = 0; each < 5; each++) await resetAfter(router.ports.https, hello);
    await isAlive();
  });

  test('of HTTP/2 that reset, with streams in every state, and one that sends CONNECT', async () => {
    for (const answer of [whole, () => undefined]) {
      talk = answer;
      for (let each = 0; each < 5; each++) {
        const session = connectHttp2(`https://127.0.0.1:${router.ports.https}`, { ca, servername: host });
        session.on('error', () => undefined);
        await once(session, 'connect');
        const get = session.request({ ':path': '/', ':authority': host });
        const post = session.request({ ':method': 'POST', ':path': '/', ':authority': host });
        const left = session.request({
          ':method': 'POST',
          ':path': '/',
          ':authority': host,
          expect: '100-continue',
        });
        for (const stream of [get, post, left]) stream.on('error', () => undefined);
        post.write('half');
        left.close(constants.NGHTTP2_CANCEL);
        const refused = session.request({ ':method': 'CONNECT', ':authority': host });
        refused.on('error', () => undefined);
        const [headers] = (await once(refused, 'response')) as [Record<string, unknown>];
        expect(headers[':status']).toBe(501);
        session.destroy();
      }
    }
    await isAlive();
  });
});

describe('backends that reset', () => {
  test.each([
    ['at once', ''],
    ['within the head', 'HTTP/1.1 200 O'],
    ['within the body', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'],
    ['after the answer', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'],
    ['after a change of the protocol', 'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
  ])('%s', async (_, bytes) => {
    talk = (socket) => socket.write(bytes, 'latin1', () => socket.resetAndDestroy());
    const ended = async (text: string): Promise<void> => {
      const socket = connect(router.ports.http, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.on('data', () => socket.end());
      socket.write(text);
      await new Promise((resolve) => socket.on('close', resolve));
    };
    for (let each = 0; each < 5; each++) {
      await ended(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      await ended(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 2\r\n\r\nhi`);
      await ended(upgrade(host, 'websocket'));
      await ask(router.ports.https, hidden, { ca }).catch(() => undefined);
    }
    await isAlive();
  });
});

/** The first bytes that a client of TLS sends. */
async function helloOf(name: string): Promise<Buffer> {
  let hello: Buffer | undefined;
  const listener = await startPlainBackend((socket) =>
    socket.once('data', (bytes: Buffer) => (hello = bytes)),
  );
  const client = connectTls(listener.port, '127.0.0.1', { servername: name });
  client.on('error', () => undefined);
  await vi.waitUntil(() => hello !== undefined, 20_000);
  client.destroy();
  await listener.close();
  return hello ?? Buffer.alloc(0);
}
