import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { type CatalogEntry, loadControllers } from '../../src/controllers/catalog.ts';
import { runControllers } from '../../src/controllers/run.ts';
import type { Transport } from '../../src/client/transport.ts';
import { at } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { makeNamespace } from '../support/api-operations.ts';
import { call } from '../support/test-server.ts';
import { untilObject } from '../support/with-controllers.ts';

/** The line of the catalogue. */
const entry: CatalogEntry = {
  name: 'service-count-controller',
  on: 'asked',
  load: async () => {
    const { serviceCountController } = await import('../support/service-count-controller.ts');
    return () => serviceCountController;
  },
};

test('the example of CONTRIBUTING.md is this controller', () => {
  const source = readFileSync('test/support/service-count-controller.ts', 'utf8');
  const spec = source.slice(source.indexOf('export const'));
  expect(readFileSync('CONTRIBUTING.md', 'utf8')).toContain(spec.trim());
});

test('a specification and a line of the catalogue are a controller', async () => {
  const server = await startApiServer({ controllers: [] });
  const writes: string[] = [];
  const transport: Transport = {
    ...{ server: server.client.server, close: () => Promise.resolve() },
    request(method, path, options) {
      if (method !== 'GET' && path.startsWith('/api/v1/namespaces/counted')) writes.push(method);
      return server.client.request(method, path, options);
    },
    stream: (path, options) => server.client.stream(path, options),
  };
  const controllers = (await loadControllers([entry]))({ transport });
  const running = runControllers({ transport, controllers, log: pino({ enabled: false }) });
  onTestFinished(async () => {
    await running.stop();
    await server.stop();
  });
  const namespace = await makeNamespace(server, 'counted');
  const path = `/api/v1/namespaces/${namespace}`;
  const untilCount = (count: number): Promise<unknown> =>
    untilObject(
      server.client,
      path,
      (body) => at(body, 'metadata', 'annotations', 'example.dev/services') === String(count),
    );
  await untilCount(0);
  for (const [index, name] of ['a', 'b'].entries()) {
    const body = { metadata: { name }, spec: { ports: [{ port: 80 }] } };
    await call(server.client, 'POST', `${path}/services`, { body });
    await untilCount(index + 1);
  }
  await call(server.client, 'DELETE', `${path}/services/a`);
  await untilCount(1);
  // One write a change.
  expect(writes).toEqual(['PATCH', 'PATCH', 'PATCH', 'PATCH']);
});
