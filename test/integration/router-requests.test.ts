/** Requests as RFC 9110 and 9112 have them, where a proxy is easily wrong. */
import { once } from 'node:events';
import {
  createServer as createHttp2Server,
  connect as connectHttp2,
  type ServerHttp2Stream,
} from 'node:http2';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createCertificateAuthority, issueServerCertificate } from '../../src/tls/certificates.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { ask, sendText } from '../support/router/requests.ts';
import { Objects, portOf, type RunningRouter, startRouter } from '../support/router/router.ts';

const host = 'requests.test';
const ingresses = '/apis/networking.k8s.io/v1/namespaces/shop/ingresses';
let api: TestServer;
let objects: Objects;
let router: RunningRouter;
let ca: string;
const closing: (() => void)[] = [];
const echo = (incoming: IncomingMessage, response: ServerResponse): void => {
  const { method, url, headers } = incoming;
  if (url === '/early') {
    response.writeHead(413, { 'content-length': 0 });
    response.end();
    return;
  }
  let body = '';
  incoming.on('data', (piece: Buffer) => (body += piece.toString()));
  incoming.on('end', () => {
    response.end(JSON.stringify({ method, url, headers, body, trailers: incoming.rawTrailers }));
  });
};
/** What the backend does with `Expect: 100-continue`. */
let onExpect = (incoming: IncomingMessage, response: ServerResponse): void => {
  response.writeContinue();
  echo(incoming, response);
};

beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0 });
  objects = new Objects(api.client);
  await objects.create('/api/v1/namespaces', { metadata: { name: 'shop' } });
  const backend = createServer(echo);
  backend.on('checkContinue', (incoming, response) => onExpect(incoming, response));
  backend.listen(0, '127.0.0.1');
  await once(backend, 'listening');
  closing.push(() => backend.close().closeAllConnections());
  await objects.service('echo', [portOf(backend)]);
  const authority = createCertificateAuthority('test', { now: new Date() });
  ca = authority.certificate;
  const pair = issueServerCertificate(authority, host, [host], { now: new Date() });
  await objects.tlsIngress('echo', host, pair);
  router = await startRouter(api.client, { backendTimeoutMs: 5000 });
  const { table } = router.router;
  await vi.waitUntil(() => table.resolve({ scheme: 'https', host, path: '/' }).kind === 'forward', 20_000);
});
afterAll(async () => {
  await router.stop();
  for (const close of closing) close();
  await api.stop();
});

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly trailers: readonly string[];
}

test('bodies by HTTP/2 that are answered before they are read leave their place to others', async () => {
  const session = connectHttp2(`https://127.0.0.1:${router.ports.https}`, { ca, servername: host });
  closing.push(() => session.destroy());
  for (let n = 0; n < 300; n++) {
    const authority = n % 2 === 0 ? host : 'unknown.test';
    const path = n % 2 === 0 ? '/early' : '/';
    const stream = session.request({ ':path': path, ':method': 'POST', ':authority': authority });
    stream.on('error', () => undefined).end(Buffer.alloc(1000));
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
    expect([n, headers[':status']]).toEqual([n, n % 2 === 0 ? 413 : 404]);
    stream.resume();
  }
});

/** What the backend saw of a request that is answered 200, in chunks or by length. */
function seenIn(answer: string): Seen {
  const [, json = ''] = /(\{.*\})/.exec(answer) ?? [];
  return JSON.parse(json) as Seen;
}

async function sendSecurely(text: string): Promise<string> {
  const socket = connectTls(router.ports.https, '127.0.0.1', {
    ca,
    servername: host,
    ALPNProtocols: ['http/1.1'],
  });
  socket.on('error', () => socket.destroy());
  await once(socket, 'secureConnect');
  socket.write(text);
  let got = '';
  socket.setEncoding('latin1').on('data', (piece: string) => (got += piece));
  await new Promise((resolve) => socket.on('close', resolve));
  return got;
}

const end = `Host: ${host}\r\nConnection: close\r\n`;

