import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { listAt, recordAt, textAt } from '../../src/objects/read.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { makeNamespace } from '../support/api-operations.ts';
import { call, watchEvents } from '../support/test-server.ts';

/** The calls of e2e tests of watches, chunked lists and tables; titles are theirs. */
let server: TestServer;
let namespace = '';
let configMaps = '';
let made = 0;
beforeAll(async () => {
  server = await startApiServer();
});
beforeEach(async () => {
  namespace = await makeNamespace(server, `e2e-watch-${++made}`);
  configMaps = `/api/v1/namespaces/${namespace}/configmaps`;
});
afterAll(async () => server.stop());

const a = { 'watch-this': 'a' };
const create = async (name: string, labels: object = a): Promise<string> => {
  const { body } = await call(server.client, 'POST', configMaps, { body: { metadata: { name, labels } } });
  return textAt(body, 'metadata', 'resourceVersion');
};
const change = async (name: string, body: object): Promise<string> => {
  const answer = await call(server.client, 'PATCH', `${configMaps}/${name}`, {
    body,
    contentType: 'application/merge-patch+json',
  });
  return textAt(answer.body, 'metadata', 'resourceVersion');
};
const remove = async (name: string): Promise<unknown> =>
  call(server.client, 'DELETE', `${configMaps}/${name}`);
const now = async (): Promise<string> =>
  textAt((await call(server.client, 'GET', configMaps)).body, 'metadata', 'resourceVersion');
const brief = (event: object): string => {
  const { type, object } = recordAt(event);
  return `${String(type)} ${textAt(object, 'metadata', 'name')} ${textAt(object, 'data', 'mutation')}`.trim();
};

describe('Watchers', () => {
  test('[sig-api-machinery] Watchers should observe add, update, and delete watch notifications on configmaps', async () => {
    const resourceVersion = await now();
    const watch = async (labelSelector: string, count: number): Promise<string[]> =>
      (await watchEvents(server.client, configMaps, { resourceVersion, labelSelector }, count)).map(brief);
    const onlyA = watch('watch-this=a', 4);
    const onlyB = watch('watch-this=b', 2);
    const both = watch('watch-this in (a,b)', 6);
    await create('first');
    await change('first', { data: { mutation: '1' } });
    await change('first', { data: { mutation: '2' } });
    await remove('first');
    await create('second', { 'watch-this': 'b' });
    await remove('second');
    const ofA = ['ADDED first', 'MODIFIED first 1', 'MODIFIED first 2', 'DELETED first 2'];
    expect(await onlyA).toEqual(ofA);
    expect(await onlyB).toEqual(['ADDED second', 'DELETED second']);
    expect(await both).toEqual([...ofA, 'ADDED second', 'DELETED second']);
  });

  test('[sig-api-machinery] Watchers should be able to start watching from a specific resource version', async () => {
    await create('m');
    const resourceVersion = await change('m', { data: { mutation: '1' } });
    await change('m', { data: { mutation: '2' } });
    await remove('m');
    const events = await watchEvents(
      server.client,
      configMaps,
      { resourceVersion, labelSelector: 'watch-this=a' },
      2,
    );
    expect(events.map(brief)).toEqual(['MODIFIED m 2', 'DELETED m 2']);
  });

  test('[sig-api-machinery] Watchers should be able to restart watching from the last resource version observed by the previous watch', async () => {
    const start = await now();
    await create('m');
    await change('m', { data: { mutation: '1' } });
    const first = await watchEvents(server.client, configMaps, { resourceVersion: start }, 2);
    const resourceVersion = textAt(recordAt(first[1])['object'], 'metadata', 'resourceVersion');
    await change('m', { data: { mutation: '2' } });
    await remove('m');
    const rest = await watchEvents(server.client, configMaps, { resourceVersion }, 2);
    expect(rest.map(brief)).toEqual(['MODIFIED m 2', 'DELETED m 2']);
  });

  test('[sig-api-machinery] Watchers should observe an object deletion if it stops meeting the requirements of the selector', async () => {
    const resourceVersion = await now();
    const events = watchEvents(
      server.client,
      configMaps,
      { resourceVersion, labelSelector: 'watch-this=a' },
      6,
    );
    await create('m');
    await change('m', { data: { mutation: '1' } });
    await change('m', { metadata: { labels: { 'watch-this': 'other' } } });
    await change('m', { data: { mutation: '2' } });
    await change('m', { metadata: { labels: a } });
    await change('m', { data: { mutation: '3' } });
    await remove('m');
    expect((await events).map(brief)).toEqual([
      'ADDED m',
      'MODIFIED m 1',
      'DELETED m 1',
      'ADDED m 2',
      'MODIFIED m 3',
      'DELETED m 3',
    ]);
  });

  test('[sig-api-machinery] Watchers should receive events on concurrent watches in same order', async () => {
    const start = await now();
    const versions: string[] = [start];
    const count = 60;
    for (let n = 0; n < count; n++) {
      if (n % 3 === 0) versions.push(await create(`m-${n}`));
      else if (n % 3 === 1) versions.push(await change(`m-${n - 1}`, { data: { mutation: `${n}` } }));
      else await remove(`m-${n - 2}`);
    }
    const versionOf = (event: object): string =>
      textAt(recordAt(event)['object'], 'metadata', 'resourceVersion');
    const whole = (await watchEvents(server.client, configMaps, { resourceVersion: start }, count)).map(
      versionOf,
    );
    for (const resourceVersion of versions.slice(1, -1)) {
      const rest = whole.slice(whole.indexOf(resourceVersion) + 1);
      const seen = await watchEvents(server.client, configMaps, { resourceVersion }, rest.length);
      expect(seen.map(versionOf)).toEqual(rest);
    }
  });
});

