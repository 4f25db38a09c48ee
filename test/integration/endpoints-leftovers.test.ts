import { pino } from 'pino';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import type { ApiStream, Transport } from '../../src/client/transport.ts';
import { runControllers } from '../../src/controllers/run.ts';
import { endpointsController } from '../../src/controllers/service-endpoints/endpoints/controller.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

const services = '/api/v1/namespaces/default/services';
const endpoints = '/api/v1/namespaces/default/endpoints';
const listEnd = 'initial-events-end';
const spec = { clusterIP: 'None', ports: [{ port: 80 }] };
const expired = {
  type: 'ERROR',
  object: { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Expired', code: 410 },
};

const gate = (): PromiseWithResolvers<undefined> => Promise.withResolvers();

let client: Transport;
/** What the controller has read of Endpoints. */
let heardEndpoints = '';

beforeEach(async () => {
  // A server that does not allocate leaves the Endpoints of a deleted Service.
  const server = await startApiServer({ allocation: 'controller', controllers: [] });
  onTestFinished(() => server.stop());
  ({ client } = server);
  heardEndpoints = '';
});

/**
 * @param openServices opens a stream of Services.
 * @param gates are opened at the end.
 * @param late before it, nothing is read of Endpoints but their list.
 */
function startController(
  openServices: (open: () => Promise<ApiStream>) => Promise<ApiStream>,
  gates: readonly PromiseWithResolvers<undefined>[],
  late?: Promise<undefined>,
): void {
  const transport: Transport = {
    server: client.server,
    request: (method, path, options) => client.request(method, path, options),
    stream: async (path, options) => {
      const open = (): Promise<ApiStream> => client.stream(path, options);
      if (path.endsWith('/services')) return openServices(open);
      const { headers, chunks } = await open();
      const heard = async function* (): AsyncGenerator<Buffer> {
        for await (const chunk of chunks) {
          if (path.endsWith('/endpoints') && heardEndpoints.includes(listEnd)) await late;
          yield chunk;
          if (path.endsWith('/endpoints')) heardEndpoints += chunk.toString();
        }
      };
      return { headers, chunks: heard() };
    },
    close: () => Promise.resolve(),
  };
  const running = runControllers({
    transport,
    controllers: [endpointsController],
    log: pino({ enabled: false }),
  });
  onTestFinished(async () => {
    for (const { resolve } of gates) resolve(undefined);
    await running.stop();
  });
}

async function write(method: string, path: string, body?: object): Promise<void> {
  const { status } = await call(client, method, path, body === undefined ? {} : { body });
  expect(status).toBeLessThan(300);
}

async function isThere(name: string): Promise<boolean> {
  return (await call(client, 'GET', `${endpoints}/${name}`)).status === 200;
}

it('Endpoints that lose their Service before the list of Services comes are removed, and none of a Service that comes after it', async () => {
  const [request, list, events] = [gate(), gate(), gate()];
  let heardServices = '';
  startController(
    async (open) => {
      await request.promise;
      const { headers, chunks } = await open();
      const passed = async function* (): AsyncGenerator<Buffer> {
        for await (const chunk of chunks) {
          const opened = heardServices.includes(listEnd) ? events : list;
          heardServices += chunk.toString();
          await opened.promise;
          yield chunk;
        }
      };
      return { headers, chunks: passed() };
    },
    [request, list, events],
  );
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

it.for([true, false])(
  'Endpoints of a Service that came and went while the watch of Services was lost are removed, read before its list: %s',
  async (isReadBefore) => {
    const [synced, lost, late] = [gate(), gate(), gate()];
    if (isReadBefore) late.resolve(undefined);
    let streams = 0;
    let listedAgain = '';
    startController(
      async (open) => {
        const { headers, chunks } = await open();
        const isFirst = ++streams === 1;
        const passed = async function* (): AsyncGenerator<Buffer> {
          for await (const chunk of chunks) {
            yield chunk;
            if (!isFirst) listedAgain += chunk.toString();
            else if (chunk.toString().includes(listEnd)) break;
          }
          if (!isFirst) return;
          synced.resolve(undefined);
          await lost.promise;
          yield Buffer.from(`${JSON.stringify(expired)}\n`);
        };
        return { headers, chunks: passed() };
      },
      [synced, lost, late],
      late.promise,
    );
    await synced.promise;
    await expect.poll(() => heardEndpoints).toContain(listEnd);
    await write('POST', services, { metadata: { name: 'gone' }, spec });
    await write('POST', endpoints, { metadata: { name: 'gone' } });
    await write('DELETE', `${services}/gone`);
    if (isReadBefore) await expect.poll(() => heardEndpoints).toContain('"gone"');
    lost.resolve(undefined);
    await expect.poll(() => listedAgain).toContain(listEnd);
    // Its Service may come: it is younger than the list.
    await write('POST', endpoints, { metadata: { name: 'early' } });
    late.resolve(undefined);
    await expect.poll(() => isThere('gone')).toBe(false);
    await expect.poll(() => heardEndpoints).toContain('"early"');
    expect(await isThere('early')).toBe(true);
  },
);
