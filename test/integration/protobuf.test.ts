import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { wireValues } from '../../src/apiserver/schema/protobuf/wire.ts';
import { writeProtobuf } from '../../src/apiserver/schema/protobuf/write-protobuf.ts';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';
import { readTypedObject } from '../support/typed-object.ts';

/** A client that reads and writes protobuf, as client-go's typed clients and Kubernetes' controllers do. */
const protobuf = 'application/vnd.kubernetes.protobuf';
const configMaps = '/api/v1/namespaces/default/configmaps';
let server: TestServer;
let agent: Agent;
beforeAll(async () => {
  server = await startApiServer();
  agent = new Agent({ connect: { ca: server.ca } });
});
afterAll(async () => {
  await agent.close();
  await server.stop();
});

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

async function ask(
  method: Method,
  path: string,
  { body, accept = protobuf }: { body?: JsonRecord; accept?: string } = {},
): Promise<{ status: number; contentType: unknown; object: JsonRecord }> {
  const answer = await request(`${server.url}${path}`, {
    method,
    dispatcher: agent,
    headers: { accept, authorization: `Bearer ${server.token}`, 'content-type': protobuf },
    ...(body === undefined ? {} : { body: writeProtobuf(body) }),
  });
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  const contentType = answer.headers['content-type'];
  const read: unknown = contentType === protobuf ? readTypedObject(bytes) : JSON.parse(bytes.toString());
  return { status: answer.statusCode, contentType, object: isRecord(read) ? read : {} };
}

const configMap = (name: string): JsonRecord => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { name },
  data: { k: 'v' },
});

test('objects, lists and errors are what JSON says', async () => {
  const made = await ask('POST', configMaps, { body: configMap('a') });
  expect([made.status, made.contentType]).toEqual([201, protobuf]);
  const asJson = (await call(server.client, 'GET', `${configMaps}/a`)).body;
  expect((await ask('GET', `${configMaps}/a`)).object).toEqual(asJson);
  expect((await ask('GET', `${configMaps}/a`, { accept: `${protobuf}, */*` })).object).toEqual(asJson);

  const services = '/api/v1/services';
  const list = await ask('GET', services);
  expect(list.object).toEqual({
    ...(await call(server.client, 'GET', services)).body,
    // items name their kind as little as those in JSON
    items: listAt((await call(server.client, 'GET', services)).body, 'items'),
  });

  const missing = await ask('GET', `${configMaps}/nope`);
  expect(missing).toMatchObject({ status: 404, contentType: protobuf });
  expect(missing.object).toMatchObject({ kind: 'Status', reason: 'NotFound', code: 404 });
});

test('metadata alone can be had, tables cannot', async () => {
  const path = '/api/v1/namespaces/default/services/kubernetes';
  const metadata = await ask('GET', path, {
    accept: `${protobuf};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`,
  });
  expect(metadata.contentType).toBe(protobuf);
  expect(metadata.object).toMatchObject({ kind: 'PartialObjectMetadata', metadata: { name: 'kubernetes' } });
  const table = await ask('GET', path, { accept: `${protobuf};as=Table;g=meta.k8s.io;v=v1` });
  // An error is no table either: it is JSON, which every client reads.
  expect([table.status, table.contentType, table.object['reason']]).toEqual([
    406,
    'application/json',
    'NotAcceptable',
  ]);
});

test('custom resources have no protobuf', async () => {
  const names = { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' };
  const schema = { openAPIV3Schema: { type: 'object' } };
  const version = { name: 'v1', served: true, storage: true, schema };
  const definition = {
    kind: 'CustomResourceDefinition',
    apiVersion: 'apiextensions.k8s.io/v1',
    metadata: { name: 'widgets.example.com' },
    spec: { group: 'example.com', scope: 'Cluster', names, versions: [version] },
  };
  const made = await ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    body: definition,
  });
  expect(made.object).toMatchObject({
    kind: 'CustomResourceDefinition',
    spec: { names, versions: [version] },
  });
  const list = await ask('GET', '/apis/example.com/v1/widgets');
  expect(list.status).toBe(406);
  expect(list.object['message']).toContain('only the following media types are accepted');
});

test('discovery can be read', async () => {
  expect((await ask('GET', '/api')).object).toMatchObject({ kind: 'APIVersions', versions: ['v1'] });
  const groups = listAt((await ask('GET', '/apis')).object, 'groups').map((group) => textAt(group, 'name'));
  expect(groups).toContain('discovery.k8s.io');
  const resources = listAt((await ask('GET', '/api/v1')).object, 'resources');
  expect(resources.map((resource) => textAt(resource, 'name'))).toContain('services');
});

/** Reads frames until so many have come. */
async function watched(path: string, count: number): Promise<{ type: string; object: JsonRecord }[]> {
  const { headers, body } = await request(`${server.url}${path}`, {
    dispatcher: agent,
    headers: { accept: `${protobuf};stream=watch`, authorization: `Bearer ${server.token}` },
  });
  expect(headers['content-type']).toBe(`${protobuf};stream=watch`);
  const events: { type: string; object: JsonRecord }[] = [];
  let bytes = Buffer.alloc(0);
  for await (const chunk of body) {
    bytes = Buffer.concat([bytes, Buffer.from(chunk as Uint8Array)]);
    while (bytes.length >= 4 && bytes.length >= 4 + bytes.readUInt32BE(0)) {
      const end = 4 + bytes.readUInt32BE(0);
      const [type, raw] = [...wireValues(bytes.subarray(4, end))];
      const [object] = [...wireValues(raw?.bytes ?? Buffer.alloc(0))];
      events.push({
        type: type?.bytes.toString() ?? '',
        object: readTypedObject(object?.bytes ?? Buffer.alloc(0)),
      });
      bytes = bytes.subarray(end);
    }
    if (events.length >= count) break;
  }
  return events;
}

test('a watch is a stream of frames, its bookmarks and its error too', async () => {
  const list = await ask('GET', configMaps);
  const version = textAt(list.object, 'metadata', 'resourceVersion');
  const events = watched(`${configMaps}?watch=1&resourceVersion=${version}`, 2);
  await ask('POST', configMaps, { body: configMap('watched') });
  await ask('DELETE', `${configMaps}/watched`);
  expect((await events).map(({ type, object }) => [type, textAt(object, 'metadata', 'name')])).toEqual([
    ['ADDED', 'watched'],
    ['DELETED', 'watched'],
  ]);

  const initial =
    'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&fieldSelector=metadata.name%3Da';
  const [added, bookmark] = await watched(`${configMaps}?${initial}`, 2);
  expect(added).toMatchObject({ type: 'ADDED', object: { data: { k: 'v' } } });
  expect(bookmark?.type).toBe('BOOKMARK');
  expect(recordAt(bookmark?.object['metadata'])['annotations']).toEqual({
    'k8s.io/initial-events-end': 'true',
  });

  const [expired] = await watched(`${configMaps}?watch=1&resourceVersion=1`, 1);
  expect(expired).toMatchObject({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } });
});
