import { describe, expect, test } from 'vitest';
import type { DiscoveredResource } from '../../../../src/apiserver/discovery/discovered-resource.ts';
import { discoveryHandler } from '../../../../src/apiserver/discovery/handler.ts';
import {
  HealthCheckResults,
  type ServerCheck,
  healthHandler,
  healthPaths,
  metricsHandler,
  pathsHandler,
  versionHandler,
} from '../../../../src/apiserver/discovery/routes.ts';
import { call } from './exchange-fake.ts';

/** No extension API server. */
const noRemote: readonly never[] = [];

function resource(group: string, plural: string, custom = false): DiscoveredResource {
  return {
    group,
    version: 'v1',
    plural,
    singular: plural.slice(0, -1),
    kind: plural.toUpperCase(),
    namespaced: true,
    shortNames: [],
    categories: [],
    verbs: ['get', 'list'],
    schema: '',
    subresources: [],
    custom,
  };
}

const builtIn = [resource('', 'services'), resource('apps', 'deployments')];
const withCustom = [...builtIn, resource('example.com', 'widgets', true)];
const aggregatedV2 = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

describe('discovery', () => {
  const handler = discoveryHandler(
    () => withCustom,
    () => noRemote,
    () => '127.0.0.1:6443',
  );

  test.each([
    ['/api', 'APIVersions', 405],
    ['/api/', 'APIVersions', 405],
    ['/api/v1', 'APIResourceList', 405],
    // the aggregator, and the server of custom resources, do not look at the method
    ['/apis', 'APIGroupList', 200],
    ['/apis/apps', 'APIGroup', 200],
    ['/apis/apps/v1/', 'APIResourceList', 405],
    ['/apis/example.com/', 'APIGroup', 200],
    ['/apis/example.com/v1', 'APIResourceList', 200],
  ])('GET %s is an %s, POST %i', async (path, kind, status) => {
    const answer = await call(handler, path);
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body)).toMatchObject({ kind });
    const post = await call(handler, path, { method: 'POST' });
    expect([post.status, post.headers['Allow']]).toEqual([status, status === 405 ? 'GET' : undefined]);
    expect(JSON.parse(post.body)).toMatchObject(
      status === 405 ? { reason: 'MethodNotAllowed', details: {} } : { kind },
    );
  });

  // what is below a compiled-in group ends in a Status, anything else in plain text
  test.each([
    ['/api/v2', 'Status'],
    ['/api//v1/namespaces/a/services', 'Status'],
    ['/api/v1/nope', 'Status'],
    ['/apis/apps/v2', 'Status'],
    ['/apis/apps/v1/nope', 'Status'],
    ['/apis/nope', 'text'],
    ['/apis/nope/v1/things', 'text'],
    ['/apis/constructor', 'text'],
    ['/apis/example.com/v2', 'text'],
    ['/apis/example.com/v1/nope', 'text'],
    ['/apis//v1', 'text'],
  ])('%s is not served: %s', async (path, form) => {
    const answer = await call(handler, path);
    expect(answer.status).toBe(404);
    if (form === 'text') expect(answer.body).toBe('404 page not found\n');
    else expect(JSON.parse(answer.body)).toMatchObject({ reason: 'NotFound', details: {} });
  });

  test('is aggregated for those who ask, and answers 304 to those who have it', async () => {
    for (const path of ['/api', '/apis']) {
      const answer = await call(handler, path, { headers: { accept: `${aggregatedV2},application/json` } });
      expect(answer.contentType).toBe(aggregatedV2);
      expect(JSON.parse(answer.body)).toMatchObject({ apiVersion: 'apidiscovery.k8s.io/v2' });
      const etag = answer.headers['ETag'] ?? '';
      expect(etag).toMatch(/^"[0-9A-F]{128}"$/);
      const again = await call(handler, path, { headers: { accept: aggregatedV2, 'if-none-match': etag } });
      expect([again.status, again.body, again.contentType]).toEqual([304, '', aggregatedV2]);
    }
  });

  test('changes when the served resources do', async () => {
    let served: readonly DiscoveredResource[] = builtIn;
    const changing = discoveryHandler(
      () => served,
      () => noRemote,
      () => '',
    );
    const read = async (): Promise<string> =>
      (await call(changing, '/apis', { headers: { accept: aggregatedV2 } })).headers['ETag'] ?? '';
    const before = await read();
    expect((await call(changing, '/apis/example.com')).status).toBe(404);
    served = withCustom;
    expect((await call(changing, '/apis/example.com')).status).toBe(200);
    expect(await read()).not.toBe(before);
  });

  test('can be YAML, but not HTML', async () => {
    const yaml = await call(handler, '/api', { headers: { accept: 'application/yaml' } });
    expect(yaml.body).toContain('kind: APIVersions\n');
    expect((await call(handler, '/api', { headers: { accept: 'text/html' } })).status).toBe(406);
  });
});

