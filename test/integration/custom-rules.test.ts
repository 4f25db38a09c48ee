import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call, untilFound } from '../support/test-server.ts';

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const routes = '/apis/routing.example.com/v1/namespaces/default/routes';

/** A definition in the manner of Gateway API's HTTPRoute, with rules at every level. */
const routeSchema = {
  type: 'object',
  'x-kubernetes-validations': [
    { rule: 'size(self.metadata.name) <= 20', message: 'the name is used in labels: at most 20 characters' },
  ],
  properties: {
    spec: {
      type: 'object',
      required: ['parentRef'],
      'x-kubernetes-validations': [
        {
          rule: 'self.parentRef == oldSelf.parentRef',
          message: 'parentRef is immutable',
          reason: 'FieldValueForbidden',
          fieldPath: '.parentRef',
        },
        {
          rule: "!has(self.timeout) || self.timeout <= duration('1h')",
          messageExpression: "'timeout %s is more than 1h'.format([string(self.timeout)])",
        },
      ],
      properties: {
        parentRef: { type: 'object', properties: { name: { type: 'string' } } },
        timeout: { type: 'string', format: 'duration' },
        hostnames: {
          type: 'array',
          maxItems: 16,
          items: {
            type: 'string',
            'x-kubernetes-validations': [{ rule: '!isIP(self)', message: 'must not be an IP address' }],
          },
        },
        rules: {
          type: 'array',
          maxItems: 16,
          'x-kubernetes-validations': [
            {
              rule: 'self.all(l1, !has(l1.name) || self.exists_one(l2, has(l2.name) && l1.name == l2.name))',
              message: 'Rule name must be unique within the route',
            },
          ],
          items: {
            type: 'object',
            properties: {
              name: { type: 'string', maxLength: 63 },
              type: { type: 'string', enum: ['Exact', 'PathPrefix'], default: 'PathPrefix' },
              path: { type: 'string', maxLength: 1024, default: '/' },
              port: { 'x-kubernetes-int-or-string': true, maxLength: 15 },
            },
            'x-kubernetes-validations': [
              {
                rule: "(self.type in ['Exact', 'PathPrefix']) ? self.path.startsWith('/') : true",
                message: "path must be an absolute path and start with '/'",
              },
              {
                rule: "!has(self.port) || (type(self.port) == int ? self.port > 0 && self.port < 65536 : self.port.matches('^[a-z]+$'))",
              },
            ],
          },
        },
      },
    },
  },
};

let server: TestServer;
beforeAll(async () => {
  server = await startApiServer();
  await send('POST', definitions, definition('routes', 'Route', routeSchema));
  await untilFound(server.client, routes);
});
afterAll(async () => server.stop());

async function send(method: string, path: string, body?: unknown): Promise<Answer> {
  const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  return call(server.client, method, path, { body, contentType });
}

