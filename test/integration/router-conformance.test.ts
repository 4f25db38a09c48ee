/** What the ingress conformance suite asks of a controller (ingress-controller-conformance, features), by real requests. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createCertificateAuthority, issueServerCertificate } from '../../src/tls/certificates.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answered, ask } from '../support/router/requests.ts';
import {
  type Backend,
  Objects,
  type RunningRouter,
  startBackend,
  startRouter,
} from '../support/router/router.ts';

const ingresses = '/apis/networking.k8s.io/v1/namespaces/shop/ingresses';
const authority = createCertificateAuthority('test', { now: new Date() });
const services = [
  ...['foo-exact', 'foo-prefix', 'aaa-slash-bbb-prefix', 'aaa-prefix', 'aaa-slash-bbb-slash-prefix'],
  ...['foo-slash-exact', 'wildcard-foo-com', 'foo-bar-com', 'ingress-class-prefix'],
];

let api: TestServer;
let objects: Objects;
let router: RunningRouter;
const backends: Backend[] = [];

/** Says what it got. */
async function startEcho(service: string): Promise<Backend> {
  const backend = await startBackend((request, response) => {
    const { method, url, headers, httpVersion } = request;
    const said = {
      service,
      method,
      path: url,
      host: headers.host,
      proto: httpVersion,
      agent: headers['user-agent'],
    };
    response.setHeader('server', 'echo');
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(said));
  });
  backends.push(backend);
  return backend;
}

const to = (name: string, port: object = { number: 80 }) => ({ service: { name, port } });
const rule = (
  host: string,
  ...paths: readonly (readonly [path: string, pathType: string, service: string])[]
) => ({
  host,
  http: { paths: paths.map(([path, pathType, service]) => ({ path, pathType, backend: to(service) })) },
});

beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0 });
  objects = new Objects(api.client);
  await objects.create('/api/v1/namespaces', { metadata: { name: 'shop' } });
  for (const name of services) await objects.service(name, [(await startEcho(name)).port]);
  await objects.create(ingresses, {
    metadata: { name: 'path-rules' },
    spec: {
      rules: [
        rule('exact-path-rules', ['/foo', 'Exact', 'foo-exact']),
        rule(
          'prefix-path-rules',
          ['/foo', 'Prefix', 'foo-prefix'],
          ['/aaa/bbb', 'Prefix', 'aaa-slash-bbb-prefix'],
          ['/aaa', 'Prefix', 'aaa-prefix'],
        ),
        rule('mixed-path-rules', ['/foo', 'Prefix', 'foo-prefix'], ['/foo', 'Exact', 'foo-exact']),
        rule(
          'trailing-slash-path-rules',
          ['/aaa/bbb/', 'Prefix', 'aaa-slash-bbb-slash-prefix'],
          ['/foo/', 'Exact', 'foo-slash-exact'],
        ),
      ],
    },
  });
  const { certificate, key } = issueServerCertificate(authority, 'foo.bar.com', ['foo.bar.com'], {
    now: new Date(),
  });
  await objects.create('/api/v1/namespaces/shop/secrets', {
    metadata: { name: 'conformance-tls' },
    type: 'kubernetes.io/tls',
    stringData: { 'tls.crt': certificate, 'tls.key': key },
  });
  await objects.create(ingresses, {
    metadata: { name: 'host-rules' },
    spec: {
      tls: [{ hosts: ['foo.bar.com'], secretName: 'conformance-tls' }],
      rules: [
        rule('*.foo.com', ['/', 'Prefix', 'wildcard-foo-com']),
        rule('foo.bar.com', ['/', 'Prefix', 'foo-bar-com']),
      ],
    },
  });
  await objects.create(ingresses, {
    metadata: { name: 'test-ingress-class' },
    spec: {
      ingressClassName: 'some-invalid-class-name',
      rules: [rule('ingress-class', ['/', 'Prefix', 'ingress-class-prefix'])],
    },
  });
  router = await startRouter(api.client);
});
afterAll(async () => {
  await router.stop();
  for (const backend of backends) await backend.close();
  await api.stop();
});

/** The Service that answered and the path that it saw, or the status. */
async function served(host: string, path: string): Promise<string> {
  const { status, body } = await ask(router.ports.http, host, { path });
  if (status !== 200) return String(status);
  const said = JSON.parse(body) as Record<string, string>;
  return `${said['service'] ?? ''} ${said['host'] ?? ''}${said['path'] ?? ''}`;
}

