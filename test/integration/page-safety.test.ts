import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { Transport } from '../../src/client/transport.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { parseRecord } from '../../src/objects/json.ts';
import { ReadOnlyTransport } from '../../src/page/page.ts';
import { ask, askAsPage, credentials, startPage, type TestPage, TestTab } from '../support/page.ts';
import { call } from '../support/test-server.ts';

/** What the page refuses: each point of SECURITY.md by a request that must fail. */

let server: TestServer;
let page: TestPage;
/** Methods and paths that came to the API server. */
const asked: string[] = [];

beforeAll(async () => {
  server = await startApiServer({ controllers: [], nodes: 0 });
  const recording: Transport = {
    server: server.client.server,
    request: (method, path, options) => {
      asked.push(`${method} ${path}`);
      return server.client.request(method, path, options);
    },
    stream: (path, options) => {
      asked.push(`GET ${path}`);
      return server.client.stream(path, options);
    },
    close: () => Promise.resolve(),
  };
  page = await startPage(recording, { whyNoCheck: 'there is no network' });
});
afterAll(async () => {
  await page.close();
  await server.stop();
});

const own = () => `127.0.0.1:${page.port}`;

describe('names', () => {
  test.each(['127.0.0.1', '127.0.0.1:1', 'localhost:8080', 'LOCALHOST', '[::1]:6480'])(
    '%s is allowed',
    async (host) => {
      expect(await ask(page.port, 'GET', '/', { host })).toMatchObject({ status: 200 });
    },
  );

  const others = [
    'evil.example.com',
    'evil.example.com:6480',
    '127.0.0.1.nip.io',
    '127.0.0.2',
    '0.0.0.0',
    '[::ffff:127.0.0.1]',
  ];
  test.each([...others, 'localhost.', 'localhost@evil.example.com', '2130706433'])(
    '%s is answered with 421 and nothing more',
    async (host) => {
      for (const path of ['/', '/data/session', '/data/state', '/page-1234.js']) {
        expect(await ask(page.port, 'GET', path, { host })).toMatchObject({ status: 421, text: '' });
      }
    },
  );

  test('two names, none, or one in the target are refused', async () => {
    const twice = await raw(`GET / HTTP/1.1\r\nHost: ${own()}\r\nHost: evil.example.com\r\n\r\n`);
    expect(twice).toMatch(/^HTTP\/1\.1 4(?:00|21) /);
    expect(await raw('GET / HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 4(?:00|21) /);
    expect(await raw('GET / HTTP/1.1\r\nHost:\r\n\r\n')).toMatch(/^HTTP\/1\.1 421 /);
    const absolute = `GET http://evil.example.com/ HTTP/1.1\r\nHost: ${own()}\r\n\r\n`;
    expect(await raw(absolute)).toMatch(/^HTTP\/1\.1 421 /);
  });

  test('a WebSocket to another name is refused', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${page.port}/data/stream`, {
      ...{ origin: 'http://evil.example.com', headers: { Host: 'evil.example.com' } },
    });
    expect(await refusedWith(socket)).toBe(421);
  });
});

describe('other origins', () => {
  const body = JSON.stringify({ key: credentials.key });
  const type = { 'content-type': 'application/json' };

  test.each([
    ['without an origin', {}],
    ['of another site', { origin: 'http://evil.example.com' }],
    ['of another port of this machine', { origin: 'http://127.0.0.1:1' }],
    ['of another name of this machine', { origin: 'http://localhost' }],
    ['by TLS', { origin: 'https://127.0.0.1' }],
    ['of a sandboxed frame or a file', { origin: 'null' }],
    ['of the same site', { 'sec-fetch-site': 'same-site' }],
    ['of another site by Sec-Fetch-Site', { 'sec-fetch-site': 'cross-site' }],
    ['that a user typed', { 'sec-fetch-site': 'none' }],
  ])('a POST %s is refused', async (_what, headers) => {
    const origin = 'sec-fetch-site' in headers ? { origin: `http://${own()}` } : {};
    const answer = await ask(
      page.port,
      'POST',
      '/data/session',
      { host: own(), ...type, ...origin, ...headers },
      body,
    );
    expect(answer).toMatchObject({ status: 403 });
    expect(answer.text).not.toContain(credentials.session);
  });

  test('a GET from another site is refused too, with a session', async () => {
    const headers = { host: own(), authorization: `Bearer ${credentials.session}` };
    for (const site of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'http://evil.example.com' }]) {
      expect(await ask(page.port, 'GET', '/data/state', { ...headers, ...site })).toMatchObject({
        status: 403,
      });
    }
  });

  test.each(['http://evil.example.com', 'null', 'http://127.0.0.1:1'])(
    'a WebSocket from %s is refused',
    async (origin) => {
      expect(await refusedWith(new TestTab(page.port, origin).socket)).toBe(403);
    },
  );

  test('nothing says that others may read', async () => {
    const headers = {
      host: own(),
      origin: 'http://evil.example.com',
      'access-control-request-method': 'POST',
    };
    const answer = await ask(page.port, 'OPTIONS', '/data/session', headers);
    expect(answer.status).toBe(403);
    for (const name of Object.keys(answer.headers)) expect(name).not.toMatch(/^access-control-/);
  });
});

