/** HTTPRoutes at the listeners of a Gateway: what is sent is what the specification of Gateway API asks. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import {
  connect as connectHttp2,
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
} from 'node:http2';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import type { HTTPRouteFilter, HTTPRouteRule } from '../../src/objects/types/gateway.ts';
import { RunningGateway } from '../support/router/gateway.ts';
import { type Answered, ask } from '../support/router/requests.ts';
import { portOf } from '../support/router/router.ts';
import { httpRoute, listener } from '../unit/network/gateway/routes.ts';

let gateway: RunningGateway;
const closing: (() => void)[] = [];
/** Requests that each backend got. */
const got = new Map<string, Seen[]>();

interface Seen {
  readonly pod: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A server that answers with what it got, as Pods of the suite do. */
async function echoPod(pod: string): Promise<number> {
  const seen: Seen[] = [];
  got.set(pod, seen);
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const { method = '', url = '', headers } = request;
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      const one: Seen = { pod, method, url, headers: headers as Record<string, string>, body };
      seen.push(one);
      const [, delay] = /delay=(\d+)/.exec(url) ?? [];
      const answer = (): void => {
        response.setHeader('x-kept', 'backend');
        response.setHeader('x-gone', 'backend');
        response.setHeader('access-control-allow-origin', 'https://backend.test');
        response.end(JSON.stringify(one));
      };
      if (delay === undefined) answer();
      else setTimeout(answer, Number(delay));
    });
  });
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => socket.on('message', (data) => socket.send(data)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    sockets.close();
    server.close().closeAllConnections();
  });
  return portOf(server);
}

beforeAll(async () => {
  gateway = new RunningGateway();
  for (const pod of ['one', 'two', 'mirror-a', 'mirror-b'])
    gateway.serve(pod, { ports: [await echoPod(pod)] });
  gateway.serve('empty', { ports: [] });
});
afterAll(async () => {
  await gateway.stop();
  for (const close of closing) close();
});

const toOne = [{ name: 'one', port: 80 }];

/** Serves one rule at port 80 of the Gateway. */
async function serve(...rules: HTTPRouteRule[]): Promise<number> {
  return await gateway.listen(80, 'HTTP', [listener('', [httpRoute(rules)])]);
}

function seenIn(answer: Answered): Seen {
  expect(answer.status).toBe(200);
  return JSON.parse(answer.body) as Seen;
}

test('a plan counts for the next request, on connections that are there', async () => {
  const port = await serve({ backendRefs: toOne });
  const socket = connect(port, '127.0.0.1');
  closing.push(() => socket.destroy());
  let text = '';
  socket.setEncoding('latin1').on('data', (piece: string) => (text += piece));
  const request = 'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n';
  socket.write(request);
  await vi.waitUntil(() => text.includes('"pod":"one"'), 20_000);
  await serve({ backendRefs: [{ name: 'two', port: 80 }] });
  socket.write(request);
  await vi.waitUntil(() => text.includes('"pod":"two"'), 20_000);
  await gateway.listen(80, 'HTTP', [listener('b.test', [])]);
  socket.write(request);
  await vi.waitUntil(() => text.includes('404 NoHost'), 20_000);
});

test('no rule, no backend, an invalid one, none without weight, no endpoint', async () => {
  const path = (value: string, rule: HTTPRouteRule): HTTPRouteRule => ({
    matches: [{ path: { type: 'PathPrefix', value } }],
    ...rule,
  });
  const port = await serve(
    path('/none', {}),
    path('/invalid', { backendRefs: [{ name: 'bad', port: 80 }] }),
    path('/weightless', { backendRefs: [{ name: 'one', port: 80, weight: 0 }] }),
    path('/empty', { backendRefs: [{ name: 'empty', port: 80 }] }),
    path('/filter', { backendRefs: toOne, filters: [{ type: 'ExternalAuth' }] }),
  );
  const answers = {
    '/other': 404,
    '/none': 500,
    '/invalid': 500,
    '/weightless': 500,
    '/empty': 503,
    '/filter': 500,
  };
  for (const [target, status] of Object.entries(answers)) {
    expect([target, (await ask(port, 'a.test', { path: target })).status]).toEqual([target, status]);
  }
});

