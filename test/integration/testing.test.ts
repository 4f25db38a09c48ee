import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { Child } from '../e2e/child.ts';
import { untilObject } from '../support/with-controllers.ts';

let occupied: Server | undefined;
afterEach(() => occupied?.close());

const testing = new URL('../../src/testing/index.ts', import.meta.url).href;

/** What a program prints that tries to start a server. It ends by itself only if nothing listens any more. */
async function failedStart(options: object): Promise<string> {
  const program = `
    import { startApiServer } from ${JSON.stringify(testing)};
    await startApiServer(${JSON.stringify(options)}).catch((error) => console.log(error.name, error.message));
  `;
  const child = new Child(process.execPath, ['--input-type=module', '-e', program]);
  await child.closed;
  expect(child.code).toBe(0);
  return child.output;
}

test('a wrong option starts nothing, and the process ends', async () => {
  expect(await failedStart({ nodes: 2, controllers: ['*', 'nope'] })).toMatch(
    /^ConfigError startApiServer: controllers: "nope" is not in the list of known controllers: .*\n$/,
  );
});

test('where the port is taken nothing is left, and the process ends', async () => {
  occupied = createServer().listen(0, '127.0.0.1');
  await once(occupied, 'listening');
  const address = occupied.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  expect(await failedStart({ nodes: 2, port })).toMatch(/^Error listen EADDRINUSE: .*\n$/);
});

test('a LoadBalancer Service gets an address of `addressPools`', async () => {
  const server = await startApiServer({ addressPools: ['203.0.113.7-203.0.113.7'] });
  try {
    await server.client.request('POST', '/api/v1/namespaces/default/services', {
      body: { metadata: { name: 'web' }, spec: { type: 'LoadBalancer', ports: [{ port: 80 }] } },
    });
    const ingress = (body: object): unknown => listAt(body, 'status', 'loadBalancer', 'ingress')[0];
    const path = '/api/v1/namespaces/default/services/web';
    const service = await untilObject(server.client, path, (body) => ingress(body) !== undefined);
    expect(textAt(ingress(service), 'ip')).toBe('203.0.113.7');
  } finally {
    await server.stop();
  }
});
