import { afterAll, beforeAll, expect, it } from 'vitest';
import { at, listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

const core = '/api/v1/namespaces/default';
let server: TestServer;

beforeAll(async () => {
  server = await startApiServer({ nodes: 1 });
});
afterAll(() => server.stop());

const request = async (method: string, path: string, body?: object): Promise<object> => {
  const headers = method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {};
  const sent = { headers, ...(body === undefined ? {} : { body }) };
  const answer = await call(server.client, method, `${core}/${path}`, sent);
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
  return answer.body;
};
const shown = async (name: string) => {
  const pod = await request('GET', `pods/${name}`);
  const [status] = listAt(pod, 'status', 'containerStatuses');
  const pending = listAt(pod, 'status', 'conditions').find(
    (each) => textAt(each, 'type') === 'PodResizePending',
  );
  return {
    resources: at(status, 'resources'),
    allocated: at(status, 'allocatedResources'),
    restarts: at(status, 'restartCount'),
    pending: pending === undefined ? '' : textAt(pending, 'reason'),
    message: pending === undefined ? '' : textAt(pending, 'message'),
  };
};
const container = (cpu: string, more: object = {}): object => ({
  ...{ name: 'c', image: 'i', resources: { requests: { cpu } }, ...more },
});
const start = async (name: string, cpu: string, more: object = {}): Promise<void> => {
  await request('POST', 'pods', { metadata: { name }, spec: { containers: [container(cpu, more)] } });
  await expect.poll(() => shown(name)).toMatchObject({ resources: { requests: { cpu } } });
};
const resize = (name: string, cpu: string, more: object = {}): Promise<object> =>
  request('PATCH', `pods/${name}/resize`, { spec: { containers: [container(cpu, more)] } });
const reasons = async (name: string): Promise<readonly string[]> => {
  const events = await request('GET', `events?fieldSelector=involvedObject.name=${name}`);
  return listAt(events, 'items').map((each) => textAt(each, 'reason'));
};
/** A Pod has this, and no resize waits. */
const has = (cpu: string, restarts = 0): object => ({
  ...{ resources: { requests: { cpu } }, allocated: { cpu }, restarts, pending: '' },
});

it('a Pod that runs gets other resources in place', async () => {
  await start('in-place', '100m');
  await resize('in-place', '200m');
  await expect.poll(() => shown('in-place')).toMatchObject(has('200m'));
  const both = ['ResizeStarted', 'ResizeCompleted'];
  await expect.poll(() => reasons('in-place')).toEqual(expect.arrayContaining(both));
});

it('a container whose policy says so is started again', async () => {
  const resizePolicy = [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }];
  await start('restarted', '100m', { resizePolicy });
  await resize('restarted', '200m', { resizePolicy });
  await expect.poll(() => shown('restarted')).toMatchObject(has('200m', 1));
});

it('what the node never has is refused, and what others have is waited for', async () => {
  const { body: nodes } = await call(server.client, 'GET', '/api/v1/nodes');
  const all = Number(textAt(listAt(nodes, 'items')[0], 'status', 'allocatable', 'cpu'));
  await start('first', '1');
  await start('second', '1');
  await resize('second', String(all + 1));
  await expect.poll(() => shown('second')).toMatchObject({ ...has('1'), pending: 'Infeasible' });
  await resize('second', String(all));
  await expect.poll(() => shown('second')).toMatchObject({ ...has('1'), pending: 'Deferred' });
  expect((await shown('second')).message).toContain("Node didn't have enough resource: cpu");
  const refused = ['ResizeInfeasible', 'ResizeDeferred'];
  await expect.poll(() => reasons('second')).toEqual(expect.arrayContaining(refused));
  for (const name of await namesWithout('second')) await request('DELETE', `pods/${name}`);
  await expect.poll(() => shown('second')).toMatchObject(has(String(all)));
});

async function namesWithout(name: string): Promise<readonly string[]> {
  return listAt(await request('GET', 'pods'), 'items')
    .map((each) => textAt(each, 'metadata', 'name'))
    .filter((each) => each !== name);
}
