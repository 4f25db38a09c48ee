import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { at, listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call } from '../support/test-server.ts';

let server: TestServer;
let namespace = '';
let round = 0;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(async () => server.stop());
beforeEach(async () => {
  namespace = `limits-${++round}`;
  await call(server.client, 'POST', '/api/v1/namespaces', { body: { metadata: { name: namespace } } });
});

async function post(plural: string, body: object): Promise<Answer> {
  return call(server.client, 'POST', `/api/v1/namespaces/${namespace}/${plural}`, { body });
}

async function limit(...limits: readonly object[]): Promise<void> {
  expect((await post('limitranges', { metadata: { name: 'limits' }, spec: { limits } })).status).toBe(201);
}

function pod(...resources: readonly object[]): object {
  const containers = resources.map((given, i) => ({ name: `c${i}`, image: 'i', resources: given }));
  return { metadata: { name: 'p' }, spec: { containers } };
}

function claim(storage: string): object {
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } };
  return { metadata: { name: 'v' }, spec };
}

describe('a Pod', () => {
  test('gets the defaults that its containers leave open, and an annotation that says so', async () => {
    await limit({
      type: 'Container',
      default: { cpu: '500m', memory: '500Mi' },
      defaultRequest: { cpu: '100m', memory: '200Mi' },
    });
    const { body } = await post('pods', pod({}, { requests: { cpu: '300m' }, limits: { memory: '300Mi' } }));
    const [first, second] = listAt(body, 'spec', 'containers').map((container) => at(container, 'resources'));
    expect(first).toEqual({
      limits: { cpu: '500m', memory: '500Mi' },
      requests: { cpu: '100m', memory: '200Mi' },
    });
    expect(second).toEqual({
      limits: { cpu: '500m', memory: '300Mi' },
      requests: { cpu: '300m', memory: '300Mi' },
    });
    expect(recordAt(body, 'metadata', 'annotations')).toEqual({
      'kubernetes.io/limit-ranger':
        'LimitRanger plugin set: cpu, memory request for container c0; cpu, memory limit for container c0; cpu limit for container c1',
    });
  });

  test.each<[string, object, object[], string]>([
    [
      'less than it must',
      { type: 'Container', min: { cpu: '100m' } },
      [{ requests: { cpu: '50m' } }],
      'minimum cpu usage per Container is 100m, but request is 50m',
    ],
    [
      'more than it may',
      { type: 'Container', max: { memory: '1Gi' } },
      [{ limits: { memory: '2Gi' } }],
      'maximum memory usage per Container is 1Gi, but limit is 2Gi',
    ],
    [
      'in all more than it may',
      { type: 'Pod', max: { cpu: '1' } },
      [{ limits: { cpu: '600m' } }, { limits: { cpu: '600m' } }],
      'maximum cpu usage per Pod is 1, but limit is 1200m',
    ],
    [
      'without end',
      { type: 'Pod', max: { cpu: '1' } },
      [{ limits: { cpu: '1' } }, {}],
      'maximum cpu usage per Pod is 1.  No limit is specified',
    ],
    [
      'a burst that is too large',
      { type: 'Container', maxLimitRequestRatio: { cpu: '2' } },
      [{ requests: { cpu: '100m' }, limits: { cpu: '300m' } }],
      'cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000',
    ],
    [
      'two things wrongly',
      { type: 'Pod', min: { cpu: '1' }, max: { memory: '1Gi' } },
      [{ limits: { cpu: '500m', memory: '2Gi' } }],
      '[minimum cpu usage per Pod is 1, but request is 500m, maximum memory usage per Pod is 1Gi, but limit is 2147483648]',
    ],
  ])('is refused that asks for %s', async (_name, item, resources, why) => {
    await limit(item);
    const answer = await post('pods', pod(...resources));
    expect(answer.status).toBe(403);
    expect(textAt(answer.body, 'message')).toBe(`pods "p" is forbidden: ${why}`);
  });

  test('within the limits is stored', async () => {
    await limit({ type: 'Container', min: { cpu: '100m' }, max: { cpu: '1' } });
    expect((await post('pods', pod({ requests: { cpu: '100m' }, limits: { cpu: '1' } }))).status).toBe(201);
  });
});

test('a claim for too much or too little storage is refused', async () => {
  await limit({ type: 'PersistentVolumeClaim', min: { storage: '1Gi' }, max: { storage: '2Gi' } });
  expect(textAt((await post('persistentvolumeclaims', claim('3Gi'))).body, 'message')).toBe(
    'persistentvolumeclaims "v" is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi',
  );
  expect(textAt((await post('persistentvolumeclaims', claim('500Mi'))).body, 'message')).toBe(
    'persistentvolumeclaims "v" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi',
  );
  expect((await post('persistentvolumeclaims', claim('1Gi'))).status).toBe(201);
});

test('a LimitRange without a name gets one, under which it is found', async () => {
  const made = await post('limitranges', { spec: { limits: [{ type: 'Pod', max: { cpu: '1' } }] } });
  expect(made.status).toBe(201);
  const name = textAt(made.body, 'metadata', 'name');
  expect(name).toMatch(/^[0-9a-f-]{36}$/);
  const path = `/api/v1/namespaces/${namespace}/limitranges/${name}`;
  expect((await call(server.client, 'GET', path)).body).toEqual(made.body);
  // It is taken back as it is, without a new version.
  expect((await call(server.client, 'PUT', path, { body: made.body })).body).toEqual(made.body);
});
