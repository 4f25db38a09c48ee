import { once } from 'node:events';
import { createServer as createHttp2Server, connect as connectHttp2 } from 'node:http2';
import { Agent } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import {
  createCertificateAuthority,
  issueServerCertificate,
  type CertificatePair,
} from '../../src/tls/certificates.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { ask, keepAlive } from '../support/router/requests.ts';
import {
  type Backend,
  Objects,
  portOf,
  type RunningRouter,
  startBackend,
  startRouter,
} from '../support/router/router.ts';
import { Stopwatch } from '../support/reference-time.ts';

const validity = { now: new Date() };
const authority = createCertificateAuthority('test', validity);
const issue = (...hosts: string[]): CertificatePair =>
  issueServerCertificate(authority, hosts[0] ?? '', hosts, validity);
const ingresses = '/apis/networking.k8s.io/v1/namespaces/shop/ingresses';
const secrets = '/api/v1/namespaces/shop/secrets';

let api: TestServer;
let objects: Objects;
let web: Backend;
let other: Backend;
let router: RunningRouter;

function secret(name: string, { certificate, key }: CertificatePair): object {
  return {
    metadata: { name },
    type: 'kubernetes.io/tls',
    stringData: { 'tls.crt': certificate, 'tls.key': key },
  };
}

/** Asks until the answer is as expected: what was written takes a moment to arrive. */
async function eventually<T>(look: () => Promise<T>, isRight: (got: T) => boolean): Promise<T> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const got = await look();
    if (isRight(got)) return got;
    await delay(5);
    if (Date.now() > deadline) throw new Error(`got ${JSON.stringify(got)}`);
  }
}

beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0 });
  objects = new Objects(api.client);
  await objects.create('/api/v1/namespaces', { metadata: { name: 'shop' } });
  const echo = (name: string) =>
    startBackend((request, response) => {
      if (request.url === '/slow') return void setTimeout(() => response.end('slow'), 300);
      response.setHeader('x-backend', name);
      response.setHeader('connection', 'x-private');
      response.setHeader('x-private', 'yes');
      const { method, url, headers } = request;
      if (method === 'POST') request.pipe(response);
      else response.end(JSON.stringify({ name, url, headers }));
    });
  web = await echo('web');
  other = await echo('other');
  await objects.service('web', [web.port]);
  await objects.service('other', [other.port]);
  await objects.ingress('web', 'web.test', 'web');
  await objects.ingress('both', 'web.test', 'other', {}, '/other');
  router = await startRouter(api.client);
});
afterAll(async () => {
  await router.stop();
  await Promise.all([web.close(), other.close()]);
  await api.stop();
});

describe('requests', () => {
  test('go by host and path to an endpoint of the Service', async () => {
    const { http } = router.ports;
    expect((await ask(http, 'web.test')).headers['x-backend']).toBe('web');
    expect((await ask(http, 'WEB.test:80', { path: '/other/x?y=1' })).headers['x-backend']).toBe('other');
    expect(await ask(http, 'unknown.test')).toMatchObject({ status: 404, body: '404 NoHost\n' });
  });

  test('tell the backend of the client, and not what a client says of itself', async () => {
    const headers = {
      'x-forwarded-for': '1.2.3.4',
      forwarded: 'for=1.2.3.4',
      'x-own': 'a',
      connection: 'x-hop',
      'x-hop': 'b',
      proxy: 'evil',
    };
    const { body, headers: answered } = await ask(router.ports.http, 'web.test', { headers });
    const { headers: seen } = JSON.parse(body) as { headers: Record<string, string> };
    expect(seen).toMatchObject({
      host: 'web.test',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': 'web.test',
      'x-forwarded-proto': 'http',
      'x-forwarded-port': '80',
      forwarded: 'for=127.0.0.1;host=web.test;proto=http',
      'x-own': 'a',
    });
    expect(Object.keys(seen)).not.toContain('x-hop');
    expect(Object.keys(seen)).not.toContain('proxy');
    expect(answered['x-private']).toBeUndefined();
  });

  test('carry bodies both ways, piece by piece', async () => {
    const body = Buffer.alloc(3_000_000, 'abc');
    const answered = await ask(router.ports.http, 'web.test', { method: 'POST', body });
    expect(answered.status).toBe(200);
    expect(answered.body === body.toString()).toBe(true);
  });

  test('a change of endpoints takes effect within 100 ms, and cuts no request', async () => {
    await objects.service('moving', [web.port]);
    await objects.ingress('moving', 'moving.test', 'moving');
    const { http } = router.ports;
    await eventually(
      () => ask(http, 'moving.test'),
      ({ status }) => status === 200,
    );
    const running = ask(http, 'moving.test', { path: '/slow' });
    await eventually(
      () => Promise.resolve(web.requests.at(-1)?.url),
      (url) => url === '/slow',
    );
    await objects.patch('/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/moving-1', {
      ports: [{ name: 'http', protocol: 'TCP', port: other.port }],
    });
    const sinceChange = new Stopwatch();
    await eventually(
      () => ask(http, 'moving.test'),
      ({ headers }) => headers['x-backend'] === 'other',
    );
    expect(sinceChange.elapsedMs()).toBeLessThan(100);
    expect(await running).toMatchObject({ status: 200, body: 'slow' });
  });

  test('without endpoints, Service or port: 503 with the reason', async () => {
    await objects.service('empty', []);
    await objects.ingress('empty', 'empty.test', 'empty');
    await objects.ingress('missing', 'missing.test', 'nowhere');
    const backend = { service: { name: 'web', port: { number: 81 } } };
    await objects.create(ingresses, {
      metadata: { name: 'port' },
      spec: { rules: [{ host: 'port.test', http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }] },
    });
    const { http } = router.ports;
    const served = (host: string) =>
      eventually(
        () => ask(http, host),
        ({ status }) => status !== 404,
      );
    expect(await served('empty.test')).toMatchObject({ status: 503, body: '503 NoEndpoints\n' });
    expect(await served('missing.test')).toMatchObject({ status: 503, body: '503 NoService\n' });
    expect(await served('port.test')).toMatchObject({ status: 503, body: '503 NoPort\n' });
  });

  test('an endpoint that refuses connections is passed over, whatever the method', async () => {
    const gone = await startBackend((_, response) => response.end());
    await gone.close();
    await objects.service('half', [gone.port, web.port]);
    await objects.ingress('half', 'half.test', 'half');
    const { http } = router.ports;
    await eventually(
      () => ask(http, 'half.test'),
      ({ status }) => status === 200,
    );
    for (let i = 0; i < 20; i++) {
      expect(await ask(http, 'half.test', { method: 'POST', body: 'once' })).toMatchObject({
        status: 200,
        body: 'once',
      });
    }
  });
});

