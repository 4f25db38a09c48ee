import { networkInterfaces } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { at, listAt, recordAt, textAt } from '../../src/objects/json.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { HookedServer } from '../support/hooked-server.ts';
import { call, untilFound } from '../support/test-server.ts';
import { patchResponse, type WebhookServer } from '../support/webhook-server.ts';

const configMaps = '/api/v1/namespaces/default/configmaps';
const services = '/api/v1/namespaces/default/services';
const configurations = '/apis/admissionregistration.k8s.io/v1';

let hooked: HookedServer;
let server: TestServer;
let webhooks: WebhookServer;
beforeAll(async () => {
  hooked = await HookedServer.start();
  ({ api: server, webhooks } = hooked);
});
afterAll(async () => hooked.stop());
afterEach(async () => hooked.clear());

const anyConfigMap = [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }];

const send: HookedServer['send'] = async (...request) => hooked.send(...request);
const webhook: HookedServer['webhook'] = (...of) => hooked.webhook(...of);
const configure: HookedServer['configure'] = async (...hooks) => hooked.configure(...hooks);
const create: HookedServer['create'] = async (...named) => hooked.create(...named);

describe('the question', () => {
  test('is an AdmissionReview that says all about the write', async () => {
    await configure('validating', [webhook('/allow')]);
    const made = await create();
    expect(made.status).toBe(201);
    const [asked] = webhooks.asked;
    expect(asked?.timeout).toBe('10s');
    const { object, uid, userInfo, ...rest } = recordAt(asked?.review, 'request');
    expect(asked?.review).toMatchObject({ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1' });
    expect(uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(userInfo).toEqual({
      username: 'kubernetes-admin',
      groups: ['system:masters', 'system:authenticated'],
    });
    expect(rest).toEqual({
      kind: { group: '', version: 'v1', kind: 'ConfigMap' },
      resource: { group: '', version: 'v1', resource: 'configmaps' },
      requestKind: { group: '', version: 'v1', kind: 'ConfigMap' },
      requestResource: { group: '', version: 'v1', resource: 'configmaps' },
      name: 'a',
      namespace: 'default',
      operation: 'CREATE',
      oldObject: null,
      dryRun: false,
      options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1', fieldValidation: 'Warn' },
    });
    expect(object).toMatchObject({
      kind: 'ConfigMap',
      apiVersion: 'v1',
      data: { x: '1' },
      metadata: { uid: at(made.body, 'metadata', 'uid') },
    });
  });

  test('about a scale has the Scale, which a webhook may change', async () => {
    const deployments = '/apis/apps/v1/namespaces/default/deployments';
    const template = {
      metadata: { labels: { app: 'web' } },
      spec: { containers: [{ name: 'web', image: 'web:1' }] },
    };
    const spec = { replicas: 1, selector: { matchLabels: { app: 'web' } }, template };
    await send('POST', deployments, { metadata: { name: 'scaled' }, spec });
    const rules = [
      { operations: ['*'], apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments/scale'] },
    ];
    webhooks.at('/scale', () => patchResponse([{ op: 'replace', path: '/spec/replicas', value: 4 }]));
    await configure('mutating', [webhook('/scale', { rules })]);
    await configure('validating', [webhook('/allow', { rules })]);
    const scale = { metadata: { name: 'scaled', namespace: 'default' }, spec: { replicas: 3 } };
    const answer = await send('PUT', `${deployments}/scaled/scale`, scale);
    expect(answer).toMatchObject({ status: 200, body: { kind: 'Scale', spec: { replicas: 4 } } });
    const requests = webhooks.asked.map(({ review }) => recordAt(review, 'request'));
    const kind = { group: 'autoscaling', version: 'v1', kind: 'Scale' };
    expect(requests).toMatchObject([
      { subResource: 'scale', kind, object: { spec: { replicas: 3 } }, oldObject: { spec: { replicas: 1 } } },
      {
        resource: { group: 'apps', version: 'v1', resource: 'deployments' },
        requestKind: kind,
        object: { kind: 'Scale', apiVersion: 'autoscaling/v1', spec: { replicas: 4 } },
      },
    ]);
    const stored = await send('GET', `${deployments}/scaled`);
    expect(at(stored.body, 'spec', 'replicas')).toBe(4);
    await send('DELETE', `${deployments}/scaled`);
  });

  test('has the old object of an update and of a delete', async () => {
    await create();
    await configure('validating', [webhook('/allow')]);
    await send('PUT', `${configMaps}/a`, { metadata: { name: 'a' }, data: { x: '2' } });
    await send('DELETE', `${configMaps}/a`);
    const requests = webhooks.asked.map(({ review }) => recordAt(review, 'request'));
    expect(
      requests.map((request) => [
        request['operation'],
        textAt(request, 'oldObject', 'data', 'x'),
        textAt(request, 'object', 'data', 'x'),
      ]),
    ).toEqual([
      ['UPDATE', '1', '2'],
      ['DELETE', '2', ''],
    ]);
    expect(requests.map((request) => textAt(request, 'options', 'kind'))).toEqual([
      'UpdateOptions',
      'DeleteOptions',
    ]);
  });

  test('about a new object has no name where one is to be generated, and later has it', async () => {
    await configure('mutating', [webhook('/mutating')]);
    await configure('validating', [webhook('/validating')]);
    const made = await send('POST', configMaps, { metadata: { generateName: 'x-' } });
    const names = webhooks.asked.map(({ review }) => at(review, 'request', 'name'));
    expect(names).toEqual([undefined, textAt(made.body, 'metadata', 'name')]);
  });

  test('is in v1beta1 where the webhook knows nothing newer', async () => {
    webhooks.at('/old', () => ({
      review: {
        kind: 'AdmissionReview',
        apiVersion: 'admission.k8s.io/v1beta1',
        response: { allowed: false },
      },
    }));
    await configure('validating', [webhook('/old', { admissionReviewVersions: ['v1beta1'] })]);
    expect((await create()).body['message']).toBe(
      'admission webhook "old.example.com" denied the request without explanation',
    );
    expect(webhooks.asked[0]?.review['apiVersion']).toBe('admission.k8s.io/v1beta1');
  });
});

describe('a validating webhook', () => {
  test('that denies is quoted', async () => {
    webhooks.at('/deny', () => ({
      response: {
        allowed: false,
        status: {
          code: 403,
          reason: 'Forbidden',
          message: 'no',
          details: { causes: [{ field: 'data', message: 'bad' }] },
        },
      },
    }));
    await configure('validating', [webhook('/deny')]);
    const { status, body } = await create();
    expect(status).toBe(403);
    expect(body).toMatchObject({
      reason: 'Forbidden',
      message: 'admission webhook "deny.example.com" denied the request: no',
      details: { causes: [{ field: 'data', message: 'bad' }] },
      code: 403,
    });
    expect((await send('GET', `${configMaps}/a`)).status).toBe(404);
  });

  test.each([
    [{ code: 200, message: 'x' }, 400, ': x'],
    [{ code: 9999, reason: 'Odd' }, 400, ': Odd'],
    [{}, 400, ' without explanation'],
  ])('that denies with %j is answered with %d', async (status, code, tail) => {
    webhooks.at('/deny', () => ({ response: { allowed: false, status } }));
    await configure('validating', [webhook('/deny')]);
    const answer = await create();
    expect([answer.status, answer.body['message']]).toEqual([
      code,
      `admission webhook "deny.example.com" denied the request${tail}`,
    ]);
  });

  test('may warn', async () => {
    webhooks.at('/warn', () => ({ response: { allowed: true, warnings: ['mind the gap'] } }));
    await configure('validating', [webhook('/warn')]);
    expect((await create()).warnings).toEqual(['mind the gap']);
  });

  test('that denies a delete keeps the object', async () => {
    await create();
    webhooks.at('/deny', () => ({ response: { allowed: false } }));
    await configure('validating', [
      webhook('/deny', { rules: [{ ...anyConfigMap[0], operations: ['DELETE'] }] }),
    ]);
    expect((await send('DELETE', `${configMaps}/a`)).status).toBe(400);
    expect((await send('GET', `${configMaps}/a`)).status).toBe(200);
    await send('DELETE', `${configurations}/validatingwebhookconfigurations/test`);
  });

  test('that denies a Service gives its address back', async () => {
    webhooks.at('/deny', () => ({ response: { allowed: false } }));
    await configure('validating', [
      webhook('/deny', { rules: [{ ...anyConfigMap[0], resources: ['services'] }] }),
    ]);
    const service = { metadata: { name: 's' }, spec: { clusterIP: '10.96.0.77', ports: [{ port: 80 }] } };
    expect((await send('POST', services, service)).status).toBe(400);
    await send('DELETE', `${configurations}/validatingwebhookconfigurations/test`);
    expect((await send('POST', services, service)).status).toBe(201);
    await send('DELETE', `${services}/s`);
  });

  test('sees a dry run only if it has no side effects', async () => {
    await configure('validating', [webhook('/allow', { sideEffects: 'NoneOnDryRun' })]);
    expect((await send('POST', configMaps, { metadata: { name: 'a' } }, { dryRun: 'All' })).status).toBe(201);
    expect(at(webhooks.asked[0]?.review, 'request', 'dryRun')).toBe(true);
  });
});

describe('a mutating webhook', () => {
  test('changes the object, which is defaulted and validated after it', async () => {
    const rules = [{ ...anyConfigMap[0], resources: ['services'], operations: ['CREATE'] }];
    webhooks.at('/patch', () =>
      patchResponse([{ op: 'add', path: '/spec/ports/-', value: { name: 'b', port: 81 } }]),
    );
    await configure('mutating', [webhook('/patch', { rules })]);
    const made = await send('POST', services, {
      metadata: { name: 's' },
      spec: { ports: [{ name: 'a', port: 80 }] },
    });
    expect(listAt(made.body, 'spec', 'ports')[1]).toEqual({
      name: 'b',
      protocol: 'TCP',
      port: 81,
      targetPort: 81,
    });
    await send('DELETE', `${services}/s`);
    webhooks.at('/patch', () => patchResponse([{ op: 'replace', path: '/spec/ports/0/port', value: 0 }]));
    const broken = await send('POST', services, { metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } });
    expect(broken.status).toBe(422);
    expect(broken.body['message']).toContain('spec.ports[0].port');
  });

  test('sees what those before it have done; those before are asked again if they want to', async () => {
    const labels = (request: unknown) => Object.keys(recordAt(request, 'object', 'metadata', 'labels'));
    const seen: string[][] = [];
    const add = (name: string) => (request: unknown) => {
      seen.push([name, ...labels(request)]);
      return patchResponse([{ op: 'add', path: `/metadata/labels/${name}`, value: 'x' }]);
    };
    webhooks.at('/one', add('one'));
    webhooks.at('/two', add('two'));
    webhooks.at('/three', add('three'));
    await configure('mutating', [webhook('/one', { reinvocationPolicy: 'IfNeeded' }), webhook('/two')]);
    await configure('mutating', [webhook('/three', { reinvocationPolicy: 'IfNeeded' })], 'zzz');
    const made = await create('a', { labels: { zero: 'x' } });
    expect(Object.keys(recordAt(made.body, 'metadata', 'labels'))).toEqual(['one', 'three', 'two', 'zero']);
    expect(seen).toEqual([
      ['one', 'zero'],
      ['two', 'one', 'zero'],
      ['three', 'one', 'two', 'zero'],
      ['one', 'one', 'three', 'two', 'zero'],
    ]);
  });

  test('sets fields without an owner: managers are recorded before admission', async () => {
    webhooks.at('/patch', () => patchResponse([{ op: 'add', path: '/data/y', value: '2' }]));
    await configure('mutating', [webhook('/patch')]);
    const { body } = await create();
    expect(body['data']).toEqual({ x: '1', y: '2' });
    const managers = JSON.stringify(at(body, 'metadata', 'managedFields'));
    expect(managers).toContain('f:x');
    expect(managers).not.toContain('f:y');
  });

  test.each([
    [
      [{ op: 'remove', path: '/data/none' }],
      'Internal error occurred: Unable to remove nonexistent key: none',
    ],
    [[{ op: 'replace', path: '/data/x', value: 5 }], 'Internal error occurred: '],
  ])('whose patch %j cannot be applied is a server error', async (patch, message) => {
    webhooks.at('/patch', () => patchResponse(patch));
    await configure('mutating', [webhook('/patch')]);
    const { status, body } = await create();
    expect(status).toBe(500);
    expect(body['message']).toContain(message);
  });

  test('cannot move the object to another namespace', async () => {
    webhooks.at('/patch', () =>
      patchResponse([{ op: 'replace', path: '/metadata/namespace', value: 'kube-system' }]),
    );
    await configure('mutating', [webhook('/patch')]);
    expect((await create()).body['message']).toBe(
      'the namespace of the provided object does not match the namespace sent on the request',
    );
  });

  test('cannot change what is deleted', async () => {
    await create();
    webhooks.at('/patch', () => patchResponse([{ op: 'add', path: '/data/y', value: '2' }]));
    await configure('mutating', [webhook('/patch')]);
    expect((await send('DELETE', `${configMaps}/a`)).body['message']).toBe(
      'Internal error occurred: admission webhook "patch.example.com" attempted to modify the object, which is not supported for this operation',
    );
    await send('DELETE', `${configurations}/mutatingwebhookconfigurations/test`);
  });

  test('is asked about custom objects, whose unknown fields are pruned', async () => {
    const definition = {
      metadata: { name: 'gadgets.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'gadgets', kind: 'Gadget' },
        versions: ['v1', 'v2'].map((name) => ({
          name,
          served: true,
          storage: name === 'v1',
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                spec: {
                  type: 'object',
                  properties: { a: { type: 'string' }, b: { type: 'integer', default: 7 } },
                },
              },
            },
          },
        })),
      },
    };
    await send('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
    const gadgets = '/apis/example.com/v2/namespaces/default/gadgets';
    await untilFound(server.client, gadgets);
    webhooks.at('/patch', () => patchResponse([{ op: 'add', path: '/spec', value: { a: 'x', unknown: 1 } }]));
    // Only v1 is named: matchPolicy Equivalent shows the object of v2 as one of v1.
    await configure('mutating', [
      webhook('/patch', {
        rules: [
          { operations: ['CREATE'], apiGroups: ['example.com'], apiVersions: ['v1'], resources: ['gadgets'] },
        ],
      }),
    ]);
    const made = await send('POST', gadgets, {
      apiVersion: 'example.com/v2',
      kind: 'Gadget',
      metadata: { name: 'g' },
    });
    expect(made.body).toMatchObject({ apiVersion: 'example.com/v2', spec: { a: 'x', b: 7 } });
    expect(recordAt(made.body, 'spec')).toEqual({ a: 'x', b: 7 });
    const request = recordAt(webhooks.asked[0]?.review, 'request');
    expect([
      textAt(request, 'resource', 'version'),
      textAt(request, 'requestResource', 'version'),
      textAt(request, 'object', 'apiVersion'),
    ]).toEqual(['v1', 'v2', 'example.com/v1']);
  });
});

describe('what is asked about', () => {
  test.each([
    ['another operation', { operations: ['UPDATE'] }],
    ['another group', { apiGroups: ['apps'] }],
    ['another version', { apiVersions: ['v2'] }],
    ['another resource', { resources: ['secrets'] }],
    ['a subresource', { resources: ['configmaps/status'] }],
    ['the cluster scope', { scope: 'Cluster' }],
  ])('rules for %s do not match', async (_name, change) => {
    webhooks.at('/deny', () => ({ response: { allowed: false } }));
    await configure('validating', [webhook('/deny', { rules: [{ ...anyConfigMap[0], ...change }] })]);
    expect((await create()).status).toBe(201);
    expect(webhooks.asked).toEqual([]);
  });

  test('rules with stars match subresources if they say so', async () => {
    await send('POST', services, { metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } });
    await configure('validating', [
      webhook('/allow', {
        rules: [{ operations: ['UPDATE'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/status'] }],
      }),
    ]);
    await call(server.client, 'PATCH', `${services}/s/status`, {
      body: { metadata: { annotations: { a: 'b' } } },
      contentType: 'application/merge-patch+json',
    });
    expect(webhooks.asked.map(({ review }) => at(review, 'request', 'subResource'))).toEqual(['status']);
    await send('DELETE', `${services}/s`);
  });

  test('selectors choose objects and namespaces', async () => {
    webhooks.at('/deny', () => ({ response: { allowed: false } }));
    await configure('validating', [
      webhook('/deny', { objectSelector: { matchLabels: { guarded: 'yes' } } }),
    ]);
    expect((await create('a')).status).toBe(201);
    expect((await create('b', { labels: { guarded: 'yes' } })).status).toBe(400);
    await send('DELETE', `${configurations}/validatingwebhookconfigurations/test`);
    await configure('validating', [
      webhook('/deny', {
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['default'] }],
        },
      }),
    ]);
    expect((await create('c')).status).toBe(201);
    expect(
      (await send('POST', '/api/v1/namespaces/kube-public/configmaps', { metadata: { name: 'c' } })).status,
    ).toBe(400);
  });

  test('webhook configurations are not, or a bad one could not be removed', async () => {
    webhooks.at('/deny', () => ({ response: { allowed: false } }));
    const everything = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] }];
    await configure('validating', [webhook('/deny', { rules: everything })]);
    expect((await create()).status).toBe(400);
    expect((await send('DELETE', `${configurations}/validatingwebhookconfigurations/test`)).status).toBe(200);
    expect((await create()).status).toBe(201);
  });
});

