import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { createCertificateAuthority, issueServerCertificate } from '../../src/tls/certificates.ts';
import { Clients } from '../../src/client/resource-client.ts';
import { systemClock } from '../../src/client/clock.ts';
import { InformerFactory } from '../../src/client/informers/shared-informer.ts';
import { isRecord } from '../../src/objects/json.ts';
import { listAt, recordAt } from '../../src/objects/json.ts';
import { RouterStatus, type StatusOptions } from '../../src/router/router-status.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { ask } from '../support/router/requests.ts';
import {
  type Backend,
  Objects,
  portOf,
  type RunningRouter,
  startBackend,
  startRouter,
} from '../support/router/router.ts';
import { call } from '../support/test-server.ts';
import { issueCertificate } from '../support/certificates.ts';
import { nextSecond } from '../support/next-second.ts';

const routes = '/apis/route.openshift.io/v1/namespaces/shop/routes';
const ingresses = '/apis/networking.k8s.io/v1/namespaces/shop/ingresses';
const authority = createCertificateAuthority('test', { now: new Date() });
const issue = (host: string) => issueServerCertificate(authority, host, [host], { now: new Date() });
const silent = pino({ enabled: false });

let api: TestServer;
let objects: Objects;
let web: Backend;
let secure: Server;
let router: RunningRouter;
const events: string[] = [];
let status: { value: RouterStatus; stop(): Promise<void> };

/** Writes status for the router until it is stopped. */
function writeStatus(options: Partial<StatusOptions>): { value: RouterStatus; stop(): Promise<void> } {
  const stopping = new AbortController();
  const [clock, random, log] = [systemClock, Math.random, silent];
  const informers = new InformerFactory({ transport: api.client, clock, random, log });
  const value = new RouterStatus(
    {
      ...{ clients: new Clients(api.client), informers, clock, random, log, metrics: router.metrics },
      events: {
        event: ({ metadata }, type, reason, message) =>
          events.push(`${metadata.name ?? ''} ${type} ${reason}: ${message}`),
      },
      serves: () => true,
    },
    router.router.view,
    router.router.table,
    {
      ...{ publishService: undefined, publishAddresses: [], podName: 'me' },
      router: { name: 'default', canonicalHostname: 'router.test' },
      ...options,
    },
  );
  informers.start(stopping.signal);
  const running = value.run(stopping.signal);
  const stop = async (): Promise<void> => {
    stopping.abort();
    await running;
    await informers.finished();
  };
  return { value, stop };
}

/** Entries of `status.ingress` of a Route, by the names of their routers. */
async function entries(name: string): Promise<Record<string, unknown>> {
  const { body } = await call(api.client, 'GET', `${routes}/${name}`);
  const list = listAt(recordAt(body, 'status'), 'ingress').filter(isRecord);
  return Object.fromEntries(list.map((entry) => [String(entry['routerName']), entry]));
}

/** `True`, or the reason of a refusal, of our entry. */
async function admitted(name: string): Promise<string> {
  const entry = (await entries(name))['default'];
  const [condition] = isRecord(entry) ? listAt(entry, 'conditions') : [];
  if (!isRecord(condition)) return '';
  return condition['status'] === 'True' ? 'True' : String(condition['reason']);
}

async function createRoute(name: string, spec: object, namespace = 'shop'): Promise<void> {
  await objects.create(routes.replace('shop', namespace), {
    apiVersion: 'route.openshift.io/v1',
    kind: 'Route',
    metadata: { name },
    spec: { to: { name: 'web' }, ...spec },
  });
}

const wait = { timeout: 60_000, interval: 20 };

beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0 });
  objects = new Objects(api.client);
  for (const name of ['shop', 'other']) await objects.create('/api/v1/namespaces', { metadata: { name } });
  const definition: unknown = parse(
    readFileSync(new URL('../../deploy/components/router/routes-definition.yaml', import.meta.url), 'utf8'),
  );
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  await objects.create(definitions, isRecord(definition) ? definition : {});
  await vi.waitUntil(async () => (await call(api.client, 'GET', routes)).status === 200, wait);
  web = await startBackend((_, response) => response.end('web'));
  const { certificate: cert, key } = issue('secure.shop.svc');
  secure = createServer({ cert, key }, (_, response) => response.end('secure'));
  secure.listen(0, '127.0.0.1');
  await once(secure, 'listening');
  await objects.service('web', [web.port]);
  await objects.service('secure', [portOf(secure)]);
  router = await startRouter(api.client, { selection: { className: 'servicenet', withoutClass: false } });
  status = writeStatus({ publishAddresses: ['192.0.2.7', 'lb.test'] });
});
afterAll(async () => {
  await status.stop();
  await router.stop();
  secure.close();
  secure.closeAllConnections();
  await web.close();
  await api.stop();
});