test('WebSockets, and a backend that refuses one', async () => {
  const server = await startBackend((_, response) => response.writeHead(426).end('no'));
  const sockets = new WebSocketServer({ noServer: true });
  server.server.on('upgrade', (request, socket, head) => {
    if (request.url === '/no')
      return void socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno');
    sockets.handleUpgrade(request, socket, head, (client) =>
      client.on('message', (text) => client.send(text)),
    );
  });
  await objects.service('chat', [server.port]);
  await objects.ingress('chat', 'chat.test', 'chat');
  const { http } = router.ports;
  await eventually(
    () => ask(http, 'chat.test'),
    ({ status }) => status === 426,
  );
  const options = { headers: { host: 'chat.test' } };
  const client = new WebSocket(`ws://127.0.0.1:${http}/yes`, options);
  await once(client, 'open');
  client.send('hello');
  const [message] = (await once(client, 'message')) as [Buffer];
  expect(message.toString()).toBe('hello');
  client.close();
  await once(client, 'close');
  const refused = new WebSocket(`ws://127.0.0.1:${http}/no`, options);
  const [error] = (await once(refused, 'error')) as [Error];
  expect(error.message).toBe('Unexpected server response: 403');
  await server.close();
});

describe('TLS', () => {
  const spec = (host: string, secretName: string) => ({ tls: [{ hosts: [host], secretName }] });

  test('ends here by the Secret of the Ingress, over HTTP/1.1 and HTTP/2; http is sent to https', async () => {
    await objects.create(secrets, secret('web-tls', issue('tls.test')));
    await objects.ingress('tls', 'tls.test', 'web', spec('tls.test', 'web-tls'));
    const { http, https } = router.ports;
    const ca = authority.certificate;
    const redirect = await eventually(
      () => ask(http, 'tls.test', { path: '/a?b' }),
      ({ status }) => status !== 404,
    );
    expect(redirect).toMatchObject({ status: 308, headers: { location: 'https://tls.test/a?b' } });
    const first = await eventually(
      () => ask(https, 'tls.test', { ca }).catch(() => undefined),
      (got) => got?.status === 200,
    );
    expect(JSON.parse(first?.body ?? '')).toMatchObject({ headers: { 'x-forwarded-proto': 'https' } });
    const session = connectHttp2(`https://tls.test:${https}`, {
      ca,
      servername: 'tls.test',
      lookup: (_, options, done) => {
        if (options.all === true) done(null, [{ address: '127.0.0.1', family: 4 }]);
        else done(null, '127.0.0.1', 4);
      },
    });
    const stream = session.request({
      ':path': '/h2',
      ':authority': 'tls.test',
      ':method': 'POST',
      cookie: ['a=1', 'b=2'],
    });
    stream.end('over two');
    const [headers] = (await once(stream, 'response')) as [Record<string, string>];
    let body = '';
    for await (const chunk of stream) body += String(chunk);
    expect([headers[':status'], body]).toEqual([200, 'over two']);
    expect(web.requests.at(-1)?.headers).toMatchObject({ host: 'tls.test', cookie: 'a=1; b=2' });
    session.close();
  });

  test('WebSockets come over TLS too', async () => {
    const sockets = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(sockets, 'listening');
    sockets.on('connection', (client) => client.on('message', (text) => client.send(text)));
    await objects.service('wss', [portOf(sockets)]);
    await objects.create(secrets, secret('wss-tls', issue('wss.test')));
    await objects.ingress('wss', 'wss.test', 'wss', spec('wss.test', 'wss-tls'));
    const { https } = router.ports;
    const ca = authority.certificate;
    await eventually(
      () => ask(https, 'wss.test', { ca }).catch(() => undefined),
      (got) => got?.status === 426,
    );
    const options = { ca, servername: 'wss.test', headers: { host: 'wss.test' } };
    const client = new WebSocket(`wss://127.0.0.1:${https}/`, options);
    await once(client, 'open');
    client.send('hello');
    const [message] = (await once(client, 'message')) as [Buffer];
    expect(message.toString()).toBe('hello');
    client.terminate();
    await new Promise<void>((resolve) => {
      sockets.close(() => resolve());
    });
  });

  test('a new certificate is used by the next handshake, and cuts no connection', async () => {
    const host = 'rotated.test';
    await objects.create(secrets, secret('rotated', issue(host)));
    await objects.ingress('rotated', host, 'web', spec(host, 'rotated'));
    const { https } = router.ports;
    const ca = authority.certificate;
    await eventually(
      () => ask(https, host, { ca }).catch(() => undefined),
      (got) => got?.status === 200,
    );
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    let connections = 0;
    const kept = () =>
      ask(https, host, { ca, agent }).then((answered) => {
        connections = Object.values(agent.freeSockets).flat().length;
        return answered;
      });
    expect((await kept()).status).toBe(200);
    const fresh = issue(host, 'fresh.test');
    await objects.patch(`${secrets}/rotated`, {
      stringData: { 'tls.crt': fresh.certificate, 'tls.key': fresh.key },
    });
    const names = async (): Promise<string> => {
      const socket = connectTls({ port: https, host: '127.0.0.1', servername: host, ca });
      await once(socket, 'secureConnect');
      const { subjectaltname = '' } = socket.getPeerCertificate();
      socket.destroy();
      return subjectaltname;
    };
    await eventually(names, (text) => text.includes('fresh.test'));
    expect((await kept()).status).toBe(200);
    expect(connections).toBe(1);
    agent.destroy();
  });

  test('an expired certificate is served: clients decide', async () => {
    const host = 'expired.test';
    const past = { now: new Date(Date.now() - 30 * 86_400_000), days: 1 };
    await objects.create(secrets, secret('expired', issueServerCertificate(authority, host, [host], past)));
    await objects.ingress('expired', host, 'web', spec(host, 'expired'));
    const { https } = router.ports;
    const ca = authority.certificate;
    const got = await eventually(
      () => ask(https, host, { ca, rejectUnauthorized: false }).catch(() => undefined),
      (answered) => answered?.status === 200,
    );
    expect(got?.headers['x-backend']).toBe('web');
    await expect(ask(https, host, { ca })).rejects.toThrow('certificate has expired');
  });

  test.each([
    ['a missing Secret', undefined],
    ['a key of another certificate', { ...issue('bad.test'), key: issue('bad.test').key }],
  ])('with %s the handshake is refused, and others go on', async (what, pair) => {
    const name = `bad-${what.length}`;
    const host = `${name}.test`;
    if (pair !== undefined) await objects.create(secrets, { ...secret(name, pair), type: 'Opaque' });
    await objects.ingress(name, host, 'web', spec(host, name));
    const { http, https } = router.ports;
    await eventually(
      () => ask(http, host),
      ({ status }) => status === 308,
    );
    await expect(ask(https, host, { ca: authority.certificate })).rejects.toThrow();
    expect((await ask(http, 'web.test')).status).toBe(200);
  });
});

