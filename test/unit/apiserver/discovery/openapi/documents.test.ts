import { beforeAll, describe, expect, test, vi } from 'vitest';
import { isRecord, type JsonRecord } from '../../../../../src/objects/json.ts';
import { at, textAt } from '../../../../../src/objects/json.ts';
import type { DiscoveredResource } from '../../../../../src/apiserver/discovery/discovered-resource.ts';
import { openApiHandler } from '../../../../../src/apiserver/discovery/openapi/handler.ts';
import { call } from '../exchange-fake.ts';

/** No extension API server. */
const noRemote: readonly never[] = [];

const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

function resource(
  group: string,
  plural: string,
  kind: string,
  schema: string,
  more: Partial<DiscoveredResource> = {},
): DiscoveredResource {
  return {
    ...{ group, version: 'v1', plural, singular: kind.toLowerCase(), kind, schema, verbs },
    ...{ namespaced: true, shortNames: [], categories: [], subresources: [], custom: false },
    ...more,
  };
}

const statusRow = (kind: string) => ({ name: 'status', kind, verbs: ['get', 'patch', 'update'] });
const resources = [
  resource('', 'services', 'Service', 'io.k8s.api.core.v1.Service', {
    subresources: [
      statusRow('Service'),
      { name: 'proxy', kind: 'ServiceProxyOptions', verbs: ['create', 'delete', 'get', 'patch', 'update'] },
    ],
  }),
  resource('', 'namespaces', 'Namespace', 'io.k8s.api.core.v1.Namespace', { namespaced: false }),
  resource('apps', 'deployments', 'Deployment', 'io.k8s.api.apps.v1.Deployment', {
    subresources: [
      { name: 'scale', kind: 'Scale', verbs: ['get'], kindGroup: 'autoscaling', kindVersion: 'v1' },
    ],
  }),
  resource(
    'apiextensions.k8s.io',
    'customresourcedefinitions',
    'CustomResourceDefinition',
    'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition',
    { namespaced: false },
  ),
  resource('stable.example.com', 'widgets', 'Widget', 'com.example.stable.v1.Widget', {
    custom: true,
    listKind: 'WidgetBox',
  }),
];
const widgetSchema = {
  type: 'object',
  description: 'A widget.',
  properties: {
    spec: {
      type: 'object',
      properties: {
        size: { type: 'integer', nullable: true },
        port: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
      },
    },
  },
};

const handler = openApiHandler(
  () => resources,
  () => noRemote,
  ({ kind }) => (kind === 'Widget' ? { schema: widgetSchema, selectableFields: ['.spec.size'] } : undefined),
);

async function read(path: string): Promise<JsonRecord> {
  const answer = await call(handler, path);
  expect(answer.status).toBe(200);
  const document: unknown = JSON.parse(answer.body);
  if (!isRecord(document)) throw new Error(`${path} is not an object`);
  return document;
}

/** All values of a member name, anywhere. */
function everyMember(value: unknown, name: string, into: unknown[] = []): unknown[] {
  if (Array.isArray(value)) for (const item of value) everyMember(item, name, into);
  else if (isRecord(value)) {
    for (const [key, member] of Object.entries(value)) {
      if (key === name) into.push(member);
      everyMember(member, name, into);
    }
  }
  return into;
}

function expectReferencesToResolve(document: JsonRecord, ...place: string[]): void {
  const known = new Set(Object.keys(at(document, ...place) ?? {}));
  const references = everyMember(document, '$ref').filter((value) => typeof value === 'string');
  expect(references.length).toBeGreaterThan(10);
  for (const ref of references) expect(known).toContain(ref.split('/').at(-1));
}