test.each([
  ['exact-path-rules', '/foo', 'foo-exact'],
  ['exact-path-rules', '/foo/', '404'],
  ['exact-path-rules', '/FOO', '404'],
  ['exact-path-rules', '/bar', '404'],
  ['prefix-path-rules', '/foo', 'foo-prefix'],
  ['prefix-path-rules', '/foo/', 'foo-prefix'],
  ['prefix-path-rules', '/FOO', '404'],
  ['prefix-path-rules', '/aaa/bbb', 'aaa-slash-bbb-prefix'],
  ['prefix-path-rules', '/aaa/bbb/ccc', 'aaa-slash-bbb-prefix'],
  ['prefix-path-rules', '/aaa/ccc', 'aaa-prefix'],
  ['prefix-path-rules', '/aaaccc', '404'],
  ['mixed-path-rules', '/foo', 'foo-exact'],
  ['trailing-slash-path-rules', '/aaa/bbb', 'aaa-slash-bbb-slash-prefix'],
  ['trailing-slash-path-rules', '/aaa/bbb/', 'aaa-slash-bbb-slash-prefix'],
  ['trailing-slash-path-rules', '/foo', '404'],
  ['trailing-slash-path-rules', '/foo/', 'foo-slash-exact'],
  ['bar.foo.com', '/', 'wildcard-foo-com'],
  ['baz.bar.foo.com', '/', '404'],
  ['foo.com', '/', '404'],
  ['subdomain.bar.com', '/', '404'],
  ['ingress-class', '/', '404'],
])('http://%s%s: %s', async (host, path, expected) => {
  expect(await served(host, path)).toBe(expected === '404' ? '404' : `${expected} ${host}${path}`);
});

test('a host with TLS has its certificate, and http leads there', async () => {
  const { http, https } = router.ports;
  const secure = await ask(https, 'foo.bar.com', { ca: authority.certificate });
  expect(JSON.parse(secure.body)).toMatchObject({ service: 'foo-bar-com', host: 'foo.bar.com' });
  expect(await ask(http, 'foo.bar.com')).toMatchObject({
    status: 308,
    headers: { location: 'https://foo.bar.com/' },
  });
});

describe('the default backend', () => {
  beforeAll(async () => {
    await objects.service('echo-service', []);
    for (let pod = 1; pod <= 10; pod++) {
      await objects.slice('echo-service', (await startEcho(`pod ${pod}`)).port, 100 + pod);
    }
    await objects.create(ingresses, {
      metadata: { name: 'default-backend' },
      spec: { defaultBackend: to('echo-service') },
    });
    const isServed = async (): Promise<void> =>
      expect((await anyRequest('GET', 'my-host', '/')).status).toBe(200);
    await vi.waitFor(isServed, { timeout: 60_000 });
  });

  const anyRequest = (method: string, host: string, path: string): Promise<Answered> =>
    ask(router.ports.http, host, { method, path, headers: { 'user-agent': 'conformance' } });

  test.each([
    ['GET', 'my-host', '/'],
    ['GET', 'my-host', '/sub-path'],
    ['POST', 'some-host', '/'],
    ['PUT', '127.0.0.1', '/resource'],
    ['DELETE', 'some-host', '/resource'],
    ['PATCH', 'my-host', '/resource'],
  ])('gets %s http://%s%s as it is', async (method, host, path) => {
    const { status, body, headers } = await anyRequest(method, host, path);
    expect(status).toBe(200);
    expect(JSON.parse(body)).toMatchObject({ method, path, host, proto: '1.1', agent: 'conformance' });
    expect(Object.keys(headers)).toEqual(
      expect.arrayContaining(['content-length', 'content-type', 'date', 'server']),
    );
  });

  test('is all of its Pods', async () => {
    const pods = new Set<unknown>();
    // An endpoint is drawn for each request: after a thousand, one that none of them reached is left out.
    for (let i = 0; i < 1000 && pods.size < 10; i++) {
      const { body } = await anyRequest('GET', 'load-balancing', '/');
      pods.add((JSON.parse(body) as Record<string, unknown>)['service']);
    }
    expect(pods.size).toBe(10);
  });
});
