import { afterAll, beforeAll, expect, test } from 'vitest';
import { listAt, textAt } from '../../src/objects/json.ts';
import { eventually } from '../support/api-operations.ts';
import { E2eCluster } from '../support/e2e-cluster.ts';
import { createTestingNamespace } from '../support/e2e-framework.ts';

/** Of `apimachinery/namespace.go`; the other tests of namespaces are in e2e-calls/namespaces.ts. */
let cluster: E2eCluster;
beforeAll(async () => {
  cluster = await E2eCluster.start({ nodes: 1 });
});
afterAll(async () => cluster.stop());

test('[sig-api-machinery] Namespaces [Serial] should delete fast enough (90 percent of 100 namespaces in 150 seconds)', async () => {
  const names = await Promise.all(
    Array.from({ length: 100 }, async (_, n) => createTestingNamespace(cluster.client, `nslifetest-${n}`)),
  );
  await Promise.all(
    names.map(async (name) =>
      expect((await cluster.client.call('DELETE', `/api/v1/namespaces/${name}`)).status).toBe(200),
    ),
  );
  await eventually(
    async () => cluster.client.call('GET', '/api/v1/namespaces'),
    ({ body }) =>
      !listAt(body, 'items').some((item) => textAt(item, 'metadata', 'name').includes('nslifetest')),
  );
});
