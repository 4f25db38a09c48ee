import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isRecord, type JsonRecord } from '../../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { makeNamespace } from '../../support/api-operations.ts';
import { type Answer, call } from '../../support/test-server.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of e2e tests of discovery, field validation, server-side apply and timeouts; titles are theirs. */
export function machinery(shared: () => E2eCluster): void {
  let server: TestServer;
  let deployments = '';
  let pods = '';
  let made = 0;
  beforeAll(() => {
    ({ server } = shared());
  });
  beforeEach(async () => {
    const namespace = await makeNamespace(server, `e2e-machinery-${++made}`);
    deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`;
    pods = `/api/v1/namespaces/${namespace}/pods`;
  });

  const deployment = (spec: JsonRecord = {}): JsonRecord => ({
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'd', labels: { app: 'nginx' } } },
    spec: {
      ...{ replicas: 1, selector: { matchLabels: { app: 'nginx' } } },
      template: {
        metadata: { labels: { app: 'nginx' } },
        spec: { containers: [{ name: 'nginx', image: 'nginx:latest' }] },
      },
      ...spec,
    },
  });

  const apply = async (
    path: string,
    body: JsonRecord,
    query: Readonly<Record<string, string>>,
  ): Promise<Answer> =>
    call(server.client, 'PATCH', path, { body, query, contentType: 'application/apply-patch+yaml' });

  describe('FieldValidation', () => {
    test('[sig-api-machinery] FieldValidation should detect unknown and duplicate fields of a typed object', async () => {
      const unknown = deployment({ unknownField: 'foo' });
      const strict = { fieldValidation: 'Strict', fieldManager: 'field_validation_mgr' };
      const query = new URLSearchParams(strict).toString();
      const text = JSON.stringify(deployment()).replace(
        '"replicas":1',
        '"unknownField":"foo","replicas":2,"replicas":3',
      );
      const posted = await sendText('POST', `${deployments}?${query}`, text, 'application/json');
      expect([posted.status, posted.body['message']]).toEqual([
        400,
        'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.unknownField", duplicate field "spec.replicas"',
      ]);
      const applied = await apply(`${deployments}/d`, unknown, strict);
      expect(applied.status).toBe(500);
      expect(applied.body['message']).toContain('.spec.unknownField: field not declared in schema');
      const warned = await call(server.client, 'POST', deployments, { body: unknown });
      expect([warned.status, warned.warnings]).toEqual([201, ['unknown field "spec.unknownField"']]);
    });

    test('[sig-api-machinery] FieldValidation should detect unknown metadata fields of a typed object', async () => {
      const body = { ...deployment(), metadata: { name: 'd', unknownMeta: 'x' } };
      const posted = await call(server.client, 'POST', deployments, {
        body,
        query: { fieldValidation: 'Strict' },
      });
      expect(posted.body['message']).toContain('strict decoding error: unknown field "metadata.unknownMeta"');
    });
  });

  /** Sends a body that no JSON encoder would write. */
  async function sendText(
    method: 'POST' | 'PATCH',
    path: string,
    body: string,
    type: string,
  ): Promise<Answer> {
    const { Agent } = await import('undici');
    const agent = new Agent({ connect: { ca: server.ca } });
    const headers = { authorization: `Bearer ${server.token}`, 'content-type': type };
    try {
      const answer = await agent.request({ origin: server.url, path, method, headers, body });
      const read: unknown = await answer.body.json();
      return { status: answer.statusCode, body: isRecord(read) ? read : {}, warnings: [] };
    } finally {
      await agent.close();
    }
  }

  describe('ServerSideApply', () => {
    const pod = {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } },
      spec: { containers: [{ name: 'c', image: 'nginx' }] },
    };

    test('[sig-api-machinery] ServerSideApply should create an applied object if it does not already exist', async () => {
      const services = pods.replace('/pods', '/services');
      const service = {
        ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'test-svc' } },
        spec: { ports: [{ port: 8080, protocol: 'UDP' }] },
      };
      for (const [path, body, fields] of [
        [
          `${pods}/p`,
          pod,
          '{"f:spec":{"f:containers":{"k:{\\"name\\":\\"c\\"}":{".":{},"f:image":{},"f:name":{}}}}}',
        ],
        [
          `${services}/test-svc`,
          service,
          '{"f:spec":{"f:ports":{"k:{\\"port\\":8080,\\"protocol\\":\\"UDP\\"}":{".":{},"f:port":{},"f:protocol":{}}}}}',
        ],
      ] as const) {
        expect((await apply(path, body, { fieldManager: 'apply_test' })).status).toBe(201);
        expect((await call(server.client, 'GET', path)).status).toBe(200);
        const again = await apply(path, body, { fieldManager: 'apply_test_2' });
        expect(again.status).toBe(200);
        const owned = listAt(again.body, 'metadata', 'managedFields')
          .filter((entry) => textAt(entry, 'manager').startsWith('apply_test'))
          .map((entry) => JSON.stringify(recordAt(entry, 'fieldsV1')));
        expect(owned).toEqual([fields, fields]);
      }
    });

    test('[sig-api-machinery] ServerSideApply should work for subresources', async () => {
      // As it is sent: a flow mapping of YAML, which may end in a comma, unlike JSON.
      const text =
        '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i",}]}}';
      const made = await sendText(
        'PATCH',
        `${pods}/p?fieldManager=apply_test`,
        text,
        'application/apply-patch+yaml',
      );
      expect(made.status).toBe(201);
      const condition = { type: 'MyStatus', status: 'True' };
      const status = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'p' },
        status: { conditions: [condition] },
      };
      // The main resource takes the body and leaves the status alone.
      expect((await apply(`${pods}/p`, status, { fieldManager: 'apply_test2' })).status).toBe(200);
      const before = await call(server.client, 'GET', `${pods}/p`);
      expect(listAt(before.body, 'status', 'conditions')).toEqual([]);
      expect((await apply(`${pods}/p/status`, status, { fieldManager: 'apply_test2' })).status).toBe(200);
      const { body } = await call(server.client, 'GET', `${pods}/p`);
      expect(listAt(body, 'status', 'conditions')).toMatchObject([condition]);
      const owners = listAt(body, 'metadata', 'managedFields').map(
        (entry) => `${textAt(entry, 'manager')} ${textAt(entry, 'subresource')}`,
      );
      expect(owners).toEqual(['apply_test ', 'apply_test2 status']);
    });

    const withPod = (podSpec: JsonRecord, spec: JsonRecord = {}): JsonRecord =>
      deployment({ ...spec, template: { metadata: { labels: { app: 'nginx' } }, spec: podSpec } });
    const container = { name: 'nginx', image: 'nginx:latest' };
    const podSpecOf = (body: JsonRecord): JsonRecord => recordAt(body, 'spec', 'template', 'spec');

    test('[sig-api-machinery] ServerSideApply should remove a field if it is owned but removed in the apply request', async () => {
      const ports = [{ containerPort: 80, protocol: 'TCP' }];
      const query = { fieldManager: 'apply_test' };
      await apply(`${deployments}/d`, withPod({ containers: [{ ...container, ports }] }), query);
      await apply(`${deployments}/d`, withPod({ containers: [container] }), query);
      const { body } = await call(server.client, 'GET', `${deployments}/d`);
      expect(listAt(listAt(podSpecOf(body), 'containers')[0], 'ports')).toEqual([]);
    });

    test('[sig-api-machinery] ServerSideApply should not remove a field if an owner unsets the field but other managers still have ownership of the field', async () => {
      // One field with a default, one without.
      const whole = withPod({ hostname: 'test-hostname', containers: [container] }, { replicas: 3 });
      for (const fieldManager of ['shared_owner_1', 'shared_owner_2'])
        await apply(`${deployments}/d`, whole, { fieldManager });
      const { replicas: _replicas, ...spec } = recordAt(withPod({ containers: [container] })['spec']);
      const answer = await apply(
        `${deployments}/d`,
        { ...deployment(), spec },
        { fieldManager: 'shared_owner_1' },
      );
      expect(recordAt(answer.body, 'spec')['replicas']).toBe(3);
      expect(podSpecOf(answer.body)['hostname']).toBe('test-hostname');
    });

    test('[sig-api-machinery] ServerSideApply should ignore conflict errors if force apply is used', async () => {
      const three = deployment({ replicas: 3 });
      await apply(`${deployments}/d`, three, { fieldManager: 'apply_test' });
      await call(server.client, 'PATCH', `${deployments}/d`, {
        body: { spec: { replicas: 5 } },
        contentType: 'application/merge-patch+json',
      });
      const refused = await apply(`${deployments}/d`, three, { fieldManager: 'apply_test' });
      expect([refused.status, refused.body['reason']]).toEqual([409, 'Conflict']);
      expect(listAt(refused.body, 'details', 'causes')).toMatchObject([
        { reason: 'FieldManagerConflict', field: '.spec.replicas' },
      ]);
      const forced = await apply(`${deployments}/d`, three, { fieldManager: 'apply_test', force: 'true' });
      expect([forced.status, recordAt(forced.body, 'spec')['replicas']]).toEqual([200, 3]);
    });

    test('[sig-api-machinery] ServerSideApply should give up ownership of a field if forced applied by a controller', async () => {
      await apply(`${deployments}/d`, deployment({ replicas: 3 }), { fieldManager: 'test_applier' });
      const { body } = await call(server.client, 'GET', `${deployments}/d`);
      const scaled = await call(server.client, 'PUT', `${deployments}/d`, {
        body: { ...body, spec: { ...recordAt(body, 'spec'), replicas: 4 } },
      });
      expect(scaled.status).toBe(200);
      const { replicas: _replicas, ...spec } = recordAt(deployment()['spec']);
      const answer = await apply(
        `${deployments}/d`,
        { ...deployment(), spec },
        { fieldManager: 'test_applier' },
      );
      expect([answer.status, recordAt(answer.body, 'spec')['replicas']]).toEqual([200, 4]);
    });
  });

  describe('Server request timeout', () => {
    const get = async (timeout: string): Promise<Answer> =>
      call(server.client, 'GET', '/version', { query: { timeout } });

    test('[sig-api-machinery] Server request timeout should return HTTP status code 400 if the user specifies an invalid timeout in the request URL', async () => {
      const answer = await get('invalid');
      expect([answer.status, answer.body['reason']]).toEqual([400, 'BadRequest']);
      expect(answer.body['message']).toContain('invalid timeout specified in the request URL');
    });

    test('[sig-api-machinery] Server request timeout the request should be served with a default timeout if the specified timeout in the request URL exceeds maximum allowed', async () => {
      expect((await get('3m')).status).toBe(200);
    });

    test('[sig-api-machinery] Server request timeout default timeout should be used if the specified timeout in the request URL is 0s', async () => {
      expect((await get('0s')).status).toBe(200);
    });
  });
}