describe('protocol', () => {
  test('[sig-api-machinery] client-go should negotiate watch and report errors with accept "application/json"', async () => {
    const resourceVersion = await now();
    const protobuf = 'application/vnd.kubernetes.protobuf';
    for (const [accept, contentType] of [
      ['application/json', 'application/json'],
      [protobuf, `${protobuf};stream=watch`],
      [`${protobuf},application/json`, `${protobuf};stream=watch`],
      [`application/json,${protobuf}`, 'application/json'],
    ] as const) {
      const name = `m-${accept.length}`;
      await create(name);
      const stream = await server.client.stream(configMaps, {
        query: { watch: true, resourceVersion, fieldSelector: `metadata.name=${name}`, timeoutSeconds: 1 },
        headers: { accept },
      });
      expect(stream.headers['content-type']).toBe(contentType);
      for await (const chunk of stream.chunks) {
        expect(chunk.toString()).toContain(name);
        break;
      }
    }
    const [expired] = await watchEvents(server.client, configMaps, { resourceVersion: '1' }, 1);
    expect(expired).toMatchObject({
      type: 'ERROR',
      object: { kind: 'Status', code: 410, reason: 'Expired' },
    });
  });

  test.each([
    'application/json',
    'application/json;as=Table;g=meta.k8s.io;v=v1',
    'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
  ])(
    '[sig-api-machinery] API Streaming (aka. WatchList) [FeatureGate:WatchList] [Beta] should be requested by informers when WatchListClient is enabled: %s',
    async (accept) => {
      const secrets = `/api/v1/namespaces/${namespace}/secrets`;
      for (const name of ['x', 'y']) {
        await call(server.client, 'POST', secrets, { body: { metadata: { name } } });
      }
      const controller = new AbortController();
      const stream = await server.client.stream(secrets, {
        query: {
          ...{ watch: true, sendInitialEvents: true, allowWatchBookmarks: true },
          resourceVersionMatch: 'NotOlderThan',
        },
        headers: { accept },
        signal: controller.signal,
      });
      let text = '';
      for await (const chunk of stream.chunks) {
        text += chunk.toString();
        if (text.includes('BOOKMARK')) break;
      }
      const events = text
        .trim()
        .split('\n')
        .map((line): unknown => JSON.parse(line));
      expect(events.map((event) => textAt(event, 'type'))).toEqual(['ADDED', 'ADDED', 'BOOKMARK']);
      expect(text).toContain('"k8s.io/initial-events-end":"true"');
    },
  );
});

