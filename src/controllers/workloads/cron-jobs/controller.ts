import { isAlreadyExists, isNotFound } from '../../../client/errors.ts';
import { byOwner, indexByOwner } from '../../../client/informers/cache.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import type { Draft, ResourceClient } from '../../../client/resource-client.ts';
import { cronJobs as cronJobsResource, jobs as jobsResource } from '../../../client/resources.ts';
import { joinKey, type ObjectKey } from '../../../objects/meta.ts';
import { controllerOf } from '../../../objects/pods.ts';
import { errorMessage } from '../../../objects/status.ts';
import type { CronJob, Job } from '../../../objects/types/batch.generated.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import {
  type ControllerSpec,
  type KeyLoop,
  ownKey,
  type ReconcileResult,
} from '../../../runtime/key-loop.ts';
import { StatusWriter } from '../../../runtime/status-writer.ts';
import { planCronJob, withCreatedJob } from './plan.ts';

/** Creates the Jobs of CronJobs (kube-controller-manager's `cronjob-controller`). */
export const cronJobsController: ControllerSpec = {
  name: 'cronjob-controller',
  eventSource: 'cronjob-controller',
  queue: 'cronjob',
  build(loop) {
    const reconciler = new CronJobReconciler(loop);
    return (key, signal) => reconciler.reconcile(key, signal);
  },
};

class CronJobReconciler {
  readonly #context: ControllerContext;
  readonly #client: ResourceClient<Job>;
  readonly #cronJobs: Informer<CronJob>;
  readonly #jobs: Informer<Job>;
  readonly #status: StatusWriter<CronJob>;

  constructor(loop: KeyLoop) {
    this.#context = loop.context;
    this.#client = loop.context.clients.for(jobsResource);

    this.#cronJobs = loop.cache(cronJobsResource);
    this.#jobs = loop.cache(jobsResource, { indexes: { [byOwner]: indexByOwner } });

    this.#status = new StatusWriter(loop, this.#cronJobs);

    loop.on(this.#jobs, ({ object }) => cronJobOf(object));
    loop.on(this.#cronJobs, ownKey);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const cronJob = this.#cronJobs.cache.get(key);
    if (cronJob === undefined || cronJob.metadata.deletionTimestamp !== undefined) return undefined;
    const waitMs = this.#status.pendingMs(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };

    const jobs = this.#jobs.cache.byIndex(byOwner, cronJob.metadata.uid ?? '');
    const now = this.#context.clock.now();
    const { create, remove, status, events, next } = planCronJob(cronJob, jobs, now);
    for (const { type, reason, message } of events)
      this.#context.events.event(cronJob, type, reason, message);
    for (const job of remove) await this.#delete(cronJob, job, signal);
    const created = create === undefined ? undefined : await this.#create(cronJob, create, signal);
    await this.#status.write(
      cronJob,
      created === undefined ? status : withCreatedJob(status, created),
      signal,
    );
    return next === undefined ? undefined : { requeueAfterMs: Math.max(1, next - now) };
  }

  /** @returns undefined when another object has the name. */
  async #create(cronJob: CronJob, draft: Draft<Job>, signal: AbortSignal): Promise<Job | undefined> {
    const { events } = this.#context;
    try {
      const job = await this.#client.create(draft, { signal });
      events.event(cronJob, 'Normal', 'SuccessfulCreate', `Created job ${job.metadata.name ?? ''}`);
      return job;
    } catch (error) {
      if (isAlreadyExists(error)) return undefined;
      const message = `Error creating job: ${errorMessage(error)}`;
      events.event(cronJob, 'Warning', 'FailedCreate', message);
      throw error;
    }
  }

  async #delete(cronJob: CronJob, job: Job, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '' } = job.metadata;
    if (job.metadata.deletionTimestamp !== undefined) return;
    try {
      await this.#client.delete(namespace, name, {
        preconditions: { uid },
        propagationPolicy: 'Background',
        signal,
      });
    } catch (error) {
      if (isNotFound(error)) return;
      throw error;
    }
    this.#context.events.event(cronJob, 'Normal', 'SuccessfulDelete', `Deleted job ${name}`);
  }
}

function cronJobOf(job: Job): readonly ObjectKey[] {
  const owner = controllerOf(job);
  return owner?.kind === 'CronJob' ? [joinKey(job.metadata.namespace ?? '', owner.name)] : [];
}