const passthrough = { termination: 'passthrough' };
const setHeader = (name: string, action: object) => ({
  httpHeaders: { actions: { request: [{ name, action }] } },
});
const set = { type: 'Set', set: { value: 'v' } };
const target = { name: 'web' };

// The rules of OpenShift's API server that a schema can say, each beside what it allows.
test.each([
  ['labels of 63 characters', { host: `${'a'.repeat(63)}.test` }, undefined],
  ['a label of 64 characters', { host: `${'a'.repeat(64)}.test` }, 'spec.host'],
  ['a host in upper case', { host: 'Shop.test' }, 'spec.host'],
  ['a host with an underscore', { host: 'a_b.test' }, 'spec.host'],
  ['a subdomain with an empty label', { subdomain: 'a..b' }, 'spec.subdomain'],
  ['a path', { path: '/a/b' }, undefined],
  ['a path without its slash', { path: 'a' }, 'spec.path'],
  ['a path with #', { path: '/a#b' }, 'spec.path'],
  ['a path with a space', { path: '/a b' }, 'spec.path'],
  ['a target that is no Service', { to: { ...target, kind: 'Pod' } }, 'spec.to.kind'],
  ['a target without its name', { to: { name: '' } }, 'spec.to.name'],
  ['the weight 256', { to: { ...target, weight: 256 } }, undefined],
  ['the weight 257', { to: { ...target, weight: 257 } }, 'spec.to.weight'],
  ['a negative weight', { to: { ...target, weight: -1 } }, 'spec.to.weight'],
  [
    'four alternates',
    { alternateBackends: ['a', 'b', 'c', 'd'].map((name) => ({ name })) },
    'spec.alternateBackends',
  ],
  ['the port 0', { port: { targetPort: 0 } }, 'spec.port.targetPort'],
  ['a port without a name', { port: { targetPort: '' } }, 'spec.port.targetPort'],
  ['a wildcard without a host', { wildcardPolicy: 'Subdomain' }, 'spec'],
  ['an unknown wildcard policy', { host: 'a.test', wildcardPolicy: 'All' }, 'spec.wildcardPolicy'],
  ['passthrough with empty certificates', { tls: { ...passthrough, certificate: '', key: '' } }, undefined],
  ['passthrough with a key', { tls: { ...passthrough, key: 'k' } }, 'spec.tls'],
  ['passthrough with a Secret', { tls: { ...passthrough, externalCertificate: { name: 's' } } }, 'spec.tls'],
  ['passthrough with a path', { path: '/a', tls: passthrough }, 'spec'],
  ['passthrough with headers', { tls: passthrough, ...setHeader('x', set) }, 'spec'],
  [
    'passthrough with Redirect',
    { tls: { ...passthrough, insecureEdgeTerminationPolicy: 'Redirect' } },
    undefined,
  ],
  ['passthrough with Allow', { tls: { ...passthrough, insecureEdgeTerminationPolicy: 'Allow' } }, 'spec.tls'],
  ['edge with an empty CA', { tls: { termination: 'edge', destinationCACertificate: '' } }, undefined],
  [
    'edge with the CA of a backend',
    { tls: { termination: 'edge', destinationCACertificate: 'c' } },
    'spec.tls',
  ],
  [
    'a certificate and a Secret',
    { tls: { certificate: 'c', externalCertificate: { name: 's' } } },
    'spec.tls',
  ],
  ['a header', setHeader('x-a', set), undefined],
  ['a header of the router', setHeader('Set-Cookie', set), 'spec.httpHeaders.actions.request[0].name'],
  ['a header with a space', setHeader('x a', set), 'spec.httpHeaders.actions.request[0].name'],
  ['Set without a value', setHeader('x', { type: 'Set' }), 'spec.httpHeaders.actions.request[0].action'],
  [
    'Delete with a value',
    setHeader('x', { ...set, type: 'Delete' }),
    'spec.httpHeaders.actions.request[0].action',
  ],
])('the definition of Routes and %s', async (_, spec, field) => {
  const { status: code, body } = await call(api.client, 'POST', `${routes}?dryRun=All`, {
    body: {
      apiVersion: 'route.openshift.io/v1',
      kind: 'Route',
      metadata: { name: 'asked' },
      spec: { to: target, ...spec },
    },
  });
  // Where the schema refuses, a second cause says that the rules of CEL were not asked.
  const [cause] = listAt(recordAt(body, 'details'), 'causes');
  expect([code, isRecord(cause) ? cause['field'] : undefined]).toEqual([
    field === undefined ? 201 : 422,
    field,
  ]);
});