test('weights: an invalid backend has its share', async () => {
  const port = await serve({
    backendRefs: [
      { name: 'one', port: 80, weight: 3 },
      { name: 'bad', port: 80, weight: 1 },
    ],
  });
  const statuses = await Promise.all(Array.from({ length: 200 }, () => ask(port, 'a.test')));
  const failed = statuses.filter(({ status }) => status === 500).length;
  expect(failed).toBeGreaterThan(20);
  expect(failed).toBeLessThan(90);
  expect(statuses.filter(({ status }) => status === 200)).toHaveLength(200 - failed);
});

test('headers of the request and the answer; Host goes on as it is', async () => {
  const filters: HTTPRouteFilter[] = [
    {
      type: 'RequestHeaderModifier',
      requestHeaderModifier: {
        set: [{ name: 'X-Set', value: 'set' }],
        add: [{ name: 'X-Add', value: 'added' }],
        remove: ['X-Remove'],
      },
    },
    {
      type: 'ResponseHeaderModifier',
      responseHeaderModifier: { add: [{ name: 'X-Kept', value: 'added' }], remove: ['X-Gone'] },
    },
  ];
  const own: HTTPRouteFilter = {
    type: 'RequestHeaderModifier',
    requestHeaderModifier: { set: [{ name: 'X-Backend', value: 'one' }] },
  };
  const port = await serve({ filters, backendRefs: [{ name: 'one', port: 80, filters: [own] }] });
  const headers = { 'x-set': 'client', 'x-add': 'client', 'x-remove': 'client' };
  const answer = await ask(port, 'a.test:1234', { headers });
  expect(seenIn(answer).headers).toMatchObject({
    ...{ host: 'a.test:1234', 'x-set': 'set', 'x-add': 'client,added', 'x-backend': 'one' },
    'x-forwarded-for': '127.0.0.1',
  });
  expect(seenIn(answer).headers).not.toHaveProperty('x-remove');
  expect(answer.headers).toMatchObject({ 'x-kept': 'backend,added' });
  expect(answer.headers).not.toHaveProperty('x-gone');
});

test('redirects lead to the port of the Gateway, not to the one that is bound', async () => {
  const rule: HTTPRouteRule = {
    matches: [{ path: { type: 'PathPrefix', value: '/old' } }],
    filters: [
      {
        type: 'RequestRedirect',
        requestRedirect: {
          statusCode: 301,
          path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/new' },
        },
      },
    ],
  };
  const port = await gateway.listen(8080, 'HTTP', [listener('', [httpRoute([rule])])]);
  const answer = await ask(port, `a.test:${port}`, { path: '/old/x?q=1' });
  expect([answer.status, answer.headers.location]).toEqual([301, 'http://a.test:8080/new/x?q=1']);
});

test('rewrites change path and Host, and say the first Host', async () => {
  const rewrite = {
    hostname: 'inside.test',
    path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/in' },
  };
  const port = await serve({
    matches: [{ path: { type: 'PathPrefix', value: '/out' } }],
    filters: [{ type: 'URLRewrite', urlRewrite: rewrite }],
    backendRefs: toOne,
  });
  const seen = seenIn(await ask(port, 'a.test', { path: '/out/x?q=1' }));
  expect([seen.url, seen.headers['host'], seen.headers['x-forwarded-host']]).toEqual([
    ...['/in/x?q=1', 'inside.test', 'a.test'],
  ]);
});

test('timeouts: 504, for the whole and for one try', async () => {
  const path = (value: string): HTTPRouteRule => ({ matches: [{ path: { type: 'PathPrefix', value } }] });
  const port = await serve(
    { ...path('/request'), backendRefs: toOne, timeouts: { request: '300ms' } },
    { ...path('/try'), backendRefs: toOne, timeouts: { request: '0s', backendRequest: '300ms' } },
    { ...path('/none'), backendRefs: toOne, timeouts: { request: '0s' } },
  );
  for (const [target, status] of Object.entries({ '/request': 504, '/try': 504, '/none': 200 })) {
    expect([target, (await ask(port, 'a.test', { path: `${target}?delay=1000` })).status]).toEqual([
      target,
      status,
    ]);
    expect((await ask(port, 'a.test', { path: target })).status).toBe(200);
  }
});

