import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isRecord, type JsonRecord, listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { Kubectl } from '../support/kubectl.ts';
import { call } from '../support/test-server.ts';

const group = 'gateway.networking.k8s.io';
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const policies = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
const policy = `${policies}/safe-upgrades.${group}`;
const bundle = 'deploy/crds/gateway-api';
const httpRoutes = `${definitions}/httproutes.${group}`;
const versionAnnotation = `${group}/bundle-version`;

const route = (name: string, spec: JsonRecord = {}): JsonRecord => ({
  apiVersion: `${group}/v1`,
  kind: 'HTTPRoute',
  metadata: { name, namespace: 'default' },
  spec: { parentRefs: [{ name: 'gateway' }], hostnames: ['shop.example.com'], ...spec },
});

/** The definition of HTTPRoutes as a bundle of another version has it, with a field of its own. */
function otherVersion(version: string, channel = 'standard'): string {
  return fs
    .readFileSync(`${bundle}/gateway.networking.k8s.io_httproutes.yaml`, 'utf8')
    .replace(/bundle-version: .*/, `bundle-version: ${version}`)
    .replace(/channel: .*/, `channel: ${channel}`)
    .replaceAll(/^( *)hostnames:$/gm, '$1later:\n$1  type: string\n$1hostnames:');
}

describe('the kinds of Gateway API', () => {
  let server: TestServer;
  let kubectl: Kubectl;
  beforeAll(async () => {
    server = await startApiServer({ gatewayApi: 'standard' });
    kubectl = new Kubectl(server.kubeconfig);
  });
  afterAll(async () => {
    kubectl.dispose();
    await server.stop();
  });

  test('are served as soon as the server is ready, with short names, categories and versions', async () => {
    const { body } = await call(server.client, 'GET', `/apis/${group}/v1`);
    const resources = listAt(body, 'resources').filter((each) => !textAt(each, 'name').includes('/'));
    expect(
      Object.fromEntries(resources.map((each) => [textAt(each, 'name'), listAt(each, 'shortNames')])),
    ).toEqual({
      backendtlspolicies: ['btlspolicy'],
      gatewayclasses: ['gc'],
      gateways: ['gtw'],
      grpcroutes: [],
      httproutes: [],
      listenersets: ['lset'],
      referencegrants: ['refgrant'],
      tcproutes: [],
      tlsroutes: [],
      udproutes: [],
    });
    expect(resources.every((each) => listAt(each, 'categories').includes('gateway-api'))).toBe(true);
    const older = listAt((await call(server.client, 'GET', `/apis/${group}/v1beta1`)).body, 'resources');
    expect(older.map((each) => textAt(each, 'name')).filter((name) => !name.includes('/'))).toEqual([
      'gatewayclasses',
      'gateways',
      'httproutes',
      'referencegrants',
    ]);
    const { body: services } = await call(
      server.client,
      'GET',
      `/apis/apiregistration.k8s.io/v1/apiservices/v1.${group}`,
    );
    expect(textAt(services, 'spec', 'group')).toBe(group);
  });

  test('have definitions with all that the server writes', async () => {
    const { body } = await call(server.client, 'GET', httpRoutes);
    const { uid, resourceVersion, creationTimestamp, generation } = recordAt(body, 'metadata');
    expect([typeof uid, typeof resourceVersion, generation]).toEqual(['string', 'string', 1]);
    expect(uid).toMatch(/^[\da-f]{8}-/);
    const times = listAt(body, 'status', 'conditions').map((each) => textAt(each, 'lastTransitionTime'));
    expect(new Set(times)).toEqual(new Set([creationTimestamp]));
    expect(listAt(body, 'metadata', 'managedFields').map((entry) => textAt(entry, 'time'))).toEqual([
      creationTimestamp,
    ]);
  });

  test('are listed, explained and created by kubectl', async () => {
    expect(await kubectl.ok(['get', 'gtw,gc,httproutes'])).toBe('');
    expect(await kubectl.ok(['explain', 'httproute.spec.rules'])).toContain('backendRefs');
    await kubectl.ok(['create', '-f', '-'], JSON.stringify(route('listed')));
    expect(await kubectl.ok(['get', 'httproutes'])).toMatch(
      /^NAME +HOSTNAMES +AGE\nlisted +\["shop.example.com"\] /,
    );
    const old = await call(
      server.client,
      'GET',
      `/apis/${group}/v1beta1/namespaces/default/httproutes/listed`,
    );
    expect(old.body['apiVersion']).toBe(`${group}/v1beta1`);
    expect(listAt(old.body, 'spec', 'rules')).toHaveLength(1);
    expect(await kubectl.ok(['get', 'gateway-api'])).toContain('httproute.gateway.networking.k8s.io/listed');
  });

  test('have the rules and messages of their definitions', async () => {
    const rules = [
      {
        filters: [
          {
            type: 'RequestRedirect',
            requestRedirect: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } },
          },
        ],
        matches: [{ path: { type: 'Exact', value: '/a' } }],
      },
    ];
    const answer = await call(server.client, 'POST', `/apis/${group}/v1/namespaces/default/httproutes`, {
      body: route('refused', { rules }),
    });
    expect(answer.status).toBe(422);
    expect(textAt(answer.body, 'message')).toContain(
      'When using RequestRedirect filter with path.replacePrefixMatch, exactly one PathPrefix match must be specified',
    );
  });
});