describe('health', () => {
  let broken = false;
  const checks: readonly ServerCheck[] = [
    { name: 'ping', on: ['healthz', 'livez', 'readyz'], check: () => undefined },
    {
      name: 'store',
      on: ['readyz'],
      check: () => {
        if (broken) throw new Error('disk full');
      },
    },
    { name: 'poststarthook/x', on: ['readyz'], check: () => undefined },
  ];
  const results = new HealthCheckResults();
  const handler = healthHandler(checks, results);

  test('is ok in one word, whatever the method', async () => {
    for (const path of ['/healthz', '/livez', '/readyz', '/readyz/store', '/readyz/poststarthook/x']) {
      const answer = await call(handler, path, { method: 'POST' });
      expect(answer).toMatchObject({ status: 200, contentType: 'text/plain; charset=utf-8', body: 'ok' });
    }
  });

  test('tells its checks', async () => {
    expect((await call(handler, '/readyz?verbose')).body).toBe(
      '[+]ping ok\n[+]store ok\n[+]poststarthook/x ok\nreadyz check passed\n',
    );
    expect((await call(handler, '/livez?verbose')).body).toBe('[+]ping ok\nlivez check passed\n');
    expect((await call(handler, '/readyz?verbose&exclude=store&exclude=x')).body).toBe(
      '[+]ping ok\n[+]store excluded: ok\n[+]poststarthook/x ok\nwarn: some health checks cannot be excluded: no matches for "x"\nreadyz check passed\n',
    );
  });

  test('is counted', async () => {
    const counts = async (): Promise<Map<string, string>> =>
      new Map(
        (await results.text())
          .split('\n')
          .filter((line) => line.includes('name="store"'))
          .map((line) => [line.slice(0, line.lastIndexOf(' ')), line.slice(line.lastIndexOf(' ') + 1)]),
      );
    const gauge = 'kubernetes_healthcheck{name="store",type="readyz"}';
    const total = (status: string) =>
      `kubernetes_healthchecks_total{name="store",type="readyz",status="${status}"}`;
    await call(handler, '/readyz');
    const before = await counts();
    expect([before.get(gauge), before.has(total('error'))]).toEqual(['1', false]);
    broken = true;
    await call(handler, '/readyz/store');
    broken = false;
    const after = await counts();
    expect([after.get(gauge), after.get(total('error')), after.get(total('success'))]).toEqual([
      '0',
      '1',
      before.get(total('success')),
    ]);
  });

  test('knows only its own checks', async () => {
    for (const path of [
      '/livez/nosuchcheck',
      '/livez/store',
      '/readyz/store/x',
      '/readyz/constructor',
      '/readyz/',
    ]) {
      expect(await call(handler, path)).toMatchObject({ status: 404, body: '404 page not found\n' });
    }
  });

  test('has a path of its own for each check', () => {
    expect(healthPaths(checks)).toEqual([
      '/healthz',
      '/healthz/ping',
      '/livez',
      '/livez/ping',
      '/readyz',
      '/readyz/ping',
      '/readyz/store',
      '/readyz/poststarthook/x',
    ]);
  });

  test('fails as a whole when one check fails', async () => {
    broken = true;
    expect(await call(handler, '/readyz')).toMatchObject({
      status: 500,
      body: '[+]ping ok\n[-]store failed: reason withheld\n[+]poststarthook/x ok\nreadyz check failed\n',
    });
    expect(await call(handler, '/readyz/store')).toMatchObject({
      status: 500,
      body: 'internal server error: disk full\n',
    });
    expect((await call(handler, '/readyz?exclude=store')).status).toBe(200);
    expect((await call(handler, '/livez')).status).toBe(200);
  });
});

test('the version is 1.37 and says who answers', async () => {
  const handler = versionHandler({ version: '0.1.0', platform: 'linux/amd64' });
  const answer = await call(handler, '/version');
  expect(JSON.parse(answer.body)).toMatchObject({
    major: '1',
    minor: '37',
    emulationMajor: '1',
    emulationMinor: '37',
    minCompatibilityMajor: '1',
    minCompatibilityMinor: '36',
    gitVersion: 'v1.37.2+servicenet.0.1.0',
    compiler: 'gc',
  });
  expect((await call(handler, '/version', { method: 'POST' })).status).toBe(405);
  expect((await call(handler, '/version/')).status).toBe(200);
  const below = await call(handler, '/version/1');
  expect(JSON.parse(below.body)).toMatchObject({ reason: 'NotFound', details: {} });
});

test('metrics have their paths, and nothing else', async () => {
  const pages = ['/metrics', '/metrics/slis'].map((path) => [path, () => Promise.resolve(path)] as const);
  const handler = metricsHandler(new Map(pages));
  expect(await call(handler, '/metrics')).toMatchObject({ status: 200, body: '/metrics' });
  expect(await call(handler, '/metrics/slis')).toMatchObject({ status: 200, body: '/metrics/slis' });
  expect(await call(handler, '/metrics/x')).toMatchObject({ status: 404, body: '404 page not found\n' });
});

test('the root lists paths', async () => {
  const answer = await call(
    pathsHandler(
      () => builtIn,
      () => noRemote,
      ['/healthz'],
    ),
    '/',
  );
  expect(JSON.parse(answer.body)).toEqual({
    paths: ['/api', '/api/v1', '/apis', '/apis/apps', '/apis/apps/v1', '/healthz'],
  });
});
