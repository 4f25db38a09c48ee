/** The next step of a Job (pkg/controller/job/job_controller.go, indexed_job_utils.go). */
import type { Draft } from '../../../client/resource-client.ts';
import { maxOf } from '../../../objects/lists.ts';
import type { Job, JobStatus } from '../../../objects/types/batch.generated.ts';
import type { Container, Pod, PodSpec } from '../../../objects/types/core.generated.ts';
import { formatTime, parseTime } from '../../../objects/formats/time.ts';
import type { WorkloadCondition } from '../../../objects/types/workloads.ts';
import { conditionOf } from '../../../objects/meta.ts';
import { isActive, isPodReady } from '../../../objects/pods.ts';
import { podFromTemplate } from '../plan-template.ts';
import { failureOf, metSuccessPolicy, parseIndexes } from './plan-policies.ts';

const indexAnnotation = 'batch.kubernetes.io/job-completion-index';

export interface JobPlan {
  readonly create: readonly Draft<Pod>[];
  readonly remove: readonly Pod[];
  readonly status: JobStatus;
  /** When to reconcile again, in milliseconds since 1970: a deadline, or the next try after a failure. */
  readonly next: number | undefined;
  /** When the finished Job is to be deleted (`ttlSecondsAfterFinished`). */
  readonly expiry: number | undefined;
}

/** Back-off between tries: 10 s, doubling up to 10 minutes, from the latest failure. */
function retryTime(failed: readonly Pod[]): number {
  if (failed.length === 0) return 0;
  const latest = maxOf(failed.map(finishTime));
  return latest + Math.min(10_000 * 2 ** (failed.length - 1), 600_000);
}

function finishTime({ status }: Pod): number {
  const times = (status.containerStatuses ?? []).map(
    ({ state }) => parseTime(state?.terminated?.finishedAt ?? '') ?? 0,
  );
  return maxOf([0, ...times]);
}

/** Plans the Pods to create and delete, and the status. */
export function planJob(job: Job, pods: readonly Pod[], now: number): JobPlan {
  const finishedAt = finishTimeOf(job);
  if (finishedAt !== undefined) {
    const ttl = job.spec.ttlSecondsAfterFinished;
    const expiry = ttl === undefined ? undefined : finishedAt + ttl * 1000;
    return {
      create: [],
      remove: pods.filter(isActive),
      status: finishedStatus(job, pods),
      next: expiry,
      expiry,
    };
  }
  const count = countPods(job, pods);
  const verdict = judge(job, count, now);
  if (verdict !== undefined) {
    const remove = pods.filter(isActive);
    return {
      create: [],
      remove,
      status: endStatus(job, count, verdict, now),
      next: undefined,
      expiry: undefined,
    };
  }
  const startTime = job.status.startTime ?? undefined;
  const suspended = job.spec.suspend === true;
  const deadline = deadlineOf(job);
  const status = runningStatus(job, count, now);
  if (suspended) return { create: [], remove: count.active, status, next: undefined, expiry: undefined };
  const missing = missingPods(job, count);
  if (missing < 0) {
    return { create: [], remove: count.active.slice(0, -missing), status, next: deadline, expiry: undefined };
  }
  const isPerIndex = job.spec.backoffLimitPerIndex !== undefined;
  const retryAt = isPerIndex ? 0 : retryTime(count.failed);
  if (missing > 0 && retryAt > now) {
    return {
      create: [],
      remove: [],
      status,
      next: Math.min(retryAt, deadline ?? retryAt),
      expiry: undefined,
    };
  }
  const hasStarted = startTime !== undefined || status.startTime !== undefined;
  const { drafts, retryAt: indexRetryAt } = draftPods(job, count, hasStarted ? missing : 0, now);
  const next = earliest(deadline, indexRetryAt);
  return { create: drafts, remove: [], status, next, expiry: undefined };
}

function earliest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}

interface Count {
  readonly active: Pod[];
  readonly succeeded: Pod[];
  /** Without those that `podFailurePolicy` ignores. */
  readonly failed: Pod[];
  readonly terminating: number;
  /** The completed indexes of an Indexed Job. */
  readonly done: ReadonlySet<number>;
  /** The indexes that are not tried again (`backoffLimitPerIndex`). */
  readonly failedIndexes: ReadonlySet<number>;
  /** Why `podFailurePolicy` fails the Job. */
  readonly policyMessage: string | undefined;
}