test('a Route is served and says so; entries of other routers stay', async () => {
  await createRoute('plain', { host: 'plain.test' });
  await vi.waitUntil(async () => (await admitted('plain')) === 'True', wait);
  expect(await ask(router.ports.http, 'plain.test')).toMatchObject({ status: 200, body: 'web' });
  const foreign = { host: 'plain.test', routerName: 'blue', wildcardPolicy: 'None', conditions: [] };
  const { default: ours } = await entries('plain');
  expect(ours).toMatchObject({
    host: 'plain.test',
    routerCanonicalHostname: 'router.test',
    conditions: [{ type: 'Admitted', status: 'True' }],
  });
  await objects.patch(`${routes}/plain/status`, { status: { ingress: [ours, foreign] } });
  await objects.patch(`${routes}/plain`, { spec: { host: 'moved.test' } });
  await vi.waitUntil(
    async () =>
      isRecord((await entries('plain'))['default']) &&
      (await entries('plain'))['default'] !== undefined &&
      (await ask(router.ports.http, 'moved.test')).status === 200,
    wait,
  );
  await vi.waitFor(async () => {
    expect(await entries('plain')).toMatchObject({ default: { host: 'moved.test' }, blue: foreign });
  }, wait);
});

test('a host that another namespace has is refused, and admitted when it goes', async () => {
  await createRoute('first', { host: 'claimed.test' });
  await vi.waitUntil(async () => (await admitted('first')) === 'True', wait);
  await nextSecond();
  await createRoute('second', { host: 'claimed.test' }, 'other');
  await objects.create(routes, {
    apiVersion: 'route.openshift.io/v1',
    kind: 'Route',
    metadata: { name: 'third' },
    spec: { host: 'claimed.test', to: { name: 'web' } },
  });
  await vi.waitUntil(async () => (await admitted('third')) === 'HostAlreadyClaimed', wait);
  await objects.delete(`${routes}/first`);
  const other = async (): Promise<unknown> => {
    const { body } = await call(api.client, 'GET', `${routes.replace('shop', 'other')}/second`);
    const [entry] = listAt(recordAt(body, 'status'), 'ingress');
    return isRecord(entry) ? listAt(entry, 'conditions')[0] : undefined;
  };
  // Of one second, the UID decides which of the two is older.
  await vi.waitUntil(async () => {
    const second = await other();
    const [one, two] = [isRecord(second) ? second['status'] : '', await admitted('third')];
    return (one === 'True') !== (two === 'True');
  }, wait);
});

test('what cannot be served says why', async () => {
  await createRoute('mismatch', {
    host: 'mismatch.test',
    tls: {
      termination: 'edge',
      certificate: issue('mismatch.test').certificate,
      key: issue('mismatch.test').key,
    },
  });
  await createRoute('garbage', {
    host: 'garbage.test',
    tls: { termination: 'edge', certificate: 'no', key: 'no' },
  });
  await createRoute('missing', {
    host: 'missing.test',
    tls: { termination: 'edge', externalCertificate: { name: 'none' } },
  });
  await createRoute('wild', { host: 'www.wild.test', wildcardPolicy: 'Subdomain' });
  await createRoute('hostless', {});
  const expected = {
    mismatch: 'ExtendedValidationFailed',
    garbage: 'ExtendedValidationFailed',
    missing: 'ExternalCertificateGetFailed',
    wild: 'RouteNotAdmitted',
    hostless: 'NoHostValue',
  };
  for (const [name, reason] of Object.entries(expected)) {
    await vi.waitFor(async () => {
      expect([name, await admitted(name)]).toEqual([name, reason]);
    }, wait);
  }
  const dynamic = { name: 'X-A', action: { type: 'Set', set: { value: '%[req.hdr(Host)]' } } };
  await createRoute('dynamic', { host: 'dynamic.test', httpHeaders: { actions: { request: [dynamic] } } });
  await vi.waitFor(async () => expect(await admitted('dynamic')).toBe('ExtendedValidationFailed'), wait);
  await createRoute('subdomain', { subdomain: 'sub' });
  await vi.waitFor(async () => {
    expect((await entries('subdomain'))['default']).toMatchObject({ host: 'sub.apps.test' });
  }, wait);
});

