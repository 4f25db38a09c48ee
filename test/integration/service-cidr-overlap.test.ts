import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import type { Transport } from '../../src/client/transport.ts';
import { runControllers } from '../../src/controllers/run.ts';
import { serviceCidrController } from '../../src/controllers/service-cidr/controller.ts';
import type { JsonRecord } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { fastClock } from '../support/fast-clock.ts';
import { call } from '../support/test-server.ts';
import { untilObject } from '../support/with-controllers.ts';

const group = '/apis/networking.k8s.io/v1';
const cidrs = `${group}/servicecidrs`;
const addresses = `${group}/ipaddresses`;

/** A server, and the controller of its ranges, which hears nothing any more of a path once it is deaf to it. */
async function start(): Promise<{ client: Transport; deafTo: Set<string> }> {
  const server = await startApiServer();
  onTestFinished(() => server.stop());
  const { client } = server;
  const deafTo = new Set<string>();
  const transport: Transport = {
    server: client.server,
    request: (method, path, options) => {
      // From the first range that goes on.
      if (JSON.stringify(options?.body ?? '').includes('"finalizers":[]')) deafTo.add(cidrs);
      return client.request(method, path, options);
    },
    stream: async (path, options) => {
      const { headers, chunks } = await client.stream(path, options);
      const heard = async function* (): AsyncGenerator<Buffer> {
        for await (const chunk of chunks) if (!deafTo.has(path)) yield chunk;
      };
      return { headers, chunks: heard() };
    },
    close: () => Promise.resolve(),
  };
  run(transport);
  return { client, deafTo };
}

function run(transport: Transport): void {
  const running = runControllers({
    transport,
    controllers: [serviceCidrController],
    log: pino({ enabled: false }),
    clock: fastClock(20),
  });
  onTestFinished(() => running.stop());
}

/** Two ranges are looked at together: the second look ends when the first range has gone, and has listed it before. */
function together(client: Transport): Transport {
  let looks = 0;
  const second = Promise.withResolvers<undefined>();
  const gone = Promise.withResolvers<undefined>();
  return {
    server: client.server,
    request: async (method, path, options) => {
      // A look lists the ranges before the addresses.
      if (method === 'GET' && path === addresses && ++looks <= 2) {
        if (looks === 2) second.resolve(undefined);
        await (looks === 1 ? second.promise : gone.promise);
      }
      return client.request(method, path, options);
    },
    stream: async (path, options) => {
      const { headers, chunks } = await client.stream(path, options);
      const heard = async function* (): AsyncGenerator<Buffer> {
        for await (const chunk of chunks) {
          yield chunk;
          if (path === cidrs && chunk.includes('"DELETED"')) gone.resolve(undefined);
        }
      };
      return { headers, chunks: heard() };
    },
    close: () => Promise.resolve(),
  };
}

async function create(client: Transport, path: string, body: JsonRecord): Promise<void> {
  const answer = await call(client, 'POST', path, { body });
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
}

async function createRange(client: Transport, name: string, cidr: string): Promise<void> {
  await create(client, cidrs, { metadata: { name }, spec: { cidrs: [cidr] } });
  await untilObject(client, `${cidrs}/${name}`, (body) => JSON.stringify(body).includes('"True"'));
}

const address = (name: string): JsonRecord => ({
  metadata: { name, labels: { 'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io' } },
  spec: { parentRef: { resource: 'services', namespace: 'default', name: 's' } },
});

/** Until a range stays for the sake of its addresses, or is gone. */
async function settled(client: Transport, name: string): Promise<'stays' | 'gone'> {
  const body = await untilObject(
    client,
    `${cidrs}/${name}`,
    (present, status) => status === 404 || JSON.stringify(present).includes('"Terminating"'),
  );
  return body['kind'] === 'Status' ? 'gone' : 'stays';
}

it('lets one of two overlapping ranges go, not both, though its going is not heard of yet', async () => {
  const { client } = await start();
  await createRange(client, 'wide', '10.97.0.0/28');
  await createRange(client, 'narrow', '10.97.0.0/29');
  await create(client, addresses, address('10.97.0.3'));
  for (const name of ['wide', 'narrow']) await call(client, 'DELETE', `${cidrs}/${name}`);
  const outcomes = await Promise.all([settled(client, 'wide'), settled(client, 'narrow')]);
  expect(outcomes.sort()).toEqual(['gone', 'stays']);
});

it('lets one of two overlapping ranges go, not both, when the other was listed before it went', async () => {
  const server = await startApiServer();
  onTestFinished(() => server.stop());
  const { client } = server;
  run(together(client));
  for (const name of ['one', 'other']) await createRange(client, name, '10.97.0.0/28');
  await create(client, addresses, address('10.97.0.3'));
  for (const name of ['one', 'other']) await call(client, 'DELETE', `${cidrs}/${name}`);
  const outcomes = await Promise.all([settled(client, 'one'), settled(client, 'other')]);
  expect(outcomes.sort()).toEqual(['gone', 'stays']);
});

it('keeps a range for an address that it has not heard of', async () => {
  const { client, deafTo } = await start();
  await createRange(client, 'range', '10.97.0.0/28');
  deafTo.add(addresses);
  await create(client, addresses, address('10.97.0.3'));
  await call(client, 'DELETE', `${cidrs}/range`);
  expect(await settled(client, 'range')).toBe('stays');
});