test('mirrors get the changed request with its body; their answers are nobody’s', async () => {
  const mirror = (name: string, percent?: number): HTTPRouteFilter => ({
    type: 'RequestMirror',
    requestMirror: { backendRef: { name, port: 80 }, ...(percent === undefined ? {} : { percent }) },
  });
  const port = await serve({
    filters: [
      {
        type: 'RequestHeaderModifier',
        requestHeaderModifier: { set: [{ name: 'X-Set', value: 'set' }] },
      },
      ...[mirror('mirror-a'), mirror('mirror-b'), mirror('two', 0), mirror('bad'), mirror('empty')],
    ],
    backendRefs: toOne,
  });
  const two = got.get('two')?.length;
  const body = 'x'.repeat(300_000);
  expect(seenIn(await ask(port, 'a.test', { method: 'POST', path: '/m', body })).body).toBe(body);
  for (const pod of ['mirror-a', 'mirror-b']) {
    await vi.waitUntil(() => got.get(pod)?.length === 1, 20_000);
    expect(got.get(pod)?.[0]).toMatchObject({
      method: 'POST',
      url: '/m',
      body,
      headers: { 'x-set': 'set', host: 'a.test' },
    });
  }
  seenIn(await ask(port, 'a.test'));
  await vi.waitUntil(() => got.get('mirror-a')?.length === 2, 20_000);
  expect(got.get('two')?.length).toBe(two);
});

test('a mirror that does not answer or read holds nobody up', async () => {
  const silent = createServer(() => undefined);
  silent.on('connection', (socket) => socket.pause());
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  closing.push(() => silent.close().closeAllConnections());
  gateway.serve('silent', { ports: [portOf(silent)] });
  const port = await serve({
    filters: [{ type: 'RequestMirror', requestMirror: { backendRef: { name: 'silent', port: 80 } } }],
    backendRefs: toOne,
  });
  const body = 'x'.repeat(8_000_000);
  expect(seenIn(await ask(port, 'a.test', { method: 'POST', body })).body).toHaveLength(body.length);
});

test('CORS: a preflight is answered here, an answer gets its headers', async () => {
  const cors = { allowOrigins: ['https://*.foo.test'], allowMethods: ['GET'], allowCredentials: true };
  const port = await serve({ filters: [{ type: 'CORS', cors }], backendRefs: toOne });
  const before = got.get('one')?.length;
  const preflight = {
    method: 'OPTIONS',
    headers: { origin: 'https://a.foo.test', 'access-control-request-method': 'GET' },
  };
  const answer = await ask(port, 'a.test', preflight);
  expect([answer.status, answer.body]).toEqual([204, '']);
  expect(answer.headers).toMatchObject({
    'access-control-allow-origin': 'https://a.foo.test',
    'access-control-allow-methods': 'GET',
    'access-control-allow-credentials': 'true',
    'access-control-max-age': '5',
  });
  const other = await ask(port, 'a.test', {
    ...preflight,
    headers: { ...preflight.headers, origin: 'https://b.test' },
  });
  expect([other.status, other.headers['access-control-allow-origin']]).toEqual([204, undefined]);
  expect(got.get('one')?.length).toBe(before);
  const actual = await ask(port, 'a.test', { headers: { origin: 'https://a.foo.test' } });
  expect(actual.headers).toMatchObject({
    'access-control-allow-origin': 'https://a.foo.test',
    vary: 'Origin',
  });
  const foreign = await ask(port, 'a.test', { headers: { origin: 'https://b.test' } });
  expect(foreign.headers['access-control-allow-origin']).toBeUndefined();
});