test('the Secret of a Route comes, is spoilt, goes and comes again', async () => {
  const { certificate, key } = issue('external.test');
  const secrets = '/api/v1/namespaces/shop/secrets';
  const body = (pem: string) => ({
    metadata: { name: 'external' },
    type: 'kubernetes.io/tls',
    stringData: { 'tls.crt': certificate, 'tls.key': pem },
  });
  const becomes = (expected: string): Promise<void> =>
    vi.waitFor(async () => expect(await admitted('external')).toBe(expected), wait);
  await createRoute('external', {
    host: 'external.test',
    tls: { termination: 'edge', externalCertificate: { name: 'external' } },
  });
  await becomes('ExternalCertificateGetFailed');
  await objects.create(secrets, body(key));
  await becomes('True');
  await objects.patch(`${secrets}/external`, { stringData: { 'tls.key': issue('external.test').key } });
  await becomes('ExternalCertificateValidationFailed');
  await objects.delete(`${secrets}/external`);
  await becomes('ExternalCertificateSecretDeleted');
  await objects.create(secrets, body(key));
  await becomes('True');
});

test('TLS ends here, here and there, or there', async () => {
  const edge = issue('edge.test');
  const to = { name: 'secure' };
  const { certificate, key } = edge;
  await createRoute('edge', { host: 'edge.test', tls: { termination: 'edge', certificate, key } });
  const again = issue('again.test');
  await createRoute('again', {
    ...{ host: 'again.test', to },
    tls: {
      termination: 'reencrypt',
      certificate: again.certificate,
      key: again.key,
      destinationCACertificate: authority.certificate,
    },
  });
  const strange = createCertificateAuthority('strange', { now: new Date() });
  const distrust = issue('distrust.test');
  await createRoute('distrust', {
    ...{ host: 'distrust.test', to },
    tls: {
      termination: 'reencrypt',
      certificate: distrust.certificate,
      key: distrust.key,
      destinationCACertificate: strange.certificate,
    },
  });
  await createRoute('through', { host: 'secure.shop.svc', to, tls: { termination: 'passthrough' } });
  for (const name of ['edge', 'again', 'distrust', 'through']) {
    await vi.waitFor(async () => {
      expect([name, await admitted(name)]).toEqual([name, 'True']);
    }, wait);
  }
  const { https, http } = router.ports;
  const ca = authority.certificate;
  expect(await ask(https, 'edge.test', { ca })).toMatchObject({ status: 200, body: 'web' });
  expect(await ask(http, 'edge.test')).toMatchObject({ status: 503, body: '503 NotServedInsecurely\n' });
  expect(await ask(https, 'again.test', { ca })).toMatchObject({ status: 200, body: 'secure' });
  expect(await ask(https, 'distrust.test', { ca })).toMatchObject({ status: 502 });
  expect(await ask(https, 'secure.shop.svc', { ca })).toMatchObject({ status: 200, body: 'secure' });
});