function definition(plural: string, kind: string, openAPIV3Schema: object): object {
  return {
    metadata: { name: `${plural}.routing.example.com` },
    spec: {
      group: 'routing.example.com',
      scope: 'Namespaced',
      names: { plural, kind },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  };
}

function route(name: string, spec: object): object {
  const full = { parentRef: { name: 'gateway' }, ...spec };
  return { apiVersion: 'routing.example.com/v1', kind: 'Route', metadata: { name }, spec: full };
}

/** The causes of a 422, as kubectl shows them. */
function causes({ body }: Answer): string[] {
  return listAt(body, 'details', 'causes').map(
    (cause) => `${textAt(cause, 'field')}: ${textAt(cause, 'reason')}: ${textAt(cause, 'message')}`,
  );
}

describe('an object', () => {
  test('that holds all rules is stored', async () => {
    const spec = {
      timeout: '30s',
      hostnames: ['example.com'],
      rules: [{ name: 'a', path: '/a', port: 80 }, { name: 'b', port: 'http' }, {}],
    };
    expect((await send('POST', routes, route('good', spec))).status).toBe(201);
  });

  test('that breaks rules gets an error for each, with its path', async () => {
    const spec = {
      timeout: '2h',
      hostnames: ['example.com', '10.0.0.1'],
      rules: [
        { name: 'a', path: 'a' },
        { name: 'a', port: 70000 },
      ],
    };
    const answer = await send('POST', routes, route('bad-and-with-a-long-name', spec));
    expect(answer.status).toBe(422);
    expect(causes(answer)).toEqual([
      '<nil>: FieldValueInvalid: Invalid value: the name is used in labels: at most 20 characters',
      'spec: FieldValueInvalid: Invalid value: timeout 7200s is more than 1h',
      'spec.hostnames[1]: FieldValueInvalid: Invalid value: "10.0.0.1": must not be an IP address',
      'spec.rules: FieldValueInvalid: Invalid value: Rule name must be unique within the route',
      "spec.rules[0]: FieldValueInvalid: Invalid value: path must be an absolute path and start with '/'",
      "spec.rules[1]: FieldValueInvalid: Invalid value: failed rule: !has(self.port) || (type(self.port) == int ? self.port > 0 && self.port < 65536 : self.port.matches('^[a-z]+$'))",
    ]);
  });

  test('whose shape is wrong is not asked', async () => {
    const answer = await send('POST', routes, route('shape', { rules: [{ type: 'Other', path: 'a' }] }));
    expect(causes(answer)).toEqual([
      'spec.rules[0].type: FieldValueNotSupported: Unsupported value: "Other": supported values: "Exact", "PathPrefix"',
      '<nil>: FieldValueInvalid: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
    ]);
  });

  test('keeps what a transition rule forbids to change', async () => {
    await send('POST', routes, route('fixed', {}));
    const answer = await send('PATCH', `${routes}/fixed`, { spec: { parentRef: { name: 'other' } } });
    expect(answer.status).toBe(422);
    expect(causes(answer)).toEqual([
      'spec.parentRef: FieldValueForbidden: Forbidden: parentRef is immutable',
    ]);
    expect((await send('PATCH', `${routes}/fixed`, { spec: { timeout: '5s' } })).status).toBe(200);
  });
});

test('an object stored before a rule came is left alone where it is not changed, with a warning', async () => {
  const path = `${definitions}/lamps.routing.example.com`;
  const lamps = '/apis/routing.example.com/v1/namespaces/default/lamps';
  const color = { type: 'string' };
  const schema = (rules: object) => ({
    type: 'object',
    properties: { color: { ...color, ...rules }, size: { type: 'integer' } },
  });
  await send('POST', definitions, definition('lamps', 'Lamp', schema({})));
  await untilFound(server.client, lamps);
  const lamp = {
    apiVersion: 'routing.example.com/v1',
    kind: 'Lamp',
    metadata: { name: 'old' },
    color: 'red',
  };
  expect((await send('POST', lamps, lamp)).status).toBe(201);
  const rules = { 'x-kubernetes-validations': [{ rule: "self != 'red'" }] };
  const patch = definition('lamps', 'Lamp', schema(rules));
  expect((await send('PATCH', path, patch)).status).toBe(200);
  await expect
    .poll(async () => (await send('PATCH', `${lamps}/old`, { size: 1 })).warnings)
    .toEqual([`color: Invalid value: "red": failed rule: self != 'red'`]);
  expect((await send('PATCH', `${lamps}/old`, { color: 'red', size: 2 })).status).toBe(200);
  expect((await send('POST', lamps, { ...lamp, metadata: { name: 'new' } })).status).toBe(422);
});

test('a definition with a rule that does not compile is refused', async () => {
  const properties = { spec: { type: 'object', properties: { a: { type: 'integer' } } } };
  const rules = { 'x-kubernetes-validations': [{ rule: "self.spec.a == 'x'" }] };
  const answer = await send(
    'POST',
    definitions,
    definition('cups', 'Cup', { type: 'object', properties, ...rules }),
  );
  expect(answer.status).toBe(422);
  expect(causes(answer)).toEqual([
    'spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule: FieldValueInvalid: Invalid value: ' +
      `{"Rule":"self.spec.a == 'x'","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: ` +
      `compilation failed: ERROR: <input>:1:13: found no matching overload for '_==_' applied to '(int, string)'\n | self.spec.a == 'x'\n | ............^`,
  ]);
});