function countPods(job: Job, pods: readonly Pod[]): Count {
  const succeeded = pods.filter(({ status }) => status.phase === 'Succeeded');
  const indexes =
    job.spec.completionMode === 'Indexed' ? succeeded.map(indexOf).filter((index) => index >= 0) : [];
  // A Pod that is deleted before it finished counts as failed once it is gone; here, as soon as it fails.
  const failures = pods
    .filter(({ status }) => status.phase === 'Failed')
    .map((pod) => ({ pod, failure: failureOf(job, pod) }));
  const counted = failures.filter(({ failure }) => failure.kind !== 'ignore');
  return {
    active: pods.filter(isActive),
    succeeded,
    failed: counted.map(({ pod }) => pod),
    terminating: pods.filter((pod) => pod.metadata.deletionTimestamp !== undefined && isUnfinished(pod))
      .length,
    done: new Set(indexes),
    failedIndexes: failedIndexes(
      job,
      counted.map(({ pod }) => pod),
      failures.flatMap(({ pod, failure }) => (failure.kind === 'failIndex' ? indexOf(pod) : [])),
    ),
    policyMessage: failures.flatMap(({ failure }) => (failure.kind === 'failJob' ? failure.message : []))[0],
  };
}

/** @param given up by a rule. */
function failedIndexes(
  { spec, status }: Job,
  failed: readonly Pod[],
  given: readonly number[],
): ReadonlySet<number> {
  const { backoffLimitPerIndex: limit, completions = 0 } = spec;
  if (limit === undefined) return new Set();
  const tries = new Map<number, number>();
  for (const index of failed.map(indexOf)) tries.set(index, (tries.get(index) ?? 0) + 1);
  const over = [...tries].flatMap(([index, count]) => (index >= 0 && count > limit ? index : []));
  // Failed Pods may be deleted by users.
  return new Set([...parseIndexes(status.failedIndexes ?? '', completions), ...given, ...over]);
}

function isUnfinished({ status }: Pod): boolean {
  return status.phase !== 'Succeeded' && status.phase !== 'Failed';
}

function indexOf({ metadata }: Pod): number {
  const text = metadata.annotations?.[indexAnnotation] ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : -1;
}

function succeededCount(job: Job, { succeeded, done }: Count): number {
  return job.spec.completionMode === 'Indexed' ? done.size : succeeded.length;
}

interface Verdict {
  readonly type: 'Complete' | 'Failed';
  readonly reason: string;
  readonly message: string;
}

function judge(job: Job, count: Count, now: number): Verdict | undefined {
  const { completions, backoffLimit = 6, maxFailedIndexes } = job.spec;
  const succeeded = succeededCount(job, count);
  // What is decided stays: Pods that are stopped for it may fail.
  for (const [condition, type] of [
    ['SuccessCriteriaMet', 'Complete'],
    ['FailureTarget', 'Failed'],
  ] as const) {
    const { status, reason = '', message = '' } = conditionOf(job.status.conditions, condition) ?? {};
    if (status === 'True') return { type, reason, message };
  }
  if (count.policyMessage !== undefined) {
    return { type: 'Failed', reason: 'PodFailurePolicy', message: count.policyMessage };
  }
  if (count.failed.length > backoffLimit || isPastRestarts(job, count)) {
    const message = 'Job has reached the specified backoff limit';
    return { type: 'Failed', reason: 'BackoffLimitExceeded', message };
  }
  const deadline = deadlineOf(job);
  if (deadline !== undefined && now >= deadline) {
    const message = 'Job was active longer than specified deadline';
    return { type: 'Failed', reason: 'DeadlineExceeded', message };
  }
  if (maxFailedIndexes !== undefined && count.failedIndexes.size > maxFailedIndexes) {
    const message = 'Job has exceeded the specified maximal number of failed indexes';
    return { type: 'Failed', reason: 'MaxFailedIndexesExceeded', message };
  }
  const met = metSuccessPolicy(job, count.done);
  if (met !== undefined) return { type: 'Complete', reason: 'SuccessPolicy', message: met };
  const ended = succeeded + count.failedIndexes.size;
  if (count.failedIndexes.size > 0 && ended >= (completions ?? 0) && count.active.length === 0) {
    return { type: 'Failed', reason: 'FailedIndexes', message: 'Job has failed indexes' };
  }
  const complete =
    completions === undefined ? succeeded > 0 && count.active.length === 0 : succeeded >= completions;
  if (!complete || job.spec.suspend === true) return undefined;
  return {
    type: 'Complete',
    reason: 'CompletionsReached',
    message: 'Reached expected number of succeeded pods',
  };
}

