import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { at, listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call } from '../support/test-server.ts';

const group = '/apis/admissionregistration.k8s.io/v1';
const policies = `${group}/mutatingadmissionpolicies`;
const bindings = `${group}/mutatingadmissionpolicybindings`;
const deployments = '/apis/apps/v1/namespaces/default/deployments';
const configMaps = '/api/v1/namespaces/default/configmaps';

let server: TestServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(async () => server.stop());
afterEach(async () => {
  for (const path of [bindings, policies, deployments, configMaps]) await send('DELETE', path);
});

async function send(method: string, path: string, body?: unknown): Promise<Answer> {
  return call(server.client, method, path, { body });
}

function constraints(apiGroup: string, resource: string): object {
  const rule = { apiGroups: [apiGroup], apiVersions: ['v1'], operations: ['CREATE'], resources: [resource] };
  return { resourceRules: [rule] };
}

const onDeployments = constraints('apps', 'deployments');
const onConfigMaps = constraints('', 'configmaps');

function apply(expression: string): object {
  return { patchType: 'ApplyConfiguration', applyConfiguration: { expression } };
}

function jsonPatch(expression: string): object {
  return { patchType: 'JSONPatch', jsonPatch: { expression } };
}

async function define(name: string, spec: object): Promise<Answer> {
  const whole = { matchConstraints: onConfigMaps, reinvocationPolicy: 'Never', ...spec };
  return send('POST', policies, { metadata: { name }, spec: whole });
}

async function enforce(name: string, spec: object, binding: object = {}): Promise<void> {
  const made = await define(name, spec);
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  const bound = await send('POST', bindings, { metadata: { name }, spec: { policyName: name, ...binding } });
  expect(bound.status, JSON.stringify(bound.body)).toBe(201);
}

const pod = {
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'web', image: 'web:1' }] },
};

async function deploy(): Promise<Answer> {
  const spec = { selector: { matchLabels: { app: 'web' } }, template: pod };
  return send('POST', deployments, { metadata: { name: 'web' }, spec });
}

async function configMap(data: object = { size: '1' }): Promise<Answer> {
  return send('POST', configMaps, { metadata: { name: 'c' }, data });
}

describe('an apply configuration', () => {
  test('is merged into the object, lists by their keys', async () => {
    await enforce('sidecar', {
      matchConstraints: onDeployments,
      mutations: [
        apply(`Object{
          spec: Object.spec{
            replicas: 3,
            template: Object.spec.template{
              spec: Object.spec.template.spec{
                containers: [
                  Object.spec.template.spec.containers{name: "proxy", image: "proxy:" + string(1 + 1)},
                  Object.spec.template.spec.containers{name: "web", imagePullPolicy: "Always"}
                ]
              }
            }
          }
        }`),
      ],
    });
    const { status, body } = await deploy();
    expect(status).toBe(201);
    expect(at(body, 'spec', 'replicas')).toBe(3);
    expect(listAt(body, 'spec', 'template', 'spec', 'containers')).toMatchObject([
      { name: 'proxy', image: 'proxy:2', terminationMessagePath: '/dev/termination-log' },
      { name: 'web', image: 'web:1', imagePullPolicy: 'Always' },
    ]);
  });

  test('may not replace what is one whole', async () => {
    await enforce('selector', {
      matchConstraints: onDeployments,
      mutations: [
        apply('Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {"a": "b"}}}}'),
      ],
    });
    const answer = await deploy();
    expect(answer.status).toBe(403);
    expect(textAt(answer.body, 'message')).toBe(
      "policy 'selector' with binding 'selector' denied request: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector",
    );
  });

  test.each([
    ['Object{spec: Object.spec{bogus: 1}}', '.spec.bogus: field not declared in schema'],
    [
      'Object{spec: Object.wrong{replicas: 1}}',
      'type mismatch: unexpected type name "Object.wrong", expected "Object.spec", which matches field name path from root Object type',
    ],
  ])('is refused where it is none: %s', async (expression, why) => {
    await enforce('wrong', { matchConstraints: onDeployments, mutations: [apply(expression)] });
    const answer = await deploy();
    expect(answer).toMatchObject({ status: 403, body: { reason: 'Invalid' } });
    expect(textAt(answer.body, 'message')).toContain(why);
  });
});

