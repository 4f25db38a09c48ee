import type { ServiceCidr } from '../../allocation/address-range.ts';
import type { PortRange } from '../../allocation/port-allocator.ts';
import { isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { ipAddresses, serviceCIDRs, services } from '../../client/resources.ts';
import { jsonEqual, type JsonRecord } from '../../objects/json.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { Service } from '../../objects/core.generated.ts';
import type { IPAddress, ServiceCIDR } from '../../objects/networking.generated.ts';
import { formatTime } from '../../objects/time.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { Controller, Priority, TerminalError, type ReconcileResult } from '../../runtime/controller.ts';
import { Expectations } from '../../runtime/expectations.ts';
import { AllocationState } from './allocation-state.ts';
import { changeCondition } from './condition.ts';
import { HeldAddresses } from './held-addresses.ts';
import { serviceOf } from './ip-address.ts';
import { AllocationMetrics } from './metrics.ts';
import { addressesOf, planService, type ServicePlan, type Step } from './plan.ts';
import { claimAnnotation, familyOf, formatClaim, viewOf } from './plan-view.ts';
import { rangesOf, rangesOfFlags, type ServiceRanges } from './ranges.ts';
import type { Problem } from './reasons.ts';
import type { ServedKinds } from './served.ts';
import { Waiters } from './waiters.ts';

export interface AllocatingOptions {
  /** The ranges of Services where the server has no ServiceCIDRs, and the cluster's families, primary first. */
  readonly serviceCidrs?: readonly ServiceCidr[];
  readonly nodePorts: PortRange;
}

/** When to look again for a write, or a whole list, that the cache has not shown, in milliseconds. */
const behind: ReconcileResult = { requeueAfter: 1000 };

/** Allocates for Services on a server that does not. What happens to one Service is planned in plan.ts. */
export class AllocationReconciler {
  readonly controller: Controller;
  readonly #context: ControllerContext;
  readonly #options: AllocatingOptions;
  readonly #services: Informer<Service>;
  readonly #addresses: Informer<IPAddress> | undefined;
  readonly #cidrs: Informer<ServiceCIDR> | undefined;
  readonly #client: ResourceClient<Service>;
  readonly #held: HeldAddresses;
  readonly #expectations: Expectations<Service>;
  readonly #waiters = new Waiters();
  readonly #allocations: AllocationState;
  readonly #metrics: AllocationMetrics;
  /** The version of each Service at which a step failed: the cache may be behind, which the server is asked then. */
  readonly #failed = new Map<ObjectKey, string>();
  /** What users were told, where the server keeps no conditions. */
  readonly #told = new Map<ObjectKey, string>();
  #ranges: ServiceRanges;

  constructor(context: ControllerContext, options: AllocatingOptions, served: ServedKinds) {
    this.#context = context;
    this.#options = options;
    this.#services = context.informers.informer(services);
    this.#addresses = served.addresses ? context.informers.informer(ipAddresses) : undefined;
    this.#cidrs = served.cidrs ? context.informers.informer(serviceCIDRs) : undefined;
    this.#client = context.clients.for(services);
    this.#held = new HeldAddresses({
      informer: this.#addresses,
      client: context.clients.for(ipAddresses),
      services: this.#client,
      log: context.log,
    });
    this.#ranges = rangesOfFlags(options.serviceCidrs);
    this.#allocations = new AllocationState(options.nodePorts, (value) => this.#freed(value));
    this.#allocations.setCidrs(this.#ranges.cidrs);
    this.#metrics = new AllocationMetrics(context.metrics, this.#allocations);
    this.#expectations = new Expectations(this.#services, context.clock);
    this.controller = new Controller({
      name: 'service_allocation',
      context,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      workers: 16,
      waitFor: [
        this.#services,
        ...(this.#addresses ? [this.#addresses] : []),
        ...(this.#cidrs ? [this.#cidrs] : []),
      ],
      backoff: { base: 5, max: 60_000 },
    });
    this.#follow();
  }

  #follow(): void {
    const { controller } = this;
    const learn = (service: Service): void => {
      const view = viewOf(service);
      for (const key of this.#allocations.set(view, service.metadata.resourceVersion ?? ''))
        controller.enqueue(key);
      if (view.claim !== undefined) this.#allocations.putBack(view.key);
    };
    this.#services.addHandler({
      added: (service, initial) => {
        learn(service);
        controller.enqueue(keyOf(service), initial ? { priority: Priority.resync } : {});
      },
      updated: (service) => {
        learn(service);
        controller.enqueue(keyOf(service));
      },
      deleted: (service) => {
        const key = keyOf(service);
        for (const other of this.#allocations.delete(key)) controller.enqueue(other);
        controller.enqueue(key);
      },
    });
    const wakeOwner = (address: IPAddress): void => {
      const key = serviceOf(address);
      if (key !== '') controller.enqueue(key);
      for (const { key: holder } of this.#allocations.others(address.metadata.name ?? '', ''))
        controller.enqueue(holder);
    };
    this.#addresses?.addHandler({
      added: (address) => {
        this.#allocations.block(address.metadata.name ?? '');
        wakeOwner(address);
      },
      updated: wakeOwner,
      deleted: (address) => {
        this.#allocations.unblock(address.metadata.name ?? '');
        wakeOwner(address);
      },
    });
    const measure = (): void => this.#measure();
    this.#cidrs?.addHandler({ added: measure, updated: measure, deleted: measure });
  }

  /** The ranges changed: what was full may not be, what was in range may be out of it. */
  #measure(): void {
    const ranges = rangesOf(this.#cidrs?.cache.values() ?? [], this.#options.serviceCidrs);
    if (jsonEqual(ranges, this.#ranges)) return;
    this.#ranges = ranges;
    this.#allocations.setCidrs(ranges.cidrs);
    this.#context.log.info({ cidrs: ranges.cidrs.map(({ text }) => text) }, 'service ranges changed');
    for (const service of this.#services.cache.values()) {
      this.controller.enqueue(keyOf(service), { priority: Priority.resync });
    }
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const service = this.#services.cache.get(key);
    if (service === undefined) {
      this.#waiters.leave(key);
      this.#told.delete(key);
      this.#failed.delete(key);
      return (await this.#held.keep(key, undefined, new Set(), signal)) ? undefined : behind;
    }
    // What is part old, part new shows no claim of others for sure.
    if (!this.#expectations.settled(key) || this.#services.isListing || this.#addresses?.isListing === true) {
      return behind;
    }
    // Without one a write would overwrite whatever came in between.
    if ((service.metadata.resourceVersion ?? '') === '') {
      throw new TerminalError('the server sent a Service without resourceVersion');
    }
    this.#allocations.putBack(key);
    const plan = planService({
      service,
      allocations: this.#allocations,
      cluster: this.#ranges.families,
      ownerOf: this.#held.ownerOf,
      random: this.#context.random,
    });
    this.#wait(key, plan);
    try {
      if (plan.step.do === 'wait') return undefined;
      if (plan.step.do !== 'nothing') return await this.#carryOut(service, plan.step, signal);
      if (!(await this.#held.keep(key, service, addressesOf(service), signal))) return behind;
      await this.#tell(service, plan.problem, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    return undefined;
  }

  async #carryOut(
    service: Service,
    step: Exclude<Step, { do: 'nothing' | 'wait' }>,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const key = keyOf(service);
    const { resourceVersion = '' } = service.metadata;
    const hasFailed = this.#failed.get(key) === resourceVersion;
    if (hasFailed && !(await this.#held.isPresent(key, service, signal))) return behind;
    this.#failed.set(key, resourceVersion);
    const isDone = await this.#take(service, step, signal);
    this.#failed.delete(key);
    return isDone ? undefined : behind;
  }

  /** Answers false when somebody who is no Service has an address, and the cache does not show it yet. */
  async #take(
    service: Service,
    step: Exclude<Step, { do: 'nothing' | 'wait' }>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const key = keyOf(service);
    switch (step.do) {
      case 'claim':
        await this.#patch(
          service,
          { metadata: { annotations: { [claimAnnotation]: formatClaim(step.claim) } } },
          signal,
        );
        break;
      case 'retreat':
        await this.#patch(service, { metadata: { annotations: { [claimAnnotation]: null } } }, signal);
        break;
      case 'write': {
        for (const address of step.addresses) {
          if (!(await this.#held.hold(address, key, signal))) return false;
        }
        const metadata =
          service.metadata.annotations?.[claimAnnotation] === undefined
            ? {}
            : { annotations: { [claimAnnotation]: null } };
        await this.#patch(service, { metadata, spec: step.spec }, signal);
        break;
      }
    }
    this.#metrics.stepped(step.do);
    const given = step.do === 'claim' ? { values: formatClaim(step.claim) } : {};
    this.#context.log.info({ key, step: step.do, ...given }, 'service allocation written');
    return true;
  }

  /** A JSON merge patch on condition that the Service has not changed. */
  async #patch(
    service: Service,
    patch: { metadata: JsonRecord; spec?: JsonRecord },
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace = '', name = '', resourceVersion = '' } = service.metadata;
    const body = { ...patch, metadata: { ...patch.metadata, resourceVersion } };
    this.#expectations.written(
      keyOf(service),
      await this.#client.mergePatch(namespace, name, body, { signal }),
    );
  }

  /** Tells users what is wrong, or no more: once, in a condition and an Event. */
  async #tell(service: Service, problem: Problem | undefined, signal: AbortSignal): Promise<void> {
    const { clock, events, log } = this.#context;
    const key = keyOf(service);
    const change = changeCondition(service, problem, formatTime(clock.now()));
    const text = problem === undefined ? '' : `${problem.reason} ${problem.message}`;
    if (change === undefined || this.#told.get(key) === text) return;
    const { namespace = '', name = '', resourceVersion = '' } = service.metadata;
    const patch = { metadata: { resourceVersion }, status: { conditions: change.conditions } };
    try {
      const written = await this.#client.mergePatch(namespace, name, patch, {
        subresource: 'status',
        signal,
      });
      this.#expectations.written(key, written);
      this.#told.delete(key);
    } catch (error) {
      // A server without conditions of Services: the Event has to do.
      if (!isNotFound(error)) throw error;
      this.#told.set(key, text);
    }
    const { reason, message } = problem ?? {
      reason: 'Allocated',
      message: 'The Service has everything it asks for',
    };
    events.event(service, problem === undefined ? 'Normal' : 'Warning', reason, message);
    if (problem !== undefined) this.#metrics.told(problem.reason);
    log[problem === undefined ? 'info' : 'warn'](
      { key, reason, detail: message },
      'service allocation changed',
    );
  }

  #wait(key: ObjectKey, plan: ServicePlan): void {
    if (plan.waitsFor === undefined) this.#waiters.leave(key);
    else this.#waiters.wait(plan.waitsFor, key);
    for (const pool of this.#waiters.pools()) {
      if (!this.#allocations.hasFree(pool)) continue;
      const next = this.#waiters.next(pool);
      if (next !== undefined) this.controller.enqueue(next);
    }
  }

  #freed(value: string): void {
    const pool = familyOf(value) ?? 'port';
    this.#waiters.freed(pool);
    const next = this.#waiters.next(pool);
    if (next !== undefined) this.controller.enqueue(next);
  }
}
