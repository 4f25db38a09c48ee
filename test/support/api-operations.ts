import { expect } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../src/objects/read.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { type Answer, call, watchEvents } from './test-server.ts';

/** A kind, for {@link apiOperations}. */
export interface Operations {
  /** `/apis/networking.k8s.io/v1`, or `/api/v1`. */
  readonly root: string;
  readonly plural: string;
  readonly kind: string;
  /** Undefined: cluster-scoped. */
  readonly namespace: string | undefined;
  /** Objects without metadata, one per name. */
  readonly objects: ReadonlyMap<string, JsonRecord>;
  /** Merged into the first object's status and read back; undefined: no status subresource is asked for. */
  readonly status?: JsonRecord;
}

const label = 'special-label';

/**
 * The calls of the e2e tests "should support creating X API operations": discovery, create, get, list, watch, patch,
 * update, status, delete and deletecollection.
 */
export async function apiOperations({ client }: TestServer, operations: Operations): Promise<void> {
  const { root, plural, kind, namespace, objects } = operations;
  const everywhere = `${root}/${plural}`;
  const path = namespace === undefined ? everywhere : `${root}/namespaces/${namespace}/${plural}`;
  const mark = `${plural}-${namespace ?? 'cluster'}`;
  const selector = { labelSelector: `${label}=${mark}` };
  const [first = ''] = objects.keys();

  await discovers(client, root, plural, kind);

  for (const [name, object] of objects) {
    const made = await call(client, 'POST', path, {
      body: { metadata: { name, labels: { [label]: mark } }, ...object },
    });
    expect([made.status, made.body['kind'], textAt(made.body, 'metadata', 'name')]).toEqual([
      201,
      kind,
      name,
    ]);
  }
  const got = await call(client, 'GET', `${path}/${first}`);
  expect(textAt(got.body, 'metadata', 'uid')).not.toBe('');
  const version = textAt((await call(client, 'GET', path)).body, 'metadata', 'resourceVersion');
  for (const each of new Set([path, everywhere])) {
    const list = await call(client, 'GET', each, { query: selector });
    expect(listAt(list.body, 'items')).toHaveLength(objects.size);
  }

  const query = { ...selector, resourceVersion: version };
  const watches = [...new Set([path, everywhere])].map(async (each) => watchEvents(client, each, query, 3));
  const patched = await call(client, 'PATCH', `${path}/${first}`, {
    body: { metadata: { annotations: { patched: 'true' } } },
    contentType: 'application/merge-patch+json',
  });
  expect(annotation(patched, 'patched')).toBe('true');
  const metadata = recordAt(patched.body['metadata']);
  const updated = await call(client, 'PUT', `${path}/${first}`, {
    body: { ...patched.body, metadata: { ...metadata, annotations: { patched: 'true', updated: 'true' } } },
  });
  expect([updated.status, annotation(updated, 'updated')]).toEqual([200, 'true']);
  if (operations.status !== undefined) {
    await changesStatus(client, `${path}/${first}`, operations.status);
    await call(client, 'DELETE', `${path}/${first}`);
    for (const events of await Promise.all(watches)) {
      expect(events.map(({ type }) => type)).toEqual(['MODIFIED', 'MODIFIED', 'MODIFIED']);
    }
  } else {
    expect((await call(client, 'DELETE', `${path}/${first}`)).status).toBe(200);
    for (const events of await Promise.all(watches)) {
      expect(events.map(({ type }) => type)).toEqual(['MODIFIED', 'MODIFIED', 'DELETED']);
    }
  }
  const gone = await call(client, 'GET', `${path}/${first}`);
  expect([gone.status, gone.body['reason']]).toEqual([404, 'NotFound']);
  expect((await call(client, 'DELETE', path, { query: selector })).status).toBe(200);
  expect(listAt((await call(client, 'GET', path, { query: selector })).body, 'items')).toEqual([]);
}

async function discovers(
  client: TestServer['client'],
  root: string,
  plural: string,
  kind: string,
): Promise<void> {
  const [, , group = '', version = ''] = root.split('/');
  if (group !== '' && version !== '') {
    const groups = listAt((await call(client, 'GET', '/apis')).body, 'groups');
    expect(groups.map((each) => textAt(each, 'name'))).toContain(group);
    const own = await call(client, 'GET', `/apis/${group}`);
    expect(listAt(own.body, 'versions').map((each) => textAt(each, 'version'))).toContain(version);
  }
  const resources = listAt((await call(client, 'GET', root)).body, 'resources');
  expect(resources.find((each) => textAt(each, 'name') === plural)).toMatchObject({ kind });
}

async function changesStatus(client: TestServer['client'], path: string, status: JsonRecord): Promise<void> {
  const patched = await call(client, 'PATCH', `${path}/status`, {
    body: { metadata: { annotations: { 'patched-status': 'true' } }, status },
    contentType: 'application/merge-patch+json',
  });
  expect([patched.status, annotation(patched, 'patched-status')]).toEqual([200, 'true']);
  expect(patched.body['status']).toMatchObject(status);
  const updated = await call(client, 'PUT', `${path}/status`, { body: patched.body });
  expect(updated.status).toBe(200);
  const read = await call(client, 'GET', `${path}/status`);
  expect(read.body['status']).toMatchObject(status);
}

function annotation({ body }: Answer, name: string): string {
  return textAt(body, 'metadata', 'annotations', name);
}

/** Makes a namespace; returns its name. */
export async function makeNamespace({ client }: TestServer, name: string): Promise<string> {
  expect((await call(client, 'POST', '/api/v1/namespaces', { body: { metadata: { name } } })).status).toBe(
    201,
  );
  return name;
}

/** Asks until an answer satisfies; the test's timeout bounds it. */
export async function eventually(
  ask: () => Promise<Answer>,
  satisfied: (answer: Answer) => boolean,
): Promise<Answer> {
  for (;;) {
    const answer = await ask();
    if (satisfied(answer)) return answer;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
