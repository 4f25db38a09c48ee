/** Routes that are made of Ingresses, by the controller of `--platform=openshift` on a server of ours. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { at, listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startApiServer({
    platform: 'openshift',
    controllers: ['ingress-to-route-controller', 'garbage-collector-controller'],
  });
  await send('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
  await send('POST', '/api/v1/namespaces/shop/services', {
    metadata: { name: 'web' },
    spec: { ports: [{ name: 'http', port: 80 }] },
  });
});
afterAll(() => server.stop());

const ingresses = '/apis/networking.k8s.io/v1/namespaces/shop/ingresses';
const routes = '/apis/route.openshift.io/v1/namespaces/shop/routes';
const merge = 'application/merge-patch+json';

async function send(method: string, path: string, body?: JsonRecord): Promise<JsonRecord> {
  const patch = method === 'PATCH' ? { contentType: merge } : {};
  const answer = await call(server.client, method, path, { ...(body && { body }), ...patch });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${textAt(answer.body, 'message')}`);
  return answer.body;
}

const path = (at = '/', service = 'web', pathType = 'Prefix') => ({
  ...{ path: at, pathType },
  backend: { service: { name: service, port: { number: 80 } } },
});

async function makeIngress(name: string, ...paths: object[]): Promise<JsonRecord> {
  const rules = [{ host: `${name}.test`, http: { paths: paths.length === 0 ? [path()] : paths } }];
  return send('POST', ingresses, { metadata: { name }, spec: { rules } });
}

/** The Routes of an Ingress. */
async function routesOf(name: string): Promise<readonly unknown[]> {
  const query = { fieldSelector: `spec.host=${name}.test` };
  return listAt((await call(server.client, 'GET', routes, { query })).body, 'items');
}

async function until<T>(look: () => Promise<T>, isReached: (found: T) => boolean): Promise<T> {
  let found = await look();
  await expect.poll(async () => isReached((found = await look())), { timeout: 60_000 }).toBe(true);
  return found;
}

async function routeOf(name: string): Promise<unknown> {
  return (
    await until(
      () => routesOf(name),
      ({ length }) => length === 1,
    )
  )[0];
}

test('an Ingress without a class gets a Route, keeps what users change, and takes it along', async () => {
  const ingress = await makeIngress('first');
  const route = await routeOf('first');
  const name = textAt(route, 'metadata', 'name');
  expect(name).toMatch(/^first-[a-z0-9]{5}$/);
  expect(at(route, 'spec')).toEqual({
    ...{ host: 'first.test', path: '/', port: { targetPort: 'http' }, wildcardPolicy: 'None' },
    to: { kind: 'Service', name: 'web', weight: 100 },
  });
  expect(listAt(route, 'metadata', 'ownerReferences')).toEqual([
    {
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', name: 'first', controller: true },
      uid: textAt(ingress, 'metadata', 'uid'),
    },
  ]);
  await send('PATCH', `${routes}/${name}`, { spec: { to: { weight: 7 } } });
  await send('PATCH', `${ingresses}/first`, { metadata: { annotations: { a: 'b' } } });
  const changed = await until(
    () => send('GET', `${routes}/${name}`),
    (found) => textAt(found, 'metadata', 'annotations', 'a') === 'b',
  );
  expect(at(changed, 'spec', 'to', 'weight')).toBe(7);
  await send('DELETE', `${ingresses}/first`);
  await until(
    () => routesOf('first'),
    ({ length }) => length === 0,
  );
});

test('one Event names the rules without a Route; each gets one when its Service comes', async () => {
  await makeIngress('late', path('/now'), path('/later', 'late'), path('/exact', 'web', 'Exact'));
  await routeOf('late');
  const query = { fieldSelector: 'involvedObject.name=late,reason=IncompleteIngressToRouteRules' };
  const events = await until(
    async () =>
      listAt((await call(server.client, 'GET', '/api/v1/namespaces/shop/events', { query })).body, 'items'),
    ({ length }) => length > 0,
  );
  expect(
    events.map((event) => [textAt(event, 'type'), textAt(event, 'message'), at(event, 'count')]),
  ).toEqual([
    [
      'Normal',
      'Some rules have no Route: the Service late is not there (rule 0, path 1); Routes have no exact paths (rule 0, path 2)',
      1,
    ],
  ]);
  expect(textAt(events[0], 'source', 'component')).toBe('ingress-to-route-controller');
  await send('POST', '/api/v1/namespaces/shop/services', {
    metadata: { name: 'late' },
    spec: { ports: [{ port: 80 }] },
  });
  const both = await until(
    () => routesOf('late'),
    ({ length }) => length === 2,
  );
  expect(both.map((route) => textAt(route, 'spec', 'path')).toSorted()).toEqual(['/later', '/now']);
});

