import { Agent, request } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { listAt, recordAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';

/** Bodies, patches and parameters that name the members of every object, by every way into the server. */
let server: TestServer;
let agent: Agent;
const configMaps = '/api/v1/namespaces/default/configmaps';
const widgets = '/apis/example.com/v1/namespaces/default/widgets';

const prototypes = [Object, Array, Function, String, Number, Map, Set, Promise].map((each) => each.prototype);
const membersOf = (): string[] =>
  prototypes.map((each) =>
    JSON.stringify([Reflect.ownKeys(each).map(String), typeof Object.getPrototypeOf(each)]),
  );
let untouched: string[] = [];

async function send(
  method: 'GET' | 'POST' | 'PUT' | 'PATCH',
  path: string,
  contentType = 'application/json',
  body?: string | Buffer,
): Promise<{ status: number; body: unknown }> {
  const answer = await request(`${server.url}${path}`, {
    method,
    dispatcher: agent,
    headers: { authorization: `Bearer ${server.token}`, 'content-type': contentType },
    ...(body === undefined ? {} : { body }),
  });
  const text = await answer.body.text();
  const isJson = answer.headers['content-type'] === 'application/json';
  return { status: answer.statusCode, body: isJson ? JSON.parse(text) : text };
}

const schema = {
  type: 'object',
  'x-kubernetes-preserve-unknown-fields': true,
  properties: {
    spec: {
      type: 'object',
      'x-kubernetes-preserve-unknown-fields': true,
      properties: {
        constructor: { type: 'string', default: 'd' },
        map: { type: 'object', additionalProperties: { type: 'string' } },
      },
      'x-kubernetes-validations': [
        { rule: "!has(self.map) || self.map.all(k, self.map[k] != 'bad' && k != 'hasOwnProperty')" },
      ],
    },
    status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  },
};

beforeAll(async () => {
  server = await startApiServer();
  agent = new Agent({ connect: { ca: server.ca } });
  untouched = membersOf();
  await send(
    'POST',
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    'application/json',
    JSON.stringify({
      metadata: { name: 'widgets.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'widgets', kind: 'Widget' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            subresources: { status: {} },
            additionalPrinterColumns: [{ name: '__proto__', type: 'string', jsonPath: '.spec.__proto__' }],
            schema: { openAPIV3Schema: schema },
          },
        ],
      },
    }),
  );
  for (let status = 404; status !== 200;) ({ status } = await send('GET', widgets));
});

afterAll(async () => {
  await agent.close();
  await server.stop();
});

afterEach(() => {
  expect(membersOf()).toEqual(untouched);
});

const names = ['__proto__', 'constructor', 'toJSON'];
const values = ['{"prototype":{"polluted":"yes"}}', '"x"', 'null'];
const places = [
  '',
  'metadata',
  'metadata.labels',
  'metadata.annotations',
  'metadata.managedFields.0.fieldsV1',
  'metadata.ownerReferences.0',
  'data',
  'spec',
  'spec.map',
  'status',
];

/** `inner` below a path. */
function below(place: string, inner: string): string {
  const steps = place === '' ? [] : place.split('.').reverse();
  return steps.reduce((text, step) => (step === '0' ? `[${text}]` : `{"${step}":${text}}`), inner);
}

/** Members in front of those of a JSON object. */
function withHead(head: string, body: string): string {
  return body === '{}' ? `{${head}}` : `{${head},${body.slice(1)}`;
}

const bodies = names.flatMap((name) =>
  values.flatMap((value) => places.map((place) => below(place, `{"${name}":${value}}`))),
);

