import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createTransport } from '../../src/client/connect.ts';
import { agentLabels, agentName, flowsAudience } from '../../src/network/flows/agents.ts';
import type { Flow, FlowEnd } from '../../src/network/flows/flow.ts';
import { numberAt, listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { commandLine } from '../support/command-line.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { linesOf, type RunningFlowServer, startFlowServer, wholeAnswer } from '../support/flow-server.ts';
import { call } from '../support/test-server.ts';

/** Who may look at the flows of a node, by the answers of our API server under RBAC. */

let api: TestServer;
let clock: FakeClock;
let server: RunningFlowServer;
const rbac = '/apis/rbac.authorization.k8s.io/v1';

async function create(path: string, body: object): Promise<unknown> {
  const answer = await call(api.client, 'POST', path, { body });
  if (answer.status >= 300) throw new Error(JSON.stringify(answer.body));
  return answer.body;
}

/** A token of `shop/NAME`. */
async function tokenOf(name: string, spec: object = {}): Promise<string> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
  return textAt(
    await create(`/api/v1/namespaces/shop/serviceaccounts/${name}/token`, body),
    'status',
    'token',
  );
}

const subjectsOf = (name: string) => [{ kind: 'ServiceAccount', namespace: 'shop', name }];
const roleRef = (name: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name });
const lists = [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }];

beforeAll(async () => {
  api = await startApiServer({ authorizationMode: 'RBAC', controllers: [], nodes: 0 });
  for (const name of ['shop', 'bank']) await create('/api/v1/namespaces', { metadata: { name } });
  // `half` may look, `shop` may see its namespace too, `all` every one; `none` has nothing.
  for (const name of ['none', 'half', 'shop', 'all', 'leaver'])
    await create('/api/v1/namespaces/shop/serviceaccounts', { metadata: { name } });
  const rules = [{ nonResourceURLs: ['/flows'], verbs: ['get'] }];
  await create(`${rbac}/clusterroles`, { metadata: { name: 'flows' }, rules });
  await create(`${rbac}/clusterroles`, { metadata: { name: 'lists' }, rules: lists });
  for (const name of ['half', 'shop', 'all', 'leaver']) {
    const binding = { metadata: { name: `flows-${name}` }, roleRef: roleRef('flows') };
    await create(`${rbac}/clusterrolebindings`, { ...binding, subjects: subjectsOf(name) });
  }
  const ofAll = { metadata: { name: 'lists' }, roleRef: roleRef('lists') };
  await create(`${rbac}/clusterrolebindings`, {
    ...ofAll,
    subjects: [...subjectsOf('all'), ...subjectsOf('leaver')],
  });
  await create(`${rbac}/namespaces/shop/rolebindings`, { ...ofAll, subjects: subjectsOf('shop') });
});
afterAll(() => api.stop());
beforeEach(async () => {
  clock = new FakeClock();
  server = await startFlowServer(api.client, clock);
});
afterEach(() => server.close());

let lastId = 0;

function end(namespace: string): FlowEnd {
  if (namespace === 'outside') return { kind: 'outside', address: '198.51.100.7' };
  return { kind: 'Pod', namespace, name: 'a', address: '10.244.1.2' };
}

function flow(from: string, to: string, service?: string): Flow {
  return {
    ...{ id: ++lastId, time: '2026-11-29T12:00:00.000Z', from: end(from), to: end(to) },
    ...(service === undefined
      ? {}
      : { service: { namespace: service, name: 's', port: 80, address: '10.96.0.9' } }),
    ...{ protocol: 'TCP', outcome: 'connected' },
  };
}

/** One of each kind that matters to who sees it. */
const flows = {
  own: flow('shop', 'shop', 'shop'),
  fromOutside: flow('outside', 'shop', 'shop'),
  toBank: flow('shop', 'bank'),
  byBank: flow('shop', 'shop', 'bank'),
  bank: flow('bank', 'bank'),
  noNamespace: flow('outside', 'outside'),
};
const nameOf = new Map(Object.entries(flows).map(([name, { id }]) => [id, name]));

test('without a token, with a wrong one, or without the right, nobody sees anything', async () => {
  const answers = [
    await wholeAnswer(await server.ask(undefined)),
    await wholeAnswer(await server.ask('wrong')),
    await wholeAnswer(await server.ask(await tokenOf('none'))),
    await wholeAnswer(await server.ask(await tokenOf('all', { audiences: ['vault'] }))),
  ];
  expect(answers.map(({ status }) => status)).toEqual([401, 401, 403, 401]);
  expect(answers[2]?.said).toContain('"system:serviceaccount:shop:none" may not get /flows');
  expect(server.told.viewers).toBe(0);
});

test.each([
  ['half', []],
  ['shop', ['own', 'fromOutside']],
  ['all', Object.keys(flows)],
])('%s sees flows all of whose namespaces it may list Pods in', async (name, expected) => {
  server.told.known = Object.values(flows);
  const lines = linesOf(await server.ask(await tokenOf(name)));
  const seen = (line: unknown, member: string) =>
    listAt(line, member).map((each) => nameOf.get(numberAt(each, 'id')));
  expect(seen(JSON.parse((await lines.next()).value ?? ''), 'known')).toEqual(expected);
  server.told.tell({ flows: Object.values(flows), lost: 3 });
  const line: unknown = JSON.parse((await lines.next()).value ?? '');
  expect(seen(line, 'flows')).toEqual(expected);
  expect(numberAt(line, 'lost')).toBe(3);
});

