import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call } from '../support/test-server.ts';

const policies = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
const bindings = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';
const configMaps = '/api/v1/namespaces/default/configmaps';

let server: TestServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(async () => server.stop());
afterEach(async () => {
  for (const path of [bindings, policies, configMaps]) await send('DELETE', path);
});

async function send(method: string, path: string, body?: unknown): Promise<Answer> {
  return call(server.client, method, path, { body });
}

const onConfigMaps = {
  resourceRules: [
    { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['configmaps'] },
  ],
};

function policy(spec: object): object {
  return { metadata: { name: 'sizes' }, spec: { matchConstraints: onConfigMaps, ...spec } };
}

async function enforce(spec: object, binding: object = {}): Promise<void> {
  const made = await send('POST', policies, policy(spec));
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  const bound = await send('POST', bindings, {
    metadata: { name: 'everywhere' },
    spec: { policyName: 'sizes', validationActions: ['Deny'], ...binding },
  });
  expect(bound.status, JSON.stringify(bound.body)).toBe(201);
}

async function create(size: string, metadata: object = {}): Promise<Answer> {
  return send('POST', configMaps, { metadata: { name: 'c', ...metadata }, data: { size } });
}

const small = { validations: [{ expression: 'int(object.data.size) <= 5' }] };

describe('a policy that is bound', () => {
  test('refuses what breaks it', async () => {
    await enforce(small);
    const answer = await create('6');
    const why =
      "ValidatingAdmissionPolicy 'sizes' with binding 'everywhere' denied request: failed expression: int(object.data.size) <= 5";
    expect(answer).toMatchObject({
      status: 422,
      body: {
        reason: 'Invalid',
        message: `configmaps "c" is forbidden: ${why}`,
        details: { name: 'c', kind: 'configmaps', causes: [{ message: why }] },
      },
    });
    expect((await create('5')).status).toBe(201);
  });

  test('says why, with a reason of its own', async () => {
    const validation = {
      expression: 'int(object.data.size) <= 5',
      messageExpression: "'%s is too large in %s'.format([object.data.size, namespaceObject.metadata.name])",
      reason: 'Forbidden',
    };
    await enforce({ validations: [validation] });
    const answer = await create('6');
    expect(answer.status).toBe(403);
    expect(textAt(answer.body, 'message')).toContain('denied request: 6 is too large in default');
  });

  test('asks what the requester, or a service account, may do', async () => {
    await enforce({
      validations: [
        {
          expression:
            "authorizer.group('').resource('configmaps').namespace('default').check('get').allowed()",
        },
        { expression: "authorizer.path('/healthz').check('get').allowed()" },
      ],
    });
    expect((await create('6')).status).toBe(201);
  });

  test('refuses when an audit annotation cannot be made', async () => {
    const annotation = (valueExpression: string) => ({
      auditAnnotations: [{ key: 'size', valueExpression }],
    });
    await enforce(annotation("'size is ' + object.data.size"));
    expect((await create('6')).status).toBe(201);
    await send('DELETE', `${bindings}/everywhere`);
    await send('DELETE', `${policies}/sizes`);
    await enforce(annotation('object.data.missing'), { validationActions: ['Warn'] });
    const answer = await send('POST', configMaps, { metadata: { name: 'd' }, data: { size: '1' } });
    expect(answer.status).toBe(422);
    expect(textAt(answer.body, 'message')).toContain('no such key: missing');
  });

  test('only warns where its binding says so', async () => {
    await enforce(small, { validationActions: ['Warn'] });
    const answer = await create('6');
    expect(answer.status).toBe(201);
    expect(answer.warnings).toEqual([
      "Validation failed for ValidatingAdmissionPolicy 'sizes' with binding 'everywhere': failed expression: int(object.data.size) <= 5",
    ]);
  });

  test('sees the stored object of an update', async () => {
    await enforce({
      validations: [
        { expression: 'oldObject == null || object.data.size >= oldObject.data.size', message: 'shrinks' },
      ],
    });
    await create('3');
    const smaller = { metadata: { name: 'c' }, data: { size: '2' } };
    expect((await send('PUT', `${configMaps}/c`, smaller)).status).toBe(422);
    expect((await send('PUT', `${configMaps}/c`, { ...smaller, data: { size: '4' } })).status).toBe(200);
  });

  test('computes with variables, each once it is read', async () => {
    await enforce({
      variables: [
        { name: 'size', expression: 'int(object.data.size)' },
        { name: 'double', expression: 'variables.size * 2' },
        { name: 'broken', expression: 'object.data.missing' },
      ],
      validations: [{ expression: 'variables.double < 10' }],
    });
    expect((await create('5')).status).toBe(422);
    expect((await create('4')).status).toBe(201);
  });

  test('refuses what it cannot evaluate, unless failures are ignored', async () => {
    const validations = [{ expression: "object.data.missing == 'x'" }];
    await enforce({ validations });
    expect(textAt((await create('1')).body, 'message')).toContain(
      "denied request: expression 'object.data.missing == 'x'' resulted in error: no such key: missing",
    );
    await send('DELETE', `${bindings}/everywhere`);
    await send('DELETE', `${policies}/sizes`);
    await enforce({ validations, failurePolicy: 'Ignore' });
    expect((await create('1')).status).toBe(201);
  });

  test.each<[string, object, object]>([
    [
      'whose conditions do not hold',
      { matchConditions: [{ name: 'x', expression: "object.data.size == '7'" }] },
      {},
    ],
    [
      'whose binding looks elsewhere',
      {},
      { matchResources: { namespaceSelector: { matchLabels: { none: 'x' } } } },
    ],
    [
      'whose binding names other objects',
      {},
      { matchResources: { objectSelector: { matchLabels: { none: 'x' } } } },
    ],
    [
      'which leaves the object out',
      {
        matchConstraints: {
          ...onConfigMaps,
          excludeResourceRules: [{ ...onConfigMaps.resourceRules[0], resourceNames: ['c'] }],
        },
      },
      {},
    ],
  ])('is not asked %s', async (_name, spec, binding) => {
    await enforce({ ...small, ...spec }, binding);
    expect((await create('6')).status).toBe(201);
  });

  test('takes its parameters from the object that its binding names', async () => {
    const spec = {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      matchConditions: [{ name: 'x', expression: "object.metadata.name != 'limits'" }],
      validations: [{ expression: 'int(object.data.size) <= int(params.data.max)' }],
    };
    const paramRef = { name: 'limits', namespace: 'default', parameterNotFoundAction: 'Deny' };
    await enforce(spec, { paramRef });
    expect(textAt((await create('6')).body, 'message')).toContain('no params found for policy binding');
    const { body: bound } = await send('GET', `${bindings}/everywhere`);
    await send('DELETE', `${bindings}/everywhere`);
    await send('POST', configMaps, { metadata: { name: 'limits' }, data: { max: '10' } });
    const { metadata: _metadata, ...rest } = bound;
    await send('POST', bindings, { ...rest, metadata: { name: 'everywhere' } });
    expect((await create('11')).status).toBe(422);
    expect((await create('10')).status).toBe(201);
  });

  test('lets pass what it has no parameters for, where failurePolicy is Ignore', async () => {
    const paramRef = { name: 'limits', namespace: 'default', parameterNotFoundAction: 'Deny' };
    const spec = { ...small, paramKind: { apiVersion: 'v1', kind: 'ConfigMap' }, failurePolicy: 'Ignore' };
    await enforce(spec, { paramRef });
    expect((await create('6')).status).toBe(201);
  });
});

test('a policy without a binding refuses nothing', async () => {
  await send('POST', policies, policy(small));
  expect((await create('6')).status).toBe(201);
});

test('a policy must say what it is about, in expressions that compile', async () => {
  const answer = await send('POST', policies, {
    metadata: { name: 'bad' },
    spec: {
      variables: [{ name: 'v', expression: '1 +' }],
      validations: [
        { expression: 'request.other' },
        { expression: '1', messageExpression: '2', reason: 'Other' },
        { expression: 'variables.none' },
      ],
    },
  });
  expect(answer.status).toBe(422);
  const fields = listAt(answer.body, 'details', 'causes').map((cause) => textAt(cause, 'field'));
  expect(fields).toEqual([
    'spec.matchConstraints',
    'spec.variables[0].expression',
    'spec.validations[0].expression',
    'spec.validations[1].expression',
    'spec.validations[1].messageExpression',
    'spec.validations[1].reason',
    'spec.validations[2].expression',
  ]);
});
