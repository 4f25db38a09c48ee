import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, numberAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { eventually } from '../../support/api-operations.ts';
import { createTestingNamespace, deleteOptions } from '../../support/e2e-framework.ts';
import { type Answer, call } from '../../support/test-server.ts';
import type { TypedClient } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of e2e tests of Jobs and CronJobs (`apps/job.go`, `apps/cronjob.go`); titles are theirs. */
export function jobs(shared: () => E2eCluster): void {
  let server: TestServer;
  let client: TypedClient;
  let name = '';
  let batch = '';
  let pods = '';
  beforeAll(() => {
    ({ server, client } = shared());
  });
  beforeEach(async () => {
    name = await createTestingNamespace(client, 'job');
    batch = `/apis/batch/v1/namespaces/${name}`;
    pods = `/api/v1/namespaces/${name}/pods`;
  });

  /** `NewTestJob`: two Pods at a time, four in all, which run on unless an annotation says otherwise. */
  const job = (
    jobName: string,
    fields: JsonRecord = {},
    annotations: JsonRecord = { 'servicenet.dev/complete-after': '1h' },
  ): JsonRecord => ({
    ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: jobName, ...fields } },
    spec: {
      ...{ parallelism: 2, completions: 4, backoffLimit: 6, manualSelector: false },
      template: {
        metadata: { labels: { job: jobName }, annotations },
        spec: {
          ...{ restartPolicy: 'Never', terminationGracePeriodSeconds: 0 },
          containers: [{ name: 'c', image: 'busybox', command: ['sleep', '1000000'] }],
        },
      },
    },
  });

  async function create(path: string, body: JsonRecord): Promise<JsonRecord> {
    const { status, body: answer } = await client.call('POST', path, { body });
    expect([status, answer['message']]).toEqual([201, undefined]);
    return answer;
  }

  /** Waits until so many Pods of a Job are there. */
  async function podsOf(jobName: string, count: number): Promise<readonly unknown[]> {
    const { body } = await eventually(
      async () => client.call('GET', pods, { query: { labelSelector: `job=${jobName}` } }),
      (answer) => listAt(answer.body, 'items').length === count,
    );
    return listAt(body, 'items');
  }

  /** Reads, changes and writes until there is no conflict. */
  async function update(path: string, change: (body: JsonRecord) => JsonRecord, to = path): Promise<Answer> {
    return eventually(
      async () => client.call('PUT', to, { body: change((await client.call('GET', path)).body) }),
      ({ status }) => status !== 409,
    );
  }

  test('[sig-apps] Job should adopt matching orphans and release non-matching pods', async () => {
    const made = await create(`${batch}/jobs`, job('adopt-release'));
    const [pod] = await podsOf('adopt-release', 2);
    const path = `${pods}/${textAt(pod, 'metadata', 'name')}`;
    const orphaned = await update(path, (body) => {
      const { ownerReferences: _owners, ...metadata } = recordAt(body, 'metadata');
      return { ...body, metadata };
    });
    expect(orphaned.status).toBe(200);
    const { body } = await eventually(
      async () => client.call('GET', path),
      (answer) => listAt(answer.body, 'metadata', 'ownerReferences').length > 0,
    );
    expect(listAt(body, 'metadata', 'ownerReferences')).toMatchObject([
      { kind: 'Job', name: 'adopt-release', uid: textAt(made, 'metadata', 'uid'), controller: true },
    ]);
    const unlabelled = await update(path, (read) => {
      const { labels: _labels, ...metadata } = recordAt(read, 'metadata');
      return { ...read, metadata };
    });
    expect(unlabelled.status).toBe(200);
    await eventually(
      async () => client.call('GET', path),
      (answer) => listAt(answer.body, 'metadata', 'ownerReferences').length === 0,
    );
  });

  const stamp = (milliseconds: number): string => new Date(milliseconds).toISOString().replace(/\.\d+/, '');

  test('[sig-apps] Job should apply changes to a job status', async () => {
    const made = await create(`${batch}/jobs`, job('suspend-false-to-true'));
    await podsOf('suspend-false-to-true', 2);
    const path = `${batch}/jobs/suspend-false-to-true`;
    const condition = { type: 'CustomConditionType', status: 'True', lastTransitionTime: stamp(Date.now()) };
    const patched = await client.call('PATCH', `${path}/status`, {
      body: {
        metadata: { annotations: { patchedstatus: 'true' } },
        status: { conditions: [{ ...condition, lastProbeTime: null }] },
      },
      patch: 'merge',
    });
    expect(patched.status).toBe(200);
    expect(textAt(patched.body, 'metadata', 'annotations', 'patchedstatus')).toBe('true');
    expect(listAt(patched.body, 'status', 'conditions')).toMatchObject([condition]);
    const later = { ...condition, lastTransitionTime: stamp(Date.now() + 1000) };
    const updated = await update(
      path,
      (body) => ({ ...body, status: { ...recordAt(body, 'status'), conditions: [later] } }),
      `${path}/status`,
    );
    expect([updated.status, listAt(updated.body, 'status', 'conditions')]).toMatchObject([200, [later]]);
    const read = await call(server.client, 'GET', `${path}/status`);
    expect(textAt(read.body, 'metadata', 'uid')).toBe(textAt(made, 'metadata', 'uid'));
  });

  test('[sig-apps] Job should manage the lifecycle of a job', async () => {
    const labels = { 'e2e-job-label': 'e2e-job' };
    const labelSelector = 'e2e-job-label=e2e-job';
    const path = `${batch}/jobs/e2e-job`;
    const { body: list } = await client.call('GET', `${batch}/jobs`, { query: { labelSelector } });
    const resourceVersion = textAt(list, 'metadata', 'resourceVersion');
    const watch = await client.watch(`${batch}/jobs`, { labelSelector, resourceVersion });
    const drafted = job('e2e-job', { labels }, { 'servicenet.dev/complete-after': '0' });
    await create(`${batch}/jobs`, { ...drafted, spec: { ...recordAt(drafted, 'spec'), suspend: true } });
    const patch = {
      body: { metadata: { labels: { 'e2e-job': 'patched' } } },
      patch: 'strategic-merge' as const,
    };
    const patched = await client.call('PATCH', path, patch);
    expect(textAt(patched.body, 'metadata', 'labels', 'e2e-job')).toBe('patched');
    await watch.until(({ type, object }) => {
      return type === 'MODIFIED' && textAt(object, 'metadata', 'labels', 'e2e-job') === 'patched';
    });
    const updated = await update(path, (body) => {
      const metadata = { ...recordAt(body, 'metadata'), annotations: { updated: 'true' } };
      return { ...body, metadata, spec: { ...recordAt(body, 'spec'), suspend: false } };
    });
    expect([updated.status, textAt(updated.body, 'metadata', 'annotations', 'updated')]).toEqual([
      200,
      'true',
    ]);
    await watch.until(({ object }) => textAt(object, 'metadata', 'annotations', 'updated') === 'true');
    const everywhere = async (): Promise<readonly unknown[]> =>
      listAt((await client.call('GET', '/apis/batch/v1/jobs', { query: { labelSelector } })).body, 'items');
    expect(await everywhere()).toHaveLength(1);
    await watch.until(({ object }) => numberAt(object, 'status', 'succeeded') === 4);
    const body = deleteOptions({ propagationPolicy: 'Background' });
    expect((await client.call('DELETE', `${batch}/jobs`, { body, query: { labelSelector } })).status).toBe(
      200,
    );
    await watch.until(({ type }) => type === 'DELETED');
    expect(await everywhere()).toEqual([]);
    watch.stop();
  });

  test('a Job that is deleted without a word about its Pods leaves them, with a warning', async () => {
    await create(`${batch}/jobs`, job('left'));
    await podsOf('left', 2);
    const deleted = await call(server.client, 'DELETE', `${batch}/jobs/left`);
    expect([deleted.status, deleted.warnings]).toEqual([
      200,
      [
        'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning',
      ],
    ]);
    await eventually(
      async () => client.call('GET', `${batch}/jobs/left`),
      ({ status }) => status === 404,
    );
    for (const pod of await podsOf('left', 2)) expect(listAt(pod, 'metadata', 'ownerReferences')).toEqual([]);
  });

  const cronJob = (cronName: string, fields: JsonRecord = {}): JsonRecord => ({
    ...{ apiVersion: 'batch/v1', kind: 'CronJob' },
    metadata: { name: cronName, labels: { 'special-label': name } },
    spec: {
      ...{ schedule: '* */1 * * ?', concurrencyPolicy: 'Allow' },
      ...{ successfulJobsHistoryLimit: 1, failedJobsHistoryLimit: 0, ...fields },
      jobTemplate: {
        spec: {
          ...{ parallelism: 1, completions: 1, backoffLimit: 1 },
          template: {
            spec: {
              restartPolicy: 'OnFailure',
              volumes: [{ name: 'data', emptyDir: {} }],
              containers: [
                {
                  ...{ name: 'c', image: 'busybox', command: ['/bin/true'] },
                  volumeMounts: [{ name: 'data', mountPath: '/data' }],
                },
              ],
            },
          },
        },
      },
    },
  });

  test('[sig-apps] CronJob should support timezone', async () => {
    const body = cronJob('cronjob-with-timezone', { timeZone: 'bad-time-zone' });
    const refused = await client.call('POST', `${batch}/cronjobs`, { body });
    expect([refused.status, refused.body['reason']]).toEqual([422, 'Invalid']);
  });

  test('[sig-apps] CronJob should delete successful finished jobs with limit of one successful job', async () => {
    // The limit is none here, and the schedule of a second: Jobs have names by the minute, and upstream waits for two.
    const path = `${batch}/cronjobs/successful`;
    const jobTemplate = {
      spec: recordAt(job('once', {}, { 'servicenet.dev/complete-after': '1s' }), 'spec'),
    };
    const fields = { schedule: '@every 1s', successfulJobsHistoryLimit: 0, jobTemplate };
    await create(`${batch}/cronjobs`, cronJob('successful', fields));
    await eventually(
      async () => client.call('GET', path),
      ({ body }) => textAt(body, 'status', 'lastSuccessfulTime') !== '',
    );
    const suspend = { body: { spec: { suspend: true } }, patch: 'merge' as const };
    expect((await client.call('PATCH', path, suspend)).status).toBe(200);
    await eventually(
      async () => client.call('GET', `${batch}/jobs`),
      ({ body }) => listAt(body, 'items').length === 0,
    );
    expect((await client.call('DELETE', path)).status).toBe(200);
  });

  test('[sig-apps] CronJob should support CronJob API operations', async () => {
    const path = `${batch}/cronjobs/test-api`;
    const query = { labelSelector: `special-label=${name}` };
    const made = await create(`${batch}/cronjobs`, cronJob('test-api'));
    const uid = textAt(made, 'metadata', 'uid');
    expect(textAt((await client.call('GET', path)).body, 'metadata', 'uid')).toBe(uid);
    const list = await client.call('GET', `${batch}/cronjobs`, { query });
    expect(listAt(list.body, 'items')).toHaveLength(1);
    const resourceVersion = textAt(list.body, 'metadata', 'resourceVersion');
    const watch = await client.watch(`${batch}/cronjobs`, { ...query, resourceVersion });
    const all = await client.call('GET', '/apis/batch/v1/cronjobs', { query });
    expect(listAt(all.body, 'items')).toHaveLength(1);
    const wide = await client.watch('/apis/batch/v1/cronjobs', { ...query, resourceVersion });
    const patch = { body: { metadata: { annotations: { patched: 'true' } } }, patch: 'merge' as const };
    const patched = await client.call('PATCH', path, patch);
    expect(textAt(patched.body, 'metadata', 'annotations', 'patched')).toBe('true');
    const updated = await update(path, (body) => {
      const metadata = recordAt(body, 'metadata');
      const annotations = { ...recordAt(metadata, 'annotations'), updated: 'true' };
      return { ...body, metadata: { ...metadata, annotations } };
    });
    expect(textAt(updated.body, 'metadata', 'annotations', 'updated')).toBe('true');
    for (const each of [watch, wide]) {
      // As in the suite: a status of the controller may come before, where a minute begins.
      for (let isPatched = false; !isPatched;) {
        const event = await each.next();
        expect(event.type).toBe('MODIFIED');
        isPatched = textAt(event.object, 'metadata', 'annotations', 'patched') === 'true';
      }
      each.stop();
    }
    const lastScheduleTime = stamp(Date.now());
    const status = await client.call('PATCH', `${path}/status`, {
      body: { metadata: { annotations: { patchedstatus: 'true' } }, status: { lastScheduleTime } },
      patch: 'merge',
    });
    expect(textAt(status.body, 'status', 'lastScheduleTime')).toBe(lastScheduleTime);
    expect(textAt(status.body, 'metadata', 'annotations', 'patchedstatus')).toBe('true');
    const later = stamp(Date.now() + 1000);
    const again = await update(
      path,
      (body) => ({ ...body, status: { ...recordAt(body, 'status'), lastScheduleTime: later } }),
      `${path}/status`,
    );
    expect([again.status, textAt(again.body, 'status', 'lastScheduleTime')]).toEqual([200, later]);
    expect(textAt((await call(server.client, 'GET', `${path}/status`)).body, 'metadata', 'uid')).toBe(uid);
    await create(`${batch}/cronjobs`, cronJob('for-removal'));
    expect((await client.call('DELETE', `${batch}/cronjobs/for-removal`)).status).toBe(200);
    expect((await client.call('GET', `${batch}/cronjobs/for-removal`)).status).toBe(404);
    expect((await client.call('DELETE', `${batch}/cronjobs`, { query })).status).toBe(200);
    expect(listAt((await client.call('GET', `${batch}/cronjobs`, { query })).body, 'items')).toEqual([]);
  });
}