test('a token for flows alone opens nothing else', async () => {
  const token = await tokenOf('all', { audiences: [flowsAudience] });
  const response = await server.ask(token);
  expect(response.statusCode).toBe(200);
  response.destroy();
  const other = await createTransport({ kind: 'endpoint', url: api.url, ca: api.ca, token });
  await expect(other.request('GET', '/api/v1/pods')).rejects.toMatchObject({ code: 401 });
  await other.close();
});

test('one who may not look any more is told so within a minute, and what looks has an end', async () => {
  const lines = linesOf(await server.ask(await tokenOf('leaver')));
  expect((await lines.next()).value).toBe('{"known":[]}');
  expect(server.told.viewers).toBe(1);
  await call(api.client, 'DELETE', `${rbac}/clusterrolebindings/flows-leaver`);
  let last: unknown;
  for (let seconds = 0; seconds <= 70 && textAt(last, 'error') === ''; seconds += 10) {
    await clock.advance(10_000);
    last = JSON.parse((await lines.next()).value ?? '');
  }
  expect(textAt(last, 'error')).toBe('the user may not look at flows any more');
  expect((await lines.next()).done).toBe(true);
  await expect.poll(() => server.told.viewers).toBe(0);
});

test('a viewer that does not read is cut', async () => {
  const response = await server.ask(await tokenOf('all'));
  response.pause();
  const many = Array.from({ length: 2000 }, () => flow('shop', 'shop'));
  await expect
    .poll(
      () => {
        server.told.tell({ flows: many, lost: 0 });
        return server.told.viewers;
      },
      { timeout: 60_000 },
    )
    .toBe(0);
});

test('sixteen may look at a time', async () => {
  const token = await tokenOf('all');
  const open = await Promise.all(Array.from({ length: 16 }, () => server.ask(token)));
  expect(open.every(({ statusCode }) => statusCode === 200)).toBe(true);
  expect((await server.ask(token)).statusCode).toBe(429);
  for (const each of open) each.destroy();
  await expect.poll(() => server.told.viewers).toBe(0);
  const again = await server.ask(token);
  expect(again.statusCode).toBe(200);
  again.destroy();
});

test('many unknown tokens do not reach the API server', async () => {
  const answers = await Promise.all(Array.from({ length: 30 }, (_, i) => server.ask(`guess-${i}`)));
  const statuses = answers.map(({ statusCode }) => statusCode);
  expect(statuses.filter((status) => status === 401)).toHaveLength(10);
  expect(statuses.filter((status) => status === 429)).toHaveLength(20);
});

test.each([
  ['?namespace=a%20b', {}, 400],
  ['?namespace=', {}, 400],
  ['?last=10001', {}, 400],
  ['?follow=true', {}, 400],
  ['', { method: 'POST' }, 405],
  ['/more', {}, 404],
  ['', { headers: { authorization: `Bearer ${'x'.repeat(64 * 1024)}` } }, 431],
])('refuses %s %j with %d', async (query, options, status) => {
  expect((await server.ask('token', query, options)).statusCode).toBe(status);
});

test('a viewer of a cluster gets the last of those that one object decided, of all that agents know', async () => {
  const { authority, port } = server;
  await create('/api/v1/namespaces', { metadata: { name: 'servicenet-system' } });
  await create('/api/v1/namespaces/servicenet-system/configmaps', {
    metadata: { name: agentName('node-1'), labels: agentLabels },
    data: { node: 'node-1', addresses: '127.0.0.1', port: String(port), authority },
  });
  const decided = (object: string): Flow => ({
    ...{ ...flow('shop', 'shop'), outcome: 'dropped', time: new Date().toISOString() },
    decidedBy: { object, message: 'no rule matches' },
  });
  const denied = [decided('NetworkPolicy shop/deny-in'), decided('NetworkPolicy shop/deny-in')];
  server.told.known = [...denied, ...Array.from({ length: 300 }, () => decided('NetworkPolicy shop/other'))];
  const folder = await mkdtemp(join(tmpdir(), 'cluster-flows-'));
  const kubeconfig = join(folder, 'kubeconfig');
  await writeFile(kubeconfig, api.kubeconfig);
  try {
    const asked = ['flows', '--kubeconfig', kubeconfig, '-n', 'shop', '-o', 'json'];
    const both = await commandLine(...asked, '--by', 'netpol/deny-in');
    const idsOf = (lines: string): readonly number[] =>
      lines.split('\n').flatMap((line) => (line === '' ? [] : [numberAt(JSON.parse(line), 'id')]));
    expect(both).toMatchObject({ code: 0, errors: '' });
    expect(idsOf(both.output)).toHaveLength(2);
    const last = await commandLine(...asked, '--by', 'netpol/deny-in', '--last', '1');
    expect(idsOf(last.output)).toHaveLength(1);
    const groups = await commandLine(...asked, '--by', 'netpol/shop/deny-in', '--groups');
    expect(JSON.parse(groups.output)).toMatchObject({
      ...{ count: 2, decidedBy: 'NetworkPolicy shop/deny-in: no rule matches' },
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});
