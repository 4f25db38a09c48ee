import { afterAll, expect, test } from 'vitest';
import { at, listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { claimOfTemplate } from '../../src/controllers/resource-claims.ts';
import { call } from '../support/test-server.ts';
import { itemsOf, startControllers, untilObject } from '../support/with-controllers.ts';
import { pod as podOf } from '../unit/controllers/workloads/samples.ts';

const server = await startApiServer();
const { client } = server;
const controllers = startControllers(client, ['resourceclaim-controller']);
afterAll(async () => {
  await controllers.running.stop();
  await server.stop();
});

const pods = '/api/v1/namespaces/default/pods';
const claims = '/apis/resource.k8s.io/v1/namespaces/default/resourceclaims';
const templates = '/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates';

async function create(path: string, body: object): Promise<object> {
  const answer = await call(client, 'POST', path, { body });
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  return answer.body;
}

test('a Pod gets the claims of its templates, and what is allocated is reserved for it', async () => {
  await create(pods, {
    metadata: { name: 'web' },
    spec: {
      containers: [{ name: 'c', image: 'nginx', resources: { claims: [{ name: 'gpu' }] } }],
      resourceClaims: [{ name: 'gpu', resourceClaimTemplateName: 'gpus' }],
    },
  });
  await untilObject(client, '/api/v1/namespaces/default/events', (body) =>
    itemsOf(body).some(
      (event) =>
        textAt(event, 'reason') === 'FailedResourceClaimCreation' &&
        textAt(event, 'message') ===
          'PodResourceClaim gpu: resource claim template "gpus": resourceclaimtemplate.resource.k8s.io "gpus" not found',
    ),
  );
  const requests = [{ name: 'a', exactly: { deviceClassName: 'gpu.example.com' } }];
  await create(templates, {
    metadata: { name: 'gpus' },
    spec: { metadata: { labels: { a: 'b' } }, spec: { devices: { requests } } },
  });
  const named = await untilObject(
    client,
    `${pods}/web`,
    (body) => listAt(body, 'status', 'resourceClaimStatuses').length > 0,
  );
  const [status] = listAt(named, 'status', 'resourceClaimStatuses');
  const name = textAt(status, 'resourceClaimName');
  expect(name).toMatch(/^web-gpu-[a-z0-9]{5}$/);
  const { body: claim } = await call(client, 'GET', `${claims}/${name}`);
  expect(claim).toMatchObject({
    metadata: {
      labels: { a: 'b' },
      annotations: { 'resource.kubernetes.io/pod-claim-name': 'gpu' },
      ownerReferences: [{ kind: 'Pod', name: 'web', controller: true }],
    },
    spec: { devices: { requests: [{ name: 'a' }] } },
  });
  const result = { request: 'a', driver: 'gpu.example.com', pool: 'p', device: 'd' };
  const body = { status: { allocation: { devices: { results: [result] } } } };
  const contentType = 'application/merge-patch+json';
  expect((await call(client, 'PATCH', `${claims}/${name}/status`, { body, contentType })).status).toBe(200);
  const target = { kind: 'Node', name: 'node-1' };
  await create(`${pods}/web/binding`, { metadata: { name: 'web' }, target });
  await untilObject(client, `${claims}/${name}`, (object) => {
    const [consumer] = listAt(object, 'status', 'reservedFor');
    return (
      textAt(consumer, 'uid') === at(named, 'metadata', 'uid') && textAt(consumer, 'resource') === 'pods'
    );
  });
  expect(itemsOf((await call(client, 'GET', claims)).body)).toHaveLength(1);
});

test('long names are both cut', () => {
  const template = { metadata: {}, spec: { metadata: {}, spec: { devices: { requests: null } } } };
  const { metadata } = claimOfTemplate(podOf('p'.repeat(100)), 'c'.repeat(50), template);
  expect(metadata.generateName).toBe(`${'p'.repeat(37)}-${'c'.repeat(18)}`);
});
