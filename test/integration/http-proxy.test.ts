import { once } from 'node:events';
import { type IncomingHttpHeaders, type RequestListener, createServer } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { createServer as createTlsServer, request as httpsRequest } from 'node:https';
import { connect as connectTcp, createServer as createTcpServer, type Server } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { pino } from 'pino';
import { WebSocket, WebSocketServer } from 'ws';
import { afterEach, describe, expect, test } from 'vitest';
import { createAuthenticator } from '../../src/apiserver/authentication/authenticator.ts';
import { staticTokens } from '../../src/apiserver/authentication/authenticator.ts';
import { createHttpServer, type HttpLimits } from '../../src/apiserver/http/server.ts';
import { createCertificateAuthority, issueServerCertificate } from '../../src/tls/certificates.ts';
import type { DialPod } from '../../src/apiserver/proxy/dial-pod.ts';
import type { ProxyTarget } from '../../src/apiserver/proxy/endpoint-resolver.ts';
import { proxyHandler } from '../../src/apiserver/proxy/handler.ts';
import { proxyUpgradeHandler } from '../../src/apiserver/proxy/upgrade.ts';
import { recordAt, textAt } from '../../src/objects/json.ts';
import { serviceUnavailable } from '../../src/objects/status.ts';

const now = new Date();
const ca = createCertificateAuthority('ca', { now });
const pair = issueServerCertificate(ca, 'server', ['127.0.0.1'], { now });
const proxyPath = '/api/v1/namespaces/ns/services/web/proxy';
const authorization = 'Bearer secret';

const cleanups: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

async function backend(listener: RequestListener, scheme: 'http' | 'https' = 'http'): Promise<Target> {
  const server =
    scheme === 'http'
      ? createServer(listener)
      : createTlsServer({ cert: pair.certificate, key: pair.key }, listener);
  const port = await listen(server);
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { scheme, host: '127.0.0.1', port };
}

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

interface Front {
  port: number;
  send: (
    path: string,
    sent?: { method?: string; body?: Readable | string; headers?: Record<string, string> },
  ) => Promise<Answer>;
}

type Target = Omit<ProxyTarget, 'isPod'>;

/** A cluster network whose Pods listen on this machine. */
const dialPod: DialPod = async (host, port) => {
  const socket = connectTcp({ host, port });
  await once(socket, 'connect');
  return socket;
};

/** An API server that forwards everything to one target. */
async function front(target: Target | Error, limits: Partial<HttpLimits> = {}): Promise<Front> {
  const resolve = (): ProxyTarget => {
    if (target instanceof Error) throw target;
    return { ...target, isPod: true };
  };
  const resolver = { service: resolve, pod: resolve, node: resolve };
  const server = createHttpServer({
    tls: pair,
    authenticator: createAuthenticator({
      tokens: [staticTokens([{ token: 'secret', user: { name: 'admin', uid: '', groups: [], extra: {} } }])],
      anonymousPaths: [],
      now: Date.now,
    }),
    handler: proxyHandler(resolver, dialPod),
    upgrade: proxyUpgradeHandler(resolver, dialPod),
    log: pino({ level: 'silent' }),
    limits,
  });
  const { port } = await server.listen(0, '127.0.0.1');
  cleanups.push(() => server.close(0));
  const send: Front['send'] = async (path, { method = 'GET', body, headers = {} } = {}) => {
    const outgoing = httpsRequest({
      host: '127.0.0.1',
      port,
      path,
      method,
      ca: ca.certificate,
      headers: { authorization, ...headers },
    });
    const answered = Promise.withResolvers<Answer>();
    outgoing.on('error', answered.reject);
    outgoing.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('error', answered.reject);
      response.on('data', (chunk: string) => (text += chunk));
      response.on('end', () =>
        answered.resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
      );
    });
    if (body instanceof Readable) body.pipe(outgoing);
    else outgoing.end(body);
    return answered.promise;
  };
  return { port, send };
}

const echo: RequestListener = (request, response) => {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk: string) => (body += chunk));
  request.on('end', () => {
    response.setHeader('Content-Type', 'application/json');
    response.setHeader('Set-Cookie', ['a=b', 'c=d']);
    response.setHeader('Access-Control-Allow-Origin', '*');
    response.setHeader('Cache-Control', 'max-age=5');
    response.end(
      JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }),
    );
  });
};

