import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planJob } from '../../../../../src/controllers/workloads/jobs/plan.ts';
import type { Job, JobStatus } from '../../../../../src/objects/types/batch.generated.ts';
import type { Pod } from '../../../../../src/objects/types/core.generated.ts';
import { formatTime } from '../../../../../src/objects/formats/time.ts';
import { now, pod } from '../samples.ts';

function job(spec: Partial<Job['spec']> = {}, status: JobStatus = {}): Job {
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'work', namespace: 'ns', uid: 'u', generation: 1 },
    spec: {
      completions: 1,
      parallelism: 1,
      backoffLimit: 6,
      template: { spec: { containers: [] } },
      ...spec,
    },
    status,
  };
}

const index = (each: { metadata: Pod['metadata'] }): string | undefined =>
  each.metadata.annotations?.['batch.kubernetes.io/job-completion-index'];

describe('planJob', () => {
  it('tells each container of an Indexed Job its index, unless the template does', () => {
    const own = { name: 'JOB_COMPLETION_INDEX' };
    const containers = [{ name: 'a' }, { name: 'b', env: [own] }];
    const template = { spec: { containers, initContainers: [{ name: 'c', env: [{ name: 'X' }] }] } };
    const { create } = planJob(
      job({ completionMode: 'Indexed', template }, { startTime: formatTime(now) }),
      [],
      now,
    );
    const fieldRef = { fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']" };
    const variable = { ...own, valueFrom: { fieldRef } };
    expect(create[0]?.spec?.containers).toEqual([
      { name: 'a', env: [variable] },
      { name: 'b', env: [own] },
    ]);
    expect(create[0]?.spec?.initContainers).toEqual([{ name: 'c', env: [{ name: 'X' }, variable] }]);
    const plain = planJob(job({ template }, { startTime: formatTime(now) }), [], now);
    expect(plain.create[0]?.spec?.containers).toEqual(containers);
  });

  it('runs as many Pods as it needs, never more at once than it may, whatever the order in which they end', () => {
    const arbitrary = fc.record({
      completions: fc.integer({ min: 0, max: 8 }),
      parallelism: fc.integer({ min: 1, max: 5 }),
      indexed: fc.boolean(),
      picks: fc.array(fc.nat(), { minLength: 20, maxLength: 20 }),
    });
    fc.assert(
      fc.property(arbitrary, ({ completions, parallelism, indexed, picks }) => {
        let object = job({ completions, parallelism, ...(indexed ? { completionMode: 'Indexed' } : {}) });
        let pods: Pod[] = [];
        let made = 0;
        for (let i = 0; ; i++) {
          expect(i).toBeLessThan(60);
          const plan = planJob(object, pods, now + i * 1000);
          for (const draft of plan.create) {
            const annotations = draft.metadata.annotations ?? {};
            pods.push(pod(`p${made++}`, { annotations }));
          }
          object = { ...object, status: plan.status };
          const running = pods.filter(({ status }) => status.phase === 'Running');
          expect(running.length).toBeLessThanOrEqual(parallelism);
          if (indexed) expect(new Set(running.map(index)).size).toBe(running.length);
          if (running.length === 0 && plan.create.length === 0 && i > 1) break;
          const ended = running[(picks[i % picks.length] ?? 0) % Math.max(1, running.length)];
          pods = pods.map((each) =>
            each === ended
              ? pod(each.metadata.name ?? '', {
                  phase: 'Succeeded',
                  annotations: each.metadata.annotations ?? {},
                })
              : each,
          );
        }
        expect(made).toBe(completions);
        expect(object.status.conditions?.map(({ type }) => type)).toEqual(['SuccessCriteriaMet', 'Complete']);
        expect(object.status.succeeded ?? 0).toBe(completions);
        if (indexed && completions > 2) expect(object.status.completedIndexes).toBe(`0-${completions - 1}`);
      }),
    );
  });

  it('tries again after 10 s, 20 s, …, and gives up beyond its limit', () => {
    const failed = (name: string, secondsAgo: number): Pod => {
      const made = pod(name, { phase: 'Failed' });
      const finishedAt = formatTime(now - secondsAgo * 1000);
      made.status.containerStatuses = [
        {
          name: 'main',
          ready: false,
          restartCount: 0,
          image: '',
          imageID: '',
          state: { terminated: { exitCode: 1, finishedAt } },
        },
      ];
      return made;
    };
    const running = { startTime: formatTime(now - 60_000) };
    expect(planJob(job({}, running), [failed('a', 4)], now)).toMatchObject({ create: [], next: now + 6000 });
    expect(planJob(job({}, running), [failed('a', 40), failed('b', 19)], now)).toMatchObject({
      create: [],
      next: now + 1000,
    });
    expect(planJob(job({}, running), [failed('a', 10)], now).create).toHaveLength(1);
    const within = planJob(job({ backoffLimit: 1 }, running), [failed('a', 10)], now);
    expect([within.create.length, within.status.conditions ?? []]).toEqual([1, []]);
    const over = planJob(job({ backoffLimit: 1 }, running), [failed('a', 9), failed('b', 8)], now).status;
    expect(over.conditions?.map(({ type, reason }) => `${type} ${reason ?? ''}`)).toEqual([
      'FailureTarget BackoffLimitExceeded',
      'Failed BackoffLimitExceeded',
    ]);
  });

  it('ends at its deadline, stops when it is suspended, and is gone after its time to live', () => {
    const started = { startTime: formatTime(now - 60_000) };
    const running = pod('a');
    const late = planJob(job({ activeDeadlineSeconds: 60 }, started), [running], now);
    expect(late.remove).toEqual([running]);
    expect(late.status.conditions?.map(({ type }) => type)).toEqual(['FailureTarget']);
    const suspended = planJob(job({ suspend: true }, started), [running], now);
    expect(suspended.remove).toEqual([running]);
    expect(suspended.status.startTime).toBeUndefined();
    expect(suspended.status.conditions?.[0]).toMatchObject({ type: 'Suspended', status: 'True' });
    const done: JobStatus = {
      conditions: [{ type: 'Complete', status: 'True', lastTransitionTime: formatTime(now) }],
    };
    expect(planJob(job({ ttlSecondsAfterFinished: 30 }, done), [], now).expiry).toBe(now + 30_000);
  });
});