test('backends are trusted as Go trusts: each certificate of destinationCACertificate is an anchor', async () => {
  const ca = { isCA: true, keyUsage: 0x04 };
  const root = issueCertificate({ subject: 'root', ...ca });
  const middle = issueCertificate({ subject: 'middle', signer: root, ...ca });
  const leaf = issueCertificate({ subject: 'leaf', signer: middle });
  const alone = issueCertificate({ subject: 'alone' });
  const nameless = issueCertificate({ subject: '', issuer: 'somebody', ...ca });
  const namelessLeaf = issueCertificate({ subject: '', signer: nameless });
  const cases = {
    root: { sent: [leaf, middle], anchor: root, status: 200 },
    middle: { sent: [leaf], anchor: middle, status: 200 },
    leaf: { sent: [leaf], anchor: leaf, status: 200 },
    alone: { sent: [alone], anchor: alone, status: 200 },
    nameless: { sent: [namelessLeaf], anchor: nameless, status: 200 },
    'nameless-leaf': { sent: [namelessLeaf], anchor: namelessLeaf, status: 200 },
    'nobody-sent': { sent: [leaf], anchor: root, status: 502 },
    'another-leaf': { sent: [issueCertificate({ subject: 'alone' })], anchor: alone, status: 502 },
    'another-nameless': { sent: [issueCertificate({ subject: '' })], anchor: nameless, status: 502 },
  };
  for (const [name, { sent, anchor, status: wanted }] of Object.entries(cases)) {
    const [{ key } = anchor] = sent;
    const cert = sent.map(({ certificate }) => certificate).join('');
    const server = createServer({ key, cert }, (_, response) => response.end(name));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    await objects.service(`trust-${name}`, [portOf(server)]);
    const host = `${name}.trust.test`;
    const own = issue(host);
    await createRoute(`trust-${name}`, {
      ...{ host, to: { name: `trust-${name}` } },
      tls: {
        termination: 'reencrypt',
        certificate: own.certificate,
        key: own.key,
        destinationCACertificate: anchor.certificate,
      },
    });
    await vi.waitFor(async () => expect(await admitted(`trust-${name}`)).toBe('True'), wait);
    const answer = await ask(router.ports.https, host, { ca: authority.certificate });
    server.close();
    server.closeAllConnections();
    expect([name, answer.status]).toEqual([name, wanted]);
  }
});

test('weights share the requests', async () => {
  const second = await startBackend((_, response) => response.end('second'));
  await objects.service('second', [second.port]);
  await createRoute('shared', {
    host: 'shared.test',
    to: { name: 'web', weight: 200 },
    alternateBackends: [{ name: 'second', weight: 50 }],
  });
  await vi.waitUntil(async () => (await admitted('shared')) === 'True', wait);
  let count = 0;
  for (let i = 0; i < 200; i++) if ((await ask(router.ports.http, 'shared.test')).body === 'second') count++;
  // A fifth, 40; further than 6 standard deviations (34) is no chance.
  expect(Math.abs(count - 40)).toBeLessThan(35);
  await second.close();
});

test('an Ingress without its certificate says so by an Event, and what is wrong when that changes', async () => {
  const said = (): string[] => events.filter((event) => event.startsWith('secure-one '));
  await objects.create(ingresses, {
    metadata: { name: 'secure-one', annotations: { 'kubernetes.io/ingress.class': 'servicenet' } },
    spec: {
      defaultBackend: { service: { name: 'web', port: { number: 80 } } },
      tls: [{ hosts: ['one.test'], secretName: 'one' }],
    },
  });
  const missing = 'secure-one Warning SecretNotFound: no certificate by the Secret one: ';
  await vi.waitFor(() => expect(said()).toEqual([expect.stringContaining(missing)]), wait);
  await objects.create('/api/v1/namespaces/shop/secrets', {
    metadata: { name: 'one' },
    type: 'kubernetes.io/tls',
    stringData: { 'tls.crt': issue('one.test').certificate, 'tls.key': issue('one.test').key },
  });
  const wrong =
    'secure-one Warning InvalidCertificate: no certificate by the Secret one: the key is not that of the certificate';
  await vi.waitFor(() => expect(said()).toEqual([expect.stringContaining(missing), wrong]), wait);
});

