import { once } from 'node:events';
import { request as httpsRequest } from 'node:https';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { answerOf } from '../../src/apiserver/proxy/dial-pod.ts';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { ExtensionApiServer } from '../support/extension-server.ts';
import { Kubectl } from '../support/kubectl.ts';
import { call } from '../support/test-server.ts';

const group = 'things.example.com';
const apiServices = '/apis/apiregistration.k8s.io/v1/apiservices';
const name = `v1.${group}`;
const things = `/apis/${group}/v1/namespaces/default/things`;

/** A failed check is repeated after 30 s at most. */
const patience = { timeout: 60_000, interval: 50 };

let api: TestServer;
let extension: ExtensionApiServer;
beforeAll(async () => {
  api = await startApiServer({ authorizationMode: 'RBAC' });
  extension = await ExtensionApiServer.start(`${group}/v1`, 'things.default.svc');
  const spec = { type: 'ExternalName', externalName: 'localhost' };
  await send('POST', '/api/v1/namespaces/default/services', { metadata: { name: 'things' }, spec });
});
afterAll(async () => {
  await extension.stop();
  await api.stop();
});
afterEach(async () => {
  await send('DELETE', `${apiServices}/${name}`);
  extension.requests.length = 0;
  extension.override = () => false;
});

async function send(method: string, path: string, body?: unknown, query: Record<string, string> = {}) {
  return call(api.client, method, path, { body, query });
}

async function register(spec: object = {}): Promise<void> {
  const service = { namespace: 'default', name: 'things', port: extension.port };
  const made = await send('POST', apiServices, {
    metadata: { name },
    spec: {
      ...{ group, version: 'v1', groupPriorityMinimum: 2000, versionPriority: 10 },
      ...{ service, caBundle: extension.caBundle, ...spec },
    },
  });
  expect(made.status).toBe(201);
}

async function condition(): Promise<Record<string, unknown>> {
  const { body } = await send('GET', `${apiServices}/${name}`);
  return recordAt(listAt(body, 'status', 'conditions')[0]);
}

async function untilAvailable(): Promise<void> {
  await expect.poll(condition, patience).toMatchObject({ status: 'True' });
}

