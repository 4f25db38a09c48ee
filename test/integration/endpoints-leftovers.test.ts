import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import type { Transport } from '../../src/client/transport.ts';
import { runControllers } from '../../src/controllers/run.ts';
import { endpointsController } from '../../src/controllers/service-endpoints/endpoints/controller.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

const services = '/api/v1/namespaces/default/services';
const endpoints = '/api/v1/namespaces/default/endpoints';
const listEnd = 'initial-events-end';
const spec = { clusterIP: 'None', ports: [{ port: 80 }] };

const gate = (): PromiseWithResolvers<undefined> => Promise.withResolvers();

it('Endpoints that lose their Service before the list of Services comes are removed, and none of a Service that comes after it', async () => {
  // A server that does not allocate leaves the Endpoints of a deleted Service.
  const server = await startApiServer({ allocation: 'controller', controllers: [] });
  onTestFinished(() => server.stop());
  const { client } = server;
  const [request, list, events] = [gate(), gate(), gate()];
  let [heardServices, heardEndpoints] = ['', ''];
  const transport: Transport = {
    server: client.server,
    request: (method, path, options) => client.request(method, path, options),
    stream: async (path, options) => {
      const isOfServices = path.endsWith('/services');
      if (isOfServices) await request.promise;
      const { headers, chunks } = await client.stream(path, options);
      const passed = async function* (): AsyncGenerator<Buffer> {
        for await (const chunk of chunks) {
          const opened = isOfServices ? (heardServices.includes(listEnd) ? events : list) : undefined;
          if (isOfServices) heardServices += chunk.toString();
          await opened?.promise;
          yield chunk;
          if (path.endsWith('/endpoints')) heardEndpoints += chunk.toString();
        }
      };
      return { headers, chunks: passed() };
    },
    close: () => Promise.resolve(),
  };
  const running = runControllers({
    transport,
    controllers: [endpointsController],
    log: pino({ enabled: false }),
  });
  onTestFinished(async () => {
    for (const { resolve } of [request, list, events]) resolve(undefined);
    await running.stop();
  });
  const write = async (method: string, path: string, body?: object): Promise<void> => {
    const { status } = await call(client, method, path, body === undefined ? {} : { body });
    expect(status).toBeLessThan(300);
  };
  const isThere = async (name: string): Promise<boolean> =>
    (await call(client, 'GET', `${endpoints}/${name}`)).status === 200;

  await expect.poll(() => heardEndpoints).toContain(listEnd);
  await write('POST', services, { metadata: { name: 'gone' }, spec });
  await write('POST', endpoints, { metadata: { name: 'gone' } });
  await write('DELETE', `${services}/gone`);
  // Written before its Service, which comes after the list.
  await write('POST', endpoints, { metadata: { name: 'new' } });
  await expect.poll(() => heardEndpoints).toContain('"new"');
  request.resolve(undefined);
  await expect.poll(() => heardServices).toContain(listEnd);
  await write('POST', services, { metadata: { name: 'new' }, spec });
  list.resolve(undefined);
  await expect.poll(() => isThere('gone')).toBe(false);
  events.resolve(undefined);
  await expect.poll(() => heardServices).toContain('"new"');
  expect(await isThere('new')).toBe(true);
});
