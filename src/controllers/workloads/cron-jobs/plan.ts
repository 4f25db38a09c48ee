/** The next step of a CronJob (pkg/controller/cronjob/cronjob_controllerv2.go, utils.go). */
import type { EventReason } from '../../../objects/reasons.ts';
import type { Draft } from '../../../client/resource-client.ts';
import type { CronJob, CronJobStatus, Job } from '../../../objects/types/batch.generated.ts';
import type { ObjectReference } from '../../../objects/types/core.generated.ts';
import {
  type CronSchedule,
  CronScheduleError,
  parseCronSchedule,
} from '../../../objects/formats/cron-schedule.ts';
import { maxOf } from '../../../objects/lists.ts';
import { conditionOf } from '../../../objects/meta.ts';
import { controllerReference } from '../../../objects/pods.ts';
import { formatTime, parseTime } from '../../../objects/formats/time.ts';
import type { PlannedEvent } from '../../../client/events/events.ts';

const scheduledTimeAnnotation = 'batch.kubernetes.io/cronjob-scheduled-timestamp';
/** Milliseconds after a time of the schedule at which it is looked at, so that it has come (`nextScheduleDelta`). */
const scheduleDeltaMs = 100;
/** The number of missed times from which an Event is sent. */
const manyMissed = 100;

export interface CronJobPlan {
  /** The Job of a time that has come; with `status.lastScheduleTime` and `status.active` to set once it exists. */
  readonly create: Draft<Job> | undefined;
  /** Beyond the limits of history, or replaced. */
  readonly remove: readonly Job[];
  readonly status: CronJobStatus;
  readonly events: readonly PlannedEvent[];
  /** When to reconcile again, in milliseconds since 1970; undefined: only after a change. */
  readonly next: number | undefined;
}

/** Plans the Job to create and those to delete, and the status. @param jobs that the CronJob controls. */
export function planCronJob(cronJob: CronJob, jobs: readonly Job[], now: number): CronJobPlan {
  const events: PlannedEvent[] = [];
  const status = currentStatus(cronJob, jobs, events);
  const remove = beyondHistory(cronJob, jobs);
  const nothing = { create: undefined, remove, status, events, next: undefined };
  const schedule = readSchedule(cronJob, events);
  if (schedule === undefined || cronJob.spec.suspend === true) return nothing;

  const { scheduled, missed, next } = scheduleTimes(cronJob, schedule, now);
  const later = { ...nothing, next: next === undefined ? undefined : next + scheduleDeltaMs };
  if (missed > manyMissed) {
    const advice = 'Set or decrease .spec.startingDeadlineSeconds or check clock skew';
    events.push(warning('TooManyMissedTimes', `too many missed start times. ${advice}`));
  }
  if (scheduled === undefined) return later;
  const name = jobName(cronJob, scheduled);
  const existing = jobs.find(({ metadata }) => metadata.name === name);
  const noted = { ...status, lastScheduleTime: formatTime(scheduled) };
  if (existing !== undefined) {
    // The status was not written after the Job was, or the Job is the last one.
    const isListed = (status.active ?? []).some(({ uid }) => uid === existing.metadata.uid);
    return { ...later, status: isListed || isFinished(existing) ? noted : withCreatedJob(noted, existing) };
  }

  const active = jobs.filter((job) => !isFinished(job));
  if (active.length > 0 && cronJob.spec.concurrencyPolicy === 'Forbid') {
    const why = 'prior execution is running and concurrency policy is Forbid';
    events.push(normal('JobAlreadyActive', `Not starting job because ${why}`));
    return later;
  }
  const replaced = cronJob.spec.concurrencyPolicy === 'Replace' ? active : [];
  const gone = new Set(replaced.map(({ metadata }) => metadata.uid));
  const stays = (status.active ?? []).filter(({ uid }) => !gone.has(uid));
  return {
    ...later,
    create: draftJob(cronJob, name, scheduled),
    remove: [...remove, ...replaced],
    status: withActive(noted, stays),
  };
}

/** The status once a Job has been created. */
export function withCreatedJob(status: CronJobStatus, job: Job): CronJobStatus {
  return withActive(status, [...(status.active ?? []), referenceOf(job)]);
}

/** The list of active Jobs without those that have ended or are gone, and the last success. */
function currentStatus(cronJob: CronJob, jobs: readonly Job[], events: PlannedEvent[]): CronJobStatus {
  const byUid = new Map(jobs.map((job) => [job.metadata.uid, job]));
  const active: ObjectReference[] = [];
  const listed = new Set((cronJob.status.active ?? []).map(({ uid }) => uid));
  for (const job of jobs) {
    if (listed.has(job.metadata.uid) || isFinished(job)) continue;
    const message = `Saw a job that the controller did not create or forgot: ${job.metadata.name ?? ''}`;
    events.push(warning('UnexpectedJob', message));
  }
  for (const reference of cronJob.status.active ?? []) {
    const job = byUid.get(reference.uid);
    if (job === undefined) {
      events.push(normal('MissingJob', `Active job went missing: ${reference.name ?? ''}`));
    } else if (isFinished(job)) {
      const condition =
        conditionOf(job.status.conditions, 'Complete')?.status === 'True' ? 'Complete' : 'Failed';
      const message = `Saw completed job: ${reference.name ?? ''}, condition: ${condition}`;
      events.push(normal('SawCompletedJob', message));
    } else {
      active.push(reference);
    }
  }
  const successes = jobs.flatMap(({ status }) => parseTime(status.completionTime ?? '') ?? []);
  const last = maxOf([parseTime(cronJob.status.lastSuccessfulTime ?? '') ?? 0, ...successes]);
  return withActive(
    last === 0 ? cronJob.status : { ...cronJob.status, lastSuccessfulTime: formatTime(last) },
    active,
  );
}