describe('an APIService that names a Service', () => {
  test('is available once the server answers, and requests go there with the user in headers', async () => {
    await register();
    await untilAvailable();
    expect(await condition()).toMatchObject({ reason: 'Passed', message: 'all checks passed' });
    const list = await send('GET', things, undefined, { limit: '5' });
    expect(list).toMatchObject({ status: 200, body: { kind: 'ThingList', items: [{ kind: 'Thing' }] } });
    const asked = extension.requests.at(-1);
    expect(asked).toMatchObject({
      line: `GET ${things}?limit=5`,
      headers: {
        'x-remote-user': 'kubernetes-admin',
        'x-remote-group': 'system:masters, system:authenticated',
      },
      peer: 'CN=front-proxy-client',
    });
    expect(asked?.headers).not.toHaveProperty('authorization');
  });

  test('is in every document of discovery and OpenAPI', async () => {
    await register();
    await untilAvailable();
    const groups = listAt((await send('GET', '/apis')).body, 'groups').map((each) => textAt(each, 'name'));
    // behind the built-in groups, before those of custom resources
    expect(groups.at(-1)).toBe(group);
    const { body: resources } = await send('GET', `/apis/${group}/v1`);
    expect(resources).toMatchObject({ kind: 'APIResourceList', groupVersion: `${group}/v1` });
    const { body: index } = await send('GET', '/openapi/v3');
    expect(textAt(index, 'paths', `apis/${group}/v1`, 'serverRelativeURL')).toBe(
      `/openapi/v3/apis/${group}/v1?hash=1`,
    );
    const { body: openApi } = await send('GET', `/openapi/v3/apis/${group}/v1`, undefined, { hash: '1' });
    expect(openApi).toMatchObject({ info: { title: 'things' } });
    const kubectl = new Kubectl(api.kubeconfig);
    try {
      expect(await kubectl.ok(['get', 'th', '-o', 'name'])).toBe(`thing.${group}/one\n`);
      expect(await kubectl.ok(['api-resources', `--api-group=${group}`, '--no-headers'])).toMatch(
        /^things +th +things\.example\.com\/v1 +true +Thing\n$/,
      );
    } finally {
      kubectl.dispose();
    }
  });

  test('may have the certificate of the server itself as its caBundle', async () => {
    await register({ caBundle: extension.ownBundle });
    await untilAvailable();
    expect(await send('GET', things)).toMatchObject({ status: 200 });
  });

  test.each([
    [
      'whose certificate is not trusted',
      { caBundle: '', insecureSkipTLSVerify: false },
      /^failing or missing response from https:\/\/localhost/,
    ],
    [
      'whose Service is missing',
      { service: { namespace: 'default', name: 'none' } },
      /^service\/none in "default" is not present$/,
    ],
  ])('%s is not available, and answers 503', async (_what, spec, message) => {
    await register(spec);
    await expect
      .poll(condition, patience)
      .toMatchObject({ status: 'False', message: expect.stringMatching(message) as string });
    expect(await send('GET', things)).toMatchObject({ status: 503 });
    const stale = await call(api.client, 'GET', '/apis', {
      headers: { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' },
    });
    const found = listAt(stale.body, 'items').find((item) => textAt(item, 'metadata', 'name') === group);
    expect(found).toMatchObject({ versions: [{ version: 'v1', freshness: 'Stale' }] });
  });

  test('becomes available when its server recovers, and not when it fails', async () => {
    extension.override = (_request, response) => {
      response.writeHead(500).end();
      return true;
    };
    await register();
    await expect.poll(condition, patience).toMatchObject({ reason: 'FailedDiscoveryCheck' });
    extension.override = () => false;
    await untilAvailable();
  });

  test('may stream both ways and switch protocols', async () => {
    await register();
    await untilAvailable();
    extension.override = (request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      request.pipe(response);
      return true;
    };
    const big = 'x'.repeat(4 * 1024 * 1024);
    expect(await raw('POST', things, {}, big)).toEqual({ status: 200, text: big });
    extension.upgrade = (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
      socket.pipe(socket);
    };
    const outgoing = httpsRequest(`${api.url}${things}/one/exec`, {
      ca: api.ca,
      headers: { authorization: `Bearer ${api.token}`, connection: 'Upgrade', upgrade: 'echo' },
    }).end();
    const { upgraded } = await answerOf(outgoing);
    if (upgraded === undefined) return expect.unreachable();
    upgraded.socket.write('ping');
    expect(String((await once(upgraded.socket, 'data'))[0])).toBe('ping');
    upgraded.socket.destroy();
  });

  test('is for those whom RBAC allows the resource, under their own name', async () => {
    await register();
    await untilAvailable();
    const headers = { 'impersonate-user': 'bob', 'impersonate-extra-a%2fb': 'c d' };
    const asBob = async () => call(api.client, 'GET', things, { headers });
    expect(await asBob()).toMatchObject({
      status: 403,
      body: {
        message: `things.${group} is forbidden: User "bob" cannot list resource "things" in API group "${group}" in the namespace "default"`,
      },
    });
    expect(extension.requests.map(({ line }) => line)).not.toContain(`GET ${things}`);
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    const rules = [{ apiGroups: [group], resources: ['things'], verbs: ['list'] }];
    await send('POST', `${rbac}/clusterroles`, { metadata: { name: 'things' }, rules });
    await send('POST', `${rbac}/clusterrolebindings`, {
      metadata: { name: 'things' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'things' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'bob' }],
    });
    expect((await asBob()).status).toBe(200);
    expect(extension.requests.at(-1)?.headers).toMatchObject({
      'x-remote-user': 'bob',
      'x-remote-extra-a%2fb': 'c d',
    });
  });
});

async function raw(
  method: string,
  path: string,
  headers: Record<string, string>,
  body: string,
): Promise<{ status: number | undefined; text: string }> {
  const outgoing = httpsRequest(`${api.url}${path}`, {
    method,
    ca: api.ca,
    headers: { authorization: `Bearer ${api.token}`, ...headers },
  }).end(body);
  const { response } = await answerOf(outgoing);
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return { status: response.statusCode, text };
}
