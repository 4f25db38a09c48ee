import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { makeNamespace } from '../../support/api-operations.ts';
import { call, watchEvents } from '../../support/test-server.ts';
import type { TypedClient, TypedEvent } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of e2e tests of streamed lists and of negotiation (`apimachinery/watchlist.go`, `protocol.go`). */
export function watchList(shared: () => E2eCluster): void {
  let server: TestServer;
  let client: TypedClient;
  let namespace = '';
  let made = 0;
  beforeAll(() => {
    ({ server, client } = shared());
  });
  beforeEach(async () => {
    namespace = `/api/v1/namespaces/${await makeNamespace(server, `watchlist-${++made}`)}`;
  });

  const protobuf = 'application/vnd.kubernetes.protobuf';
  const partial = 'as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
  const metadataAccept = `${protobuf};${partial},application/json;${partial},application/json`;
  const asTable = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const metadataListAccept = metadataAccept.replaceAll('PartialObjectMetadata', 'PartialObjectMetadataList');
  const labelSelector = 'watchlist=true';
  /** `watchlist.PrepareWatchListOptionsFromListOptions`, as informers ask. */
  const streamed = {
    ...{ allowWatchBookmarks: true, labelSelector, resourceVersionMatch: 'NotOlderThan' },
    ...{ sendInitialEvents: true, timeoutSeconds: 480 },
  };

  const secret = (n: number): JsonRecord => ({
    ...{ apiVersion: 'v1', kind: 'Secret' },
    metadata: { name: `secret-${n}`, labels: { watchlist: 'true' } },
  });

  /** Five labelled Secrets, by the typed or by the dynamic client, and one without the label. */
  async function addSecrets(by: 'typed' | 'dynamic' = 'typed'): Promise<JsonRecord[]> {
    const secrets: JsonRecord[] = [];
    await call(server.client, 'POST', `${namespace}/secrets`, { body: { metadata: { name: 'other' } } });
    for (let n = 1; n <= 5; n++) {
      const { body } =
        by === 'typed'
          ? await client.call('POST', `${namespace}/secrets`, { body: secret(n) })
          : await call(server.client, 'POST', `${namespace}/secrets`, { body: secret(n) });
      secrets.push(body);
    }
    return secrets;
  }

  const versionOf = ({ object }: TypedEvent): string => textAt(object, 'metadata', 'resourceVersion');
  const isInitialEnd = ({ type, object }: TypedEvent): boolean =>
    type === 'BOOKMARK' && textAt(object, 'metadata', 'annotations', 'k8s.io/initial-events-end') === 'true';

  describe('streamed lists', () => {
    test('[sig-api-machinery] API Streaming (aka. WatchList) [FeatureGate:WatchList] [Beta] should be requested by informers when WatchListClient is enabled', async () => {
      const secrets = await addSecrets();
      const watch = await client.watch(`${namespace}/secrets`, streamed);
      for (const object of secrets) expect(await watch.next()).toEqual({ type: 'ADDED', object });
      const end = await watch.next();
      expect(isInitialEnd(end)).toBe(true);
      expect(Number(versionOf(end))).toBeGreaterThanOrEqual(
        Number(textAt(secrets.at(-1), 'metadata', 'resourceVersion')),
      );
      const { body } = await client.call('GET', `${namespace}/secrets/secret-1`);
      const updated = await client.call('PUT', `${namespace}/secrets/secret-1`, {
        body: { ...body, stringData: { foo: 'bar' } },
      });
      expect(recordAt(updated.body, 'data')).toEqual({ foo: 'YmFy' });
      expect(await watch.next()).toEqual({ type: 'MODIFIED', object: updated.body });
      watch.stop();
    });

    test('[sig-api-machinery] API Streaming (aka. WatchList) [FeatureGate:WatchList] [Beta] should be requested by dynamic informers when WatchListClient is enabled', async () => {
      const secrets = await addSecrets('dynamic');
      const events = await watchEvents(server.client, `${namespace}/secrets`, streamed, 6);
      expect(events.slice(0, 5)).toEqual(secrets.map((object) => ({ type: 'ADDED', object })));
      expect(events[5]).toMatchObject({
        type: 'BOOKMARK',
        object: {
          ...{ kind: 'Secret', apiVersion: 'v1' },
          metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } },
        },
      });
    });

    test('[sig-api-machinery] API Streaming (aka. WatchList) [FeatureGate:WatchList] [Beta] should be requested by metadata informers when WatchListClient is enabled', async () => {
      await addSecrets();
      const watch = await client.watch(`${namespace}/secrets`, streamed, metadataAccept);
      for (let n = 1; n <= 5; n++) {
        const path = `${namespace}/secrets/secret-${n}`;
        const { body } = await client.call('GET', path, { accept: metadataAccept });
        expect(body['kind']).toBe('PartialObjectMetadata');
        expect(await watch.next()).toEqual({ type: 'ADDED', object: body });
      }
      expect(isInitialEnd(await watch.next())).toBe(true);
      watch.stop();
    });

    test("[sig-api-machinery] API Streaming (aka. WatchList) [FeatureGate:WatchList] [Beta] should NOT be requested by client-go's List method when WatchListClient is enabled", async () => {
      const secrets = await addSecrets();
      const { body } = await client.call('GET', `${namespace}/secrets`, { query: { labelSelector } });
      const items = secrets.map(({ kind: _kind, apiVersion: _apiVersion, ...item }) => item);
      expect([body['kind'], listAt(body, 'items')]).toEqual(['SecretList', items]);
    });

    test("[sig-api-machinery] API Streaming (aka. WatchList) [FeatureGate:WatchList] [Beta] should NOT be requested by dynamic client's List method when WatchListClient is enabled", async () => {
      const secrets = await addSecrets('dynamic');
      const { body } = await call(server.client, 'GET', `${namespace}/secrets`, { query: { labelSelector } });
      const items = secrets.map(({ kind: _kind, apiVersion: _apiVersion, ...item }) => item);
      expect([body['apiVersion'], body['kind'], listAt(body, 'items')]).toEqual(['v1', 'SecretList', items]);
    });

    test("[sig-api-machinery] API Streaming (aka. WatchList) [FeatureGate:WatchList] [Beta] should NOT be requested by metadata client's List method when WatchListClient is enabled", async () => {
      await addSecrets();
      const expected: JsonRecord[] = [];
      for (let n = 1; n <= 5; n++) {
        const path = `${namespace}/secrets/secret-${n}`;
        expected.push(
          recordAt((await client.call('GET', path, { accept: metadataAccept })).body, 'metadata'),
        );
      }
      const { body } = await client.call('GET', `${namespace}/secrets`, {
        ...{ query: { labelSelector }, accept: metadataListAccept },
      });
      expect(body['kind']).toBe('PartialObjectMetadataList');
      expect(listAt(body, 'items').map((item) => recordAt(item, 'metadata'))).toEqual(expected);
    });

    test('[sig-api-machinery] API Streaming (aka. WatchList) [FeatureGate:WatchList] [Beta] server supports sending resources in Table format', async () => {
      await addSecrets('dynamic');
      const expected: JsonRecord[] = [];
      for (let n = 1; n <= 5; n++) {
        const path = `${namespace}/secrets/secret-${n}`;
        expected.push((await call(server.client, 'GET', path, { headers: { accept: asTable } })).body);
      }
      const events = await tableEvents(6);
      const [, ...others] = expected.map(withoutAge);
      expect(events.slice(0, 5).map(({ object }) => withoutAge(recordAt(object)))).toEqual([
        withoutAge(recordAt(expected[0])),
        // only the first has the definitions of columns
        ...others.map((table) => ({ ...table, columnDefinitions: null })),
      ]);
      const end = events[5];
      expect(end?.['type']).toBe('BOOKMARK');
      const rows = listAt(end, 'object', 'rows');
      expect(rows).toHaveLength(1);
      expect(recordAt(rows[0], 'object', 'metadata', 'annotations')).toEqual({
        'k8s.io/initial-events-end': 'true',
      });
    });

    // The reflector takes no Table for a Secret; what it gets is what the test above compares.
    test("[sig-api-machinery] API Streaming (aka. WatchList) [FeatureGate:WatchList] [Beta] reflector doesn't support receiving resources as Tables", async () => {
      await addSecrets('dynamic');
      for (const event of await tableEvents(5)) expect(textAt(event, 'object', 'kind')).toBe('Table');
    });
  });

  async function tableEvents(count: number): Promise<JsonRecord[]> {
    const stream = await server.client.stream(`${namespace}/secrets`, {
      ...{ query: { watch: true, ...streamed }, headers: { accept: asTable } },
    });
    let text = '';
    for await (const chunk of stream.chunks) {
      text += chunk.toString();
      if (text.split('\n').length > count) break;
    }
    const lines = text.split('\n').slice(0, count);
    return lines.map((line) => recordAt(JSON.parse(line)));
  }

  /** A table without the cells of the column Age, the last of Secrets. */
  function withoutAge(table: JsonRecord): JsonRecord {
    const rows = listAt(table, 'rows').map((row) => ({
      ...recordAt(row),
      cells: listAt(row, 'cells').slice(0, -1),
    }));
    return { ...table, rows };
  }

  describe('negotiation', () => {
    test.each([
      ['application/json', 'application/json'],
      [protobuf, `${protobuf};stream=watch`],
      [`${protobuf},application/json`, `${protobuf};stream=watch`],
      [`application/json,${protobuf}`, 'application/json'],
    ])(
      '[sig-api-machinery] client-go should negotiate watch and report errors with accept "%s"',
      async (accept, contentType) => {
        const name = 'e2e-client-go-test-negotiation';
        const configMaps = `${namespace}/configmaps`;
        const resourceVersion = textAt(
          (await client.call('GET', configMaps)).body,
          ...(['metadata', 'resourceVersion'] as const),
        );
        const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } };
        await client.call('POST', configMaps, { body });
        const query = { watch: true, resourceVersion, fieldSelector: `metadata.name=${name}` };
        const stream = await server.client.stream(configMaps, { query, headers: { accept } });
        expect(stream.headers['content-type']).toBe(contentType);
        for await (const chunk of stream.chunks) {
          expect(chunk.toString()).toMatch(/ADDED/);
          expect(chunk.toString()).toContain(name);
          break;
        }
      },
    );

    test('a watch from a version that is too old says so in its stream, in JSON and in protobuf', async () => {
      const expired = {
        type: 'ERROR',
        object: { kind: 'Status', apiVersion: 'v1', code: 410, reason: 'Expired' },
      };
      const query = { resourceVersion: '1' };
      const [event] = await watchEvents(server.client, `${namespace}/configmaps`, query, 1);
      expect(event).toMatchObject(expired);
      const watch = await client.watch(`${namespace}/configmaps`, query);
      expect(await watch.next()).toMatchObject(expired);
      watch.stop();
    });
  });
}
