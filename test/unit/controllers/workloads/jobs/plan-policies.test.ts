import { describe, expect, it } from 'vitest';
import { planJob } from '../../../../../src/controllers/workloads/jobs/plan.ts';
import { parseIndexes } from '../../../../../src/controllers/workloads/jobs/plan-policies.ts';
import { formatTime } from '../../../../../src/objects/formats/time.ts';
import type { Job, JobSpec } from '../../../../../src/objects/types/batch.generated.ts';
import type { Pod, PodCondition } from '../../../../../src/objects/types/core.generated.ts';
import { now, pod } from '../samples.ts';

const indexAnnotation = 'batch.kubernetes.io/job-completion-index';

const indexed = (spec: Partial<JobSpec>, status: Job['status'] = {}): Job => ({
  metadata: { name: 'work', namespace: 'ns', uid: 'u', generation: 1 },
  spec: {
    ...{ completions: 4, parallelism: 4, completionMode: 'Indexed', backoffLimit: 6 },
    template: { spec: { containers: [] } },
    ...spec,
  },
  status: { startTime: formatTime(now - 7_200_000), ...status },
});

const ended = (name: string, at: number, phase: string, seconds = 3600): Pod =>
  pod(name, { phase, annotations: { [indexAnnotation]: String(at) }, age: seconds });

/** A Pod that has failed an hour ago, or so many seconds. */
function failed(
  at: number,
  exitCode = 1,
  conditions: PodCondition[] = [],
  seconds = 3600,
  name = `f-${at}`,
): Pod {
  const made = ended(name, at, 'Failed', seconds);
  const terminated = { exitCode, finishedAt: formatTime(now - seconds * 1000) };
  const status = {
    name: 'main',
    ready: false,
    restartCount: 0,
    image: '',
    imageID: '',
    state: { terminated },
  };
  return { ...made, status: { ...made.status, conditions, containerStatuses: [status] } };
}
const succeeded = (at: number): Pod => ended(`s-${at}`, at, 'Succeeded');

const outcome = (job: Job, pods: readonly Pod[]) => {
  const { create, status, next } = planJob(job, pods, now);
  return {
    create: create.map(({ metadata }) => metadata.annotations?.[indexAnnotation]),
    conditions: (status.conditions ?? []).map(
      ({ type, reason, message }) => `${type} ${reason ?? ''}: ${message ?? ''}`,
    ),
    ...{ failed: status.failed ?? 0, failedIndexes: status.failedIndexes, next },
  };
};

// pkg/controller/job/pod_failure_policy.go
describe('podFailurePolicy', () => {
  const onExit = (action: string, operator: string, values: number[], containerName?: string) => ({
    action,
    onExitCodes: { operator, values, ...(containerName !== undefined && { containerName }) },
  });
  const evicted: PodCondition = { type: 'DisruptionTarget', status: 'True' };
  const policy = (...rules: NonNullable<NonNullable<JobSpec['podFailurePolicy']>['rules']>) =>
    indexed({ podFailurePolicy: { rules } });

  it('fails the Job, and says why', () => {
    const job = policy(onExit('Ignore', 'In', [5]), onExit('FailJob', 'NotIn', [5, 7]));
    expect(outcome(job, [failed(0, 1)]).conditions).toEqual(
      ['FailureTarget', 'Failed'].map(
        (type) =>
          `${type} PodFailurePolicy: Container main for pod ns/f-0 failed with exit code 1 matching FailJob rule at index 1`,
      ),
    );
    expect(outcome(job, [failed(0, 7)])).toMatchObject({ conditions: [], failed: 1 });
    const byCondition = policy({ action: 'FailJob', onPodConditions: [{ type: 'DisruptionTarget' }] });
    expect(outcome(byCondition, [failed(0, 137, [evicted])]).conditions[0]).toBe(
      'FailureTarget PodFailurePolicy: Pod ns/f-0 has condition DisruptionTarget matching FailJob rule at index 0',
    );
  });

  it.each([
    [onExit('Ignore', 'In', [1]), 0],
    [onExit('Ignore', 'In', [1], 'main'), 0],
    [onExit('Ignore', 'In', [1], 'other'), 1],
    [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] }, 0],
    [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'False' }] }, 1],
    [onExit('Count', 'In', [1]), 1],
  ])('by the rule %j a failure counts %i', (rule, count) => {
    const { failed: counted, create } = outcome(policy(rule), [failed(0, 1, [evicted])]);
    expect(counted).toBe(count);
    expect(create).toEqual(['0', '1', '2', '3']);
  });
});

