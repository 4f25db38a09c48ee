import { beforeAll, beforeEach, expect, test } from 'vitest';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { eventually } from '../../support/api-operations.ts';
import { createTestingNamespace, deleteOptions } from '../../support/e2e-framework.ts';
import { call } from '../../support/test-server.ts';
import type { TypedClient } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of e2e tests of sig-auth (`auth/service_accounts.go`, `subjectreviews.go`, `selfsubjectreviews.go`). */
export function auth(shared: () => E2eCluster): void {
  let server: TestServer;
  let client: TypedClient;
  let namespace = '';
  let path = '';
  beforeAll(() => {
    ({ server, client } = shared());
  });
  beforeEach(async () => {
    namespace = await createTestingNamespace(client, 'svcaccounts');
    path = `/api/v1/namespaces/${namespace}`;
  });

  const account = (name: string, fields: object = {}) => ({
    ...{ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name }, ...fields },
  });

  test('[sig-auth] ServiceAccounts should run through the lifecycle of a ServiceAccount', async () => {
    const name = 'testserviceaccount';
    const labels = { 'test-serviceaccount-static': 'true' };
    const labelSelector = 'test-serviceaccount-static=true';
    const accounts = `${path}/serviceaccounts`;
    const made = await client.call('POST', accounts, { body: account(name, { metadata: { name, labels } }) });
    const read = await client.call('GET', `${accounts}/${name}`);
    expect(textAt(read.body, 'metadata', 'uid')).toBe(textAt(made.body, 'metadata', 'uid'));
    const watch = await client.watch(accounts, { labelSelector, timeoutSeconds: 180 });
    expect((await watch.next()).type).toBe('ADDED');
    const patched = await client.call('PATCH', `${accounts}/${name}`, {
      body: { metadata: { creationTimestamp: null }, automountServiceAccountToken: false },
      patch: 'strategic-merge',
    });
    expect(patched.status).toBe(200);
    expect(await watch.next()).toEqual({ type: 'MODIFIED', object: patched.body });
    const { body } = await client.call('GET', '/api/v1/serviceaccounts', { query: { labelSelector } });
    expect(listAt(body, 'items')).toMatchObject([
      { metadata: { name, namespace }, automountServiceAccountToken: false },
    ]);
    expect((await client.call('DELETE', accounts)).status).toBe(200);
    expect((await watch.next()).type).toBe('DELETED');
    watch.stop();
  });

  test('[sig-auth] ServiceAccounts should guarantee kube-root-ca.crt exist in any namespace', async () => {
    const map = `${path}/configmaps/kube-root-ca.crt`;
    const before = await client.call('GET', map);
    expect(before.status).toBe(200);
    const body = deleteOptions({ gracePeriodSeconds: 0 });
    expect((await client.call('DELETE', map, { body })).status).toBe(200);
    await eventually(
      async () => client.call('GET', map),
      ({ status }) => status === 200,
    );
    const updated = await client.call('PUT', map, {
      body: {
        ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kube-root-ca.crt' } },
        data: { 'ca.crt': '' },
      },
    });
    expect(updated.status).toBe(200);
    const read = await eventually(
      async () => client.call('GET', map),
      (answer) => textAt(answer.body, 'data', 'ca.crt') !== '',
    );
    expect(textAt(read.body, 'data', 'ca.crt')).toBe(textAt(before.body, 'data', 'ca.crt'));
  });

  test('[sig-auth] ServiceAccounts should update a ServiceAccount', async () => {
    const accounts = `${path}/serviceaccounts`;
    const made = await client.call('POST', accounts, {
      body: account('e2e-sa', { automountServiceAccountToken: false }),
    });
    expect([made.status, made.body['automountServiceAccountToken']]).toEqual([201, false]);
    const { body } = await client.call('GET', `${accounts}/e2e-sa`);
    const updated = await client.call('PUT', `${accounts}/e2e-sa`, {
      body: { ...body, automountServiceAccountToken: true },
    });
    expect([updated.status, updated.body['automountServiceAccountToken']]).toEqual([200, true]);
  });

  test('[sig-auth] ServiceAccounts no secret-based service account token should be auto-generated', async () => {
    const { body } = await client.call('GET', `${path}/serviceaccounts/default`);
    expect(listAt(body, 'secrets')).toEqual([]);
    const secrets = await client.call('GET', `${path}/secrets`);
    expect(listAt(secrets.body, 'items')).toEqual([]);
  });

  test('[sig-auth] SubjectReview should support SubjectReview API operations', async () => {
    const made = await client.call('POST', `${path}/serviceaccounts`, { body: account('e2e') });
    const user = `system:serviceaccount:${namespace}:e2e`;
    const groups = [
      ...['system:authenticated', 'system:serviceaccounts', `system:serviceaccounts:${namespace}`],
    ];
    const uid = textAt(made.body, 'metadata', 'uid');
    const reviewed = async (kind: string, url: string, as: string, metadata: object): Promise<unknown> => {
      const resourceAttributes = { verb: 'list', resource: 'configmaps', namespace, version: 'v1' };
      const answer = await client.call('POST', url, {
        body: {
          ...{ apiVersion: 'authorization.k8s.io/v1', kind, metadata },
          spec: { resourceAttributes, user: as, groups, uid },
        },
      });
      expect([answer.status, answer.body['kind']]).toEqual([201, kind]);
      return recordAt(answer.body, 'status')['allowed'] ?? false;
    };
    const root = '/apis/authorization.k8s.io/v1';
    const expected = await reviewed('SubjectAccessReview', `${root}/subjectaccessreviews`, user, {});
    // impersonated: groups are one header each
    const { request, Agent } = await import('undici');
    const agent = new Agent({ connect: { ca: server.ca } });
    const { statusCode, body } = await request(`${server.url}${path}/configmaps`, {
      dispatcher: agent,
      headers: [
        ...['authorization', `Bearer ${server.token}`, 'impersonate-user', user, 'impersonate-uid', uid],
        ...groups.flatMap((group) => ['impersonate-group', group]),
      ],
    });
    const list = recordAt(await body.json());
    await agent.close();
    expect([statusCode, list['reason']]).toEqual([403, 'Forbidden']);
    expect(expected).toBe(false);
    const local = `${root}/namespaces/${namespace}/localsubjectaccessreviews`;
    expect(await reviewed('LocalSubjectAccessReview', local, 'e2e', { namespace })).toBe(false);
  });

  const impersonation = {
    ...{ 'impersonate-user': 'jane-doe', 'impersonate-uid': 'uniq-id' },
    'impersonate-extra-known-languages': 'python',
  };

  test('[sig-auth] SelfSubjectReview should support SelfSubjectReview API operations', async () => {
    const groups = await call(server.client, 'GET', '/apis/authentication.k8s.io');
    expect(listAt(groups.body, 'versions').map((each) => textAt(each, 'version'))).toContain('v1');
    const resources = await call(server.client, 'GET', '/apis/authentication.k8s.io/v1');
    expect(listAt(resources.body, 'resources').map((row) => textAt(row, 'name'))).toContain(
      'selfsubjectreviews',
    );
    const { status, body } = await call(
      server.client,
      'POST',
      '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      { body: {}, headers: { ...impersonation, 'impersonate-group': 'developers' } },
    );
    expect([status, recordAt(body, 'status', 'userInfo')]).toEqual([
      201,
      {
        ...{ username: 'jane-doe', uid: 'uniq-id', groups: ['developers', 'system:authenticated'] },
        extra: { 'known-languages': ['python'] },
      },
    ]);
    for (const version of ['v1alpha1', 'v1beta1']) {
      const older = `/apis/authentication.k8s.io/${version}/selfsubjectreviews`;
      expect((await call(server.client, 'POST', older, { body: {} })).status).toBe(404);
    }
  });
}
