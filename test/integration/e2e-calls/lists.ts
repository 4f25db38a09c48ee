import { beforeAll, beforeEach, expect, test } from 'vitest';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { makeNamespace } from '../../support/api-operations.ts';
import { call } from '../../support/test-server.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of e2e tests of chunked lists and tables (`apimachinery/chunking.go`, `table_conversion.go`). */
export function lists(shared: () => E2eCluster): void {
  let server: TestServer;
  let namespace = '';
  let made = 0;
  beforeAll(() => {
    ({ server } = shared());
  });
  beforeEach(async () => {
    namespace = await makeNamespace(server, `e2e-lists-${++made}`);
  });

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
}