describe('a proxied request', () => {
  test.each(['http', 'https'] as const)('reaches a backend by %s, whatever the method', async (scheme) => {
    const { send } = await front(await backend(echo, scheme));
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const sent = method === 'GET' ? {} : { body: 'hello', headers: { 'content-length': '5' } };
      const answer = await send(`${proxyPath}/a%20b/?x=%2F&y`, { method, ...sent });
      expect(JSON.parse(answer.body)).toMatchObject({
        method,
        url: '/a%20b/?x=%2F&y',
        body: sent.body ?? '',
      });
    }
    expect((await send(`${proxyPath}/`, { method: 'HEAD' })).status).toBe(200);
  });

  test('leaves the credential here and tells the backend who asked', async () => {
    const { send } = await front(await backend(echo));
    const answer = await send(`${proxyPath}/a`, { headers: { 'x-forwarded-for': '192.0.2.1' } });
    const { headers } = JSON.parse(answer.body) as { headers: Record<string, string> };
    expect(headers['authorization']).toBeUndefined();
    expect(headers['x-forwarded-for']).toBe('192.0.2.1, 127.0.0.1');
    expect(headers['x-forwarded-uri']).toBe(`${proxyPath}/a`);
    expect(answer.headers['set-cookie']).toEqual(['a=b', 'c=d']);
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    expect(answer.headers['cache-control']).toBe('max-age=5');
  });

  test('hands no header to the backend that hides in the path or the query', async () => {
    const { send } = await front(await backend(echo));
    const answer = await send(`${proxyPath}/a%0d%0aX-Evil:%201%0d%0a%0d%0aGET%20/b?c=%0d%0aX-Evil:%202`);
    const { headers, url } = JSON.parse(answer.body) as { headers: Record<string, string>; url: string };
    expect(answer.status).toBe(200);
    expect(headers).not.toHaveProperty('x-evil');
    expect(url).toBe('/a%0D%0AX-Evil:%201%0D%0A%0D%0AGET%20/b?c=%0d%0aX-Evil:%202');
    expect(headers['x-forwarded-uri']).not.toMatch(/[\r\n]/);
  });

  test.each(['GET', 'DELETE', 'POST'])(
    'is one request, where %s hides another in its body',
    async (method) => {
      const { send } = await front(await backend(echo));
      const body = 'DELETE /hidden HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';
      const length = { 'content-length': String(body.length) };
      const chunks = { 'transfer-encoding': 'chunked' };
      for (const connection of ['content-length', 'transfer-encoding', 'content-length, transfer-encoding']) {
        for (const framing of [length, chunks]) {
          const answer = await send(`${proxyPath}/a`, { method, body, headers: { connection, ...framing } });
          expect(JSON.parse(answer.body)).toMatchObject({ method, url: '/a', body, headers: framing });
        }
      }
    },
  );

  test('keeps headers that are not ASCII byte by byte, both ways', async () => {
    const bytes = (value: string | string[] | undefined): string =>
      Buffer.from(String(value), 'latin1').toString('utf8');
    const asked: string[] = [];
    const target = await backend((request, response) => {
      asked.push(bytes(request.headers['x-name']));
      const name = Buffer.from('grüße.txt').toString('latin1');
      response.setHeader('Content-Disposition', `attachment; filename=${name}`);
      if (request.url === '/page') response.setHeader('Content-Type', 'text/html').end('<a href="/x">');
      else response.end(request.url === '/empty' ? '' : 'x');
    });
    const { send } = await front(target);
    for (const path of ['text', 'page', 'empty']) {
      for (const method of ['GET', 'POST']) {
        const headers = { 'x-name': Buffer.from('Jörg').toString('latin1') };
        const answer = await send(`${proxyPath}/${path}`, { method, headers });
        expect(bytes(answer.headers['content-disposition'])).toBe('attachment; filename=grüße.txt');
      }
    }
    expect(new Set(asked)).toEqual(new Set(['Jörg']));
  });

  test('without a path is sent to the path /', async () => {
    const { send } = await front(await backend(echo));
    const answer = await send(`${proxyPath}?a=b`);
    expect([answer.status, answer.headers.location]).toEqual([301, `${proxyPath}/?a=b`]);
    expect(JSON.parse((await send(proxyPath, { method: 'POST' })).body)).toMatchObject({ url: '/' });
  });

  test('follows redirects of the backend through the proxy', async () => {
    const target = await backend((request, response) => {
      response.writeHead(302, { Location: request.url === '/abs' ? '/login' : 'login' }).end();
    });
    const { send } = await front(target);
    expect((await send(`${proxyPath}/abs`)).headers.location).toBe(`${proxyPath}/login`);
    expect((await send(`${proxyPath}/rel`)).headers.location).toBe('login');
  });

  test('shows pages whose links lead through the proxy', async () => {
    const html = '<a href="/x">ä</a><img src=pic.png><script>"<a href=\\"/y\\">"</script>';
    const seen = html.replace('"/x"', `"${proxyPath}/x"`);
    const target = await backend((request, response) => {
      response.setHeader('Content-Type', 'text/html; charset=utf-8');
      if (request.url === '/zipped') response.setHeader('Content-Encoding', 'gzip').end(gzipSync(html));
      else if (request.url === '/broken') response.setHeader('Content-Encoding', 'gzip').end('no gzip');
      else response.setHeader('Content-Length', Buffer.byteLength(html)).end(html);
    });
    const { send } = await front(target);
    expect((await send(`${proxyPath}/`)).body).toBe(seen);
    const zipped = await send(`${proxyPath}/zipped`);
    expect([zipped.body, zipped.headers['content-encoding']]).toEqual([seen, undefined]);
    expect(await send(`${proxyPath}/broken`)).toMatchObject({ body: 'no gzip' });
  });

  test('hands on pages that are too long to look through', async () => {
    const html = `<a href="/x">${'a'.repeat(5 * 1024 * 1024)}`;
    const target = await backend((_request, response) => {
      response.setHeader('Content-Type', 'text/html').end(html);
    });
    const { send } = await front(target);
    expect((await send(`${proxyPath}/`)).body === html).toBe(true);
  });

  test('streams a body larger than any limit, both ways', async () => {
    const target = await backend((request, response) => void request.pipe(response));
    const { send } = await front(target);
    const piece = Buffer.alloc(64 * 1024, 'a');
    const body = Readable.from(Array.from({ length: 160 }, () => piece));
    expect((await send(`${proxyPath}/`, { method: 'POST', body })).body.length).toBe(160 * piece.length);
  });

  test('takes as long as its body does, while other requests have to be in time', async () => {
    const begun = Promise.withResolvers<undefined>();
    const target = await backend((request, response) => {
      request.once('data', () => begun.resolve(undefined));
      echo(request, response);
    });
    // Every half second is looked who is late; a handshake may take five.
    const { send, port } = await front(target, { headersTimeoutMs: 5_000, requestTimeoutMs: 200 });
    const slow = new PassThrough();
    slow.write('one ');
    const answer = send(`${proxyPath}/a`, { method: 'POST', body: slow });
    await begun.promise;
    // Two that come later, one behind the other, and are cut off: whatever has the same time is over by now.
    for (const path of ['/api/v1/namespaces/ns/services', '/api/v1/namespaces/ns/pods']) {
      const late = connectTls({ host: '127.0.0.1', port, ca: ca.certificate });
      late.write(
        `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${authorization}\r\nContent-Length: 9\r\n\r\nabc`,
      );
      late.resume().on('error', () => undefined);
      await once(late, 'close');
    }
    slow.end('two');
    expect(JSON.parse((await answer).body)).toMatchObject({ body: 'one two' });
  });

  test('keeps the status and a body of chunks sent over time', async () => {
    const { send } = await front(
      await backend((_request, response) => {
        response.writeHead(418, { 'X-A': 'b' });
        response.write('one ');
        setImmediate(() => response.end('two'));
      }),
    );
    expect(await send(`${proxyPath}/`)).toMatchObject({ status: 418, body: 'one two' });
  });

  test('that breaks off at the backend breaks off at the client', async () => {
    const { send } = await front(
      await backend((_request, response) => {
        response.writeHead(200, { 'Content-Length': '100' });
        response.write('half', () => response.destroy());
      }),
    );
    await expect(send(`${proxyPath}/`)).rejects.toThrow();
  });

  test('ends at the backend when the client goes away', async () => {
    const gone = Promise.withResolvers<undefined>();
    const { port } = await front(
      await backend((request, response) => {
        response.write('x');
        request.socket.on('close', () => gone.resolve(undefined));
      }),
    );
    const outgoing = httpsRequest({
      host: '127.0.0.1',
      port,
      path: `${proxyPath}/`,
      ca: ca.certificate,
      headers: { authorization },
    });
    outgoing.on('error', () => undefined);
    outgoing.on('response', (response) => {
      response.on('error', () => undefined);
      outgoing.destroy();
    });
    outgoing.end();
    await gone.promise;
  });
});

