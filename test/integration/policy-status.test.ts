import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Transport } from '../../src/client/transport.ts';
import { policyStatusController } from '../../src/controllers/policy-status/controller.ts';
import { runControllers } from '../../src/controllers/run.ts';
import { isRecord } from '../../src/objects/json.ts';
import { StatusError } from '../../src/objects/status.ts';
import { lazyTypeChecker } from '../../src/registry/admissionregistration/policy/lazy-type-checker.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call } from '../support/test-server.ts';
import { untilObject } from '../support/with-controllers.ts';

const policies = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

let server: TestServer;
beforeAll(async () => {
  server = await startApiServer({ controllers: ['validatingadmissionpolicy-status-controller'] });
});
afterAll(async () => server.stop());

async function send(method: string, path: string, body?: unknown): Promise<Answer> {
  return call(server.client, method, path, { body });
}

/** The status of a policy once its generation was looked at. */
async function checked(name: string, generation = 1): Promise<unknown> {
  const body = await untilObject(
    server.client,
    `${policies}/${name}`,
    ({ status }) => isRecord(status) && status['observedGeneration'] === generation,
  );
  return body['status'];
}

async function create(name: string, rule: object, spec: object): Promise<unknown> {
  const matchConstraints = { resourceRules: [{ operations: ['CREATE', 'UPDATE'], ...rule }] };
  const made = await send('POST', policies, { metadata: { name }, spec: { matchConstraints, ...spec } });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  return checked(name);
}

