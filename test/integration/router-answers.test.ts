/** What backends answer against the rules, over each way that a client may come: nothing is half ours and half theirs. */
import { once } from 'node:events';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createCertificateAuthority, issueServerCertificate } from '../../src/tls/certificates.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { Objects, type RunningRouter, startPlainBackend, startRouter } from '../support/router/router.ts';

const host = 'answers.test';
let api: TestServer;
let router: RunningRouter;
let session: ClientHttp2Session;
const closing: (() => Promise<void>)[] = [];
/** What the backend writes after each request, and what it does then. */
let answer: (socket: Socket) => void = () => undefined;

beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0 });
  const objects = new Objects(api.client);
  await objects.create('/api/v1/namespaces', { metadata: { name: 'shop' } });
  const backend = await startPlainBackend((socket) => socket.on('data', () => answer(socket)));
  closing.push(() => backend.close());
  await objects.service('answers', [backend.port]);
  const authority = createCertificateAuthority('test', { now: new Date() });
  const pair = issueServerCertificate(authority, host, [host], { now: new Date() });
  await objects.tlsIngress('answers', host, pair);
  router = await startRouter(api.client, { backendTimeoutMs: 1500 });
  const { table } = router.router;
  await vi.waitUntil(() => table.resolve({ scheme: 'https', host, path: '/' }).kind === 'forward', 20_000);
  const options = { ca: authority.certificate, servername: host };
  session = connectHttp2(`https://127.0.0.1:${router.ports.https}`, options);
  await once(session, 'connect');
});
afterAll(async () => {
  session.destroy();
  await router.stop();
  for (const close of closing) await close();
  await api.stop();
});

