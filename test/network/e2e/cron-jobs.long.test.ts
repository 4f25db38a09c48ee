import { afterAll, beforeAll, expect, it } from 'vitest';
import { listAt, recordAt } from '../../../src/objects/json.ts';
import { describePods, PodNetwork } from '../support/pod-network.ts';

/** Tests of `apps/cronjob.go` of `test/e2e` by their names and steps; each needs the minutes of a schedule. */
describePods('[sig-apps] CronJob', () => {
  let pods: PodNetwork;

  beforeAll(async () => {
    pods = await PodNetwork.start({ containers: 'processes', nodes: 1 });
  });
  afterAll(() => pods.server.stop());

  const minutes = { timeout: 240_000, interval: 1000 };
  const create = async (
    name: string,
    concurrencyPolicy: string,
    command: readonly string[],
  ): Promise<void> => {
    const image = 'registry.k8s.io/e2e-test-images/busybox:1.36.1-1';
    const containers = [{ name: 'c', image, command }];
    const { status, body } = await pods.call('POST', pods.path('cronjobs', 'batch/v1'), {
      metadata: { name },
      spec: {
        ...{ schedule: '*/1 * * * ?', concurrencyPolicy },
        jobTemplate: { spec: { template: { spec: { restartPolicy: 'OnFailure', containers } } } },
      },
    });
    expect(status, JSON.stringify(body)).toBe(201);
  };
  const active = async (name: string): Promise<number> => {
    const { body } = await pods.call('GET', `${pods.path('cronjobs', 'batch/v1')}/${name}`);
    return listAt(body, 'status', 'active').length;
  };
  const jobs = async (name: string): Promise<readonly unknown[]> =>
    listAt((await pods.call('GET', pods.path('jobs', 'batch/v1'))).body, 'items').filter((job) =>
      JSON.stringify(recordAt(job, 'metadata')['ownerReferences']).includes(`"name":"${name}"`),
    );

  it('should schedule multiple jobs concurrently, not when ForbidConcurrent, and finish what has ended', async () => {
    await create('concurrent', 'Allow', ['sleep', '300']);
    await create('forbid', 'Forbid', ['sleep', '300']);
    await create('successful', 'Allow', ['/bin/sh', '-c', 'exit 0']);
    await expect.poll(() => active('concurrent'), minutes).toBeGreaterThan(1);
    expect([await active('forbid'), (await jobs('forbid')).length]).toEqual([1, 1]);
    const succeeded = async (): Promise<unknown[]> =>
      (await jobs('successful')).map((job) => recordAt(job, 'status')['succeeded']);
    await expect.poll(succeeded, minutes).toContain(1);
  });
});
