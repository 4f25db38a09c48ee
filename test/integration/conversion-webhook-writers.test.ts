import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { at, listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { eventually } from '../support/api-operations.ts';
import {
  answerAt,
  changeDefinition,
  convertAt,
  type ConvertedPaths,
  convertHostPort,
  defineConverted,
  group,
  questionsAt,
} from '../support/conversion-webhook.ts';
import { type Answer, call, revisionOf, watchEvents, watchUntil } from '../support/test-server.ts';
import { until } from '../support/until.ts';
import { patchResponse, WebhookServer } from '../support/webhook-server.ts';

/** Owners of fields, admission, watches and slow webhooks, where objects have other fields in each version. */
let server: TestServer;
let webhooks: WebhookServer;
beforeAll(async () => {
  server = await startApiServer();
  webhooks = await WebhookServer.start();
  convertAt(webhooks, '/convert');
});
afterAll(async () => {
  await server.stop();
  await webhooks.stop();
});
beforeEach(() => {
  webhooks.asked.length = 0;
});

const merge = { contentType: 'application/merge-patch+json' };
interface Sent {
  readonly query?: Record<string, string>;
  readonly contentType?: string;
}
async function send(method: string, path: string, body?: unknown, sent: Sent = {}): Promise<Answer> {
  return call(server.client, method, path, { body, ...sent });
}
const v1 = (kind: string, name: string, hostPort: string, metadata: JsonRecord = {}): JsonRecord => ({
  ...{ apiVersion: `${group}/v1`, kind, hostPort },
  metadata: { name, ...metadata },
});
const v2 = (kind: string, name: string, fields: JsonRecord): JsonRecord => ({
  ...{ apiVersion: `${group}/v2`, kind, ...fields },
  metadata: { name },
});

describe('fields are owned in the version that they were written in', () => {
  let paths: ConvertedPaths;
  beforeAll(async () => {
    paths = await defineConverted(server, webhooks, { name: 'owned' });
  });
  const apply = async (path: string, body: JsonRecord, fieldManager: string, force = false) =>
    send('PATCH', `${path}/${textAt(body, 'metadata', 'name')}`, body, {
      query: { fieldManager, ...(force && { force: 'true' }) },
      contentType: 'application/apply-patch+yaml',
    });
  const owners = ({ body }: Answer) =>
    listAt(body, 'metadata', 'managedFields').map((entry) => {
      const fields = Object.keys(recordAt(entry, 'fieldsV1')).sort().join(' ');
      return `${textAt(entry, 'manager')} ${textAt(entry, 'apiVersion').split('/')[1] ?? ''} ${fields}`;
    });

  test('an apply in another version conflicts with them, and takes them by force', async () => {
    expect(owners(await apply(paths.v1, v1('owned', 'a', 'x:1'), 'one'))).toEqual(['one v1 f:hostPort']);
    const refused = await apply(paths.v2, v2('owned', 'a', { host: 'y', port: '1' }), 'two');
    expect([refused.status, refused.body['message']]).toEqual([
      409,
      'Apply failed with 1 conflict: conflict with "one": .hostPort',
    ]);
    const same = await apply(paths.v2, v2('owned', 'a', { host: 'x' }), 'three');
    expect(owners(same).sort()).toEqual(['one v1 f:hostPort', 'three v2 f:host']);
    const forced = await apply(paths.v2, v2('owned', 'a', { host: 'y', port: '1' }), 'two', true);
    expect(forced.body).toMatchObject({ host: 'y' });
    expect(owners(forced)).toEqual(['two v2 f:host f:port']);
  });

  test('what an applier does not apply any more goes, whatever version it applied it in', async () => {
    await apply(paths.v2, v2('owned', 'b', { host: 'x', port: '1', spec: { kept: 1, gone: 2 } }), 'one');
    const next = await apply(paths.v1, { ...v1('owned', 'b', 'x:1'), spec: { kept: 1 } }, 'one');
    expect(next.body).toMatchObject({ hostPort: 'x:1', spec: { kept: 1 } });
    expect(at(next.body, 'spec')).toEqual({ kept: 1 });
    expect(owners(next)).toEqual(['one v1 f:hostPort f:spec']);
  });

  test('a write in another version takes them', async () => {
    await send('POST', paths.v1, v1('owned', 'c', 'x:1', { labels: { a: 'b' } }), {
      query: { fieldManager: 'one' },
    });
    const changed = await send(
      'PATCH',
      `${paths.v2}/c`,
      { host: 'y' },
      { ...merge, query: { fieldManager: 'two' } },
    );
    expect(owners(changed)).toEqual(['one v1 f:metadata', 'two v2 f:host']);
  });

  test('an apply fails where a manager used a version that there is not any more', async () => {
    const paths3 = await defineConverted(server, webhooks, { name: 'gone' });
    await send('POST', paths3.v1, v1('gone', 'a', 'x:1', { labels: { a: 'b' } }));
    const versions = listAt((await send('GET', paths3.definition)).body, 'spec', 'versions').map(
      (version) => ({ ...recordAt(version), storage: textAt(version, 'name') === 'v2' }),
    );
    await changeDefinition(server, paths3.definition, { spec: { versions } });
    // Stored anew, in v2.
    expect((await send('PATCH', `${paths3.v2}/a`, { port: '2' }, merge)).status).toBe(200);
    const status = { storedVersions: ['v2'] };
    expect((await send('PATCH', `${paths3.definition}/status`, { status }, merge)).status).toBe(200);
    const two = versions.filter((version) => textAt(version, 'name') === 'v2');
    const three = [...two, { ...two[0], name: 'v3', storage: false }];
    await changeDefinition(server, paths3.definition, { spec: { versions: three } });
    const refused = await eventually(
      async () => apply(paths3.v2, v2('gone', 'a', { host: 'z' }), 'one'),
      ({ status: code }) => code === 500,
    );
    expect(refused.body['message']).toBe(`request to convert CR to an invalid group/version: ${group}/v1`);
  });
});

describe('admission', () => {
  const rules = [{ operations: ['*'], apiGroups: [group], apiVersions: ['v2'], resources: ['admitteds'] }];
  let paths: ConvertedPaths;
  beforeAll(async () => {
    paths = await defineConverted(server, webhooks, { name: 'admitted' });
  });
  const clientConfig = (path: string) => ({ url: webhooks.url(path), caBundle: webhooks.caBundle });
  const registration = '/apis/admissionregistration.k8s.io/v1';

  test('webhooks see objects in the version of their rules, and what they change is converted back', async () => {
    webhooks.at('/mutate', () => patchResponse([{ op: 'replace', path: '/port', value: '7' }]));
    const hook = {
      clientConfig: clientConfig('/mutate'),
      rules,
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
    };
    const configuration = { metadata: { name: 'a' }, webhooks: [{ name: 'mutate.example.com', ...hook }] };
    await send('POST', `${registration}/mutatingwebhookconfigurations`, configuration);
    const made = await send('POST', paths.v1, v1('admitted', 'a', 'x:1'));
    expect(made.body).toMatchObject({ apiVersion: `${group}/v1`, hostPort: 'x:7' });
    const changed = await send('PATCH', `${paths.v1}/a`, { hostPort: 'y:1' }, merge);
    expect(changed.body).toMatchObject({ hostPort: 'y:7' });
    const reviews = webhooks.asked.filter(({ path }) => path === '/mutate').map(({ review }) => review);
    expect(reviews.map((review) => recordAt(review, 'request'))).toMatchObject([
      {
        kind: { version: 'v2' },
        requestKind: { version: 'v1' },
        object: { apiVersion: `${group}/v2`, host: 'x', port: '1' },
      },
      { object: { host: 'y', port: '1' }, oldObject: { apiVersion: `${group}/v2`, host: 'x', port: '7' } },
    ]);
    await send('DELETE', `${registration}/mutatingwebhookconfigurations/a`);
  });

  test('policies see them so, too, and parameters in the version that they name', async () => {
    await send('POST', paths.v2, v2('admitted', 'limits', { host: 'allowed', port: '1' }));
    await send('POST', `${registration}/validatingadmissionpolicies`, {
      metadata: { name: 'a' },
      spec: {
        paramKind: { apiVersion: `${group}/v2`, kind: 'admitted' },
        matchConstraints: { resourceRules: rules },
        validations: [
          { expression: 'object.host == params.host', messageExpression: '"not " + params.host' },
        ],
      },
    });
    await send('POST', `${registration}/validatingadmissionpolicybindings`, {
      metadata: { name: 'a' },
      spec: {
        policyName: 'a',
        validationActions: ['Deny'],
        paramRef: { name: 'limits', namespace: 'default', parameterNotFoundAction: 'Deny' },
      },
    });
    const refused = await eventually(
      async () => send('PATCH', `${paths.v1}/a`, { hostPort: 'other:1' }, merge),
      ({ status }) => status === 422,
    );
    expect(refused.body['message']).toContain('denied request: not allowed');
    const fine = await send('PATCH', `${paths.v1}/a`, { hostPort: 'allowed:1' }, merge);
    expect(fine.body).toMatchObject({ hostPort: 'allowed:1' });
    await send('DELETE', `${registration}/validatingadmissionpolicybindings/a`);
  });
});

describe('a watch', () => {
  test('has the events in their order, in its version, however long the webhook takes', async () => {
    let release: (value: unknown) => void = () => undefined;
    let gate: Promise<unknown> = new Promise((resolve) => (release = resolve));
    answerAt(
      webhooks,
      '/slow',
      (request) => ({
        convertedObjects: listAt(request, 'objects').map((object) =>
          convertHostPort(recordAt(object), textAt(request, 'desiredAPIVersion')),
        ),
        result: { status: 'Success' },
      }),
      async () => gate,
    );
    const paths = await defineConverted(server, webhooks, { name: 'slow', path: '/slow' });
    const resourceVersion = await revisionOf(server.client, paths.v1);
    const watched = watchEvents(server.client, paths.v2, { resourceVersion }, 4);
    const selecting = { resourceVersion, fieldSelector: 'metadata.name=b' };
    const selected = watchEvents(server.client, paths.v2, selecting, 2);
    await send('POST', paths.v1, v1('slow', 'a', 'a:1'));
    await send('PATCH', `${paths.v1}/a`, { hostPort: 'a:2' }, merge);
    await send('POST', paths.v1, v1('slow', 'b', 'b:1'));
    await send('DELETE', `${paths.v1}/b`);
    // The webhook holds up only those who wait for it.
    const got = send('GET', `${paths.v2}/a`);
    await until(() => questionsAt(webhooks, '/slow').length >= 2);
    expect((await send('GET', `${paths.v1}/a`)).body).toMatchObject({ hostPort: 'a:2' });
    expect((await send('GET', '/api/v1/namespaces/default')).status).toBe(200);
    release(undefined);
    const shown = (events: readonly JsonRecord[]) =>
      events.map(({ type, object }) => `${String(type)} ${textAt(object, 'host')}:${textAt(object, 'port')}`);
    expect(shown(await watched)).toEqual(['ADDED a:1', 'MODIFIED a:2', 'ADDED b:1', 'DELETED b:1']);
    expect(shown(await selected)).toEqual(['ADDED b:1', 'DELETED b:1']);
    expect((await got).body).toMatchObject({ host: 'a', port: '2' });
    // Of two writers that waited for it, the later one sees what the earlier one wrote.
    gate = new Promise((resolve) => (release = resolve));
    const before = webhooks.asked.length;
    const writes = ['3', '4'].map(async (port) =>
      send('PATCH', `${paths.v2}/a`, { status: { [port]: 1 }, port }, merge),
    );
    const statuses = ['x', 'y'].map(async (key) =>
      send('PATCH', `${paths.v2}/a/status`, { status: { [key]: 1 } }, merge),
    );
    await until(() => webhooks.asked.length >= before + 4);
    release(undefined);
    expect((await Promise.all([...writes, ...statuses])).map(({ status }) => status)).toEqual([
      200, 200, 200, 200,
    ]);
    expect((await send('GET', `${paths.v1}/a`)).body['status']).toEqual({ x: 1, y: 1 });
  });

  test('ends with why its objects cannot be had', async () => {
    convertAt(webhooks, '/ends');
    const paths = await defineConverted(server, webhooks, { name: 'ends', path: '/ends' });
    const resourceVersion = await revisionOf(server.client, paths.v1);
    answerAt(webhooks, '/ends', () => ({ result: { status: 'Failure', message: 'no' } }));
    const watched = watchEvents(server.client, paths.v2, { resourceVersion }, 9);
    await send('POST', paths.v1, v1('ends', 'a', 'a:1'));
    const message = `conversion webhook for ${group}/v1, Kind=ends failed: no`;
    const error = { code: 500, reason: 'InternalError', message: `Internal error occurred: ${message}` };
    expect(await watched).toMatchObject([{ type: 'ERROR', object: error }]);
    expect(await watchEvents(server.client, paths.v2, {}, 9)).toMatchObject([
      { type: 'ERROR', object: error },
    ]);
  });

  test('ends when its definition changes, and finds the new one', async () => {
    const paths = await defineConverted(server, webhooks, { name: 'replaced' });
    await send('POST', paths.v1, v1('replaced', 'a', 'a:1'));
    const resourceVersion = await revisionOf(server.client, paths.v1);
    const events: unknown[] = [];
    const watched = [paths.v1, paths.v2].map(async (path) =>
      watchUntil(server.client, path, { resourceVersion }, ({ object }) => {
        events.push(object);
        return false;
      }),
    );
    await send('PATCH', `${paths.v1}/a`, { hostPort: 'a:2' }, merge);
    await until(() => events.length === 2);
    convertAt(webhooks, '/new', (object, apiVersion) => ({
      ...convertHostPort(object, apiVersion),
      port: 'new',
    }));
    const webhook = { clientConfig: { url: webhooks.url('/new') } };
    await changeDefinition(server, paths.definition, { spec: { conversion: { webhook } } });
    await Promise.all(watched);
    expect(events).toHaveLength(2);
    await watchUntil(server.client, paths.v2, {}, ({ object }) => textAt(object, 'port') === 'new');
  });
});

test('a definition goes when its objects can be had again, and others do not wait for it', async () => {
  convertAt(webhooks, '/leaves');
  const paths = await defineConverted(server, webhooks, { name: 'leaves', path: '/leaves' });
  await send('POST', paths.v1, v1('leaves', 'a', 'a:1'));
  const versions = listAt((await send('GET', paths.definition)).body, 'spec', 'versions').map((version) => ({
    ...recordAt(version),
    storage: textAt(version, 'name') === 'v2',
  }));
  await changeDefinition(server, paths.definition, { spec: { versions } });
  webhooks.at('/leaves', () => 'cut');
  await send('DELETE', paths.definition);
  const condition = ({ body }: Answer) =>
    recordAt(listAt(body, 'status', 'conditions').find((one) => textAt(one, 'type') === 'Terminating'));
  const waiting = await eventually(
    async () => send('GET', paths.definition),
    (answer) => condition(answer)['reason'] === 'InstanceDeletionFailed',
  );
  expect(condition(waiting)['message']).toBe(
    `could not list instances: conversion webhook for ${group}/v1, Kind=leaves failed: ` +
      `Post "${webhooks.url('/leaves')}?timeout=30s": EOF`,
  );
  let release: (value: unknown) => void = () => undefined;
  const gate = new Promise((resolve) => (release = resolve));
  const before = webhooks.asked.length;
  answerAt(
    webhooks,
    '/leaves',
    () => ({ result: { status: 'Failure' } }),
    async () => gate,
  );
  await until(() => webhooks.asked.length > before);
  // Others are established while this one waits for its webhook.
  await defineConverted(server, webhooks, { name: 'meanwhile' });
  convertAt(webhooks, '/leaves');
  release(undefined);
  await eventually(
    async () => send('GET', paths.definition),
    ({ status }) => status === 404,
  );
});