describe('sessions', () => {
  test('the key gives one; no answer has a cookie', async () => {
    const answer = await askAsPage(page.port, 'POST', '/data/session', { key: credentials.key });
    expect(answer.status).toBe(200);
    expect(parseRecord(answer.text)).toEqual({ session: credentials.session });
    expect(answer.headers).not.toHaveProperty('set-cookie');
    expect(answer.headers['cache-control']).toBe('no-store');
  });

  test.each(['', 'wrong', credentials.session, credentials.key.slice(0, -1), 1, null])(
    'the key %j gives none',
    async (key) => {
      const answer = await askAsPage(page.port, 'POST', '/data/session', { key });
      expect(answer.status).toBe(401);
    },
  );

  test('the key in a query or a cookie gives none', async () => {
    const headers = { host: own(), cookie: `session=${credentials.session}; key=${credentials.key}` };
    for (const path of [`/data/state?session=${credentials.session}&k=${credentials.key}`, '/data/state']) {
      expect(await ask(page.port, 'GET', path, headers)).toMatchObject({ status: 401 });
    }
  });

  const paths = [
    'GET /data/state',
    'GET /data/pools',
    'GET /data/object?kind=Service',
    'POST /data/trace',
    'POST /data/pools/plan',
    'GET /data/reach',
    'POST /data/reach/plan',
    'GET /data/none',
  ];
  test.each(paths)('%s needs one', async (line) => {
    const [method = '', path = ''] = line.split(' ');
    const origin = { host: own(), origin: `http://${own()}`, 'content-type': 'application/json' };
    for (const authorization of [
      '',
      'Bearer',
      'Bearer wrong',
      `Basic ${credentials.session}`,
      `Bearer ${credentials.key}`,
    ]) {
      const answer = await ask(
        page.port,
        method,
        path,
        { ...origin, authorization },
        method === 'POST' ? '{}' : undefined,
      );
      expect(answer, authorization).toMatchObject({ status: 401 });
      expect(parseRecord(answer.text)).toMatchObject({ reason: 'SessionUnknown' });
    }
  });

  test('a WebSocket that says none within two seconds, or a wrong one, is ended and told nothing', async () => {
    const late = new TestTab(page.port);
    const wrong = new TestTab(page.port);
    const eager = new TestTab(page.port);
    await Promise.all([late, wrong, eager].map(({ socket }) => once(socket, 'open')));
    wrong.say({ session: credentials.key });
    eager.say({ follow: { view: 'map' } });
    expect(await Promise.all([late.closed, wrong.closed, eager.closed])).toEqual([4401, 4401, 4401]);
    expect([late, wrong, eager].flatMap(({ messages }) => messages)).toEqual([]);
  });

  test('after many wrong keys each answer takes a second, also for the right one', async () => {
    const other = await startPage(server.client);
    for (let wrong = 0; wrong < 20; wrong++)
      await askAsPage(other.port, 'POST', '/data/session', { key: String(wrong) });
    const order: string[] = [];
    const right = askAsPage(other.port, 'POST', '/data/session', { key: credentials.key }).then(() =>
      order.push('key'),
    );
    // Answers to others do not wait.
    for (let more = 0; more < 3; more++) await ask(other.port, 'GET', '/', { host: own() });
    order.push('page');
    await right;
    expect(order).toEqual(['page', 'key']);
    await other.close();
  });
});