test('Events name hosts of others, restrictions that are not there, annotations without effect and names elsewhere', async () => {
  const prefix = 'haproxy.router.openshift.io';
  const kind = { apiVersion: 'route.openshift.io/v1', kind: 'Route' };
  const paths = [
    { path: '/pay', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } },
  ];
  await createRoute('owner', { host: 'owned.test' });
  await vi.waitUntil(async () => (await admitted('owner')) === 'True', wait);
  await nextSecond();
  await objects.create(ingresses.replace('shop', 'other'), {
    metadata: {
      name: 'thief',
      annotations: { 'kubernetes.io/ingress.class': 'servicenet', [`${prefix}/ip_allowlist`]: '10.0.0.0/8' },
    },
    spec: { rules: [{ host: 'owned.test', http: { paths } }] },
  });
  await objects.create(routes, {
    ...{
      ...kind,
      metadata: { name: 'limited', annotations: { [`${prefix}/pod-concurrent-connections`]: '5' } },
    },
    spec: { host: 'limited.test', to: { kind: 'Service', name: 'web' } },
  });
  await objects.create('/api/v1/namespaces/shop/services', {
    metadata: { name: 'elsewhere' },
    spec: { type: 'ExternalName', externalName: 'example.com' },
  });
  await objects.create(routes, {
    ...{ ...kind, metadata: { name: 'balanced', annotations: { [`${prefix}/balance`]: 'source' } } },
    spec: { host: 'balanced.test', to: { kind: 'Service', name: 'elsewhere' } },
  });
  const expected = [
    'thief Warning HostAlreadyClaimed: a route in another namespace holds host owned.test',
    `thief Warning IgnoredAnnotations: these annotations have no effect: ${prefix}/ip_allowlist`,
    `limited Warning UnsupportedRestriction: this router does not know the limit of ${prefix}/pod-concurrent-connections`,
    `balanced Warning IgnoredAnnotations: these annotations have no effect: ${prefix}/balance`,
  ];
  await vi.waitFor(() => expect(events).toEqual(expect.arrayContaining(expected)), wait);
  await vi.waitFor(
    () =>
      expect(events.filter((event) => event.startsWith('balanced Warning ExternalNameBackend'))).toHaveLength(
        1,
      ),
    wait,
  );
  expect(await ask(router.ports.http, 'owned.test', { path: '/pay' })).toMatchObject({ body: 'web' });
  await vi.waitUntil(async () => (await admitted('limited')) === 'UnsupportedRestriction', wait);
  await vi.waitUntil(async () => (await admitted('balanced')) === 'True', wait);
});

test('Ingresses of our class get the addresses, others none; they are taken away at the end', async () => {
  const create = async (name: string, annotation: string): Promise<void> => {
    await objects.create(ingresses, {
      metadata: { name, annotations: { 'kubernetes.io/ingress.class': annotation } },
      spec: { defaultBackend: { service: { name: 'web', port: { number: 80 } } } },
    });
  };
  const addresses = async (name: string): Promise<unknown> => {
    const { body } = await call(api.client, 'GET', `${ingresses}/${name}`);
    return recordAt(body, 'status', 'loadBalancer');
  };
  await objects.create(ingresses, {
    metadata: {
      name: 'moved',
      annotations: {
        'kubernetes.io/ingress.class': 'servicenet',
        'nginx.ingress.kubernetes.io/rewrite-target': '/$1',
        'nginx.ingress.kubernetes.io/limit-rps': '5',
      },
    },
    spec: { defaultBackend: { service: { name: 'web', port: { number: 80 } } } },
  });
  await create('theirs', 'nginx');
  await create('ours', 'servicenet');
  await vi.waitFor(async () => {
    expect(await addresses('ours')).toEqual({ ingress: [{ hostname: 'lb.test' }, { ip: '192.0.2.7' }] });
  }, wait);
  expect(await addresses('theirs')).toEqual({});
  await vi.waitFor(async () => expect(await addresses('moved')).toHaveProperty('ingress'), wait);
  // One for both annotations, though the Ingress was written and read again.
  expect(events.filter((event) => event.startsWith('moved'))).toEqual([
    'moved Warning IgnoredAnnotations: these annotations have no effect: nginx.ingress.kubernetes.io/limit-rps, nginx.ingress.kubernetes.io/rewrite-target',
  ]);
  await status.stop();
  // A router of another installation has written this one.
  const others = { ingress: [{ ip: '192.0.2.99' }] };
  const written = await call(api.client, 'PATCH', `${ingresses}/moved/status`, {
    body: { status: { loadBalancer: others } },
    contentType: 'application/merge-patch+json',
  });
  expect(written.status).toBe(200);
  const seen = (): unknown => router.router.view.ingresses.cache.get('shop/moved')?.status.loadBalancer;
  await vi.waitFor(() => expect(seen()).toEqual(others), wait);
  await status.value.clear(AbortSignal.timeout(20_000));
  expect(await addresses('ours')).toEqual({});
  expect(await addresses('moved')).toEqual(others);
});