test('WebSockets', async () => {
  gateway.serve('ws', { ...(gateway.services.get('one') ?? { ports: [] }), appProtocol: 'kubernetes.io/ws' });
  const port = await serve({ backendRefs: [{ name: 'ws', port: 80 }] });
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`);
  closing.push(() => socket.terminate());
  await once(socket, 'open');
  socket.send('hello');
  const [data] = (await once(socket, 'message')) as [Buffer];
  expect(data.toString()).toBe('hello');
  socket.close();
  await once(socket, 'close');
});

/** One request by HTTP/2 without TLS. */
async function askHttp2(
  port: number,
  headers: Readonly<Record<string, string>>,
  body?: string,
): Promise<{ headers: IncomingHttpHeaders; body: string; trailers: IncomingHttpHeaders }> {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  closing.push(() => session.destroy());
  const stream = session.request(headers, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  let trailers: IncomingHttpHeaders = {};
  stream.on('trailers', (found: IncomingHttpHeaders) => (trailers = found));
  let text = '';
  stream.setEncoding('utf8').on('data', (piece: string) => (text += piece));
  const [answered] = (await once(stream, 'response')) as [IncomingHttpHeaders];
  if (!stream.closed) await once(stream, 'close');
  session.close();
  return { headers: answered, body: text, trailers };
}

test('HTTP/2 without TLS, beside HTTP/1.1 on the port; the preface may come in pieces', async () => {
  const port = await serve({ backendRefs: toOne });
  const { headers, body } = await askHttp2(port, { ':path': '/h2', ':authority': 'a.test' });
  expect(headers[':status']).toBe(200);
  expect(JSON.parse(body)).toMatchObject({ url: '/h2', headers: { host: 'a.test' } });
  const socket = connect(port, '127.0.0.1');
  closing.push(() => socket.destroy());
  socket.setNoDelay(true);
  for (const piece of ['P', 'RI * HTTP/2.0\r\n', '\r\nSM\r\n\r\n', '\0\0\0\x04\0\0\0\0\0']) {
    await new Promise((resolve) => socket.write(piece, 'latin1', resolve));
  }
  const [settings] = (await once(socket, 'data')) as [Buffer];
  // A frame of SETTINGS.
  expect(settings[3]).toBe(4);
  for (const piece of ['P', 'PUT', 'PRI', 'PRI * HTTP/1.1\r\n\r\n']) {
    const half = connect(port, '127.0.0.1');
    half.on('error', () => undefined);
    half.write(piece);
    half.end();
    await once(half.resume(), 'close');
  }
});

test('a backend of kubernetes.io/h2c gets HTTP/2', async () => {
  const server = createHttp2Server((request, response) => {
    response.end(`${request.httpVersion} ${request.headers[':authority'] ?? ''}`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => server.close());
  gateway.serve('h2c', { ports: [portOf(server)], appProtocol: 'kubernetes.io/h2c' });
  const port = await serve({ backendRefs: [{ name: 'h2c', port: 80 }] });
  expect((await ask(port, 'a.test')).body).toBe('2.0 a.test');
});

test('a port that is gone is bound no more, and its connections end', async () => {
  const port = await gateway.listen(81, 'HTTP', [listener('', [httpRoute([{ backendRefs: toOne }])])]);
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  const ended = once(socket.resume(), 'close');
  expect((await ask(port, 'a.test')).status).toBe(200);
  await gateway.unlisten(81, 'HTTP');
  await expect(ask(port, 'a.test')).rejects.toThrow('ECONNREFUSED');
  await ended;
});

test('a port that somebody else has is said, and bound when it is free', async () => {
  const other = createServer();
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  const bindPort = portOf(other);
  const running = new RunningGateway();
  running.serve('one', gateway.services.get('one') ?? { ports: [] });
  closing.push(() => void running.stop());
  const plan = {
    port: 80,
    protocol: 'HTTP',
    listeners: [listener('', [httpRoute([{ backendRefs: toOne }])])],
  } as const;
  const problems = await running.listeners.apply([{ id: 'a', bindPort, plan }]);
  expect(problems.get('a')).toContain('EADDRINUSE');
  other.close();
  await vi.waitUntil(() => running.listeners.problems.size === 0, 60_000);
  expect((await ask(bindPort, 'a.test')).status).toBe(200);
});