describe('bodies and limits', () => {
  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', ''])(
    'a body of %j is refused',
    async (type) => {
      const headers = { host: own(), origin: `http://${own()}`, 'content-type': type };
      const body = JSON.stringify({ key: credentials.key });
      expect(await ask(page.port, 'POST', '/data/session', headers, body)).toMatchObject({ status: 415 });
    },
  );

  test('a body of 65 KiB is refused, with its length or in chunks; one of 64 is not', async () => {
    const body = (bytes: number): string => JSON.stringify({ key: 'x'.repeat(bytes - 10) });
    const type = { host: own(), origin: `http://${own()}`, 'content-type': 'application/json' };
    const whole = await askAsPage(page.port, 'POST', '/data/session', { key: 'x'.repeat(65 * 1024) });
    expect(whole).toMatchObject({ status: 413 });
    const chunked = { ...type, 'transfer-encoding': 'chunked' };
    expect(await ask(page.port, 'POST', '/data/session', chunked, body(65 * 1024))).toMatchObject({
      status: 413,
    });
    expect(await ask(page.port, 'POST', '/data/session', chunked, body(64 * 1024))).toMatchObject({
      status: 401,
    });
  });

  test('headers of more than 8 KiB are refused', async () => {
    const headers = { host: own(), 'x-long': 'x'.repeat(9 * 1024) };
    expect((await ask(page.port, 'GET', '/', headers)).status).toBeGreaterThanOrEqual(400);
  });

  test.each([
    [
      'an upgrade',
      'GET /data/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    ],
    ['what is no request', 'nothing\r\n\r\n'],
  ])('%s behind a request that is not answered yet gets no answer', async (_, behind) => {
    const pools = `GET /data/pools HTTP/1.1\r\nHost: ${own()}\r\nAuthorization: Bearer ${credentials.session}\r\n\r\n`;
    expect(await raw(pools + behind)).not.toMatch(/^HTTP\/1\.1 (?:101|4)/);
  });

  test('a connection that sends no headers is ended', { timeout: 60_000 }, async () => {
    const slow = connect(page.port, '127.0.0.1');
    slow.on('error', () => undefined);
    slow.write('GET / HTTP/1.1\r\n');
    const dripping = setInterval(() => slow.write('X-A: b\r\n'), 500);
    // A drop behind the end resets it, which `once` would take for a failure.
    await new Promise((resolve) => slow.resume().once('close', resolve));
    clearInterval(dripping);
  });

  test('of 33 WebSockets one is refused, and of 65 connections one', async () => {
    const other = await startPage(server.client);
    const tabs = Array.from({ length: 32 }, () => new TestTab(other.port));
    await Promise.all(tabs.map(({ socket }) => once(socket, 'open')));
    for (const tab of tabs) tab.say({ session: credentials.session });
    expect(await refusedWith(new TestTab(other.port).socket)).toBe(503);
    const idle = Array.from({ length: 40 }, () =>
      connect(other.port, '127.0.0.1').on('error', () => undefined),
    );
    await Promise.race(idle.map((socket) => once(socket.resume(), 'close')));
    await other.close();
  });

  test.each(['DELETE', 'PUT', 'PATCH', 'TRACE', 'POST', 'QUERY'])(
    '%s of a file is refused',
    async (method) => {
      expect(await ask(page.port, method, '/', { host: own() })).toMatchObject({ status: 405 });
    },
  );

  test.each([
    '/../package.json',
    '/%2e%2e/package.json',
    '/..%2fpackage.json',
    '/page-1234.js/../../x.js',
    '/missing.js',
  ])('%s leads to no file of the machine', async (path) => {
    const { status, text: body } = await ask(page.port, 'GET', path, { host: own() });
    expect([200, 404]).toContain(status);
    expect(body).not.toContain('dependencies');
  });
});