describe('OpenAPI v3', () => {
  let core: JsonRecord;
  beforeAll(async () => {
    core = await read('/openapi/v3/api/v1');
  });

  test('has one document for each group version', async () => {
    const index = await read('/openapi/v3');
    const paths = at(index, 'paths');
    expect(Object.keys(isRecord(paths) ? paths : {})).toEqual([
      'api/v1',
      'apis/apps/v1',
      'apis/apiextensions.k8s.io/v1',
      'apis/stable.example.com/v1',
    ]);
    const url = textAt(index, 'paths', 'apis/apps/v1', 'serverRelativeURL');
    expect(url).toMatch(/^\/openapi\/v3\/apis\/apps\/v1\?hash=[0-9A-F]{128}$/);
    expect((await call(handler, url)).status).toBe(200);
  });

  test('is about Kubernetes and refers to nothing that it does not have', async () => {
    expect(core).toMatchObject({ openapi: '3.0.0', info: { title: 'Kubernetes' } });
    for (const path of [
      'api/v1',
      'apis/apps/v1',
      'apis/apiextensions.k8s.io/v1',
      'apis/stable.example.com/v1',
    ]) {
      expectReferencesToResolve(await read(`/openapi/v3/${path}`), 'components', 'schemas');
    }
  });

  test('explains a Service in our own words', () => {
    const port = at(core, 'components', 'schemas', 'io.k8s.api.core.v1.ServicePort');
    expect(textAt(port, 'description')).toBe('One port of a Service.');
    expect(textAt(port, 'properties', 'targetPort', 'description')).not.toBe('');
    expect(at(port, 'properties', 'protocol', 'enum')).toEqual(['SCTP', 'TCP', 'UDP']);
    expect(
      at(core, 'components', 'schemas', 'io.k8s.api.core.v1.Service', 'x-kubernetes-group-version-kind'),
    ).toEqual([{ group: '', kind: 'Service', version: 'v1' }]);
  });

  test('says that patches can be validated and tried, which is what kubectl looks for', () => {
    const patch = at(core, 'paths', '/api/v1/namespaces/{namespace}/services/{name}', 'patch');
    expect(patch).toMatchObject({
      operationId: 'patchCoreV1NamespacedService',
      tags: ['core_v1'],
      'x-kubernetes-action': 'patch',
      'x-kubernetes-group-version-kind': { group: '', kind: 'Service', version: 'v1' },
    });
    const names = everyMember(at(patch, 'parameters'), 'name');
    expect(names).toEqual(expect.arrayContaining(['dryRun', 'fieldValidation', 'fieldManager', 'force']));
  });

  test('names operations as kube-apiserver does', async () => {
    expect(everyMember(core, 'operationId')).toEqual(
      expect.arrayContaining([
        'listCoreV1NamespacedService',
        'listCoreV1ServiceForAllNamespaces',
        'createCoreV1NamespacedService',
        'deleteCoreV1CollectionNamespacedService',
        'readCoreV1NamespacedServiceStatus',
        'replaceCoreV1NamespacedService',
        'connectCoreV1GetNamespacedServiceProxy',
        'readCoreV1Namespace',
      ]),
    );
    expect(everyMember(await read('/openapi/v3/apis/stable.example.com/v1'), 'operationId')).toContain(
      'listStableExampleComV1NamespacedWidget',
    );
    expect(everyMember(await read('/openapi/v3/apis/apps/v1'), 'operationId')).toContain(
      'readAppsV1NamespacedDeploymentScale',
    );
  });

  test('shows custom resources with the members that all objects have', async () => {
    const document = await read('/openapi/v3/apis/stable.example.com/v1');
    const widget = at(document, 'components', 'schemas', 'com.example.stable.v1.Widget');
    expect(widget).toMatchObject({
      description: 'A widget.',
      properties: {
        spec: widgetSchema.properties.spec,
        metadata: {
          allOf: [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }],
        },
      },
      'x-kubernetes-group-version-kind': [{ group: 'stable.example.com', kind: 'Widget', version: 'v1' }],
    });
    const fields = [{ fieldPath: 'spec.size' }];
    expect(widget).toMatchObject({ 'x-kubernetes-selectable-fields': fields });
    expect(at(document, 'components', 'schemas', 'com.example.stable.v1.WidgetBox')).toMatchObject({
      required: ['items'],
      'x-kubernetes-group-version-kind': [{ group: 'stable.example.com', kind: 'WidgetBox', version: 'v1' }],
      'x-kubernetes-selectable-fields': fields,
    });
    expect(at(document, 'components', 'schemas', 'com.example.stable.v1.WidgetList')).toBeUndefined();
  });

  test('may be kept for a year where the hash of a document is in the address', async () => {
    const index = await read('/openapi/v3');
    const url = textAt(index, 'paths', 'apis/apps/v1', 'serverRelativeURL');
    const { headers } = await call(handler, url);
    const hash = /hash=(.*)/.exec(url)?.[1];
    expect(headers).toMatchObject({
      Etag: `"${hash}"`,
      Vary: 'Accept',
      'cache-control': 'public, immutable',
    });
    const { Expires: expires = '' } = headers;
    expect(expires).toMatch(/ UTC$/);
    expect((Date.parse(expires) - Date.now()) / 86_400_000).toBeGreaterThan(364);
    const plain = await call(handler, '/openapi/v3/apis/apps/v1');
    expect([plain.status, plain.headers['cache-control']]).toEqual([200, undefined]);
    const old = await call(handler, '/openapi/v3/apis/apps/v1?hash=OLD');
    expect(old).toMatchObject({ status: 301, contentType: 'application/json', body: '' });
    expect(old.headers).toEqual({ Location: url, Etag: `"${hash}"`, Vary: 'Accept' });
  });

  test('is not sent again to who has it', async () => {
    const path = '/openapi/v3/apis/apps/v1';
    const document = await call(handler, path);
    const { Etag: etag = '', 'Last-Modified': modified = '' } = document.headers;
    const ask = async (headers: Record<string, string>) => (await call(handler, path, { headers })).status;
    expect(await ask({ 'if-none-match': etag })).toBe(304);
    expect(await ask({ 'if-none-match': `"a", W/${etag}` })).toBe(304);
    expect(await ask({ 'if-none-match': '*' })).toBe(304);
    expect(await ask({ 'if-none-match': '"a"' })).toBe(200);
    expect(await ask({ 'if-modified-since': modified })).toBe(304);
    expect(await ask({ 'if-modified-since': modified, 'if-none-match': '"a"' })).toBe(200);
    expect(await ask({ 'if-modified-since': new Date(0).toUTCString() })).toBe(200);
  });

  test('calls its index a text, and has nothing behind a slash at the end', async () => {
    const index = await call(handler, '/openapi/v3');
    expect(index).toMatchObject({ status: 200, contentType: 'text/plain; charset=utf-8' });
    expect(Object.keys(index.headers)).toEqual(['Last-Modified']);
    expect(await call(handler, '/openapi/v3/')).toMatchObject({ status: 404, body: '' });
    expect(await call(handler, '/openapi/v3/apis/apps/v1/')).toMatchObject({ status: 404, body: '' });
    expect(await call(handler, '/openapi/v2/')).toMatchObject({ status: 404, body: '404 page not found\n' });
  });

  test('sends its index anew to who has that of the second in which kinds came', async () => {
    let served = resources.slice(0, 2);
    const changing = openApiHandler(
      () => served,
      () => noRemote,
      () => undefined,
    );
    const ask = async (since: number): Promise<number> => {
      const headers = { 'if-modified-since': new Date(since).toUTCString() };
      return (await call(changing, '/openapi/v3', { headers })).status;
    };
    const second = Date.parse('2026-01-01T00:00:00Z');
    vi.useFakeTimers({ toFake: ['Date'], now: second + 200 });
    try {
      expect(await ask(second - 1000)).toBe(200);
      served = resources;
      vi.setSystemTime(second + 400);
      expect(await ask(second)).toBe(200);
      vi.setSystemTime(second + 5000);
      expect(await ask(second)).toBe(200);
      expect(await ask(second + 5000)).toBe(304);
    } finally {
      vi.useRealTimers();
    }
  });

  test('answers 404 without a body for a group version that is not served', async () => {
    expect(await call(handler, '/openapi/v3/apis/nope.k8s.io/v1')).toMatchObject({ status: 404, body: '' });
    expect((await call(handler, '/openapi/v4')).status).toBe(404);
  });
});

