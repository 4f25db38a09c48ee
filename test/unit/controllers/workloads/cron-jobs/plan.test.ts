import { describe, expect, it } from 'vitest';
import { planCronJob, withCreatedJob } from '../../../../../src/controllers/workloads/cron-jobs/plan.ts';
import type { CronJob, CronJobStatus, Job } from '../../../../../src/objects/types/batch.generated.ts';
import { cpuMs } from '../../../../support/reference-time.ts';

const created = '2026-07-09T14:00:30Z';

function cronJob(spec: Partial<CronJob['spec']> = {}, status: CronJobStatus = {}): CronJob {
  return {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'tick', namespace: 'ns', uid: 'u', creationTimestamp: created },
    spec: {
      schedule: '*/5 * * * *',
      concurrencyPolicy: 'Allow',
      successfulJobsHistoryLimit: 3,
      failedJobsHistoryLimit: 1,
      jobTemplate: {
        metadata: { labels: { app: 'tick' }, annotations: { note: 'x' } },
        spec: { template: { spec: { containers: [] } } },
      },
      ...spec,
    },
    status,
  };
}

/** A Job that began at a minute of the hour. */
function job(minute: number, condition?: 'Complete' | 'Failed'): Job {
  const time = `2026-07-09T14:${String(minute).padStart(2, '0')}:00Z`;
  return {
    metadata: {
      name: `tick-${Date.parse(time) / 60_000}`,
      namespace: 'ns',
      uid: `u${minute}`,
      resourceVersion: '7',
    },
    spec: { template: {} },
    status: {
      startTime: time,
      ...(condition === undefined ? {} : { conditions: [{ type: condition, status: 'True' }] }),
      ...(condition === 'Complete' ? { completionTime: time } : {}),
    },
  };
}

const reference = ({ metadata: { name = '', uid = '' } }: Job) => ({
  kind: 'Job',
  namespace: 'ns',
  name,
  uid,
  apiVersion: 'batch/v1',
  resourceVersion: '7',
});
const at = (time: string): number => Date.parse(`2026-07-09T${time}Z`);
const names = (jobs: readonly Job[]): (string | undefined)[] => jobs.map(({ metadata }) => metadata.uid);
const reasons = (plan: ReturnType<typeof planCronJob>): string[] => plan.events.map(({ reason }) => reason);