describe('a JSON patch', () => {
  test('changes the object, one mutation after the other', async () => {
    await enforce('labels', {
      variables: [{ name: 'key', expression: "'example.com/a'" }],
      mutations: [
        jsonPatch(`[
          JSONPatch{op: "add", path: "/metadata/labels", value: {}},
          JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey(variables.key), value: "x"}
        ]`),
        jsonPatch('has(object.metadata.labels) ? [JSONPatch{op: "remove", path: "/data/size"}] : []'),
      ],
    });
    const { body } = await configMap({ size: '1', keep: 'y' });
    expect(body).toMatchObject({ metadata: { labels: { 'example.com/a': 'x' } }, data: { keep: 'y' } });
    expect(at(body, 'data', 'size')).toBeUndefined();
  });

  test('whose test does not hold changes nothing', async () => {
    await enforce('tested', {
      mutations: [
        jsonPatch(
          '[JSONPatch{op: "test", path: "/data/size", value: "2"}, JSONPatch{op: "replace", path: "/data/size", value: "3"}]',
        ),
      ],
    });
    expect((await configMap()).body).toMatchObject({ data: { size: '1' } });
  });

  test('that cannot be applied is refused, unless failures are ignored', async () => {
    const mutations = [jsonPatch('[JSONPatch{op: "remove", path: "/data/missing"}]')];
    await enforce('broken', { mutations });
    const answer = await configMap();
    expect(answer.status).toBe(403);
    expect(textAt(answer.body, 'message')).toContain(
      "policy 'broken' with binding 'broken' denied request: ",
    );
    await send('DELETE', `${policies}/broken`);
    expect((await configMap()).status).toBe(201);
    await send('DELETE', `${bindings}/broken`);
    await enforce('broken', { mutations, failurePolicy: 'Ignore' });
    await send('DELETE', configMaps);
    expect((await configMap()).status).toBe(201);
  });
});

describe('policies', () => {
  const append = (letter: string) => [
    jsonPatch(`[JSONPatch{op: "replace", path: "/data/size", value: object.data.size + "${letter}"}]`),
  ];

  test('are asked by their names, and once more when they want to and a later one has changed the object', async () => {
    await enforce('b', { mutations: append('b') });
    await enforce('a', { mutations: append('a'), reinvocationPolicy: 'IfNeeded' });
    expect((await configMap({ size: '' })).body).toMatchObject({ data: { size: 'aba' } });
  });

  test('see parameters and what the requester may do', async () => {
    await send('POST', configMaps, { metadata: { name: 'params' }, data: { letter: 'p' } });
    await enforce(
      'params',
      {
        paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
        matchConditions: [
          { name: 'other', expression: "object.metadata.name != 'params' && variables.mayDelete" },
        ],
        variables: [
          { name: 'mayDelete', expression: "authorizer.requestResource.check('delete').allowed()" },
        ],
        mutations: [jsonPatch('[JSONPatch{op: "replace", path: "/data/size", value: params.data.letter}]')],
      },
      { paramRef: { name: 'params', namespace: 'default', parameterNotFoundAction: 'Deny' } },
    );
    expect((await configMap()).body).toMatchObject({ data: { size: 'p' } });
    await send('DELETE', `${configMaps}/params`);
    const refused = await send('POST', configMaps, { metadata: { name: 'd' } });
    expect(textAt(refused.body, 'message')).toContain(
      'failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction',
    );
  });

  test('without a binding change nothing', async () => {
    await define('unbound', { mutations: append('x') });
    expect((await configMap()).body).toMatchObject({ data: { size: '1' } });
  });
});

describe('a policy is refused', () => {
  test.each<[string, object, string]>([
    ['without mutations', {}, 'spec.mutations'],
    [
      'without a reinvocationPolicy',
      { mutations: [apply('Object{}')], reinvocationPolicy: undefined },
      'spec.reinvocationPolicy',
    ],
    ['with another type', { mutations: [apply('1')] }, 'must evaluate to Object but got int'],
    [
      'with an unknown field',
      { mutations: [jsonPatch('[JSONPatch{oops: "add"}]')] },
      "undefined field 'oops'",
    ],
    [
      'with a field of another type',
      { mutations: [jsonPatch('[JSONPatch{op: 1}]')] },
      "expected type of field 'op' is 'string' but provided type is 'int'",
    ],
    [
      'with an object of no type',
      { mutations: [apply('Objekt{}')] },
      "undeclared reference to 'Objekt' (in container '')",
    ],
    [
      'with parameters it has not',
      { mutations: [apply('Object{data: params.x}')] },
      "undeclared reference to 'params'",
    ],
    ['with a patch of no kind', { mutations: [{ patchType: 'Merge' }] }, 'spec.mutations[0].patchType'],
  ])('%s', async (_name, spec, why) => {
    const answer = await define('wrong', spec);
    expect(answer.status).toBe(422);
    expect(textAt(answer.body, 'message')).toContain(why);
  });
});