describe.each([
  ['http', async (text: string) => await sendText(router.ports.http, text)],
  ['https', async (text: string) => await sendSecurely(text)],
])('over %s', (_, send) => {
  test.each([
    ['gzip, chunked', 501],
    ['GZIP , Chunked', 501],
    ['deflate, gzip, chunked', 501],
    ['x-own, chunked', 501],
    // Chunked has to be last, and once (RFC 9112, 6.3).
    ['gzip', 400],
    ['chunked, gzip', 400],
    ['chunked, chunked', 400],
  ])('Transfer-Encoding: %s: %i, and the connection ends', async (coding, status) => {
    const text = `POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: ${coding}\r\n\r\n2\r\nhi\r\n0\r\n\r\n`;
    const answered = await send(`${text}GET /smuggled HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    expect(answered).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answered.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test.each(['BREW', 'VERSION-CONTROL', 'foo', '!x'])('the method %s is not known: 501', async (method) => {
    expect(await send(`${method} / HTTP/1.1\r\n${end}\r\n`)).toMatch(/^HTTP\/1\.1 501 Not Implemented\r\n/);
  });

  test('CONNECT is not known', async () => {
    expect(await send(`CONNECT ${host}:80 HTTP/1.1\r\n${end}\r\n`)).toMatch(/^HTTP\/1\.1 501 /);
  });

  test.each(['PURGE', 'PROPFIND', 'QUERY', 'REPORT'])('%s passes', async (method) => {
    expect(seenIn(await send(`${method} /x HTTP/1.1\r\n${end}\r\n`))).toMatchObject({ method, url: '/x' });
  });

  test.each([
    ['GET', ''],
    ['POST', 'Content-Type: text/plain\r\nContent-Length: 2\r\n'],
  ])('another protocol than websocket is not asked for at the backend: %s', async (method, more) => {
    const asked = `${method} / HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n`;
    const { headers, body } = seenIn(await send(method === 'GET' ? asked : `${asked}hi`));
    expect(headers).not.toHaveProperty('upgrade');
    expect(headers).not.toHaveProperty('http2-settings');
    expect(body).toBe(method === 'GET' ? '' : 'hi');
  });

  test('a client says nothing of itself, however it writes it', async () => {
    const own = [
      'X_Forwarded_For',
      'X-Forwarded_Host',
      'x.forwarded.proto',
      'X_REAL_IP',
      'X-Real-IP',
      'X-Forwarded-For',
      'X-Forwarded-Prefix',
    ];
    const lines = own.map((name) => `${name}: 6.6.6.6\r\n`).join('');
    const { headers } = seenIn(await send(`GET / HTTP/1.1\r\n${end}${lines}X_Own: 6\r\n\r\n`));
    expect(Object.values(headers)).not.toContain('6.6.6.6');
    expect(headers).toMatchObject({ 'x-real-ip': '127.0.0.1', 'x-forwarded-for': '127.0.0.1', x_own: '6' });
  });

  test('trailers of a request arrive, but none that says how to read it', async () => {
    const { body, trailers } = seenIn(
      await send(
        `POST / HTTP/1.1\r\n${end}Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 5\r\nAuthorization: evil\r\n\r\n`,
      ),
    );
    expect([body, trailers]).toEqual(['hi', ['x-sum', '5']]);
  });
});

test.each(['http', 'https'])(
  'an answer before the end of the request leaves a connection that goes on: %s',
  async (scheme) => {
    const { http, https } = router.ports;
    const socket =
      scheme === 'http'
        ? connect(http, '127.0.0.1')
        : connectTls(https, '127.0.0.1', { ca, servername: host, ALPNProtocols: ['http/1.1'] });
    socket.on('error', () => socket.destroy());
    let got = '';
    socket.setEncoding('latin1').on('data', (piece: string) => (got += piece));
    const body = Buffer.alloc(4_000_000);
    socket.write(`POST /early HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${body.length}\r\n\r\n`);
    await vi.waitFor(() => expect(got).toMatch(/^HTTP\/1\.1 413 /), 20_000);
    socket.write(body);
    socket.write(`GET /next HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    await once(socket, 'close');
    expect(got).toContain('/next');
  },
);

describe('HTTP/1.0', () => {
  test('without Host goes to a rule without a host', async () => {
    expect(await sendText(router.ports.http, 'GET / HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 404 /);
    const backend = { service: { name: 'echo', port: { number: 80 } } };
    await objects.create(ingresses, { metadata: { name: 'any' }, spec: { defaultBackend: backend } });
    await vi.waitUntil(
      () => router.router.table.resolve({ scheme: 'http', host: '', path: '/' }).kind === 'forward',
      20_000,
    );
    const answered = await sendText(router.ports.http, 'GET /healthz HTTP/1.0\r\n\r\n');
    expect(answered).toMatch(/^HTTP\/1\.1 200 /);
    // Servers of HTTP/1.1 ask for one.
    expect(seenIn(answered)).toMatchObject({ url: '/healthz', headers: { host: 'echo.shop.svc' } });
    await objects.delete(`${ingresses}/any`);
    await vi.waitUntil(
      () => router.router.table.resolve({ scheme: 'http', host: '', path: '/' }).kind === 'refuse',
      20_000,
    );
  });

  test('with Host goes to the rule of the host', async () => {
    const answered = await sendText(router.ports.http, `GET / HTTP/1.0\r\nHost: ${host}\r\n\r\n`);
    expect(seenIn(answered).headers).toMatchObject({ host });
  });

  test('HTTP/1.1 without Host is refused', async () => {
    expect(await sendText(router.ports.http, 'GET / HTTP/1.1\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /);
  });

  test('chunks are not of HTTP/1.0', async () => {
    const text = `POST / HTTP/1.0\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`;
    expect(await sendText(router.ports.http, text)).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe('Expect: 100-continue', () => {
  const headers = { host, expect: '100-continue', 'content-length': '5' };

  test('the backend says that the client may go on', async () => {
    const sent = request({ port: router.ports.http, method: 'POST', path: '/', headers, agent: false });
    sent.flushHeaders();
    await once(sent, 'continue');
    sent.end('hello');
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    let body = '';
    for await (const piece of response) body += String(piece);
    expect(seenIn(body)).toMatchObject({ body: 'hello', headers: { expect: '100-continue' } });
  });

  test('the backend refuses: no body is asked for, and the connection ends', async () => {
    onExpect = (_, response) => {
      response.writeHead(417, { 'content-length': 0 });
      response.end();
    };
    const text = `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n`;
    const answered = await sendText(router.ports.http, text);
    expect(answered).toMatch(/^HTTP\/1\.1 417 Expectation Failed\r\n/);
    expect(answered).not.toContain('100');
  });

  test('over HTTP/2', async () => {
    onExpect = (_, response) => {
      response.writeHead(413, { 'content-length': 0 });
      response.end();
    };
    const session = connectHttp2(`https://127.0.0.1:${router.ports.https}`, { ca, servername: host });
    const stream = session.request({
      ':method': 'POST',
      ':path': '/',
      ':authority': host,
      expect: '100-continue',
    });
    let isContinued = false;
    stream.on('continue', () => (isContinued = true));
    const [answered] = (await once(stream, 'response')) as [Record<string, unknown>];
    expect([answered[':status'], isContinued]).toEqual([413, false]);
    session.destroy();
  });
});

describe('a WebSocket', () => {
  /** Answers by hand. */
  async function backend(name: string, talk: (socket: Socket) => void, port: object = {}): Promise<void> {
    const server = createServer();
    server.on('upgrade', (_request, socket: Socket) => {
      socket.on('error', () => socket.destroy());
      talk(socket);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closing.push(() => server.close().closeAllConnections());
    await objects.service(name, [portOf(server)], port);
    await objects.ingress(name, `${name}.test`, name);
    const { table } = router.router;
    await vi.waitUntil(
      () => table.resolve({ scheme: 'http', host: `${name}.test`, path: '/' }).kind === 'forward',
      20_000,
    );
  }

  const asked = (name: string): string =>
    `GET / HTTP/1.1\r\nHost: ${name}.test\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n`;

  test.each([
    ['ws', {}],
    // A connection of HTTP/2 is for all requests: it changes to nothing.
    ['ws-h2c', { appProtocol: 'kubernetes.io/h2c' }],
  ])('passes, with what came too early: %s', async (name, port) => {
    const talk = (socket: Socket): void => {
      socket.write(
        'HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-A: b\r\n\r\nfirst',
      );
      socket.pipe(socket);
    };
    await backend(name, talk, port);
    const socket = connect(router.ports.http, '127.0.0.1');
    socket.write(`${asked(name)}early`);
    let got = '';
    socket.setEncoding('latin1').on('data', (piece: string) => (got += piece));
    await vi.waitFor(() =>
      expect(got).toMatch(/^HTTP\/1\.1 101 Switching\r\nx-a: b\r\n[^]*\r\n\r\nfirstearly$/),
    );
    socket.destroy();
  });

  test('that the backend refuses gets its answer', async () => {
    await backend('refusing', (socket) => {
      socket.end('HTTP/1.1 401 Who Is It\r\nWWW-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nno');
    });
    const answered = await sendText(router.ports.http, asked('refusing'));
    expect(answered).toMatch(/^HTTP\/1\.1 401 Who Is It\r\nwww-authenticate: Basic\r\n[^]*\r\n\r\nno$/);
  });

  test('for an unknown host: 404, once', async () => {
    const answered = await sendText(router.ports.http, asked('unknown'));
    expect(answered).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/);
    expect(answered.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });
});

test.each([
  ['reset', (stream: ServerHttp2Stream) => stream.destroy(new Error('reset'))],
  ['cut with its connection', (stream: ServerHttp2Stream) => stream.session?.socket.destroy()],
])(
  'a stream of an HTTP/2 backend that is %s is no whole answer, and the next one is served',
  async (what, cut) => {
    const server = createHttp2Server();
    server.on('sessionError', () => undefined);
    server.on('stream', (stream: ServerHttp2Stream, { ':path': path }) => {
      stream.on('error', () => undefined);
      stream.respond({ ':status': 200 });
      stream.write('part');
      if (path === '/whole') stream.end();
      else setImmediate(() => cut(stream));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closing.push(() => server.close());
    const name = `h2c-${what.length}`;
    const to = `${name}.test`;
    await objects.service(name, [portOf(server)], { appProtocol: 'kubernetes.io/h2c' });
    await objects.ingress(name, to, name);
    const { table } = router.router;
    await vi.waitUntil(
      () => table.resolve({ scheme: 'http', host: to, path: '/' }).kind === 'forward',
      20_000,
    );
    expect(await ask(router.ports.http, to, { path: '/whole' })).toMatchObject({ status: 200, body: 'part' });
    await expect(ask(router.ports.http, to, { method: 'POST', body: 'x' })).rejects.toThrow();
    expect(await ask(router.ports.http, to, { path: '/whole' })).toMatchObject({ status: 200, body: 'part' });
  },
);
