import { pino } from 'pino';
import { afterAll, expect, test } from 'vitest';
import { runControllers } from '../../src/controllers/run.ts';
import { storageVersionMigratorController } from '../../src/controllers/storage-version-migrator/controller.ts';
import { at, type JsonRecord, listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { call, untilFound } from '../support/test-server.ts';
import { untilObject } from '../support/with-controllers.ts';

const server = await startApiServer();
const { client } = server;
const running = runControllers({
  transport: client,
  controllers: [storageVersionMigratorController(client)],
  log: pino({ enabled: false }),
});
afterAll(async () => {
  await running.stop();
  await server.stop();
});

const migrations = '/apis/storagemigration.k8s.io/v1/storageversionmigrations';
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const contentType = 'application/merge-patch+json';

async function migrate(name: string, resource: JsonRecord): Promise<JsonRecord> {
  const body = { metadata: { name }, spec: { resource } };
  const created = await call(client, 'POST', migrations, { body });
  expect(created.status, JSON.stringify(created.body)).toBe(201);
  return untilObject(
    client,
    `${migrations}/${name}`,
    (object) =>
      listAt(object, 'status', 'conditions').some(
        (condition) => textAt(condition, 'type') === 'Running' && textAt(condition, 'status') === 'False',
      ) ||
      // A migration that failed before it ran.
      listAt(object, 'status', 'conditions').some((condition) => textAt(condition, 'type') === 'Failed'),
  );
}

const conditionsOf = (object: JsonRecord): string[] =>
  listAt(object, 'status', 'conditions').map((condition) =>
    ['type', 'status', 'reason', 'message'].map((member) => textAt(condition, member)).join(' '),
  );

test(
  'custom objects are stored in the new version, which is the only one then',
  { timeout: 60_000 },
  async () => {
    const version = (name: string, storage: boolean) => ({
      ...{ name, served: true, storage },
      schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
    });
    const body = {
      metadata: { name: 'widgets.example.com' },
      spec: {
        ...{ group: 'example.com', scope: 'Namespaced', names: { plural: 'widgets', kind: 'Widget' } },
        versions: [version('v1', true), version('v2', false)],
      },
    };
    expect((await call(client, 'POST', definitions, { body })).status).toBe(201);
    await untilFound(client, '/apis/example.com/v1/widgets');
    const path = '/apis/example.com/v1/namespaces/default/widgets';
    const stored: string[] = [];
    for (const name of ['a', 'b']) {
      const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name } };
      stored.push(
        textAt((await call(client, 'POST', path, { body: widget })).body, 'metadata', 'resourceVersion'),
      );
    }
    const versions = [version('v1', false), version('v2', true)];
    const changed = await call(client, 'PATCH', `${definitions}/widgets.example.com`, {
      ...{ body: { spec: { versions } }, contentType },
    });
    expect(at(changed.body, 'status', 'storedVersions')).toEqual(['v1', 'v2']);
    const migrated = await migrate('widgets', { group: 'example.com', resource: 'widgets' });
    expect(conditionsOf(migrated)).toEqual([
      'Running False MigrationCompleted Migration completed',
      'Succeeded True StorageVersionMigrationSucceeded Migration completed',
    ]);
    const { body: definition } = await call(client, 'GET', `${definitions}/widgets.example.com`);
    expect(at(definition, 'status', 'storedVersions')).toEqual(['v2']);
    expect(conditionsOf(definition)).toContain(
      'StorageMigrating False MigrationSucceeded The migration has succeeded and the stored versions have been updated',
    );
    for (const [i, name] of ['a', 'b'].entries()) {
      const { body: widget } = await call(client, 'GET', `${path}/${name}`);
      expect(textAt(widget, 'metadata', 'resourceVersion')).not.toBe(stored[i]);
    }
    expect((await call(client, 'DELETE', `${migrations}/widgets`)).status).toBe(200);
  },
);

test('what cannot be rewritten fails', { timeout: 60_000 }, async () => {
  const bindings = await migrate('bindings', { group: '', resource: 'bindings' });
  expect(conditionsOf(bindings)).toContain(
    'Failed True StorageVersionMigrationFailed resource "/v1, Resource=bindings" does not support discovery operations: [update patch list]',
  );
});

test('objects of built-in kinds stay as they are', { timeout: 60_000 }, async () => {
  const path = '/api/v1/namespaces/default/configmaps';
  const created = await call(client, 'POST', path, { body: { metadata: { name: 'a' }, data: { b: 'c' } } });
  const migrated = await migrate('maps', { group: '', resource: 'configmaps' });
  expect(conditionsOf(migrated)[1]).toBe(
    'Succeeded True StorageVersionMigrationSucceeded Migration completed',
  );
  const { body } = await call(client, 'GET', `${path}/a`);
  expect(body).toEqual(created.body);
});