// pkg/controller/job/indexed_job_utils.go
describe('backoffLimitPerIndex', () => {
  const job = (spec: Partial<JobSpec> = {}, status: Job['status'] = {}): Job =>
    indexed({ backoffLimitPerIndex: 1, backoffLimit: 2 ** 31 - 1, ...spec }, status);

  it('gives an index up, and goes on with the others', () => {
    const pods = [failed(0, 1, [], 3600, 'a'), failed(0, 1, [], 3500, 'b'), failed(2)];
    expect(outcome(job(), pods)).toMatchObject({
      create: ['1', '2', '3'],
      failedIndexes: '0',
      conditions: [],
    });
    expect(outcome(job({}, { failedIndexes: '1,3' }), [failed(2)])).toMatchObject({
      ...{ create: ['0', '2'], failedIndexes: '1,3' },
    });
    expect(outcome(job(), []).failedIndexes).toBe('');
  });

  it('tries an index again after a time of its own', () => {
    const { create, next } = outcome(job({ backoffLimitPerIndex: 3 }), [failed(1, 1, [], 4)]);
    expect(create).toEqual(['0', '2', '3']);
    expect(next).toBe(now + 6000);
  });

  it.each([
    [{}, [failed(0), failed(0, 1, [], 99, 'x'), ...[1, 2, 3].map(succeeded)], 'FailedIndexes'],
    [{ maxFailedIndexes: 0 }, [failed(0), failed(0, 1, [], 99, 'x')], 'MaxFailedIndexesExceeded'],
    [{ maxFailedIndexes: 1 }, [failed(0), failed(0, 1, [], 99, 'x')], undefined],
    [
      {
        podFailurePolicy: {
          rules: [{ action: 'FailIndex', onExitCodes: { operator: 'In', values: [42] } }],
        },
        maxFailedIndexes: 0,
      },
      [failed(3, 42)],
      'MaxFailedIndexesExceeded',
    ],
  ])('with %j ends as it should', (spec, pods, reason) => {
    const [first] = planJob(job(spec), pods, now).status.conditions ?? [];
    expect(first?.reason).toBe(reason);
  });
});

// pkg/controller/job/success_policy.go
describe('successPolicy', () => {
  it.each([
    [[{ succeededCount: 2 }], [0, 3], 'Matched rules at index 0'],
    [[{ succeededCount: 2 }], [3], undefined],
    [[{ succeededIndexes: '0-1,3' }], [0, 1], undefined],
    [[{ succeededIndexes: '0-1,3' }], [0, 1, 3], 'Matched rules at index 0'],
    [
      [{ succeededCount: 4 }, { succeededIndexes: '0-2', succeededCount: 1 }],
      [2],
      'Matched rules at index 1',
    ],
    [[{ succeededIndexes: '2', succeededCount: 1 }], [0, 1, 3], undefined],
  ])('%j with the indexes %j: %s', (rules, done, message) => {
    const running = pod('r', { annotations: { [indexAnnotation]: '2' } });
    const isFree = !done.includes(2);
    const job = indexed({ successPolicy: { rules } });
    const { status, remove } = planJob(job, [...done.map(succeeded), ...(isFree ? [running] : [])], now);
    const [first] = status.conditions ?? [];
    expect(first?.message).toBe(message);
    if (message === undefined) return;
    expect(first).toMatchObject({ type: 'SuccessCriteriaMet', reason: 'SuccessPolicy' });
    expect(remove).toEqual(isFree ? [running] : []);
  });

  it('stays met, whatever becomes of the Pods that are stopped for it', () => {
    const conditions = [
      { type: 'SuccessCriteriaMet', status: 'True', reason: 'SuccessPolicy', message: 'm' },
    ];
    const job = indexed(
      { backoffLimit: 0, successPolicy: { rules: [{ succeededCount: 1 }] } },
      { conditions },
    );
    expect(outcome(job, [succeeded(0), failed(1, 137)]).conditions).toEqual([
      'SuccessCriteriaMet SuccessPolicy: m',
      'Complete SuccessPolicy: m',
    ]);
  });
});

it('counts the restarts of containers where they are restarted in their Pods', () => {
  const template = { spec: { containers: [], restartPolicy: 'OnFailure' } };
  const reasonAt = (backoffLimit: number, restarts: number): string | undefined =>
    planJob(indexed({ template, backoffLimit }), [pod('r', { restarts })], now).status.conditions?.[0]
      ?.reason;
  expect(reasonAt(2, 1)).toBeUndefined();
  expect(reasonAt(2, 2)).toBe('BackoffLimitExceeded');
  expect(reasonAt(0, 0)).toBeUndefined();
  expect(reasonAt(0, 1)).toBe('BackoffLimitExceeded');
});

it('reads indexes, those below the limit', () => {
  expect([...parseIndexes('0-2,5,9', 8)]).toEqual([0, 1, 2, 5]);
  expect([...parseIndexes('x,3-1,', 8)]).toEqual([]);
});