describe('lists', () => {
  const count = 400;
  const templates = async (): Promise<string> => {
    const path = `/api/v1/namespaces/${namespace}/podtemplates`;
    await Promise.all(
      Array.from({ length: count }, async (_, n) =>
        call(server.client, 'POST', path, {
          body: {
            metadata: { name: `template-${String(n).padStart(4, '0')}` },
            template: { spec: { containers: [{ name: 'c', image: 'i' }] } },
          },
        }),
      ),
    );
    return path;
  };

  test('[sig-api-machinery] Servers with support for API chunking should return chunks of results for list calls', async () => {
    const path = await templates();
    const names: string[] = [];
    let token = '';
    let version = '';
    do {
      const { body } = await call(server.client, 'GET', path, {
        query: { limit: 17, continue: token === '' ? undefined : token },
      });
      version ||= textAt(body, 'metadata', 'resourceVersion');
      expect(textAt(body, 'metadata', 'resourceVersion')).toBe(version);
      names.push(...listAt(body, 'items').map((item) => textAt(item, 'metadata', 'name')));
      token = textAt(body, 'metadata', 'continue');
      const remaining = recordAt(body['metadata'])['remainingItemCount'];
      expect(remaining).toBe(token === '' ? undefined : count - names.length);
    } while (token !== '');
    expect(names).toEqual(Array.from({ length: count }, (_, n) => `template-${String(n).padStart(4, '0')}`));
  });

  test('[sig-api-machinery] Servers with support for API chunking should support continue listing from the last key if the original version has been compacted away, though the list is inconsistent [Slow]', async () => {
    const path = await templates();
    const first = await call(server.client, 'GET', path, { query: { limit: 10 } });
    // what a token says whose revision was compacted away
    const token = Buffer.from(
      JSON.stringify({ v: 'meta.k8s.io/v1', rv: 1, start: 'template-0009\u0000' }),
    ).toString('base64url');
    const expired = await call(server.client, 'GET', path, { query: { limit: 10, continue: token } });
    expect([expired.status, expired.body['reason']]).toEqual([410, 'Expired']);
    const inconsistent = textAt(expired.body, 'metadata', 'continue');
    expect(inconsistent).not.toBe('');
    const rest = await call(server.client, 'GET', path, { query: { limit: count, continue: inconsistent } });
    expect(listAt(rest.body, 'items')).toHaveLength(count - listAt(first.body, 'items').length);
  });

  const asTable = { accept: 'application/json;as=Table;v=v1beta1;g=meta.k8s.io' };

  test('[sig-api-machinery] Servers with support for Table transformation should return chunks of table results for list calls', async () => {
    const path = await templates();
    const { body } = await call(server.client, 'GET', path, { query: { limit: 2 }, headers: asTable });
    expect(body['kind']).toBe('Table');
    const first = (table: object): string[] =>
      listAt(table, 'rows').map((row) => String(listAt(row, 'cells')[0]));
    expect(first(body)).toEqual(['template-0000', 'template-0001']);
    expect(textAt(body, 'metadata', 'resourceVersion')).not.toBe('');
    expect(textAt(body, 'metadata', 'continue')).not.toBe('');
    const next = await call(server.client, 'GET', path, {
      query: { continue: textAt(body, 'metadata', 'continue') },
      headers: asTable,
    });
    expect([listAt(next.body, 'rows').length, first(next.body)[0]]).toEqual([count - 2, 'template-0002']);
  });

  test('[sig-api-machinery] Servers with support for Table transformation should return generic metadata details across all namespaces for nodes', async () => {
    await call(server.client, 'POST', '/api/v1/nodes', { body: { metadata: { name: namespace } } });
    const { body } = await call(server.client, 'GET', '/api/v1/nodes', { headers: asTable });
    const [row] = listAt(body, 'rows');
    expect(listAt(body, 'columnDefinitions')[0]).toMatchObject({ name: 'Name' });
    expect(listAt(row, 'cells')[0]).toBe(textAt(row, 'object', 'metadata', 'name'));
    expect(recordAt(row, 'object')).toMatchObject({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1beta1',
    });
  });

  test('[sig-api-machinery] Servers with support for Table transformation should return a 406 for a backend which does not implement metadata', async () => {
    const answer = await call(
      server.client,
      'POST',
      '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
      {
        body: { spec: { nonResourceAttributes: { path: '/', verb: 'get' } } },
        headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
      },
    );
    expect([answer.status, answer.body['reason']]).toEqual([406, 'NotAcceptable']);
  });
});
