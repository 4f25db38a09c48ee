import { pino } from 'pino';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { type ApiResponse, ConnectionError, type Transport } from '../../src/client/transport.ts';
import { runControllers } from '../../src/controllers/run.ts';
import { serviceAllocationController } from '../../src/controllers/service-allocation/controller.ts';
import { nodePortRange, readServiceCidrs } from '../../src/flags/shared.ts';
import type { JsonRecord } from '../../src/objects/json.ts';
import { textAt } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { fastClock } from '../support/fast-clock.ts';
import { call } from '../support/test-server.ts';
import { untilObject } from '../support/with-controllers.ts';
import { until } from '../support/until.ts';

const services = '/api/v1/services';
const path = '/api/v1/namespaces/default/services';
const addresses = '/apis/networking.k8s.io/v1/ipaddresses';

/** A controller behind a transport that can delay events. */
interface Allocator {
  /** Holds back all events of Services, and then delivers them at once. */
  setDeaf(isDeaf: boolean): void;
  /** The requests that it sent, `METHOD path`. */
  readonly sent: readonly string[];
}

let client: Transport;

beforeEach(async () => {
  const server = await startApiServer({ allocation: 'controller' });
  onTestFinished(() => server.stop());
  ({ client } = server);
});

/** @param lost whether the response to a request is lost. */
function startAllocator(lost: (method: string, body: unknown) => boolean = () => false): Allocator {
  const sent: string[] = [];
  let hearing: PromiseWithResolvers<undefined> | undefined;
  const transport: Transport = {
    server: client.server,
    request: async (method, at, options): Promise<ApiResponse> => {
      sent.push(`${method} ${at}`);
      const answer = await client.request(method, at, options);
      if (lost(method, options?.body)) throw new ConnectionError('RESET', 'lost by the test');
      return answer;
    },
    stream: async (at, options) => {
      const { headers, chunks } = await client.stream(at, options);
      const heard = async function* (): AsyncGenerator<Buffer> {
        for await (const chunk of chunks) {
          if (at === services) await hearing?.promise;
          yield chunk;
        }
      };
      return { headers, chunks: heard() };
    },
    close: () => Promise.resolve(),
  };
  const ranges = { serviceCidrs: readServiceCidrs('10.96.0.0/24'), nodePorts: nodePortRange('30000-30010') };
  const running = runControllers({
    transport,
    controllers: [serviceAllocationController({ transport, allocation: 'controller', ...ranges })],
    log: pino({ enabled: false }),
    clock: fastClock(10),
  });
  onTestFinished(async () => {
    hearing?.resolve(undefined);
    await running.stop();
  });
  return {
    sent,
    setDeaf: (isDeaf) => {
      hearing?.resolve(undefined);
      hearing = isDeaf ? Promise.withResolvers() : undefined;
    },
  };
}

async function create(name: string): Promise<void> {
  const answer = await call(client, 'POST', path, {
    body: { metadata: { name }, spec: { ports: [{ port: 80 }] } },
  });
  expect(answer.status).toBe(201);
}

/** The address of a Service, once it has one. */
async function givenTo(name: string): Promise<string> {
  const given = (body: JsonRecord): string => textAt(body, 'spec', 'clusterIP');
  return given(await untilObject(client, `${path}/${name}`, (body) => given(body) !== ''));
}

it('deletes no IPAddress of a Service that the cache does not have yet', async () => {
  const deaf = startAllocator();
  await create('known');
  await givenTo('known');
  deaf.setDeaf(true);
  startAllocator();
  await create('unheard');
  const address = await givenTo('unheard');
  const { body } = await call(client, 'GET', `${addresses}/${address}`);
  const isLooked = (): boolean =>
    deaf.sent.includes(`GET ${path}/unheard`) || deaf.sent.includes(`DELETE ${addresses}/${address}`);
  await until(isLooked);
  deaf.setDeaf(false);
  await create('last');
  await givenTo('last');
  expect(deaf.sent).not.toContain(`DELETE ${addresses}/${address}`);
  const after = await call(client, 'GET', `${addresses}/${address}`);
  expect(textAt(after.body, 'metadata', 'uid')).toBe(textAt(body, 'metadata', 'uid'));
});

it('creates no IPAddress for a claim that has ended', async () => {
  let isDeaf = false;
  const allocator = startAllocator((method, body) => {
    // The spec is written, and its event is held back.
    if (isDeaf || method !== 'PATCH' || !JSON.stringify(body).includes('"clusterIP":"10.')) return false;
    isDeaf = true;
    allocator.setDeaf(true);
    return true;
  });
  await create('gone');
  const address = await givenTo('gone');
  await call(client, 'DELETE', `${path}/gone`);
  const posts = (): number => allocator.sent.filter((line) => line === `POST ${addresses}`).length;
  const looks = (): number => allocator.sent.filter((line) => line === `GET ${path}/gone`).length;
  const before = { posts: posts(), looks: looks() };
  await call(client, 'DELETE', `${addresses}/${encodeURIComponent(address)}`);
  await until(() => posts() > before.posts || looks() > before.looks + 2);
  expect(posts()).toBe(before.posts);
});