describe('a client of HTTP/2', () => {
  test('is proxied as one of HTTP/1.1: bodies of any length, and headers that belong to no connection', async () => {
    const { port } = await front(await backend(echo));
    const client = connectHttp2(`https://127.0.0.1:${port}`, { ca: ca.certificate });
    cleanups.push(() => {
      client.destroy();
    });
    for (const [method, size] of [
      ['GET', 0],
      ['POST', 0],
      ['PUT', 1_000_000],
    ] as const) {
      const stream = client.request(
        { ':method': method, ':path': `${proxyPath}/a?b=c`, authorization, 'x-own': 'ü' },
        { endStream: size === 0 },
      );
      if (size > 0) stream.end('x'.repeat(size));
      const response = new Promise<IncomingHttpHeaders>((resolve) => stream.once('response', resolve));
      let text = '';
      for await (const chunk of stream) text += String(chunk);
      const headers = await response;
      expect([method, headers[':status'], headers['set-cookie']]).toEqual([method, 200, ['a=b', 'c=d']]);
      const seen: unknown = JSON.parse(text);
      expect(textAt(seen, 'method')).toBe(method);
      expect(textAt(seen, 'body')).toHaveLength(size);
      expect(textAt(seen, 'headers', 'x-forwarded-host')).toBe(`127.0.0.1:${port}`);
      expect(recordAt(seen, 'headers')).not.toHaveProperty('authorization');
    }
  });
});