const ways = [
  ['HTTP/1.1', 'HTTP/1.1', 'Connection: close\r\n'],
  ['HTTP/1.0', 'HTTP/1.0', ''],
  ['a request to upgrade', 'HTTP/1.1', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'],
] as const;
const [[, ...http1], , [, ...upgrading]] = ways;

/**
 * All that a client gets until its connection ends, and whether it ended by a reset.
 *
 * @param seen is called when something came.
 */
async function over(
  version: string,
  more: string,
  seen = (): void => undefined,
): Promise<{ text: string; isReset: boolean }> {
  const socket = connect(router.ports.http, '127.0.0.1');
  socket.write(`GET / ${version}\r\nHost: ${host}\r\n${more}\r\n`);
  let text = '';
  let isReset = false;
  socket.setEncoding('latin1').on('data', (piece: string) => {
    text += piece;
    seen();
  });
  socket.on('error', () => (isReset = true));
  await new Promise((resolve) => socket.on('close', resolve));
  return { text, isReset };
}

interface Http2Answer {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
  readonly code: number;
}

async function overHttp2(seen = (): void => undefined): Promise<Http2Answer> {
  const stream = session.request({ ':path': '/', ':authority': host });
  let headers = {};
  let body = '';
  stream.on('response', (given) => (headers = { ...given }));
  stream.setEncoding('latin1').on('data', (piece: string) => {
    body += piece;
    seen();
  });
  stream.on('error', () => undefined);
  stream.end();
  await new Promise((resolve) => stream.on('close', resolve));
  return { headers, body, code: stream.rstCode };
}

const ok = 'HTTP/1.1 200 OK\r\nX-Theirs: yes\r\n';
const chunked = 'Transfer-Encoding: chunked\r\n\r\n';

describe.each([
  ['a status of 0', 'HTTP/1.1 000 X\r\nX-Theirs: yes\r\nContent-Length: 0\r\n\r\n'],
  ['a status of 99', 'HTTP/1.1 099 X\r\nX-Theirs: yes\r\nContent-Length: 0\r\n\r\n'],
  ['a status of 600', 'HTTP/1.1 600 X\r\nX-Theirs: yes\r\nContent-Length: 2\r\n\r\nhi'],
  ['a status of 999', 'HTTP/1.1 999 X\r\nX-Theirs: yes\r\nContent-Length: 2\r\n\r\nhi'],
  ['chunks without a size', `${ok}${chunked}ZZ\r\nhi\r\n`],
  ['a trailer that is none', `${ok}${chunked}2\r\nhi\r\n0\r\nbad trailer\r\n\r\n`],
  ['a body after 204', 'HTTP/1.1 204 No Content\r\nX-Theirs: yes\r\nContent-Length: 2\r\n\r\nhi'],
  ['a coding before chunked', `${ok}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`],
  ['another coding', `${ok}Transfer-Encoding: gzip\r\n\r\nhi`],
  [
    'a change of the protocol that nobody asked for',
    'HTTP/1.1 101 X\r\nX-Theirs: yes\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n',
  ],
  ['two lengths', `${ok}Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi`],
  ['a name with a blank', `${ok}X Y: z\r\nContent-Length: 2\r\n\r\nhi`],
])('%s: 502 without a byte of it', (_, text) => {
  beforeAll(() => {
    answer = (socket) => void socket.write(text);
  });

  test.each(ways)('over %s', async (_way, version, more) => {
    const answered = await over(version, more);
    expect(answered.text).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\n/);
    expect(answered.text).not.toMatch(/X-Theirs|hi$/i);
    expect(answered.text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test('over HTTP/2, and the session goes on', async () => {
    const { headers, body } = await overHttp2();
    expect(headers).toMatchObject({ ':status': 502 });
    expect(headers).not.toHaveProperty('x-theirs');
    expect(body).toBe('502 BackendFailed\n');
    expect(session.destroyed).toBe(false);
  });
});

describe.each([
  ['in chunks', `${ok}${chunked}2\r\nhi\r\n`],
  ['with a length', `${ok}Content-Length: 20\r\n\r\nhi`],
])('an answer %s that is cut after its head does not end as a whole one', (_, text) => {
  let cutNow = (): void => undefined;
  beforeAll(() => {
    answer = (socket) => {
      socket.write(text);
      cutNow = () => socket.end();
    };
  });

  test.each(ways)('over %s', async (_way, version, more) => {
    const { text: part, isReset } = await over(version, more, () => cutNow());
    expect(part).toContain('200 OK');
    expect(part).not.toContain('\r\n0\r\n\r\n');
    expect(part).not.toContain('502');
    expect(isReset).toBe(true);
  });

  test('over HTTP/2', async () => {
    const { headers, code } = await overHttp2(() => cutNow());
    expect(headers).toMatchObject({ ':status': 200 });
    expect(code).not.toBe(0);
    expect(session.destroyed).toBe(false);
  });
});

test('headers that a backend repeats arrive, also those that may have one value only', async () => {
  answer = (socket) =>
    void socket.write(
      `${ok}X-Content-Type-Options: nosniff\r\nX-Content-Type-Options: nosniff\r\nContent-Type: text/a\r\nContent-Type: text/b\r\n` +
        'Location: /a\r\nLocation: /b\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nhi',
    );
  const { headers, body } = await overHttp2();
  expect([headers[':status'], body]).toEqual([200, 'hi']);
  expect(headers).toMatchObject({ 'x-theirs': 'yes', 'set-cookie': ['a=1', 'b=2'] });
  const { text } = await over(...http1);
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(text.match(/^location: /gim)).toHaveLength(2);
});

test('204 has no length, and the reason of a backend is kept', async () => {
  answer = (socket) => void socket.write('HTTP/1.1 204 Nothing Here\r\nContent-Length: 0\r\n\r\n');
  const { text } = await over(...http1);
  expect(text).toMatch(/^HTTP\/1\.1 204 Nothing Here\r\n/);
  expect(text).not.toMatch(/content-length/i);
});

test('an upgrade that is never answered ends as a request does: 504', async () => {
  answer = () => undefined;
  const { text } = await over(...upgrading);
  expect(text).toMatch(/^HTTP\/1\.1 504 Gateway Timeout\r\n/);
});

test('100 that nobody asked for is swallowed, 103 is passed on', async () => {
  answer = (socket) =>
    void socket.write(
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n${ok}Content-Length: 2\r\n\r\nhi`,
    );
  const { text } = await over(...http1);
  expect(text).toMatch(/^HTTP\/1\.1 103 Early Hints\r\nlink: <\/a\.css>\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
  const stream = session.request({ ':path': '/', ':authority': host });
  const hints: unknown[] = [];
  stream.on('headers', (headers) => hints.push(headers[':status'], headers['link']));
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
  stream.resume();
  await once(stream, 'close');
  expect([hints, headers[':status']]).toEqual([[103, '</a.css>'], 200]);
});