test('an Ingress of another class gets none, until the class is ours', async () => {
  const body = { metadata: { name: 'classed' }, spec: { controller: 'example.com/other' } };
  await send('POST', '/apis/networking.k8s.io/v1/ingressclasses', body);
  const spec = { ingressClassName: 'classed', rules: [{ host: 'classed.test', http: { paths: [path()] } }] };
  await send('POST', ingresses, { metadata: { name: 'classed' }, spec });
  await makeIngress('beside');
  await routeOf('beside');
  expect(await routesOf('classed')).toEqual([]);
  await send('DELETE', '/apis/networking.k8s.io/v1/ingressclasses/classed');
  await send('POST', '/apis/networking.k8s.io/v1/ingressclasses', {
    ...body,
    spec: { controller: 'openshift.io/ingress-to-route' },
  });
  await routeOf('classed');
});

test('routers that admit the Route are named in the status of the Ingress', async () => {
  await makeIngress('status');
  const name = textAt(await routeOf('status'), 'metadata', 'name');
  await send('PATCH', `${ingresses}/status/status`, {
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
  });
  const ingress = [
    {
      ...{ host: 'status.test', routerName: 'r', routerCanonicalHostname: 'router.test' },
      conditions: [{ type: 'Admitted', status: 'True' }],
    },
  ];
  await send('PATCH', `${routes}/${name}/status`, { status: { ingress } });
  const entries = await until(
    async () => listAt(await send('GET', `${ingresses}/status`), 'status', 'loadBalancer', 'ingress'),
    ({ length }) => length === 2,
  );
  expect(entries).toEqual([{ ip: '192.0.2.1' }, { hostname: 'router.test' }]);
});

test('what the API refuses of a Route is said by an Event', async () => {
  const annotations = { 'route.openshift.io/termination': 'passthrough' };
  const rules = [{ host: 'refused.test', http: { paths: [path('/x')] } }];
  await send('POST', ingresses, { metadata: { name: 'refused', annotations }, spec: { rules } });
  const query = { fieldSelector: 'involvedObject.name=refused' };
  const events = await until(
    async () =>
      listAt((await call(server.client, 'GET', '/api/v1/namespaces/shop/events', { query })).body, 'items'),
    ({ length }) => length > 0,
  );
  expect(textAt(events[0], 'reason')).toBe('FailedIngressToRouteConversion');
  expect(textAt(events[0], 'message')).toContain('passthrough termination does not support paths');
});

test('an annotation that is no boolean and a target port that was corrected are said by Events, each once', async () => {
  const annotations = { 'route.openshift.io/reconcile-labels': 'perhaps' };
  const rules = [{ host: 'odd.test', http: { paths: [path()] } }];
  await send('POST', ingresses, { metadata: { name: 'odd', annotations }, spec: { rules } });
  const name = textAt(await routeOf('odd'), 'metadata', 'name');
  await send('PATCH', `${routes}/${name}`, { spec: { port: { targetPort: 'other' } } });
  const query = { fieldSelector: 'involvedObject.name=odd' };
  const events = await until(
    async () =>
      listAt((await call(server.client, 'GET', '/api/v1/namespaces/shop/events', { query })).body, 'items'),
    ({ length }) => length === 2,
  );
  expect(
    events.map((event) => ['type', 'reason', 'message'].map((member) => textAt(event, member))).toSorted(),
  ).toEqual([
    [
      'Normal',
      'IncompleteIngressToRouteRules',
      'Some Routes had another target port, which was corrected: the Service web (rule 0, path 0)',
    ],
    ['Normal', 'InvalidAnnotationValue', 'Invalid value on annotation "route.openshift.io/reconcile-labels"'],
  ]);
  expect(events.map((event) => at(event, 'count'))).toEqual([1, 1]);
  expect(at(await send('GET', `${routes}/${name}`), 'spec', 'port')).toEqual({ targetPort: 'http' });
});
