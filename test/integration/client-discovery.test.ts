import { afterAll, beforeAll, expect, test } from 'vitest';
import { discover } from '../../src/client/discovery.ts';
import type { Transport } from '../../src/client/transport.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startApiServer({ controllers: [], nodes: 0 });
});
afterAll(() => server.stop());

/** The transport with the paths that were asked for. @param headers sent in the place of those of discovery. */
function watched(headers?: Record<string, string>): { transport: Transport; paths: string[] } {
  const { client } = server;
  const paths: string[] = [];
  const request: Transport['request'] = (method, path, options = {}) => {
    paths.push(path);
    return client.request(method, path, headers === undefined ? options : { ...options, headers });
  };
  return {
    transport: { server: '', request, stream: client.stream.bind(client), close: () => Promise.resolve() },
    paths,
  };
}

const { signal } = new AbortController();
const comparable = async (transport: Transport) => {
  const { resources, failures } = await discover(transport, signal);
  // Their order within a group version says nothing, and differs.
  const named = resources.map(({ isObject: _, ...rest }) => [`${rest.group}/${rest.plural}`, rest] as const);
  return { failures, resources: new Map(named) };
};

test('two documents have all that is served, as the documents of each group version do', async () => {
  const aggregated = watched();
  const oneByOne = watched({});
  const found = await comparable(aggregated.transport);
  expect(aggregated.paths).toEqual(['/api', '/apis']);
  expect(found).toEqual(await comparable(oneByOne.transport));
  expect(oneByOne.paths.length).toBeGreaterThan(20);
  expect(found.resources.get('autoscaling/horizontalpodautoscalers')).toEqual({
    ...{ group: 'autoscaling', version: 'v2', plural: 'horizontalpodautoscalers' },
    ...{ kind: 'HorizontalPodAutoscaler', namespaced: true, versions: ['v2', 'v1'] },
    verbs: expect.arrayContaining(['list', 'watch']) as string[],
  });
});

test('what an extension API server that does not answer served before is a failure', async () => {
  const path = '/apis/apiregistration.k8s.io/v1/apiservices';
  const spec = {
    ...{ group: 'gone.example.com', version: 'v1', groupPriorityMinimum: 100, versionPriority: 10 },
    ...{ service: { namespace: 'default', name: 'none' }, insecureSkipTLSVerify: true },
  };
  const body = { metadata: { name: 'v1.gone.example.com' }, spec };
  expect((await call(server.client, 'POST', path, { body })).status).toBe(201);
  const isKnown = async (): Promise<unknown> => (await discover(server.client, signal)).failures;
  await expect.poll(isKnown, { timeout: 60_000 }).toEqual([
    {
      group: 'gone.example.com',
      version: 'v1',
      error: new Error('stale GroupVersion discovery: gone.example.com/v1'),
    },
  ]);
});
