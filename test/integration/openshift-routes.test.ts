/** Routes of an API server with `--platform=openshift`, where they are no custom resources. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { JsonRecord } from '../../src/objects/json.ts';
import { at, listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startApiServer({ platform: 'openshift', authorizationMode: 'RBAC' });
  await call(server.client, 'POST', '/api/v1/namespaces', { body: { metadata: { name: 'shop' } } });
  for (const role of ['edit', 'view']) {
    const body = {
      metadata: { name: role },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: `${role}or` }],
    };
    await call(server.client, 'POST', '/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings', {
      body,
    });
  }
});
afterAll(async () => server.stop());

const group = '/apis/route.openshift.io/v1';
const routes = `${group}/namespaces/shop/routes`;

function route(name: string, spec: JsonRecord = {}): JsonRecord {
  const kind = { apiVersion: 'route.openshift.io/v1', kind: 'Route' };
  return { ...kind, metadata: { name }, spec: { to: { name: 'web' }, ...spec } };
}

/** Sends as another user. */
async function as(user: string, method: string, path: string, body?: JsonRecord, contentType?: string) {
  const headers = { 'Impersonate-User': user };
  return call(server.client, method, path, {
    headers,
    body,
    ...(contentType === undefined ? {} : { contentType }),
  });
}

test('discovery lists Routes in the category all, with /status, and no definition', async () => {
  const { body } = await call(server.client, 'GET', group);
  expect(listAt(body, 'resources')).toEqual([
    expect.objectContaining({ name: 'routes', kind: 'Route', namespaced: true, categories: ['all'] }),
    {
      name: 'routes/status',
      singularName: '',
      namespaced: true,
      kind: 'Route',
      verbs: ['get', 'patch', 'update'],
    },
  ]);
  const definitions = await call(
    server.client,
    'GET',
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
  );
  const names = listAt(definitions.body, 'items').map((item) => textAt(item, 'metadata', 'name'));
  expect(names.filter((name) => name.includes('route.openshift.io'))).toEqual([]);
});

test('OpenAPI describes them', async () => {
  const { body } = await call(server.client, 'GET', '/openapi/v3/apis/route.openshift.io/v1');
  const spec = recordAt(body, 'components', 'schemas', 'com.github.openshift.api.route.v1.RouteSpec');
  expect(Object.keys(recordAt(spec, 'properties'))).toContain('wildcardPolicy');
});

test('a Route without host gets one; a client that names fields that there are not is warned', async () => {
  const odd = { ...route('generated'), spec: { to: { name: 'web' }, hosts: 'x' } };
  const { status, body, warnings } = await call(server.client, 'POST', routes, {
    body: odd,
    query: { fieldValidation: 'Warn' },
  });
  expect(status).toBe(201);
  expect(body).toMatchObject({
    metadata: { annotations: { 'openshift.io/host.generated': 'true' }, generation: 1 },
    spec: { host: 'generated-shop.router.default.svc.cluster.local', wildcardPolicy: 'None' },
    status: {},
  });
  expect(warnings).toEqual(['unknown field "spec.hosts"']);
});

test('apply and patches: the fields that the server fills in belong to no client', async () => {
  const applied = await call(server.client, 'PATCH', `${routes}/applied`, {
    body: route('applied'),
    query: { fieldManager: 'me' },
    contentType: 'application/apply-patch+yaml',
  });
  expect(applied.status).toBe(201);
  const [entry] = listAt(applied.body, 'metadata', 'managedFields');
  expect(at(entry, 'fieldsV1')).toEqual({ 'f:spec': { 'f:to': { 'f:name': {} } } });
  const patched = await call(server.client, 'PATCH', `${routes}/applied`, {
    body: { spec: { path: '/x', alternateBackends: [{ kind: 'Service', name: 'b' }] } },
    contentType: 'application/merge-patch+json',
  });
  expect(patched.body).toMatchObject({ metadata: { generation: 2 }, spec: { path: '/x' } });
});

test('an update names a version, and creates nothing', async () => {
  const missing = await call(server.client, 'PUT', `${routes}/nothing`, { body: route('nothing') });
  expect(missing.status).toBe(404);
  await call(server.client, 'POST', routes, { body: route('versioned') });
  const blind = await call(server.client, 'PUT', `${routes}/versioned`, { body: route('versioned') });
  expect(blind.status).toBe(422);
  expect(textAt(blind.body, 'message')).toContain('metadata.resourceVersion');
});

test('field selectors: host, path and the name of the Service', async () => {
  const own = { host: 'one.test', path: '/one', to: { name: 'first' } };
  await call(server.client, 'POST', routes, { body: route('one', own) });
  const named = async (fieldSelector: string) => {
    const { status, body } = await call(server.client, 'GET', routes, { query: { fieldSelector } });
    return status === 200 ? listAt(body, 'items').map((item) => textAt(item, 'metadata', 'name')) : status;
  };
  expect(await named('spec.host=one.test')).toEqual(['one']);
  expect(await named('spec.path=/one,spec.to.name=first')).toEqual(['one']);
  expect(await named('spec.to.name=first,spec.host!=one.test')).toEqual([]);
  expect(await named('spec.subdomain=x')).toBe(400);
});

