import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { eventually, makeNamespace } from '../support/api-operations.ts';
import { call } from '../support/test-server.ts';

let server: TestServer;
let namespace = '';
beforeAll(async () => {
  server = await startApiServer();
  namespace = await makeNamespace(server, 'cluster-kinds');
});
afterAll(async () => server.stop());

const services = '/apis/apiregistration.k8s.io/v1/apiservices';
const post = async (path: string, body: JsonRecord) => call(server.client, 'POST', path, { body });

describe('APIServices', () => {
  test('there is one for every built-in group version but their own', async () => {
    const list = await call(server.client, 'GET', services);
    const names = listAt(list.body, 'items').map((item) => textAt(item, 'metadata', 'name'));
    expect(names).toEqual(expect.arrayContaining(['v1.', 'v1.apps', 'v1.autoscaling', 'v2.autoscaling']));
    expect(names).not.toContain('v1.apiregistration.k8s.io');
    const core = await call(server.client, 'GET', `${services}/v1.`);
    expect(core.body['spec']).toEqual({ version: 'v1', groupPriorityMinimum: 18000, versionPriority: 1 });
    expect(recordAt(core.body, 'metadata', 'labels')).toEqual({
      'kube-aggregator.kubernetes.io/automanaged': 'onstart',
    });
  });

  test('those of custom resources come and go with them, and come again when they are deleted', async () => {
    const name = 'v1.cluster-kinds.example.com';
    const definition = {
      metadata: { name: 'foos.cluster-kinds.example.com' },
      spec: {
        group: 'cluster-kinds.example.com',
        names: { plural: 'foos', kind: 'Foo' },
        scope: 'Cluster',
        versions: [
          { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } },
        ],
      },
    };
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    expect((await post(definitions, definition)).status).toBe(201);
    const ask = async () => call(server.client, 'GET', `${services}/${name}`);
    const made = await eventually(ask, ({ status }) => status === 200);
    expect(made.body['spec']).toEqual({
      ...{ group: 'cluster-kinds.example.com', version: 'v1' },
      ...{ groupPriorityMinimum: 1000, versionPriority: 100 },
    });
    const uid = textAt(made.body, 'metadata', 'uid');
    await call(server.client, 'DELETE', `${services}/${name}`);
    await eventually(ask, ({ body }) => !['', uid].includes(textAt(body, 'metadata', 'uid')));
    await call(server.client, 'DELETE', `${definitions}/${definition.metadata.name}`);
    await eventually(ask, ({ status }) => status === 404);
  });
});

test('/apis names groups by their priority, the preferred version first', async () => {
  const groups = listAt((await call(server.client, 'GET', '/apis')).body, 'groups');
  const names = groups.map((group) => textAt(group, 'name'));
  expect(names).toEqual([
    ...['apiregistration.k8s.io', 'apps', 'events.k8s.io', 'authentication.k8s.io', 'authorization.k8s.io'],
    ...['autoscaling', 'batch', 'certificates.k8s.io', 'networking.k8s.io', 'policy'],
    ...[
      'rbac.authorization.k8s.io',
      'storage.k8s.io',
      'admissionregistration.k8s.io',
      'apiextensions.k8s.io',
    ],
    ...['scheduling.k8s.io', 'coordination.k8s.io', 'node.k8s.io', 'discovery.k8s.io', 'resource.k8s.io'],
    'flowcontrol.apiserver.k8s.io',
    'storagemigration.k8s.io',
  ]);
  const autoscaling = groups.find((group) => textAt(group, 'name') === 'autoscaling');
  expect(listAt(autoscaling, 'versions').map((version) => textAt(version, 'version'))).toEqual(['v2', 'v1']);
});

describe('PriorityClasses', () => {
  const classes = '/apis/scheduling.k8s.io/v1/priorityclasses';
  const pods = () => `/api/v1/namespaces/${namespace}/pods`;
  const pod = (name: string, spec: JsonRecord) => ({
    metadata: { name },
    spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
  });

  test('those of the system are there and stay', async () => {
    for (const name of ['system-cluster-critical', 'system-node-critical']) {
      const refused = await call(server.client, 'DELETE', `${classes}/${name}`);
      expect([refused.status, refused.body['message']]).toEqual([
        403,
        `priorityclasses.scheduling.k8s.io "${name}" is forbidden: this is a system priority class and cannot be deleted`,
      ]);
      const made = await post(pods(), pod(name, { priorityClassName: name }));
      expect(made.status).toBe(201);
      expect((await call(server.client, 'GET', `${classes}/${name}`)).body['value']).toBe(
        recordAt(made.body, 'spec')['priority'],
      );
    }
  });

  test('one may be the default, and says what Pods without a class get', async () => {
    const body = { value: 7, globalDefault: true, preemptionPolicy: 'Never' };
    expect((await post(classes, { metadata: { name: 'first' }, ...body })).status).toBe(201);
    const second = await post(classes, { metadata: { name: 'second' }, ...body });
    expect([second.status, second.body['message']]).toEqual([
      403,
      'priorityclasses.scheduling.k8s.io "second" is forbidden: PriorityClass first is already marked as default. Only one default can exist',
    ]);
    const made = await post(pods(), pod('plain', {}));
    expect(made.body['spec']).toMatchObject({
      ...{ priorityClassName: 'first', priority: 7, preemptionPolicy: 'Never' },
    });
    const refused = await post(pods(), pod('other', { preemptionPolicy: 'PreemptLowerPriority' }));
    expect([refused.status, refused.body['message']]).toEqual([
      403,
      'pods "other" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name',
    ]);
    await call(server.client, 'DELETE', `${classes}/first`);
    expect((await post(pods(), pod('again', {}))).body['spec']).toMatchObject({ priority: 0 });
  });
});

test('an autoscaler is one object in both versions', async () => {
  const path = (version: string) =>
    `/apis/autoscaling/${version}/namespaces/${namespace}/horizontalpodautoscalers`;
  const scaleTargetRef = { kind: 'Deployment', name: 'web', apiVersion: 'apps/v1' };
  const made = await post(path('v1'), {
    metadata: { name: 'web' },
    spec: { scaleTargetRef, maxReplicas: 3, targetCPUUtilizationPercentage: 60 },
  });
  expect(made.status).toBe(201);
  const newer = await call(server.client, 'GET', `${path('v2')}/web`);
  expect(textAt(newer.body, 'metadata', 'uid')).toBe(textAt(made.body, 'metadata', 'uid'));
  const patched = await call(server.client, 'PATCH', `${path('v2')}/web`, {
    body: { spec: { behavior: { scaleUp: { selectPolicy: 'Disabled' } } } },
    contentType: 'application/merge-patch+json',
  });
  expect(patched.status).toBe(200);
  const older = await call(server.client, 'GET', `${path('v1')}/web`);
  expect(recordAt(older.body, 'spec')['targetCPUUtilizationPercentage']).toBe(60);
  const updated = await call(server.client, 'PUT', `${path('v1')}/web`, {
    body: { ...older.body, spec: { ...recordAt(older.body, 'spec'), maxReplicas: 9 } },
  });
  expect(updated.status).toBe(200);
  const last = await call(server.client, 'GET', `${path('v2')}/web`);
  expect(last.body['spec']).toMatchObject({
    maxReplicas: 9,
    behavior: { scaleUp: { selectPolicy: 'Disabled' } },
  });
});
