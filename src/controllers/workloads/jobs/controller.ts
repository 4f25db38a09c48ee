import { isNotFound } from '../../../client/errors.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import type { ResourceClient } from '../../../client/resource-client.ts';
import { pods as podsResource } from '../../../client/resources.ts';
import type { ObjectKey } from '../../../objects/meta.ts';
import type { Job, JobStatus } from '../../../objects/types/batch.generated.ts';
import type { Pod } from '../../../objects/types/core.generated.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../../runtime/context.ts';
import type { ReconcileResult } from '../../../runtime/key-loop.ts';
import { Reconciler } from '../../../runtime/key-loop.ts';
import { Ownership } from '../ownership.ts';
import { conditionOf } from '../../../objects/meta.ts';
import { PodControl } from '../pod-control.ts';
import { jobs as jobsResource } from '../../../client/resources.ts';
import { lookAgain, StatusWriter } from '../../../runtime/own-writes.ts';
import { planJob } from './plan.ts';

/** Runs Jobs to completion (kube-controller-manager's `job-controller` and `ttl-after-finished-controller`). */
export const jobsController: ControllerDefinition = {
  name: 'job-controller',
  start(context: ControllerContext): readonly Runnable[] {
    return [new JobReconciler(context)];
  },
};

class JobReconciler extends Reconciler {
  readonly #jobs: Informer<Job>;
  readonly #client: ResourceClient<Job>;
  readonly #ownership: Ownership<Job, Pod>;
  readonly #podControl: PodControl;
  readonly #status: StatusWriter<Job>;

  constructor(context: ControllerContext) {
    super(context, 'job');
    this.#jobs = this.informer(jobsResource);
    const pods = this.informer(podsResource);
    this.#client = context.clients.for(jobsResource);
    this.#podControl = new PodControl(context, pods);
    this.#status = new StatusWriter(context, this.#jobs);
    this.#ownership = new Ownership({
      selector: ({ spec }) => spec.selector,
      owners: this.#jobs,
      children: pods,
      client: context.clients.for(podsResource),
      enqueue: (key) => this.queue.enqueue(key),
    });
    this.enqueueChanges(this.#jobs);
  }

  protected override async reconcile(
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const job = this.#jobs.cache.get(key);
    if (job === undefined || job.metadata.deletionTimestamp !== undefined) return undefined;
    if (!this.#podControl.settled(key) || !this.#status.settled(key)) return { requeueAfter: lookAgain };
    const pods = await this.#ownership.claim(job, signal);
    const now = this.context.clock.now();
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
    return plan.next === undefined ? undefined : { requeueAfter: Math.max(1, plan.next - now) };
  }

  #sendEvents(job: Job, status: JobStatus): void {
    const { events } = this.context;
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
      const { reason = '', message = '' } = conditionOf(status.conditions, 'Failed') ?? {};
      events.event(job, 'Warning', reason, message);
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