test('who edits a namespace chooses hosts of new Routes, and changes none; who views it reads', async () => {
  const made = await as('editor', 'POST', routes, route('edited', { host: 'edited.test' }));
  expect(made.status).toBe(201);
  const moved = await as('editor', 'PATCH', `${routes}/edited`, { spec: { host: 'other.test' } }, merge);
  expect(moved.status).toBe(422);
  expect(listAt(moved.body, 'details', 'causes')).toEqual([
    {
      reason: 'FieldValueInvalid',
      message: 'Invalid value: "other.test": you do not have permission to set the host field of the route',
      field: 'spec.host',
    },
  ]);
  const pointed = await as('editor', 'PATCH', `${routes}/edited`, { spec: { to: { name: 'b' } } }, merge);
  expect(pointed.status).toBe(200);
  expect((await as('viewor', 'GET', `${routes}/edited`)).status).toBe(200);
  expect((await as('viewor', 'POST', routes, route('viewed'))).status).toBe(403);
  expect((await as('editor', 'PATCH', `${routes}/edited/status`, { status: {} }, merge)).status).toBe(403);
});

const merge = 'application/merge-patch+json';

test('one who may create Routes, but not choose hosts, gets a host', async () => {
  const rights = '/apis/rbac.authorization.k8s.io/v1/namespaces/shop';
  const rules = [{ apiGroups: ['route.openshift.io'], resources: ['routes'], verbs: ['create'] }];
  await call(server.client, 'POST', `${rights}/roles`, { body: { metadata: { name: 'maker' }, rules } });
  await call(server.client, 'POST', `${rights}/rolebindings`, {
    body: {
      metadata: { name: 'maker' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'maker' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'maker' }],
    },
  });
  const chosen = await as('maker', 'POST', routes, route('made', { host: 'made.test' }));
  expect(chosen.status).toBe(422);
  expect(listAt(chosen.body, 'details', 'causes')).toEqual([
    {
      reason: 'FieldValueForbidden',
      message: 'Forbidden: you do not have permission to set the host field of the route',
      field: 'spec.host',
    },
  ]);
  expect((await as('maker', 'POST', routes, route('made'))).status).toBe(201);
});

const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };

test('the table says who serves what, and why not', async () => {
  const spec = {
    host: 'table.test',
    path: '/p',
    port: { targetPort: 'http' },
    tls: { termination: 'edge', insecureEdgeTerminationPolicy: 'Redirect' },
    to: { name: 'a', weight: 30 },
    alternateBackends: [{ name: 'b', weight: 10 }],
  };
  await call(server.client, 'POST', routes, { body: route('table', spec) });
  const cells = async () => {
    const { body } = await call(server.client, 'GET', `${routes}/table`, { headers: table });
    expect(listAt(body, 'columnDefinitions').map((column) => textAt(column, 'name'))).toEqual([
      ...['Name', 'Host/Port', 'Path', 'Services', 'Port', 'Termination', 'Wildcard'],
    ]);
    return at(listAt(body, 'rows')[0], 'cells');
  };
  const rest = ['/p', 'a(75%),b(25%)', 'http', 'edge/Redirect', 'None'];
  expect(await cells()).toEqual(['table', 'table.test', ...rest]);
  const entry = (host: string, status: string, reason = '') => ({
    ...{ host, routerName: `of ${host}` },
    conditions: [{ type: 'Admitted', status, reason }],
  });
  const say = async (...ingress: JsonRecord[]) => {
    const path = `${routes}/table/status`;
    const written = await call(server.client, 'PATCH', path, {
      body: { status: { ingress } },
      contentType: merge,
    });
    expect(written.body).toMatchObject({ metadata: { generation: 1 } });
    const [, shown] = (await cells()) as unknown[];
    return shown;
  };
  expect(await say(entry('table.test', 'True'))).toBe('table.test');
  expect(await say(entry('a.test', 'True'), entry('table.test', 'True'))).toBe('table.test ... 1 more');
  expect(await say(entry('a.test', 'False', 'HostAlreadyClaimed'))).toBe('HostAlreadyClaimed');
  expect(await say(entry('a.test', 'True'), entry('b.test', 'False'))).toBe('a.test ... 1 rejected');
  expect(await say({ host: 'a.test', routerName: 'a' })).toBe('Pending');
});

test('a definition of the same kind does not take their place', async () => {
  const path = new URL('../../deploy/components/router/routes-definition.yaml', import.meta.url);
  const definition: unknown = parse(readFileSync(path, 'utf8'));
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  expect((await call(server.client, 'POST', definitions, { body: definition })).status).toBe(201);
  await expect
    .poll(
      async () => {
        const { body } = await call(server.client, 'GET', `${definitions}/routes.route.openshift.io`);
        return listAt(body, 'status', 'conditions').some((one) => textAt(one, 'type') === 'Established');
      },
      { timeout: 60_000 },
    )
    .toBe(true);
  const made = await call(server.client, 'POST', routes, { body: route('beside') });
  expect(textAt(made.body, 'spec', 'host')).toBe('beside-shop.router.default.svc.cluster.local');
  await call(server.client, 'DELETE', `${definitions}/routes.route.openshift.io`);
  await expect
    .poll(async () => (await call(server.client, 'GET', `${definitions}/routes.route.openshift.io`)).status, {
      timeout: 60_000,
    })
    .toBe(404);
  expect((await call(server.client, 'GET', `${routes}/beside`)).status).toBe(200);
});