test('a question is answered though its configuration changes meanwhile', async () => {
  const asked = Promise.withResolvers<undefined>();
  const answer = Promise.withResolvers<undefined>();
  webhooks.at('/slow', () => {
    asked.resolve(undefined);
    return { response: { allowed: true }, after: answer.promise };
  });
  await configure('validating', [webhook('/slow')]);
  const made = create();
  await asked.promise;
  await send('DELETE', `${configurations}/validatingwebhookconfigurations/test`);
  answer.resolve(undefined);
  expect((await made).status).toBe(201);
});

describe('a webhook behind a Service', () => {
  const host = Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.family === 'IPv4' && !address.internal)?.address;
  const clientConfig = () => ({
    service: { namespace: 'default', name: 'hook', port: 8443, path: '/service' },
    caBundle: webhooks.caBundle,
  });

  test('is not asked where there is no Service', async () => {
    await configure('validating', [webhook('/service', { clientConfig: clientConfig() })]);
    expect((await create()).body['message']).toBe(
      'Internal error occurred: failed calling webhook "service.example.com": failed to call webhook: ' +
        'Post "https://hook.default.svc:8443/service?timeout=10s": service "hook" not found',
    );
  });

  test('is not asked where there is no endpoint', async () => {
    await send('POST', services, { metadata: { name: 'hook' }, spec: { ports: [{ port: 8443 }] } });
    await send('POST', '/api/v1/namespaces/default/endpoints', { metadata: { name: 'hook' } });
    await configure('validating', [webhook('/service', { clientConfig: clientConfig() })]);
    expect((await create()).body['message']).toContain(': no endpoints available for service "hook"');
    await send('DELETE', `${services}/hook`);
  });

  test('is asked under the name of the Service, at the address of an ExternalName', async () => {
    const spec = { type: 'ExternalName', externalName: 'localhost' };
    await send('POST', services, { metadata: { name: 'hook' }, spec });
    const service = { ...clientConfig().service, port: webhooks.port };
    await configure('validating', [webhook('/service', { clientConfig: { ...clientConfig(), service } })]);
    const made = await create();
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    expect(webhooks.asked.map(({ path }) => path)).toEqual(['/service']);
    await send('DELETE', `${services}/hook`);
  });

  test.skipIf(host === undefined)('is asked at an endpoint of the Service', async () => {
    // The webhook of this test listens on a loopback address, which no slice may have: only the path is looked at.
    await send('POST', services, { metadata: { name: 'hook' }, spec: { ports: [{ port: 8443 }] } });
    await send('POST', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
      metadata: { name: 'hook-1', labels: { 'kubernetes.io/service-name': 'hook' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [host] }],
      ports: [{ port: webhooks.port }],
    });
    await configure('validating', [webhook('/service', { clientConfig: clientConfig() })]);
    expect((await create()).body['message']).toContain(
      `dial tcp ${host}:${webhooks.port}: connect: connection refused`,
    );
    await send('DELETE', `${services}/hook`);
  });
});