/** Containers that were started again in their Pods (`pastBackoffLimitOnFailure`). */
function isPastRestarts({ spec }: Job, { active }: Count): boolean {
  const { backoffLimit = 6, template } = spec;
  if (template.spec?.restartPolicy !== 'OnFailure') return false;
  const restarts = active
    .flatMap(({ status }) => [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])])
    .reduce((sum, { restartCount }) => sum + restartCount, 0);
  return restarts >= Math.max(1, backoffLimit);
}

function deadlineOf({ spec, status }: Job): number | undefined {
  const started = parseTime(status.startTime ?? '');
  if (spec.activeDeadlineSeconds === undefined || started === undefined || spec.suspend === true)
    return undefined;
  return started + spec.activeDeadlineSeconds * 1000;
}

/** The number of Pods to add; negative: to delete. */
function missingPods(job: Job, count: Count): number {
  const { parallelism = 1, completions } = job.spec;
  const succeeded = succeededCount(job, count);
  const wanted =
    completions === undefined
      ? succeeded > 0
        ? count.active.length
        : parallelism
      : Math.min(parallelism, completions - succeeded - count.failedIndexes.size);
  // By default Pods that are being deleted are replaced at once.
  const waited = job.spec.podReplacementPolicy === 'Failed' ? count.terminating : 0;
  const missing = Math.max(0, wanted) - count.active.length;
  return missing > 0 ? Math.max(0, missing - waited) : missing;
}

interface Drafts {
  readonly drafts: readonly Draft<Pod>[];
  /** When an index that has failed may be tried again. */
  readonly retryAt: number | undefined;
}

function draftPods(job: Job, count: Count, missing: number, now: number): Drafts {
  const draft = podFromTemplate(job, job.spec.template);
  if (job.spec.completionMode !== 'Indexed') {
    return { drafts: Array.from({ length: missing }, () => draft), retryAt: undefined };
  }
  const taken = new Set([...count.done, ...count.failedIndexes, ...count.active.map(indexOf)]);
  const drafts: Draft<Pod>[] = [];
  let retryAt: number | undefined;
  const name = job.metadata.name ?? '';
  for (let index = 0; drafts.length < missing && index < (job.spec.completions ?? 0); index++) {
    if (taken.has(index)) continue;
    if (job.spec.backoffLimitPerIndex !== undefined) {
      const at = retryTime(count.failed.filter((pod) => indexOf(pod) === index));
      if (at > now) {
        retryAt = earliest(retryAt, at);
        continue;
      }
    }
    const { metadata } = draft;
    drafts.push({
      metadata: {
        ...metadata,
        generateName: `${name}-${index}-`,
        labels: { ...metadata.labels, [indexAnnotation]: String(index) },
        annotations: { ...metadata.annotations, [indexAnnotation]: String(index) },
      },
      spec: { ...withIndexVariable(draft.spec ?? {}), hostname: `${name}-${index}` },
    });
  }
  return { drafts, retryAt };
}

/** The index is in the environment of each container (`addCompletionIndexEnvVariables`). */
function withIndexVariable({ containers, initContainers, ...spec }: PodSpec): PodSpec {
  const fieldPath = `metadata.labels['${indexAnnotation}']`;
  const variable = { name: 'JOB_COMPLETION_INDEX', valueFrom: { fieldRef: { fieldPath } } };
  const withVariable = (container: Container): Container => {
    const { env = [] } = container;
    return env.some(({ name }) => name === variable.name)
      ? container
      : { ...container, env: [...env, variable] };
  };
  return {
    ...spec,
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(withVariable) }),
    ...(containers === undefined ? {} : { containers: containers.map(withVariable) }),
  };
}