describe('planCronJob', () => {
  it('creates a Job when its time has come, and waits for the next', () => {
    const early = planCronJob(cronJob(), [], at('14:04:59'));
    expect(early).toMatchObject({ create: undefined, next: at('14:05:00') + 100, status: {} });
    const plan = planCronJob(cronJob(), [], at('14:05:01'));
    expect(plan.create?.metadata).toEqual({
      name: `tick-${at('14:05:00') / 60_000}`,
      namespace: 'ns',
      labels: { app: 'tick' },
      annotations: { note: 'x', 'batch.kubernetes.io/cronjob-scheduled-timestamp': '2026-07-09T14:05:00Z' },
      ownerReferences: [
        {
          apiVersion: 'batch/v1',
          kind: 'CronJob',
          name: 'tick',
          uid: 'u',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    });
    expect(plan.next).toBe(at('14:10:00') + 100);
    const [made] = [job(5)];
    expect(withCreatedJob(plan.status, made)).toEqual({
      lastScheduleTime: '2026-07-09T14:05:00Z',
      active: [reference(made)],
    });
  });

  it('lists a Job of its own that a former status does not, and makes no second one', () => {
    const plan = planCronJob(cronJob(), [job(5)], at('14:05:01'));
    expect(plan.create).toBeUndefined();
    expect(plan.status).toEqual({ lastScheduleTime: '2026-07-09T14:05:00Z', active: [reference(job(5))] });
    expect(reasons(plan)).toEqual(['UnexpectedJob']);
    expect(planCronJob(cronJob({}, plan.status), [job(5)], at('14:06:00')).status).toEqual(plan.status);
  });

  it('runs one Job for all times that were missed, and says so when they are many', () => {
    const few = planCronJob(cronJob(), [], at('14:33:00'));
    expect(few.create?.metadata.name).toBe(`tick-${at('14:30:00') / 60_000}`);
    expect(reasons(few)).toEqual([]);
    const many = planCronJob(cronJob(), [], at('23:59:00'));
    expect(many.create?.metadata.name).toBe(`tick-${at('23:55:00') / 60_000}`);
    expect(reasons(many)).toEqual(['TooManyMissedTimes']);
    const bounded = planCronJob(cronJob({ startingDeadlineSeconds: 60 }), [], at('23:59:00'));
    expect(bounded.create).toBeUndefined();
  });

  it('counts missed times without going through years of them', () => {
    const old = cronJob({ schedule: '* * * * *' }, { lastScheduleTime: '2016-07-09T14:00:00Z' });
    const plan = (): string | undefined => planCronJob(old, [], at('14:00:30')).create?.metadata.name;
    expect(plan()).toBe(`tick-${at('14:00:00') / 60_000}`);
    expect(cpuMs(plan)).toBeLessThan(200);
  });

  it('starts none while it is suspended or its schedule cannot be read', () => {
    expect(planCronJob(cronJob({ suspend: true }), [], at('14:33:00'))).toMatchObject({
      create: undefined,
      next: undefined,
    });
    const broken = planCronJob(cronJob({ schedule: 'nope' }), [], at('14:33:00'));
    expect([broken.create, reasons(broken)]).toEqual([undefined, ['UnparseableSchedule']]);
  });

  it('keeps, forbids or replaces what still runs', () => {
    const status = { lastScheduleTime: '2026-07-09T14:05:00Z', active: [reference(job(5))] };
    const plan = (concurrencyPolicy: string) =>
      planCronJob(cronJob({ concurrencyPolicy }, status), [job(5)], at('14:10:01'));
    expect([plan('Allow').create === undefined, plan('Allow').status.active?.length]).toEqual([false, 1]);
    expect([plan('Forbid').create, reasons(plan('Forbid'))]).toEqual([undefined, ['JobAlreadyActive']]);
    expect(plan('Forbid').status).toEqual(status);
    const replace = plan('Replace');
    expect([names(replace.remove), replace.status.active]).toEqual([['u5'], undefined]);
    expect(replace.create).toBeDefined();
  });

  it('notes Jobs that ended or are gone, and the last success', () => {
    const status = {
      lastScheduleTime: '2026-07-09T14:15:00Z',
      active: [5, 10, 15].map((m) => reference(job(m))),
    };
    const jobs = [job(5, 'Complete'), job(10, 'Failed')];
    const plan = planCronJob(cronJob({}, status), jobs, at('14:16:00'));
    expect(plan.status).toEqual({
      lastScheduleTime: '2026-07-09T14:15:00Z',
      lastSuccessfulTime: '2026-07-09T14:05:00Z',
    });
    expect(reasons(plan)).toEqual(['SawCompletedJob', 'SawCompletedJob', 'MissingJob']);
  });

  it('deletes the oldest beyond the limits of history', () => {
    const jobs = [
      ...[10, 1, 4, 2, 3].map((minute) => job(minute, 'Complete')),
      ...[7, 6, 5].map((minute) => job(minute, 'Failed')),
      job(0),
    ];
    const plan = planCronJob(cronJob({ suspend: true }), jobs, at('14:16:00'));
    expect(names(plan.remove)).toEqual(['u1', 'u2', 'u5', 'u6']);
    const kept = cronJob({ suspend: true, successfulJobsHistoryLimit: 0, failedJobsHistoryLimit: 0 });
    expect(planCronJob(kept, jobs, at('14:16:00')).remove).toHaveLength(8);
  });
});
