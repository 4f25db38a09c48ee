import { eventReasons } from '../../../objects/reasons.ts';
import { isNotFound } from '../../../client/errors.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import type { ResourceClient } from '../../../client/resource-client.ts';
import { jobs as jobsResource, pods as podsResource } from '../../../client/resources.ts';
import { conditionOf, type ObjectKey } from '../../../objects/meta.ts';
import type { Job, JobStatus } from '../../../objects/types/batch.generated.ts';
import type { Pod } from '../../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import {
  type ControllerSpec,
  type KeyLoop,
  ownKey,
  type ReconcileResult,
} from '../../../runtime/key-loop.ts';
import { StatusWriter } from '../../../runtime/status-writer.ts';
import { Ownership } from '../ownership.ts';
import { PodControl } from '../pod-control.ts';
import { planJob } from './plan.ts';

/** Runs Jobs to completion (kube-controller-manager's `job-controller` and `ttl-after-finished-controller`). */
export const jobsController: ControllerSpec = {
  name: 'job-controller',
  eventSource: 'job-controller',
  queue: 'job',
  build(loop) {
    const reconciler = new JobReconciler(loop);
    return (key, signal) => reconciler.reconcile(key, signal);
  },
};

class JobReconciler {
  readonly #context: ControllerContext;
  readonly #client: ResourceClient<Job>;
  readonly #jobs: Informer<Job>;
  readonly #podControl: PodControl;
  readonly #status: StatusWriter<Job>;
  readonly #ownership: Ownership<Job, Pod>;

  constructor(loop: KeyLoop) {
    this.#context = loop.context;
    this.#client = loop.context.clients.for(jobsResource);

    this.#jobs = loop.cache(jobsResource);
    const pods = loop.cache(podsResource);

    this.#podControl = new PodControl(loop, pods);
    this.#status = new StatusWriter(loop, this.#jobs);

    this.#ownership = new Ownership(loop, {
      selector: ({ spec }) => spec.selector,
      owners: this.#jobs,
      children: pods,
    });
    loop.on(this.#jobs, ownKey);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const job = this.#jobs.cache.get(key);
    if (job === undefined || job.metadata.deletionTimestamp !== undefined) return undefined;
    const waitMs = Math.max(this.#podControl.pendingMs(key), this.#status.pendingMs(key));
    if (waitMs > 0) return { requeueAfterMs: waitMs };

    const pods = await this.#ownership.claim(job, signal);
    const now = this.#context.clock.now();
    const plan = planJob(job, pods, now);
    if (plan.expiry !== undefined && plan.expiry <= now) {
      await this.#expire(job, signal);
      return undefined;
    }
    const failure = await this.#podControl.create(key, job, plan.create, signal);
    await this.#podControl.delete(key, job, plan.remove, signal);
    await this.#status.write(job, plan.status, signal);
    this.#sendEvents(job, plan.status);
    if (failure !== undefined) throw failure;
    return plan.next === undefined ? undefined : { requeueAfterMs: Math.max(1, plan.next - now) };
  }

  #sendEvents(job: Job, status: JobStatus): void {
    const { events } = this.#context;
    const isNew = (type: string): boolean =>
      conditionOf(status.conditions, type)?.status === 'True' &&
      conditionOf(job.status.conditions, type)?.status !== 'True';
    if (isNew('Complete')) events.event(job, 'Normal', 'Completed', 'Job completed');
    if (isNew('Suspended')) events.event(job, 'Normal', 'Suspended', 'Job suspended');
    const wasSuspended = conditionOf(job.status.conditions, 'Suspended')?.status === 'True';
    if (wasSuspended && conditionOf(status.conditions, 'Suspended')?.status === 'False') {
      events.event(job, 'Normal', 'Resumed', 'Job resumed');
    }
    if (isNew('Failed')) {
      const { reason, message = '' } = conditionOf(status.conditions, 'Failed') ?? {};
      const word = eventReasons.find((one) => one === reason);
      if (word !== undefined) events.event(job, 'Warning', word, message);
    }
  }

  async #expire(job: Job, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '' } = job.metadata;
    try {
      await this.#client.delete(namespace, name, {
        preconditions: { uid },
        propagationPolicy: 'Foreground',
        signal,
      });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