const deployments = { apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'] };

test('does not say that a policy was checked while a group that it is about cannot be read', async () => {
  const alone = await startApiServer();
  let left = 3;
  const { client } = alone;
  const transport: Transport = {
    server: client.server,
    request: async (method, path, options) => {
      // A server whose groups are read one by one.
      const sent = path === '/api' || path === '/apis' ? { ...options, headers: {} } : options;
      if (path !== '/apis/apps/v1' || left-- <= 0) return client.request(method, path, sent);
      throw new StatusError(503, 'ServiceUnavailable', 'broken by the test');
    },
    stream: (path, options) => client.stream(path, options),
    close: () => Promise.resolve(),
  };
  const running = runControllers({
    transport,
    controllers: [policyStatusController({ transport, checkTypes: lazyTypeChecker })],
    log: pino({ enabled: false }),
  });
  try {
    const matchConstraints = { resourceRules: [{ operations: ['CREATE'], ...deployments }] };
    const validations = [{ expression: "object.spec.replicas > '1'" }];
    const made = await call(client, 'POST', policies, {
      body: { metadata: { name: 'unread' }, spec: { matchConstraints, validations } },
    });
    expect(made.status, JSON.stringify(made.body)).toBe(201);
    const { status } = await untilObject(
      client,
      `${policies}/unread`,
      ({ status }) => isRecord(status) && status['observedGeneration'] === 1,
    );
    expect(status).toMatchObject({
      typeChecking: { expressionWarnings: [{ fieldRef: 'spec.validations[0].expression' }] },
    });
    expect(left).toBeLessThanOrEqual(0);
  } finally {
    await running.stop();
    await alone.stop();
  }
});

/** The calls of test/e2e/apimachinery/validatingadmissionpolicy.go in Kubernetes. */
describe('the status of a ValidatingAdmissionPolicy', () => {
  test('says what its expressions get wrong about a built-in kind ("should type check validation expressions")', async () => {
    const status = await create('types', deployments, {
      validations: [
        {
          expression: "object.spec.replicas > '1'",
          messageExpression: "'wants replicas > 1, got ' + object.spec.replicas",
        },
        {
          expression: 'object.spec.replicas > 10',
          messageExpression: "'wants replicas > 10, got ' + string(object.spec.replicas)",
        },
      ],
    });
    expect(status).toEqual({
      observedGeneration: 1,
      typeChecking: {
        expressionWarnings: [
          {
            fieldRef: 'spec.validations[0].expression',
            warning:
              "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'\n | object.spec.replicas > '1'\n | .....................^\n",
          },
          {
            fieldRef: 'spec.validations[0].messageExpression',
            warning:
              "apps/v1, Kind=Deployment: ERROR: <input>:1:28: found no matching overload for '_+_' applied to '(string, int)'\n | 'wants replicas > 1, got ' + object.spec.replicas\n | ...........................^\n",
          },
        ],
      },
    });
  });

  test('says so of custom resources ("should type check a CRD")', async () => {
    const schema = {
      type: 'object',
      properties: {
        spec: {
          type: 'object',
          properties: { replicas: { type: 'integer' }, image: { type: 'string' } },
        },
      },
    };
    const made = await send('POST', definitions, {
      metadata: { name: 'crontabs.stable.example.com' },
      spec: {
        group: 'stable.example.com',
        names: { plural: 'crontabs', singular: 'crontab', kind: 'CronTab' },
        scope: 'Namespaced',
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      },
    });
    expect(made.status).toBe(201);
    await untilObject(server.client, '/openapi/v3/apis/stable.example.com/v1', (_body, code) => code === 200);
    const rule = { apiGroups: ['stable.example.com'], apiVersions: ['v1'], resources: ['crontabs'] };
    const status = await create('crontabs', rule, {
      validations: [{ expression: "object.spec.replicas > '1'" }, { expression: 'object.spec.image == 5' }],
    });
    expect(status).toMatchObject({
      typeChecking: {
        expressionWarnings: [
          {
            fieldRef: 'spec.validations[0].expression',
            warning: expect.stringContaining('(int, string)') as string,
          },
          {
            fieldRef: 'spec.validations[1].expression',
            warning: expect.stringContaining('(string, int)') as string,
          },
        ],
      },
    });
  });

  test('has nothing to say of what fits: metadata, quantities, numbers or names of ports, variables, parameters', async () => {
    const rule = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods', 'services'] };
    const status = await create('fits', rule, {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      variables: [{ name: 'app', expression: "object.metadata.labels['app']" }],
      validations: [
        {
          expression: "variables.app == params.data['app'] && object.metadata.name.startsWith(variables.app)",
        },
        { expression: 'object.metadata.creationTimestamp < timestamp("2030-01-01T00:00:00Z")' },
        { expression: "request.userInfo.username != '' && namespaceObject.metadata.name != 'default'" },
        { expression: "authorizer.requestResource.check('create').allowed()" },
      ],
    });
    expect(status).toEqual({ observedGeneration: 1, typeChecking: {} });
  });

  test('names each kind that does not fit, and follows each change of the policy', async () => {
    const rule = {
      apiGroups: ['apps'],
      apiVersions: ['v1'],
      resources: ['deployments', 'statefulsets', 'daemonsets'],
    };
    const status = await create('several', rule, {
      validations: [{ expression: 'object.spec.replicas > 1' }],
    });
    expect(status).toMatchObject({
      typeChecking: {
        expressionWarnings: [
          {
            warning:
              "apps/v1, Kind=DaemonSet: ERROR: <input>:1:12: undefined field 'replicas'\n | object.spec.replicas > 1\n | ...........^\n",
          },
        ],
      },
    });
    const path = `${policies}/several`;
    const { body } = await send('GET', path);
    const spec = {
      ...Object(body['spec']),
      validations: [{ expression: 'has(object.spec.selector)' }],
    } as object;
    expect((await send('PUT', path, { ...body, spec })).status).toBe(200);
    // Apply takes what it owned with its struct.
    expect(await checked('several', 2)).toEqual({ observedGeneration: 2 });
  });

  test('has no kinds to check where rules have wildcards', async () => {
    const rule = { apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] };
    const status = await create('all', rule, { validations: [{ expression: "object.nothing > '1'" }] });
    expect(status).toEqual({ observedGeneration: 1, typeChecking: {} });
  });
});
