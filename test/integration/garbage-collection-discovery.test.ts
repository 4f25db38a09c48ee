import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import type { Transport } from '../../src/client/transport.ts';
import type { JsonRecord } from '../../src/objects/json.ts';
import { at } from '../../src/objects/json.ts';
import { StatusError } from '../../src/objects/status.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';
import { startControllers, untilObject } from '../support/with-controllers.ts';

const configMaps = '/api/v1/namespaces/default/configmaps';
const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases';

/** A server and its collector of garbage, which cannot read what the group v1 has, so many times. */
async function startWithout(failures: number): Promise<{
  client: Transport;
  begin: () => void;
  /** Lines of the log that are warnings or worse. */
  warnings: readonly string[];
}> {
  const warnings: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line) => void warnings.push(line) });
  const server = await startApiServer();
  const { client } = server;
  let left = failures;
  const broken: Transport = {
    server: client.server,
    request: async (method, path, options) => {
      // A server whose groups are read one by one.
      const sent = path === '/api' || path === '/apis' ? { ...options, headers: {} } : options;
      if (path !== '/api/v1' || left-- <= 0) return client.request(method, path, sent);
      throw new StatusError(500, 'InternalError', 'broken by the test');
    },
    stream: (path, options) => client.stream(path, options),
    close: () => Promise.resolve(),
  };
  onTestFinished(() => server.stop());
  const begin = (): void => {
    const { running } = startControllers(broken, ['garbage-collector-controller'], undefined, log);
    onTestFinished(() => running.stop());
  };
  return { client, begin, warnings };
}

async function create(client: Transport, path: string, body: JsonRecord): Promise<JsonRecord> {
  const answer = await call(client, 'POST', path, { body });
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
  return answer.body;
}

function owned(owner: JsonRecord, name: string): JsonRecord {
  const { apiVersion, kind } = owner;
  const reference = {
    apiVersion,
    kind,
    name: at(owner, 'metadata', 'name'),
    uid: at(owner, 'metadata', 'uid'),
  };
  return { metadata: { name, ownerReferences: [reference] } };
}

it('follows a group that could not be read at first, and says nothing of a moment', async () => {
  const { client, begin, warnings } = await startWithout(2);
  const owner = await create(client, configMaps, { metadata: { name: 'owner' } });
  await create(client, configMaps, owned(owner, 'child'));
  begin();
  await call(client, 'DELETE', `${configMaps}/owner`);
  await untilObject(client, `${configMaps}/child`, (_, status) => status === 404);
  expect(warnings).toEqual([]);
});

it('orphans no dependent that it does not know yet', async () => {
  const { client, begin } = await startWithout(1);
  const owner = await create(client, leases, { metadata: { name: 'owner' } });
  await create(client, configMaps, owned(owner, 'child'));
  await call(client, 'DELETE', `${leases}/owner?propagationPolicy=Orphan`);
  begin();
  await untilObject(client, `${leases}/owner`, (_, status) => status === 404);
  const { body } = await call(client, 'GET', `${configMaps}/child`);
  expect(at(body, 'metadata', 'ownerReferences')).toBeUndefined();
});
