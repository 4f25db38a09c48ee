import type { Logger } from 'pino';
import { isAlreadyExists, isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { type ObjectKey, splitKey, keyOf } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { IPAddress, ServiceCIDR } from '../../objects/types/networking.generated.ts';
import {
  byService,
  indexByService,
  newIPAddress,
  serviceOf,
  AllocationState,
  rangesOf,
  rangesOfFlags,
  type KnownRanges,
  type ServedKinds,
  RangeQueues,
} from './allocation-state.ts';
import type { ServiceCidr } from '../../allocation/address-range.ts';
import type { PortRange } from '../../allocation/port-allocator.ts';
import { ipAddresses, serviceCIDRs, services } from '../../client/resources.ts';
import { jsonEqual, type JsonRecord } from '../../objects/json.ts';
import { formatTime } from '../../objects/formats/time.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import {
  type KeyLoop,
  Priority,
  type ReconcileResult,
  type SyncedSource,
  TerminalError,
} from '../../runtime/key-loop.ts';
import { OwnWrites } from '../../runtime/own-writes.ts';
import {
  changeCondition,
  addressesOf,
  planAllocation,
  type AllocationPlan,
  type AllocationStep,
} from './plan.ts';
import { AllocationMetrics } from './metrics.ts';
import { claimAnnotation, familyOf, formatClaim, viewOf, type AllocationProblem } from './plan-view.ts';

interface ServiceIPAddressesOptions {
  /** Undefined if the server has no IPAddresses. */
  readonly informer: Informer<IPAddress> | undefined;
  readonly client: ResourceClient<IPAddress>;
  readonly services: ResourceClient<Service>;
  readonly log: Logger;
}

/** Creates and deletes the IPAddress objects of Services, if the server has that kind. */
export class ServiceIPAddresses {
  readonly #options: ServiceIPAddressesOptions;

  constructor(options: ServiceIPAddressesOptions) {
    this.#options = options;
    options.informer?.addIndex(byService, indexByService);
  }

  /** The Service that is the parent of an IPAddress object, "" for another parent; undefined if there is no object. */
  readonly ownerOf = (address: string): ObjectKey | undefined => {
    const object = this.#options.informer?.cache.get(address);
    return object === undefined ? undefined : serviceOf(object);
  };

  /** Creates the IPAddress object of an address. False if another parent has it. */
  async create(address: string, key: ObjectKey, signal: AbortSignal): Promise<boolean> {
    const { informer, client } = this.#options;
    if (informer === undefined) return true;
    const owner = this.ownerOf(address);
    if (owner !== undefined) return owner === key;
    try {
      await client.create(newIPAddress(address, key), { signal });
      return true;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return serviceOf(await client.get('', address, { signal })) === key;
    }
  }

