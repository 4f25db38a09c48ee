import { afterEach, describe, expect, it } from 'vitest';
import type { QueryParameters, Transport } from '../../src/client/transport.ts';
import type { JsonRecord } from '../../src/objects/json.ts';
import { at, listAt } from '../../src/objects/json.ts';
import { StatusError } from '../../src/objects/status.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { overtaken } from '../support/overtaken.ts';
import { call } from '../support/test-server.ts';
import { startControllers, untilObject } from '../support/with-controllers.ts';

const services = '/api/v1/namespaces/default/services';
const endpoints = '/api/v1/namespaces/default/endpoints';
const configMaps = '/api/v1/namespaces/default/configmaps';
const ports = [{ port: 80 }];

const ending: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

/** A server that leaves the Endpoints of Services that go to others. */
async function startServer(): Promise<TestServer> {
  const server = await startApiServer({ allocation: 'controller' });
  ending.push(() => server.stop());
  return server;
}

function run(transport: Transport, controllers: readonly string[]): void {
  const { running } = startControllers(transport, controllers);
  ending.push(() => running.stop());
}

async function create(
  { client }: TestServer,
  path: string,
  body: JsonRecord,
  query: QueryParameters = {},
): Promise<string> {
  const { status, body: made } = await call(client, 'POST', path, { body, query });
  expect(status, JSON.stringify(made)).toBe(201);
  return String(at(made, 'metadata', 'uid'));
}

async function merge({ client }: TestServer, path: string, body: JsonRecord): Promise<void> {
  const { status } = await call(client, 'PATCH', path, { body, contentType: 'application/merge-patch+json' });
  expect(status).toBe(200);
}

/** As another client: that of a test server has the name of ours. */
async function writeByHand(server: TestServer, name: string): Promise<string> {
  await create(server, services, { metadata: { name }, spec: { ports } });
  const subsets = [{ addresses: [{ ip: '10.9.0.1' }], ports }];
  return create(server, endpoints, { metadata: { name }, subsets }, { fieldManager: 'kubectl' });
}

describe('controllers, beside others who write the same objects', () => {
  it('endpoints-controller takes Endpoints over that were written by hand, though it fails at first', async () => {
    const server = await startServer();
    const failing = overtaken(
      server.client,
      ({ method, path }) => method === 'PUT' && path === `${endpoints}/web`,
      () => Promise.reject(new StatusError(500, 'InternalError', 'for once')),
    );
    await writeByHand(server, 'web');
    run(failing, ['endpoints-controller']);
    await merge(server, `${services}/web`, { spec: { selector: { app: 'web' } } });
    await untilObject(server.client, `${endpoints}/web`, (body) => listAt(body, 'subsets').length === 0);
  });

  it('garbage-collector-controller deletes nothing that was set free a moment before', async () => {
    const server = await startServer();
    const { client } = server;
    const late = overtaken(
      client,
      ({ method, path }) => method === 'DELETE' && path === `${configMaps}/freed`,
      () => merge(server, `${configMaps}/freed`, { metadata: { ownerReferences: null } }),
    );
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner' };
    const uid = await create(server, configMaps, { metadata: { name: 'owner' } });
    const ownerReferences = [{ ...owner, uid }];
    await create(server, configMaps, { metadata: { name: 'freed', ownerReferences } });
    run(late, ['garbage-collector-controller']);
    await call(client, 'DELETE', `${configMaps}/owner`);
    await late.over;
    expect((await call(client, 'GET', `${configMaps}/freed`)).status).toBe(200);
  });
});