function withActive({ active: _, ...status }: CronJobStatus, active: ObjectReference[]): CronJobStatus {
  return active.length === 0 ? status : { ...status, active };
}

/** The oldest finished Jobs beyond the limits for successes and failures. */
function beyondHistory({ spec }: CronJob, jobs: readonly Job[]): Job[] {
  const finished = jobs.filter(isFinished).sort((a, b) => startOf(a) - startOf(b));
  const isComplete = ({ status }: Job): boolean =>
    conditionOf(status.conditions, 'Complete')?.status === 'True';
  const oldest = (list: readonly Job[], limit: number | undefined): readonly Job[] =>
    limit === undefined ? [] : list.slice(0, Math.max(0, list.length - limit));
  return [
    ...oldest(finished.filter(isComplete), spec.successfulJobsHistoryLimit),
    ...oldest(
      finished.filter((job) => !isComplete(job)),
      spec.failedJobsHistoryLimit,
    ),
  ];
}

function readSchedule({ spec }: CronJob, events: PlannedEvent[]): CronSchedule | undefined {
  try {
    return parseCronSchedule(spec.schedule);
  } catch (error) {
    if (!(error instanceof CronScheduleError)) throw error;
    events.push(warning('UnparseableSchedule', `unparseable schedule for cronjob: ${error.message}`));
    return undefined;
  }
}

interface ScheduleTimes {
  /** The latest time that has come and has no Job yet; milliseconds since 1970. */
  readonly scheduled: number | undefined;
  /** How many times have come since the last Job, roughly. */
  readonly missed: number;
  /** The time after. */
  readonly next: number | undefined;
}

/** The times of the schedule about now (`mostRecentScheduleTime`). */
function scheduleTimes(
  { metadata, spec, status }: CronJob,
  schedule: CronSchedule,
  now: number,
): ScheduleTimes {
  const zone = spec.timeZone ?? 'UTC';
  const deadline = spec.startingDeadlineSeconds;
  const since = parseTime(status.lastScheduleTime ?? metadata.creationTimestamp ?? '') ?? now;
  const earliest = deadline === undefined ? since : Math.max(since, now - deadline * 1000);
  const first = schedule.next(earliest, zone);
  if (first === undefined || first > now) return { scheduled: undefined, missed: 0, next: first };
  const second = schedule.next(first, zone);
  if (second === undefined || second > now) return { scheduled: first, missed: 1, next: second };
  // The times of years need not be counted one by one.
  const missed = Math.floor((now - first) / (second - first)) + 1;
  let scheduled = first;
  let next = schedule.next(first + Math.max(0, missed - 2) * (second - first) - 1, zone);
  while (next !== undefined && next <= now) {
    scheduled = next;
    next = schedule.next(next, zone);
  }
  return { scheduled, missed, next };
}

/** Minutes since 1970 make the name unique, and two controllers create one Job. */
function jobName({ metadata }: CronJob, scheduled: number): string {
  return `${metadata.name ?? ''}-${Math.floor(scheduled / 60_000)}`;
}

function draftJob(cronJob: CronJob, name: string, scheduled: number): Draft<Job> {
  const { metadata: { labels, annotations } = {}, spec = { template: {} } } = cronJob.spec.jobTemplate;
  return {
    metadata: {
      name,
      namespace: cronJob.metadata.namespace ?? '',
      ...(labels === undefined ? {} : { labels: { ...labels } }),
      annotations: { ...annotations, [scheduledTimeAnnotation]: formatTime(scheduled) },
      ownerReferences: [controllerReference(cronJob)],
    },
    spec: { ...spec },
  };
}

function referenceOf({ metadata }: Job): ObjectReference {
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = metadata;
  return { kind: 'Job', namespace, name, uid, apiVersion: 'batch/v1', resourceVersion };
}

/** Whether a Job is complete or has failed. */
function isFinished({ status }: Job): boolean {
  return ['Complete', 'Failed'].some((type) => conditionOf(status.conditions, type)?.status === 'True');
}

function startOf({ metadata, status }: Job): number {
  return parseTime(status.startTime ?? metadata.creationTimestamp ?? '') ?? 0;
}

function normal(reason: EventReason, message: string): PlannedEvent {
  return { type: 'Normal', reason, message };
}

function warning(reason: EventReason, message: string): PlannedEvent {
  return { type: 'Warning', reason, message };
}