  /**
   * Creates the missing IPAddress objects of a Service and deletes the others. False, with nothing done, if `service` is not
   * the version on the server: one process would undo the writes of another one until its cache of Services catches up.
   */
  async reconcile(
    key: ObjectKey,
    service: Service | undefined,
    wanted: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { informer, client, log } = this.#options;
    if (informer === undefined) return true;
    const missing = [...wanted].filter((address) => this.ownerOf(address) === undefined);
    const excess = informer.cache
      .byIndex(byService, key)
      .filter(({ metadata }) => !wanted.has(metadata.name ?? ''));
    if (missing.length === 0 && excess.length === 0) return true;
    if (!(await this.isCurrent(key, service, signal))) return false;
    for (const address of missing) await this.create(address, key, signal);
    for (const { metadata } of excess) {
      const { name = '', uid = '' } = metadata;
      try {
        await client.delete('', name, { preconditions: { uid }, signal });
        log.info({ key, address: name }, 'service address released');
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    return true;
  }

  /** Whether the server has the cached version of a Service; for undefined, whether it has none. */
  async isCurrent(key: ObjectKey, cached: Service | undefined, signal: AbortSignal): Promise<boolean> {
    const { namespace, name } = splitKey(key);
    try {
      const { metadata } = await this.#options.services.get(namespace, name, { signal });
      return metadata.resourceVersion === cached?.metadata.resourceVersion;
    } catch (error) {
      if (isNotFound(error)) return cached === undefined;
      throw error;
    }
  }
}

export interface AllocatingOptions {
  /** The CIDRs of a server without ServiceCIDRs, and the cluster's families, primary first. */
  readonly serviceCidrs?: readonly ServiceCidr[];
  readonly nodePorts: PortRange;
}

/** While the cache is behind the server, or is being listed. */
const cacheLagRetryMs = 1000;
const staleRequeue: ReconcileResult = { requeueAfterMs: cacheLagRetryMs };

/** Allocates addresses and node ports on an API server that does not. The steps are planned in plan.ts. */
export class AllocationReconciler {
  readonly #loop: KeyLoop;
  readonly #context: ControllerContext;
  readonly #options: AllocatingOptions;
  readonly #services: Informer<Service>;
  readonly #addresses: Informer<IPAddress> | undefined;
  readonly #cidrs: Informer<ServiceCIDR> | undefined;
  readonly #client: ResourceClient<Service>;
  readonly #ipAddresses: ServiceIPAddresses;
  readonly #writes: OwnWrites<Service>;
  readonly #queues = new RangeQueues();
  readonly #allocations: AllocationState;
  readonly #metrics: AllocationMetrics;
  /**
   * The resourceVersion of each Service at which a step failed. The Service is read from the server before the next
   * try.
   */
  readonly #failed = new Map<ObjectKey, string>();
  /** The last report about each Service, on a server that stores no conditions. */
  readonly #lastReports = new Map<ObjectKey, string>();
  #ranges: KnownRanges;

  constructor(loop: KeyLoop, options: AllocatingOptions, served: ServedKinds) {
    const { context } = loop;
    this.#loop = loop;
    this.#context = context;
    this.#options = options;
    this.#client = context.clients.for(services);

    this.#services = loop.cache(services);
    this.#addresses = served.addresses ? loop.cache(ipAddresses) : undefined;
    this.#cidrs = served.cidrs ? loop.cache(serviceCIDRs) : undefined;

    this.#ipAddresses = new ServiceIPAddresses({
      informer: this.#addresses,
      client: context.clients.for(ipAddresses),
      services: this.#client,
      log: context.log,
    });
    this.#ranges = rangesOfFlags(options.serviceCidrs);
    this.#allocations = new AllocationState(options.nodePorts, (value) => this.#freed(value));
    this.#allocations.setCidrs(this.#ranges.cidrs);
    this.#metrics = new AllocationMetrics(context.metrics, this.#allocations);
    this.#writes = new OwnWrites(loop, this.#services);

    loop.on(this.#services, ({ kind, object: service }) => {
      const key = keyOf(service);
      if (kind === 'deleted') {
        for (const other of this.#allocations.delete(key)) loop.enqueue(other);
        return [key];
      }
      const view = viewOf(service);
      // A change of the owner of a value concerns others, and users wait for those, too.
      for (const other of this.#allocations.set(view, service.metadata.resourceVersion ?? '')) {
        loop.enqueue(other);
      }
      if (view.claim !== undefined) this.#allocations.releaseReserved(view.key);
      return [key];
    });
    if (this.#addresses !== undefined) {
      loop.on(this.#addresses, ({ kind, object: address }) => {
        const { name = '' } = address.metadata;
        if (kind === 'added') this.#allocations.addIPAddress(name);
        if (kind === 'deleted') this.#allocations.deleteIPAddress(name);
        for (const key of this.#usersOf(address)) loop.enqueue(key);
        return [];
      });
    }
    if (this.#cidrs !== undefined) {
      loop.on(this.#cidrs, () => {
        this.#updateRanges();
        return [];
      });
    }
  }

  /** The caches of the kinds that not every server serves. */
  get sources(): readonly SyncedSource[] {
    return [this.#addresses, this.#cidrs].filter((informer) => informer !== undefined);
  }

  /** The Services that have an address: its object's parent, and those that claim it. */
  #usersOf(address: IPAddress): readonly ObjectKey[] {
    const parent = serviceOf(address);
    const others = this.#allocations.usesByOthers(address.metadata.name ?? '', '');
    return [...(parent === '' ? [] : [parent]), ...others.map(({ key }) => key)];
  }

  /** Reconciles all Services if the ranges changed. */
  #updateRanges(): void {
    const ranges = rangesOf(this.#cidrs?.cache.values() ?? [], this.#options.serviceCidrs);
    if (jsonEqual(ranges, this.#ranges)) return;
    this.#ranges = ranges;
    this.#allocations.setCidrs(ranges.cidrs);
    this.#context.log.info({ cidrs: ranges.cidrs.map(({ text }) => text) }, 'service ranges changed');
    for (const service of this.#services.cache.values()) {
      this.#loop.enqueue(keyOf(service), { priority: Priority.resync });
    }
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const service = this.#services.cache.get(key);
    if (service === undefined) {
      this.#queues.delete(key);
      this.#lastReports.delete(key);
      this.#failed.delete(key);
      return (await this.#ipAddresses.reconcile(key, undefined, new Set(), signal))
        ? undefined
        : staleRequeue;
    }
    // During a list the cache may lack the claim of another Service.
    if (this.#services.isListing || this.#addresses?.isListing === true) return staleRequeue;
    const waitMs = this.#writes.pendingMs(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    // Without one, a write is not conditional.
    if ((service.metadata.resourceVersion ?? '') === '') {
      throw new TerminalError('the server sent a Service without resourceVersion');
    }
    this.#allocations.releaseReserved(key);
    const plan = planAllocation({
      service,
      allocations: this.#allocations,
      cluster: this.#ranges.families,
      ownerOf: this.#ipAddresses.ownerOf,
      random: this.#context.random,
    });
    this.#updateQueues(key, plan);
    try {
      if (plan.step.do === 'wait') return undefined;
      if (plan.step.do !== 'nothing') return await this.#carryOut(service, plan.step, signal);
      if (!(await this.#ipAddresses.reconcile(key, service, addressesOf(service), signal)))
        return staleRequeue;
      await this.#report(service, plan.problem, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    return undefined;
  }

  async #carryOut(
    service: Service,
    step: Exclude<AllocationStep, { do: 'nothing' | 'wait' }>,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const key = keyOf(service);
    const { resourceVersion = '' } = service.metadata;
    const hasFailed = this.#failed.get(key) === resourceVersion;
    if (hasFailed && !(await this.#ipAddresses.isCurrent(key, service, signal))) return staleRequeue;
    this.#failed.set(key, resourceVersion);
    const isDone = await this.#execute(service, step, signal);
    this.#failed.delete(key);
    return isDone ? undefined : staleRequeue;
  }

  /** False if an address has an IPAddress object of another parent, which the cache does not show yet. */
  async #execute(
    service: Service,
    step: Exclude<AllocationStep, { do: 'nothing' | 'wait' }>,
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
          if (!(await this.#ipAddresses.create(address, key, signal))) return false;
        }
        const metadata =
          service.metadata.annotations?.[claimAnnotation] === undefined
            ? {}
            : { annotations: { [claimAnnotation]: null } };
        await this.#patch(service, { metadata, spec: step.spec }, signal);
        break;
      }
    }
    this.#metrics.countStep(step.do);
    const claimed = step.do === 'claim' ? { values: formatClaim(step.claim) } : {};
    this.#context.log.info({ key, step: step.do, ...claimed }, 'service allocation written');
    return true;
  }

  /** A JSON merge patch with the resourceVersion: a conflict if the Service has changed. */
  async #patch(
    service: Service,
    patch: { metadata: JsonRecord; spec?: JsonRecord },
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace = '', name = '', resourceVersion = '' } = service.metadata;
    const body = { ...patch, metadata: { ...patch.metadata, resourceVersion } };
    this.#writes.written(keyOf(service), await this.#client.mergePatch(namespace, name, body, { signal }));
  }

  /** Reports a problem, or its end, once: in the condition, an Event and the log. */
  async #report(
    service: Service,
    problem: AllocationProblem | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, events, log } = this.#context;
    const key = keyOf(service);
    const change = changeCondition(service, problem, formatTime(clock.now()));
    const text = problem === undefined ? '' : `${problem.reason} ${problem.message}`;
    if (change === undefined || this.#lastReports.get(key) === text) return;
    const { namespace = '', name = '', resourceVersion = '' } = service.metadata;
    const patch = { metadata: { resourceVersion }, status: { conditions: change.conditions } };
    try {
      const written = await this.#client.mergePatch(namespace, name, patch, {
        subresource: 'status',
        signal,
      });
      this.#writes.written(key, written);
      this.#lastReports.delete(key);
    } catch (error) {
      // The server has no status subresource of Services.
      if (!isNotFound(error)) throw error;
      this.#lastReports.set(key, text);
    }
    const { reason, message } = problem ?? {
      reason: 'Allocated',
      message: 'The Service has everything it asks for',
    };
    events.event(service, problem === undefined ? 'Normal' : 'Warning', reason, message);
    if (problem !== undefined) this.#metrics.countProblem(problem.reason);
    log[problem === undefined ? 'info' : 'warn'](
      { key, reason, detail: message },
      'service allocation changed',
    );
  }

  #updateQueues(key: ObjectKey, plan: AllocationPlan): void {
    if (plan.waitsFor === undefined) this.#queues.delete(key);
    else this.#queues.add(plan.waitsFor, key);
    for (const range of this.#queues.ranges()) {
      if (!this.#allocations.hasFree(range)) continue;
      const next = this.#queues.next(range);
      if (next !== undefined) this.#loop.enqueue(next);
    }
  }

  #freed(value: string): void {
    const range = familyOf(value) ?? 'port';
    this.#queues.freed(range);
    const next = this.#queues.next(range);
    if (next !== undefined) this.#loop.enqueue(next);
  }
}
