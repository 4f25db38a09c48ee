import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { eventually } from '../../support/api-operations.ts';
import { convertAt, convertedDefinition, group, questionsAt } from '../../support/conversion-webhook.ts';
import { definitions } from '../../support/e2e-definitions.ts';
import { type Answer, call } from '../../support/test-server.ts';
import type { TypedClient } from '../../support/typed-client.ts';
import { WebhookServer } from '../../support/webhook-server.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/**
 * The calls of e2e tests of conversion webhooks (`apimachinery/crd_conversion_webhook.go`); titles are theirs. The
 * webhook is no Pod: its Service is an ExternalName that leads to a server of the test.
 */
export function conversion(shared: () => E2eCluster): void {
  let server: TestServer;
  let client: TypedClient;
  let webhooks: WebhookServer;
  const namespace = 'crd-webhook';
  const serviceName = 'e2e-test-crd-conversion-webhook';
  const kind = 'e2e-test-crd-webhook-crd';

  beforeAll(async () => {
    ({ server, client } = shared());
    webhooks = await WebhookServer.start([`${serviceName}.${namespace}.svc`]);
    convertAt(webhooks, '/crdconvert');
    const made = await client.call('POST', '/api/v1/namespaces', {
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    });
    expect(made.status).toBe(201);
    const spec = { type: 'ExternalName', externalName: 'localhost' };
    const metadata = { name: serviceName, labels: { test: 'crd-webhook' } };
    const service = await client.call('POST', `/api/v1/namespaces/${namespace}/services`, {
      body: { apiVersion: 'v1', kind: 'Service', metadata, spec },
    });
    expect(service.status).toBe(201);
  });
  afterAll(async () => {
    await webhooks.stop();
  });

  const path = (version: string) => `/apis/${group}/${version}/namespaces/${namespace}/${kind}s`;
  const object = (version: string, name: string, fields: JsonRecord): JsonRecord => ({
    ...{ kind, apiVersion: `${group}/${version}`, ...fields },
    metadata: { name, namespace },
  });
  /** The dynamic client. */
  const send = async (method: string, at: string, body?: unknown): Promise<Answer> =>
    call(server.client, method, at, { body });

  /** As the e2e tests make it: both versions, a webhook behind a Service, and a first object that is converted. */
  beforeEach(async () => {
    await client.call('DELETE', `${definitions}/${kind}s.${group}`);
    await eventually(
      async () => client.call('GET', `${definitions}/${kind}s.${group}`),
      ({ status }) => status === 404,
    );
    webhooks.asked.length = 0;
    const service = { namespace, name: serviceName, path: '/crdconvert', port: webhooks.port };
    const definition = convertedDefinition(webhooks, {
      ...{ name: kind, clientConfig: { service } },
      spec: { preserveUnknownFields: false },
    });
    expect((await client.call('POST', definitions, { body: definition })).status).toBe(201);
    await eventually(
      async () => send('POST', path('v2'), object('v2', 'f', {})),
      ({ status }) => status === 201,
    );
    expect((await send('DELETE', `${path('v2')}/f`)).status).toBe(200);
  });

  const isV1 = (item: unknown) => {
    expect(recordAt(item)).toMatchObject({ apiVersion: `${group}/v1`, hostPort: 'localhost:8080' });
    expect(recordAt(item)).not.toHaveProperty('host');
    expect(recordAt(item)).not.toHaveProperty('port');
  };
  const isV2 = (item: unknown) => {
    expect(recordAt(item)).toMatchObject({ apiVersion: `${group}/v2`, host: 'localhost', port: '8080' });
    expect(recordAt(item)).not.toHaveProperty('hostPort');
  };

  test('[sig-api-machinery] CustomResourceConversionWebhook [Privileged:ClusterAdmin] should be able to convert from CR v1 to CR v2', async () => {
    const made = await send(
      'POST',
      path('v1'),
      object('v1', 'cr-instance-1', { hostPort: 'localhost:8080' }),
    );
    expect(made.status).toBe(201);
    const got = await send('GET', `${path('v2')}/cr-instance-1`);
    expect(got.status).toBe(200);
    isV2(got.body);
  });

  test('[sig-api-machinery] CustomResourceConversionWebhook [Privileged:ClusterAdmin] should be able to convert a non homogeneous list of CRs', async () => {
    await send('POST', path('v1'), object('v1', 'cr-instance-1', { hostPort: 'localhost:8080' }));
    // Stored as v1; now the other version is the one that is stored.
    const { body } = await client.call('GET', `${definitions}/${kind}s.${group}`);
    const versions = listAt(body, 'spec', 'versions').map((version) => ({
      ...recordAt(version),
      storage: textAt(version, 'name') === 'v2',
    }));
    const changed = { ...body, spec: { ...recordAt(body, 'spec'), versions } };
    expect((await client.call('PUT', `${definitions}/${kind}s.${group}`, { body: changed })).status).toBe(
      200,
    );
    const second = object('v1', 'cr-instance-2', { hostPort: 'localhost:8080' });
    expect((await send('POST', path('v1'), second)).status).toBe(201);
    for (const [version, isOfIt] of [
      ['v1', isV1],
      ['v2', isV2],
    ] as const) {
      const list = await send('GET', path(version));
      const items = listAt(list.body, 'items');
      expect(items.map((item) => textAt(item, 'metadata', 'name'))).toEqual([
        'cr-instance-1',
        'cr-instance-2',
      ]);
      items.forEach(isOfIt);
    }
    expect(questionsAt(webhooks, '/crdconvert').slice(-2)).toEqual([
      ['cr-instance-2 v2→v1'],
      ['cr-instance-1 v1→v2'],
    ]);
  });
}