describe('a backend that cannot be reached', () => {
  test('is 503 with the reason', async () => {
    const closed = createServer();
    const port = await listen(closed);
    closed.close();
    await once(closed, 'close');
    const { send } = await front({ scheme: 'http', host: '127.0.0.1', port });
    const answer = await send(`${proxyPath}/`, { method: 'POST', body: 'x' });
    expect(JSON.parse(answer.body)).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: `error trying to reach service: dial tcp 127.0.0.1:${port}: connect: connection refused`,
      reason: 'ServiceUnavailable',
      code: 503,
    });
  });

  test('because there is none is 503', async () => {
    const { send } = await front(serviceUnavailable('no endpoints available for service "web"'));
    expect(await send(`${proxyPath}/`)).toMatchObject({ status: 503 });
  });

  test('because it speaks another protocol all at once is 500', async () => {
    const over = Promise.withResolvers<undefined>();
    const raw = createTcpServer((socket) => {
      socket.resume().on('close', () => over.resolve(undefined));
      socket.write('HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nraw');
    });
    const port = await listen(raw);
    cleanups.push(() => void raw.close());
    const { send } = await front({ scheme: 'http', host: '127.0.0.1', port });
    expect(JSON.parse((await send(`${proxyPath}/`)).body)).toMatchObject({
      code: 500,
      message: 'backend tried to switch protocol "websocket" when "" was requested',
    });
    await over.promise;
  });

  test('because it hangs up is 503', async () => {
    const { send } = await front(await backend((request) => void request.socket.destroy()));
    expect(JSON.parse((await send(`${proxyPath}/`)).body)).toMatchObject({
      code: 503,
      message: 'error trying to reach service: EOF',
    });
  });
});

