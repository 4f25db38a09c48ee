import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { type E2eCluster, kinds } from './e2e-cluster.ts';
import { type Answer, call } from './test-server.ts';
import type { TypedResource } from './typed-resource.ts';

/** A kind, for {@link apiOperations}. */
interface Operations {
  readonly kind: keyof typeof kinds;
  /** Undefined: cluster-scoped. */
  readonly namespace: string | undefined;
  /** Three of them, with a name or a `generateName`; a label of the run is added. */
  readonly objects: readonly JsonRecord[];
  /** What the first created object's status is changed with, while it is there. */
  readonly changeStatus?: (resource: TypedResource, made: JsonRecord) => Promise<void>;
}

/**
 * The calls of the e2e tests "should support creating X API operations": discovery, create, get, list, watch, patch,
 * update, status, delete and deletecollection.
 */
export async function apiOperations(cluster: E2eCluster, operations: Operations): Promise<void> {
  const { kind, namespace, objects, changeStatus } = operations;
  await discovers(cluster, kind);
  const mark = randomUUID();
  const selector = { labelSelector: `special-label=${mark}` };
  const resource = cluster.resource(kind, namespace);

  let made: JsonRecord = {};
  for (const object of objects) {
    const metadata = { ...recordAt(object, 'metadata'), labels: { 'special-label': mark } };
    made = await resource.create({ ...object, metadata });
  }
  const name = textAt(made, 'metadata', 'name');
  expect(textAt(await resource.get(name), 'metadata', 'uid')).toBe(textAt(made, 'metadata', 'uid'));

  const list = await resource.list(selector);
  expect(listAt(list, 'items')).toHaveLength(objects.length);
  const resourceVersion = textAt(list, 'metadata', 'resourceVersion');
  const everywhere = cluster.resource(kind);
  expect(listAt(await everywhere.list(selector), 'items')).toHaveLength(objects.length);
  const watch = await resource.watch({ ...selector, resourceVersion });
  const watchAll = await everywhere.watch({ ...selector, resourceVersion });

  const patched = await resource.patch(name, 'merge', { metadata: { annotations: { patched: 'true' } } });
  expect(annotation(patched, 'patched')).toBe('true');
  expect(versionOf(patched) > versionOf(made)).toBe(true);
  const updated = await resource.retryOnConflict(name, (object) => annotated(object, 'updated'));
  expect(annotation(updated, 'updated')).toBe('true');
  // The first events of both are the patch and the update.
  for (const each of [watch, watchAll]) {
    const events = [await each.next(), await each.next()];
    each.stop();
    expect(events.map(({ type, object }) => [type, textAt(object, 'metadata', 'name')])).toEqual([
      ['MODIFIED', name],
      ['MODIFIED', name],
    ]);
    expect(events.map(({ object }) => annotation(object, 'updated'))).toEqual(['', 'true']);
  }
  await changeStatus?.(resource, made);

  await resource.delete(name);
  await expect(resource.get(name)).rejects.toMatchObject({ code: 404, reason: 'NotFound' });
  expect(listAt(await resource.list(selector), 'items')).toHaveLength(objects.length - 1);
  await resource.deleteCollection(selector);
  expect(listAt(await resource.list(selector), 'items')).toEqual([]);
}

/** What client-go's discovery asks: aggregated documents first, single ones in the client's own encoding. */
async function discovers(cluster: E2eCluster, kind: keyof typeof kinds): Promise<void> {
  const { apiVersion, plural, kind: name } = kinds[kind];
  const [group = '', version = ''] = apiVersion.split('/');
  const aggregated = ['v2', 'v2beta1'].map(
    (each) => `application/json;g=apidiscovery.k8s.io;v=${each};as=APIGroupDiscoveryList`,
  );
  const accept = [...aggregated, 'application/json'].join();
  const all = await cluster.client.call('GET', '/apis', { accept });
  const found = listAt(all.body, 'items').find((item) => textAt(item, 'metadata', 'name') === group);
  expect(listAt(found, 'versions').map((each) => textAt(each, 'version'))).toContain(version);

  const own = await cluster.client.call('GET', `/apis/${group}`);
  expect(listAt(own.body, 'versions').map((each) => textAt(each, 'version'))).toContain(version);
  const resources = await cluster.client.call('GET', `/apis/${apiVersion}`);
  const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
  expect(listAt(resources.body, 'resources').find((each) => textAt(each, 'name') === plural)).toMatchObject({
    kind: name,
    verbs,
  });
}

const annotation = (object: unknown, name: string): string => textAt(object, 'metadata', 'annotations', name);

/** An object with one more annotation. */
export function annotated(object: JsonRecord, name: string): JsonRecord {
  const metadata = recordAt(object, 'metadata');
  const annotations = { ...recordAt(metadata, 'annotations'), [name]: 'true' };
  return { ...object, metadata: { ...metadata, annotations } };
}

/** Resource versions are numbers that can be compared (KEP-5504). */
export function versionOf(object: unknown): bigint {
  const version = textAt(object, 'metadata', 'resourceVersion');
  expect(version).toMatch(/^[1-9]\d*$/);
  return BigInt(version);
}

/** Makes a namespace; returns its name. */
export async function makeNamespace({ client }: TestServer, name: string): Promise<string> {
  expect((await call(client, 'POST', '/api/v1/namespaces', { body: { metadata: { name } } })).status).toBe(
    201,
  );
  return name;
}

/** Asks until an answer satisfies, soon at first and then every 100 ms; the test's timeout bounds it. */
export async function eventually(
  ask: () => Promise<Answer>,
  satisfied: (answer: Answer) => boolean,
): Promise<Answer> {
  for (let pause = 10; ; pause = Math.min(1.5 * pause, 100)) {
    const answer = await ask();
    if (satisfied(answer)) return answer;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