describe.each([
  ['built-in', configMaps, '"apiVersion":"v1","kind":"ConfigMap"'],
  ['custom', widgets, '"apiVersion":"example.com/v1","kind":"Widget"'],
])('objects of %s kinds', (_, collection, head) => {
  const name = '"metadata":{"name":"a"}';
  const ways: [string, (body: string) => Promise<{ status: number }>][] = [
    [
      'JSON',
      (body) =>
        send(
          'POST',
          collection,
          'application/json',
          withHead(`${head},"metadata":{"generateName":"a-"}`, body),
        ),
    ],
    [
      'YAML',
      (body) =>
        send(
          'POST',
          collection,
          'application/yaml',
          withHead(`${head},"metadata":{"generateName":"a-"}`, body),
        ),
    ],
    [
      'an update',
      (body) => send('PUT', `${collection}/a`, 'application/json', withHead(`${head},${name}`, body)),
    ],
    ['a merge patch', (body) => send('PATCH', `${collection}/a`, 'application/merge-patch+json', body)],
    [
      'a strategic merge patch',
      (body) => send('PATCH', `${collection}/a`, 'application/strategic-merge-patch+json', body),
    ],
    [
      'an apply',
      (body) =>
        send(
          'PATCH',
          `${collection}/b?fieldManager=m&force=true`,
          'application/apply-patch+yaml',
          withHead(head, body),
        ),
    ],
    [
      'a patch of the status',
      (body) => send('PATCH', `${collection}/a/status`, 'application/merge-patch+json', body),
    ],
  ];

  beforeAll(async () => {
    expect((await send('POST', collection, 'application/json', `{${head},${name}}`)).status).toBe(201);
  });

  test.each(ways)('in %s', async (_way, write) => {
    for (const body of bodies) expect([body, (await write(body)).status]).not.toEqual([body, 0]);
    expect((await send('GET', `${collection}/a`)).status).toBe(200);
  });

  test('in a JSON patch', async () => {
    for (const member of names) {
      for (const op of ['add', 'replace', 'remove', 'copy', 'move', 'test']) {
        for (const path of [
          `/${member}`,
          `/${member}/x`,
          `/spec/${member}`,
          '/constructor/prototype/x',
          `/data/${member}`,
        ]) {
          const operation = { op, path, from: `/${member}/prototype`, value: { x: 1 } };
          await send('PATCH', `${collection}/a`, 'application/json-patch+json', JSON.stringify([operation]));
        }
      }
    }
    expect((await send('GET', `${collection}/a`)).status).toBe(200);
  });

  test('in parameters', async () => {
    for (const member of names) {
      for (const query of [
        `${member}=1`,
        `${member}[x]=1`,
        `fieldSelector=${member}%3Da`,
        `labelSelector=!${member}`,
      ]) {
        expect([200, 400]).toContain((await send('GET', `${collection}?${query}`)).status);
      }
    }
  });
});

test('members of that name are kept, also by a write of the status', async () => {
  const text =
    '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"kept"},' +
    '"__proto__":{"spec":{"a":1}},"spec":{"__proto__":{"b":"c"},"map":{"__proto__":"x","constructor":"y"}}}';
  const made = await send('POST', widgets, 'application/json', text);
  expect(made.status).toBe(201);
  const { status } = await send(
    'PATCH',
    `${widgets}/kept/status`,
    'application/merge-patch+json',
    '{"status":{"__proto__":{"d":"e"}}}',
  );
  expect(status).toBe(200);
  const { body } = await send('GET', `${widgets}/kept`);
  const own = (of: unknown): unknown => Object.getOwnPropertyDescriptor(of, '__proto__')?.value;
  expect(own(body)).toEqual({ spec: { a: 1 } });
  expect(own(recordAt(body, 'spec'))).toEqual({ b: 'c' });
  expect(own(recordAt(body, 'status'))).toEqual({ d: 'e' });
  expect(Object.entries(recordAt(body, 'spec', 'map'))).toEqual([
    ['__proto__', 'x'],
    ['constructor', 'y'],
  ]);
  expect(recordAt(body, 'spec')['constructor']).toBe('d');
});

test('a rule sees what is there, not what every object has', async () => {
  const write = (map: object) =>
    send(
      'POST',
      widgets,
      'application/json',
      JSON.stringify({
        apiVersion: 'example.com/v1',
        kind: 'Widget',
        metadata: { generateName: 'r-' },
        spec: { map },
      }),
    );
  expect((await write({ toString: 'x' })).status).toBe(201);
  expect((await write({ hasOwnProperty: 'x' })).status).toBe(422);
  expect((await write(Object.fromEntries([['__proto__', 'bad']]))).status).toBe(422);
});

test.each([
  ['constructor', 1],
  ['!constructor', 0],
  ['toString', 0],
  ['!toString', 1],
  ['valueOf!=a', 1],
  ['constructor=a', 1],
  ['constructor notin (a)', 0],
])('the selector %s finds %d', async (selector, count) => {
  const object = '{"metadata":{"name":"selected","labels":{"only":"me","constructor":"a"}}}';
  await send('PUT', `${configMaps}/selected`, 'application/json', object);
  await send('POST', configMaps, 'application/json', object);
  const query = encodeURIComponent(`only=me,${selector}`);
  expect(listAt((await send('GET', `${configMaps}?labelSelector=${query}`)).body, 'items')).toHaveLength(
    count,
  );
});