test('a webhook for everything is not asked about reviews', async () => {
  const rules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }];
  webhooks.at('/deny', () => ({ response: { allowed: false } }));
  await configure('validating', [webhook('/deny', { rules })]);
  expect((await create()).status).toBe(400);
  const spec = { resourceAttributes: { verb: 'get', resource: 'pods' } };
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
  expect((await send('POST', path, { spec })).status).toBe(201);
});

describe('subresources', () => {
  const pods = '/api/v1/namespaces/default/pods';
  const rules = (resource: string, operation = 'CREATE') => ({
    rules: [{ operations: [operation], apiGroups: [''], apiVersions: ['v1'], resources: [resource] }],
  });
  const pod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p' } };
  const binding = { metadata: { name: 'p' }, target: { kind: 'Node', name: 'n' } };
  const denied = () => ({ response: { allowed: false, status: { code: 403, message: 'not now' } } });

  afterEach(async () => send('DELETE', `${pods}/p`, { gracePeriodSeconds: 0 }));

  test.each<[string, string, object, object]>([
    ['pods/eviction', `${pods}/p/eviction`, eviction, { group: 'policy', version: 'v1', kind: 'Eviction' }],
    ['pods/binding', `${pods}/p/binding`, binding, { group: '', version: 'v1', kind: 'Binding' }],
    [
      'serviceaccounts/token',
      '/api/v1/namespaces/default/serviceaccounts/robot/token',
      { spec: { audiences: [] } },
      { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' },
    ],
  ])('%s can be refused', async (resource, path, body, kind) => {
    await send('POST', pods, pod);
    await send('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'robot' } });
    webhooks.at('/deny', denied);
    await configure('validating', [webhook('/deny', rules(resource))]);
    const answer = await send('POST', path, body);
    expect(answer.status).toBe(403);
    expect(textAt(answer.body, 'message')).toBe(
      'admission webhook "deny.example.com" denied the request: not now',
    );
    const request = recordAt(webhooks.asked[0]?.review, 'request');
    expect(request).toMatchObject({ kind, requestKind: kind, subResource: resource.split('/')[1] });
    expect(textAt(request, 'object', 'kind')).toBe(recordAt({ kind }, 'kind')['kind']);
  });

  test('what is posted can be changed', async () => {
    await send('POST', pods, pod);
    webhooks.at('/mutate', () => patchResponse([{ op: 'replace', path: '/target/name', value: 'other' }]));
    await configure('mutating', [webhook('/mutate', rules('pods/binding'))]);
    expect((await send('POST', `${pods}/p/binding`, binding)).status).toBe(201);
    expect(textAt((await send('GET', `${pods}/p`)).body, 'spec', 'nodeName')).toBe('other');
  });

  test('are asked about connections with their options', async () => {
    await send('POST', pods, pod);
    webhooks.at('/deny', denied);
    await configure('validating', [webhook('/deny', rules('pods/attach', 'CONNECT'))]);
    const answer = await send('POST', `${pods}/p/attach`, undefined, { stdin: 'true', container: 'c' });
    expect(answer.status).toBe(403);
    expect(recordAt(webhooks.asked[0]?.review, 'request')).toMatchObject({
      operation: 'CONNECT',
      subResource: 'attach',
      object: { kind: 'PodAttachOptions', apiVersion: 'v1', stdin: true, container: 'c' },
      oldObject: null,
      options: null,
    });
  });
});

describe('matchConditions', () => {
  const only = (...expressions: readonly string[]) => ({
    matchConditions: expressions.map((expression, i) => ({ name: `c${i}`, expression })),
  });

  test('say about which writes a webhook is asked', async () => {
    const conditions = only(
      "request.operation != 'DELETE' && !('system:nodes' in request.userInfo.groups)",
      "object.data.x == '1' && (oldObject == null || oldObject.data.x != object.data.x)",
      "request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps' && !request.dryRun",
    );
    await configure('validating', [webhook('/allow', conditions)]);
    await send('POST', configMaps, { metadata: { name: 'other' }, data: { x: '2' } });
    expect(webhooks.asked).toHaveLength(0);
    await create();
    expect(webhooks.asked).toHaveLength(1);
    await send('DELETE', `${configMaps}/a`);
    expect(webhooks.asked).toHaveLength(1);
  });

  test('that cannot be evaluated refuse the write, unless failures are ignored', async () => {
    const broken = only('object.data.missing.size() > 0');
    await configure('validating', [webhook('/allow', broken)]);
    const answer = await create();
    expect(answer.status).toBe(403);
    expect(textAt(answer.body, 'message')).toBe(
      `configmaps "a" is forbidden: expression 'object.data.missing.size() > 0' resulted in error: no such key: missing`,
    );
    await send('DELETE', `${configurations}/validatingwebhookconfigurations`);
    await configure('validating', [webhook('/allow', { ...broken, failurePolicy: 'Ignore' })]);
    expect((await create()).status).toBe(201);
    expect(webhooks.asked).toHaveLength(0);
  });

  test('one that is false makes up for one that fails', async () => {
    await configure('validating', [webhook('/allow', only('object.data.missing == 1', 'false'))]);
    expect((await create()).status).toBe(201);
    expect(webhooks.asked).toHaveLength(0);
  });

  test('must compile, and have names of their own', async () => {
    const answer = await send('POST', `${configurations}/validatingwebhookconfigurations`, {
      metadata: { name: 'test' },
      webhooks: [
        webhook('/allow', {
          matchConditions: [
            { name: 'a', expression: 'request.other' },
            { name: 'a', expression: 'request.name' },
            { name: '', expression: ' ' },
          ],
        }),
      ],
    });
    expect(answer.status).toBe(422);
    const at = 'webhooks[0].matchConditions';
    expect(
      listAt(answer.body, 'details', 'causes').map((c) => `${textAt(c, 'field')}: ${textAt(c, 'message')}`),
    ).toEqual([
      `${at}[0].expression: Invalid value: "request.other": compilation failed: ERROR: <input>:1:8: undefined field 'other'\n | request.other\n | .......^`,
      `${at}[1].expression: Invalid value: "request.name": must evaluate to bool but got string`,
      `${at}[1].name: Duplicate value: "a"`,
      `${at}[2].expression: Required value`,
      `${at}[2].name: Required value`,
    ]);
  });
});