describe('OpenAPI v2', () => {
  let document: JsonRecord;
  beforeAll(async () => {
    document = await read('/openapi/v2');
  });

  test('holds everything in one document', () => {
    expect(document).toMatchObject({ swagger: '2.0', info: { title: 'Kubernetes' } });
    expectReferencesToResolve(document, 'definitions');
    const ids = everyMember(document, 'operationId');
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('uses nothing that v2 does not have', () => {
    for (const keyword of ['oneOf', 'anyOf', 'nullable', 'requestBody']) {
      const schemas = everyMember(document, keyword).filter(
        (value) => !isRecord(value) || value['type'] === undefined,
      );
      // JSONSchemaProps has members of these names, which are schemas themselves
      expect(schemas.filter((value) => Array.isArray(value) || typeof value === 'boolean')).toEqual([]);
    }
    const port = at(document, 'definitions', 'io.k8s.api.core.v1.ServicePort', 'properties', 'targetPort');
    expect(port).toMatchObject({ $ref: '#/definitions/io.k8s.apimachinery.pkg.util.intstr.IntOrString' });
    expect(at(document, 'definitions', 'io.k8s.apimachinery.pkg.util.intstr.IntOrString')).toMatchObject({
      type: 'string',
      format: 'int-or-string',
    });
  });
});