describe('the definitions of Gateway API', () => {
  let directory = '';
  let server: TestServer | undefined;
  let kubectl: Kubectl | undefined;

  beforeEach(() => {
    directory = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'servicenet-data-')), 'data');
  });
  afterEach(async () => {
    await stop();
    fs.rmSync(path.dirname(directory), { recursive: true });
  });

  async function start(gatewayApi: 'standard' | 'none' = 'standard'): Promise<[TestServer, Kubectl]> {
    const started: [TestServer, Kubectl] = [
      (server = await startApiServer({ dataDirectory: directory, gatewayApi })),
      (kubectl = new Kubectl(server.kubeconfig)),
    ];
    return started;
  }

  async function stop(): Promise<void> {
    kubectl?.dispose();
    await server?.stop();
    server = undefined;
    kubectl = undefined;
  }

  /** The bundle version of a definition, and whether it has the field of {@link otherVersion}. */
  async function httpRouteDefinition({ client }: TestServer): Promise<[version: string, isOther: boolean]> {
    const { body } = await call(client, 'GET', httpRoutes);
    const [version] = listAt(body, 'spec', 'versions');
    const spec = recordAt(version, 'schema', 'openAPIV3Schema', 'properties', 'spec', 'properties');
    return [textAt(body, 'metadata', 'annotations', versionAnnotation), isRecord(spec['later'])];
  }

  test('can be applied again, and in newer versions, which stay when the server starts again', async () => {
    const [first, run] = await start();
    const [ours] = await httpRouteDefinition(first);
    const again = await run.ok(['apply', '--server-side', '-k', bundle]);
    expect(again.trim().split('\n')).toHaveLength(12);
    await run.ok(['apply', '--server-side', '-f', '-'], otherVersion('v1.99.0'));
    expect(await httpRouteDefinition(first)).toEqual(['v1.99.0', true]);
    await stop();
    const [second, later] = await start();
    expect(await httpRouteDefinition(second)).toEqual(['v1.99.0', true]);
    await later.ok(['create', '-f', '-'], JSON.stringify(route('new', { later: 'kept' })));
    expect(await later.ok(['get', 'httproute', 'new', '-o', 'jsonpath={.spec.later}'])).toBe('kept');
    expect(ours).not.toBe('v1.99.0');
  });

  test('are brought up to date where they are older, with the objects and versions that were stored', async () => {
    const [first, run] = await start('none');
    await run.ok(['apply', '--server-side', '-f', '-'], otherVersion('v1.5.1'));
    await run.ok(['wait', '--for=condition=Established', `crd/httproutes.${group}`]);
    await run.ok(['create', '-f', '-'], JSON.stringify(route('old', { later: 'dropped' })));
    const before = (await call(first.client, 'GET', httpRoutes)).body;
    await stop();
    const [second, later] = await start();
    const [version, isOther] = await httpRouteDefinition(second);
    expect([version === 'v1.5.1', isOther]).toEqual([false, false]);
    const after = (await call(second.client, 'GET', httpRoutes)).body;
    expect(textAt(after, 'metadata', 'uid')).toBe(textAt(before, 'metadata', 'uid'));
    expect(recordAt(after, 'metadata')['generation']).toBe(2);
    expect(listAt(after, 'status', 'storedVersions')).toEqual(['v1']);
    expect(await later.ok(['get', 'httproutes', '-o', 'name'])).toContain('/old');
    expect((await call(second.client, 'GET', policy)).status).toBe(200);
  });

  test('are kept from older versions and the experimental channel by the policy, which can be deleted', async () => {
    const [, run] = await start();
    expect(await run.fails(['apply', '--server-side', '-f', '-'], otherVersion('v1.4.0'))).toContain(
      'Installing CRDs with version before v1.5.0 is prohibited by default.',
    );
    expect(
      await run.fails(['apply', '--server-side', '-f', '-'], otherVersion('v1.7.0', 'experimental')),
    ).toContain('Installing experimental CRDs on top of standard channel CRDs is prohibited by default.');
    await run.ok([
      'delete',
      'validatingadmissionpolicy,validatingadmissionpolicybinding',
      `safe-upgrades.${group}`,
    ]);
    await run.ok(['apply', '--server-side', '-f', '-'], otherVersion('v1.5.0', 'experimental'));
    await stop();
    const [second] = await start();
    expect(await httpRouteDefinition(second)).toEqual(['v1.5.0', true]);
    expect((await call(second.client, 'GET', policy)).status).toBe(404);
  });

  test('are not there without being asked for, and can be deleted', async () => {
    const [first] = await start('none');
    expect(listAt((await call(first.client, 'GET', definitions)).body, 'items')).toEqual([]);
    await stop();
    const [, run] = await start();
    await run.ok(['delete', '-k', bundle]);
    expect(await run.ok(['api-resources', '--api-group', group, '-o', 'name'])).toBe('');
  });
});
