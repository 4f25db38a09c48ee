/** What annotations of Routes ask, and what the objects say of it. */
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createCertificateAuthority, issueServerCertificate } from '../../src/tls/certificates.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { ask, sendText } from '../support/router/requests.ts';
import {
  type Backend,
  Objects,
  type RunningRouter,
  startBackend,
  startRouter,
} from '../support/router/router.ts';

const prefix = 'haproxy.router.openshift.io';
let api: TestServer;
let objects: Objects;
let router: RunningRouter;
let backend: Backend;
const authority = createCertificateAuthority('test', { now: new Date() });

beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0, platform: 'openshift' });
  objects = new Objects(api.client);
  await objects.create('/api/v1/namespaces', { metadata: { name: 'shop' } });
  backend = await startBackend((request, response) => {
    if (request.url === '/slow') setTimeout(() => response.end('slow'), 2500);
    else if (request.url !== '/never') response.end(request.url);
  });
  await objects.service('web', [backend.port]);
  router = await startRouter(api.client, { backendTimeoutMs: 1500 });
});
afterAll(async () => {
  await router.stop();
  await backend.close();
  await api.stop();
});

/** A Route with annotations of OpenShift's router; resolves once it is served, or refused. */
async function serve(
  name: string,
  annotations: Readonly<Record<string, string>>,
  spec: object = {},
): Promise<string> {
  const host = `${name}.test`;
  await objects.create('/apis/route.openshift.io/v1/namespaces/shop/routes', {
    apiVersion: 'route.openshift.io/v1',
    kind: 'Route',
    metadata: {
      name,
      annotations: Object.fromEntries(
        Object.entries(annotations).map(([key, value]) => [`${prefix}/${key}`, value]),
      ),
    },
    spec: { host, to: { kind: 'Service', name: 'web' }, ...spec },
  });
  await vi.waitUntil(() => router.router.table.admissionOf(`shop/${name}`) !== undefined, 20_000);
  return router.router.table.admissionOf(`shop/${name}`)?.refusal?.reason ?? host;
}

test('an allowlist lets its addresses in, and drops others without an answer', async () => {
  const { http } = router.ports;
  const open = await serve('open', { ip_allowlist: '10.0.0.0/8 127.0.0.0/8' });
  const closed = await serve('closed', { ip_whitelist: '10.0.0.0/8' });
  expect(await ask(http, open)).toMatchObject({ status: 200 });
  const before = backend.requests.length;
  await expect(ask(http, closed)).rejects.toThrow();
  await expect(ask(http, closed, { headers: { 'x-forwarded-for': '10.0.0.1' } })).rejects.toThrow();
  const upgrade = `GET / HTTP/1.1\r\nHost: ${closed}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
  await expect(sendText(http, upgrade)).rejects.toThrow('ECONNRESET');
  expect(backend.requests.length).toBe(before);
});

test('an allowlist that cannot be read, and limits that are not there, keep a Route out', async () => {
  expect(await serve('wrong', { ip_allowlist: '10.0.0.1;10.0.0.2' })).toBe('UnsupportedRestriction');
  expect(await serve('pods', { 'pod-concurrent-connections': '1' })).toBe('UnsupportedRestriction');
  expect(await ask(router.ports.http, 'pods.test')).toMatchObject({ status: 404 });
});

test('rates: so many requests of a client are served, and no more', async () => {
  const host = await serve('rated', {
    'rate-limit-connections': 'true',
    'rate-limit-connections.rate-http': '3',
  });
  const got: string[] = [];
  for (let i = 0; i < 5; i++)
    got.push(
      await ask(router.ports.http, host).then(
        ({ status }) => String(status),
        () => 'dropped',
      ),
    );
  expect(got).toEqual(['200', '200', '200', 'dropped', 'dropped']);
});

test('concurrent connections: a client has so many, and more when one ends', async () => {
  const host = await serve('concurrent', {
    'rate-limit-connections': 'TRUE',
    'rate-limit-connections.concurrent-tcp': '2',
  });
  const { http } = router.ports;
  const held: Socket[] = [];
  for (let i = 0; i < 2; i++) {
    const socket = connect(http, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(`GET /never HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    held.push(socket);
  }
  await vi.waitUntil(() => backend.requests.filter(({ url }) => url === '/never').length === 2, 20_000);
  await expect(ask(http, host)).rejects.toThrow();
  held[0]?.destroy();
  await vi.waitFor(async () => expect(await ask(http, host)).toMatchObject({ status: 200 }), 20_000);
  held[1]?.destroy();
});

test('the path is rewritten, with its query', async () => {
  const host = await serve('rewritten', { 'rewrite-target': '/base' }, { path: '/app' });
  expect((await ask(router.ports.http, host, { path: '/app/x?y=/app' })).body).toBe('/base/x?y=/app');
});

test('a timeout may be longer or shorter than that of the router', async () => {
  const { http } = router.ports;
  expect(await ask(http, await serve('usual', {}), { path: '/slow' })).toMatchObject({ status: 504 });
  const longer = await serve('longer', { timeout: '20s' });
  expect(await ask(http, longer, { path: '/slow' })).toMatchObject({ status: 200, body: 'slow' });
  const shorter = await serve('shorter', { timeout: '100ms' });
  const before = performance.now();
  expect(await ask(http, shorter, { path: '/never' })).toMatchObject({ status: 504 });
  // Less than the time of the router, which no load makes shorter.
  expect(performance.now() - before).toBeGreaterThan(90);
});

test('Strict-Transport-Security is in answers over TLS alone', async () => {
  const { certificate, key } = issueServerCertificate(authority, 'hsts.test', ['hsts.test'], {
    now: new Date(),
  });
  const tls = { termination: 'edge', insecureEdgeTerminationPolicy: 'Allow', certificate, key };
  const host = await serve(
    'hsts',
    { hsts_header: 'max-age=31536000;includeSubDomains', disable_cookies: 'true' },
    { tls },
  );
  const secure = await ask(router.ports.https, host, { ca: authority.certificate });
  expect(secure.headers['strict-transport-security']).toBe('max-age=31536000;includeSubDomains');
  expect(secure.headers['set-cookie']).toBeUndefined();
  expect((await ask(router.ports.http, host)).headers).not.toHaveProperty('strict-transport-security');
});

test('a server name without a certificate ends the handshake with an alert', async () => {
  const asked = ask(router.ports.https, 'nobody.test', { ca: authority.certificate });
  await expect(asked).rejects.toThrow('alert handshake failure');
});

test('a Service that is a name elsewhere is not followed: 503 with the reason', async () => {
  await objects.create('/api/v1/namespaces/shop/services', {
    metadata: { name: 'elsewhere' },
    spec: { type: 'ExternalName', externalName: 'example.com' },
  });
  await objects.ingress('elsewhere', 'elsewhere.test', 'elsewhere');
  const { http } = router.ports;
  await vi.waitFor(
    async () =>
      expect(await ask(http, 'elsewhere.test')).toMatchObject({ status: 503, body: '503 ExternalName\n' }),
    20_000,
  );
});