function counts(job: Job, count: Count): Omit<JobStatus, 'conditions' | 'startTime'> {
  const active = count.active.length;
  const succeeded = succeededCount(job, count);
  const completed = job.spec.completionMode === 'Indexed' ? formatIndexes(count.done) : '';
  return {
    ...(active === 0 ? {} : { active }),
    ...(succeeded === 0 ? {} : { succeeded }),
    ...(count.failed.length === 0 ? {} : { failed: count.failed.length }),
    terminating: count.terminating,
    ...(completed === '' ? {} : { completedIndexes: completed }),
    ...(job.spec.backoffLimitPerIndex === undefined
      ? {}
      : { failedIndexes: formatIndexes(count.failedIndexes) }),
    uncountedTerminatedPods: {},
    ready: count.active.filter(isPodReady).length,
  };
}

function runningStatus(job: Job, count: Count, now: number): JobStatus {
  const suspended = job.spec.suspend === true;
  const startTime = job.status.startTime ?? (suspended ? undefined : formatTime(now));
  let conditions = job.status.conditions ?? [];
  const present = conditionOf(conditions, 'Suspended');
  if (suspended && present?.status !== 'True') {
    conditions = withCondition(conditions, 'Suspended', 'True', 'JobSuspended', 'Job suspended', now);
  } else if (!suspended && present?.status === 'True') {
    conditions = withCondition(conditions, 'Suspended', 'False', 'JobResumed', 'Job resumed', now);
  }
  return {
    ...(conditions.length === 0 ? {} : { conditions }),
    ...(startTime === undefined || suspended ? {} : { startTime }),
    ...counts(job, count),
  };
}

/** The end of a Job: first the interim condition, and when all Pods are gone the final one. */
function endStatus(job: Job, count: Count, { type, reason, message }: Verdict, now: number): JobStatus {
  const decision = type === 'Complete' ? 'SuccessCriteriaMet' : 'FailureTarget';
  let conditions = job.status.conditions ?? [];
  if (conditionOf(conditions, decision) === undefined) {
    conditions = withCondition(conditions, decision, 'True', reason, message, now);
  }
  const over = count.active.length === 0 && count.terminating === 0;
  if (over) conditions = withCondition(conditions, type, 'True', reason, message, now);
  return {
    conditions,
    startTime: job.status.startTime ?? formatTime(now),
    ...(over && type === 'Complete' ? { completionTime: formatTime(now) } : {}),
    ...counts(job, count),
  };
}

/** The status of a finished Job changes only for running Pods, which users may delete without effect on the result. */
function finishedStatus(job: Job, pods: readonly Pod[]): JobStatus {
  const terminating = pods.filter(
    (pod) => pod.metadata.deletionTimestamp !== undefined && isUnfinished(pod),
  ).length;
  return { ...job.status, terminating };
}

function finishTimeOf({ status }: Job): number | undefined {
  for (const type of ['Complete', 'Failed']) {
    const condition = conditionOf(status.conditions, type);
    if (condition?.status === 'True') return parseTime(condition.lastTransitionTime ?? '') ?? 0;
  }
  return undefined;
}

function withCondition(
  conditions: readonly WorkloadCondition[],
  type: string,
  status: string,
  reason: string,
  message: string,
  now: number,
): WorkloadCondition[] {
  const time = formatTime(now);
  const others = conditions.filter((condition) => condition.type !== type);
  return [...others, { type, status, lastProbeTime: time, lastTransitionTime: time, reason, message }];
}

/** `0-2,5`. */
function formatIndexes(indexes: ReadonlySet<number>): string {
  const sorted = [...indexes].sort((a, b) => a - b);
  const runs: string[] = [];
  let first = -1;
  sorted.forEach((index, i) => {
    if (i === 0 || sorted[i - 1] !== index - 1) first = index;
    if (sorted[i + 1] === index + 1) return;
    runs.push(
      first === index ? String(index) : index === first + 1 ? `${first},${index}` : `${first}-${index}`,
    );
  });
  return runs.join(',');
}