test('HTTP/2 without TLS to a backend whose Service says h2c, with its trailers', async () => {
  const server = createHttp2Server();
  server.on('stream', (stream, headers) => {
    stream.respond({ ':status': 200, 'x-host': headers[':authority'] ?? '' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end('over two');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  await objects.service('grpc', [portOf(server)], { appProtocol: 'kubernetes.io/h2c' });
  await objects.ingress('grpc', 'grpc.test', 'grpc');
  const { http } = router.ports;
  const answered = await eventually(
    () => ask(http, 'grpc.test', { method: 'POST', body: 'x' }),
    ({ status }) => status !== 404,
  );
  expect(answered).toMatchObject({ status: 200, body: 'over two', headers: { 'x-host': 'grpc.test' } });
  server.close();
});

test('at its end, requests finish, new connections are refused, and load balancers have been told before', async () => {
  const ending = await startRouter(api.client);
  const { http } = ending.ports;
  const agent = keepAlive();
  expect((await ask(http, 'web.test', { agent })).headers.connection).not.toBe('close');
  ending.router.lameduck();
  expect(ending.router.healthCheck.check()).toBe('ending');
  expect((await ask(http, 'web.test', { agent })).headers.connection).toBe('close');
  const before = web.requests.length;
  const running = ask(http, 'web.test', { path: '/slow' });
  await eventually(
    () => Promise.resolve(web.requests.length),
    (count) => count > before,
  );
  const stopped = ending.stop(10_000);
  expect(await running).toMatchObject({ status: 200, body: 'slow' });
  await stopped;
  await expect(ask(http, 'web.test')).rejects.toThrow();
  agent.destroy();
});