describe('a WebSocket', () => {
  const url = (port: number, path: string): string => `wss://127.0.0.1:${port}${path}`;
  const options = { ca: ca.certificate, headers: { authorization } };

  test('carries messages both ways', async () => {
    const sockets = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(sockets, 'listening');
    cleanups.push(() => {
      for (const client of sockets.clients) client.terminate();
      sockets.close();
    });
    const paths: (string | undefined)[] = [];
    sockets.on('connection', (socket, request) => {
      paths.push(request.url);
      socket.on('message', (message) => {
        if (Buffer.isBuffer(message)) socket.send(`you said ${message.toString()}`);
      });
    });
    const address = sockets.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const { port: frontPort } = await front({ scheme: 'http', host: '127.0.0.1', port });
    const client = new WebSocket(url(frontPort, `${proxyPath}/socket?q=1`), options);
    await once(client, 'open');
    client.send('hi');
    expect(String((await once(client, 'message'))[0])).toBe('you said hi');
    expect(paths).toEqual(['/socket?q=1']);
    const closed = once(client, 'close');
    for (const socket of sockets.clients) socket.close(1000);
    await closed;
  });

  test('of a browser shows its token as a subprotocol, which the backend does not see', async () => {
    const sockets = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(sockets, 'listening');
    cleanups.push(() => {
      for (const client of sockets.clients) client.terminate();
      sockets.close();
    });
    const seen: (string | undefined)[] = [];
    sockets.on('connection', (_socket, request) => seen.push(request.headers['sec-websocket-protocol']));
    const address = sockets.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const { port: frontPort } = await front({ scheme: 'http', host: '127.0.0.1', port });
    const offered = (token: string): string =>
      `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`;
    const open = (protocols: string[]): WebSocket =>
      new WebSocket(url(frontPort, `${proxyPath}/`), protocols, { ca: ca.certificate });

    const client = open(['chat', offered('secret'), 'talk']);
    await once(client, 'open');
    expect(client.protocol).toBe('chat');
    expect(seen).toEqual(['chat,talk']);
    client.terminate();

    for (const protocols of [
      [offered('secret')],
      ['chat', offered('wrong')],
      ['chat', offered('secret'), `${offered('secret')}AA`],
    ]) {
      const refused = open(protocols);
      refused.on('error', () => undefined);
      const answer: unknown[] = await once(refused, 'unexpected-response');
      expect(answer[1]).toMatchObject({ statusCode: 401 });
      refused.terminate();
    }
    expect(seen.length).toBe(1);
  });

  test.each([101, 403])('gets the headers of %d as they are, byte by byte', async (status) => {
    const lines = ['Connection: Upgrade', 'Upgrade: websocket', 'X-Name: Jörg', 'Content-Length: 0', '', ''];
    const raw = createTcpServer((socket) => {
      socket.resume().on('error', () => undefined);
      socket.end([`HTTP/1.1 ${status} S`, ...lines].join('\r\n'));
    });
    cleanups.push(() => void raw.close());
    const { port } = await front({ scheme: 'http', host: '127.0.0.1', port: await listen(raw) });
    const client = connectTls({ host: '127.0.0.1', port, ca: ca.certificate });
    const asked = `GET ${proxyPath}/ HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${authorization}\r\n`;
    client.write(`${asked}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    const chunks: Buffer[] = [];
    client.on('error', () => undefined).on('data', (chunk: Buffer) => chunks.push(chunk));
    await once(client, 'close');
    const answer = Buffer.concat(chunks).toString('utf8');
    expect(answer).toContain(`HTTP/1.1 ${status} S\r\n`);
    expect(answer).toContain('\r\nX-Name: Jörg\r\n');
  });

  test.each([
    [403, 403],
    [200, 500],
  ])('that the backend answers with %d is refused with %d', async (answered, status) => {
    const target = await backend((_request, response) => void response.writeHead(answered).end('no'));
    const { port } = await front(target);
    const client = new WebSocket(url(port, `${proxyPath}/`), options);
    client.on('error', () => undefined);
    const answer: unknown[] = await once(client, 'unexpected-response');
    expect(answer[1]).toMatchObject({ statusCode: status });
    client.terminate();
  });

  test('without a host is refused with a Status', async () => {
    const { port } = await front(serviceUnavailable('no endpoints available for service "web"'));
    const client = new WebSocket(url(port, `${proxyPath}/`), options);
    client.on('error', () => undefined);
    const answer: unknown[] = await once(client, 'unexpected-response');
    expect(answer[1]).toMatchObject({ statusCode: 503 });
    client.terminate();
  });
});