test('each answer has the headers that keep browsers strict', async () => {
  for (const path of ['/', '/service/shop/web', '/page-1234.js', '/missing.js', '/data/state']) {
    const { headers } = await ask(page.port, 'GET', path, { host: own() });
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self'; /);
    expect(headers['content-security-policy']).not.toContain('unsafe');
    expect(headers).toMatchObject({
      ...{ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' },
      ...{ 'cross-origin-opener-policy': 'same-origin', 'cross-origin-resource-policy': 'same-origin' },
    });
  }
});

test('files need no session, and come compressed where a browser takes that', async () => {
  const { headers, text: body } = await ask(page.port, 'GET', '/page-1234.js', {
    host: own(),
    'accept-encoding': 'gzip, br',
  });
  expect({ body, encoding: headers['content-encoding'] }).toEqual({ body: 'brotli', encoding: 'br' });
  expect(headers['cache-control']).toContain('immutable');
});

test('nothing but GET arrives at the API server, and no Secret or other ConfigMap is asked for', async () => {
  const manifest = { metadata: { name: 'hidden' }, stringData: { password: 'hush' } };
  await call(server.client, 'POST', '/api/v1/namespaces/default/secrets', { body: manifest });
  const tab = new TestTab(page.port);
  await tab.follow({ view: 'map' });
  for (const view of [
    'map',
    'way',
    'addresses',
    'http',
    'events',
    'service&namespace=default&name=kubernetes',
  ]) {
    expect(await askAsPage(page.port, 'GET', `/data/state?view=${view}`)).toMatchObject({ status: 200 });
  }
  await askAsPage(page.port, 'POST', '/data/trace', { from: 'outside', to: 'svc/default/kubernetes:443' });
  await askAsPage(page.port, 'POST', '/data/pools/plan', { yaml: 'kind: Pod\nmetadata: {name: a}' });
  await askAsPage(page.port, 'GET', '/data/reach?namespace=default');
  await askAsPage(page.port, 'POST', '/data/reach/plan', { namespace: 'default', delete: ['none'] });
  await askAsPage(page.port, 'GET', '/data/pools');
  for (const kind of ['Secret', 'ConfigMap', 'Service', '../secrets']) {
    const { text: body } = await askAsPage(
      page.port,
      'GET',
      `/data/object?kind=${kind}&namespace=default&name=hidden`,
    );
    expect(body).not.toContain('hush');
  }
  tab.socket.terminate();
  expect(asked.filter((line) => !line.startsWith('GET '))).toEqual([]);
  expect(
    new Set(asked.filter((line) => /secrets|configmaps/.test(line)).map((line) => line.replace(/\?.*/, ''))),
  ).toEqual(new Set(['GET /api/v1/namespaces/kube-system/configmaps/kube-proxy']));
});

test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'get', ''])(
  'the transport of what looks throws at %j',
  async (method) => {
    const before = asked.length;
    await expect(new ReadOnlyTransport(server.client).request(method, '/api/v1/pods')).rejects.toThrow(
      'only reads',
    );
    expect(asked.length).toBe(before);
  },
);

test('values of environments and what kubectl apply remembers are left out of an object', async () => {
  const env = [{ name: 'PASSWORD', value: 'hush' }];
  const containers = [{ name: 'c', image: 'i', env }];
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{"hush":1}', other: 'kept' };
  const body = {
    metadata: { name: 'quiet', annotations },
    spec: { containers, initContainers: [{ ...containers[0], name: 'i' }] },
  };
  const made = await call(server.client, 'POST', '/api/v1/namespaces/default/pods', { body });
  expect(made.status).toBe(201);
  const answer = await askAsPage(page.port, 'GET', '/data/object?kind=Pod&namespace=default&name=quiet');
  expect(answer.text).not.toContain('hush');
  expect(answer.text).toContain('PASSWORD');
  expect(answer.text).toContain('other: kept');
  const state = await askAsPage(page.port, 'GET', '/data/state?view=map');
  expect(state.text).toContain('default/quiet');
  expect(state.text).not.toContain('hush');
});

test('a packet is not sent where there is no network for it', async () => {
  const body = { from: 'outside', to: 'svc/default/kubernetes:443', check: true };
  const answer = await askAsPage(page.port, 'POST', '/data/trace', body);
  expect(answer.status).toBe(409);
  expect(parseRecord(answer.text)).toEqual({ reason: 'CannotCheck', message: 'there is no network' });
});

async function refusedWith(socket: WebSocket): Promise<number | undefined> {
  socket.on('error', () => undefined);
  const [, response] = (await once(socket, 'unexpected-response')) as [
    unknown,
    { readonly statusCode?: number },
  ];
  return response.statusCode;
}

async function raw(request: string): Promise<string> {
  const socket = connect(page.port, '127.0.0.1');
  socket.end(request);
  return await text(socket);
}
