import type { ServiceCidr } from '../../allocation/address-range.ts';
import type { PortRange } from '../../allocation/port-allocator.ts';
import type { Clock } from '../../client/clock.ts';
import { errorWord, isNotFound, isUnreached } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { ipAddresses, serviceCIDRs, services } from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import { at, listAt } from '../../objects/json.ts';
import { keyOf, type KubeObject } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { IPAddress, ServiceCIDR } from '../../objects/types/networking.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type {
  ControllerSpec,
  KeyLoop,
  Reconcile,
  ReconcileResult,
  SyncedSource,
} from '../../runtime/key-loop.ts';
import { LogThrottle } from '../../telemetry/log.ts';
import { TimeSlices } from '../../telemetry/time-slice.ts';
import { type AllocatingOptions, AllocationReconciler } from './allocation-reconciler.ts';
import { AllocationState, rangesOf, rangesOfFlags, type ServedKinds } from './allocation-state.ts';
import { AllocationMetrics } from './metrics.ts';
import { type Finding, planAudit } from './plan-audit.ts';
import { viewOf } from './plan-view.ts';

/** Options of {@link serviceAllocationController}. */
export interface ServiceAllocationOptions {
  readonly transport: Transport;
  /** What allocates. If it is the API server, its allocations are audited. */
  readonly allocation: 'server' | 'controller';
  /** The CIDRs of a server without ServiceCIDRs, and the cluster's families, primary first. */
  readonly serviceCidrs?: readonly ServiceCidr[];
  readonly nodePorts: PortRange;
}

const common = {
  name: 'service-allocation-controller',
  eventSource: 'servicenet-service-allocation',
} as const;

/** Allocates addresses and node ports of Services, or audits an API server that does. */
export function serviceAllocationController(options: ServiceAllocationOptions): ControllerSpec {
  if (options.allocation === 'server') {
    return {
      ...common,
      queue: 'service_allocation_audit',
      workers: 1,
      build: (loop) => build(loop, options, (served) => new AuditReconciler(loop, options, served)),
    };
  }
  return {
    ...common,
    queue: 'service_allocation',
    workers: 16,
    backoff: { base: 5, max: 60_000 },
    build: (loop) => build(loop, options, (served) => new AllocationReconciler(loop, options, served)),
  };
}

/** What works on the kinds that the server serves. */
interface ServedReconciler {
  /** The caches of these kinds. */
  readonly sources: readonly SyncedSource[];
  readonly reconcile: Reconcile;
}

/** Makes the reconciler when the server has said which kinds it serves, before the first key. */
function build(
  loop: KeyLoop,
  { transport, serviceCidrs }: ServiceAllocationOptions,
  make: (served: ServedKinds) => ServedReconciler,
): Reconcile {
  const { clock, log } = loop.context;
  // Now, so that a standby fills this cache too: it is the largest.
  loop.cache(services);

  let reconciler: ServedReconciler | undefined;
  const throttle = new LogThrottle(() => clock.monotonic());
  const failed = (error: unknown): void => {
    if (isUnreached(error) || !throttle.isDue(errorWord(error))) return;
    log.warn({ err: error }, 'could not ask the API server for its kinds, will retry');
  };

  loop.waitFor({
    async synced(signal) {
      const served = await readServedKinds(transport, clock, signal, failed);
      if (served === undefined) return false;
      if (!served.cidrs && serviceCidrs === undefined) {
        log.error('the API server has no ServiceCIDRs: set the ranges with --service-cluster-ip-range');
      }
      reconciler = make(served);
      const synced = await Promise.all(reconciler.sources.map((source) => source.synced(signal)));
      return synced.every(Boolean);
    },
  });

  return async (key, signal) => await reconciler?.reconcile(key, signal);
}

/** Milliseconds between tries. */
const retryDelayMs = 2000;

/** Reads the discovery of the server, with retries; undefined if the signal aborts first. */
async function readServedKinds(
  transport: Transport,
  clock: Clock,
  signal: AbortSignal,
  failed: (error: unknown) => void,
): Promise<ServedKinds | undefined> {
  while (!signal.aborted) {
    try {
      const list = (await transport.request('GET', '/apis/networking.k8s.io/v1', { signal })).json();
      const names = new Set(listAt(list, 'resources').map((resource) => at(resource, 'name')));
      return { addresses: names.has('ipaddresses'), cidrs: names.has('servicecidrs') };
    } catch (error) {
      if (isNotFound(error)) return { addresses: false, cidrs: false };
      failed(error);
      await clock.sleep(retryDelayMs, signal);
    }
  }
  return undefined;
}

/** The only key of the work queue. */
const clusterKey = 'cluster';
/** Milliseconds in which changes are collected. */
const collectMs = 2000;
/** Milliseconds before a finding is reported: the caches of two kinds show one transaction at different times. */
const settleMs = 10_000;
/** Milliseconds between audits without a change, as in kube-apiserver's repair loops. */
const resyncMs = 180_000;

/** Audits the allocations of an API server. It writes only Events. */
class AuditReconciler {
  readonly #context: ControllerContext;
  readonly #options: AllocatingOptions;
  readonly #services: Informer<Service>;
  readonly #addresses: Informer<IPAddress> | undefined;
  readonly #cidrs: Informer<ServiceCIDR> | undefined;
  readonly #allocations: AllocationState;
  readonly #metrics: AllocationMetrics;
  /** When a finding was first seen (monotonic milliseconds), and whether it was reported. */
  readonly #known = new Map<string, { readonly since: number; isReported: boolean }>();

  constructor(loop: KeyLoop, options: AllocatingOptions, served: ServedKinds) {
    this.#context = loop.context;
    this.#options = options;

    this.#services = loop.cache(services);
    this.#addresses = served.addresses ? loop.cache(ipAddresses) : undefined;
    this.#cidrs = served.cidrs ? loop.cache(serviceCIDRs) : undefined;

    this.#allocations = new AllocationState(options.nodePorts);
    this.#metrics = new AllocationMetrics(loop.context.metrics, this.#allocations);

    const changed = (): readonly [] => {
      loop.enqueue(clusterKey, { afterMs: collectMs });
      return [];
    };
    loop.on(this.#services, ({ kind, object: service }) => {
      if (kind === 'deleted') this.#allocations.delete(keyOf(service));
      else this.#allocations.set(viewOf(service), service.metadata.resourceVersion ?? '');
      return changed();
    });
    if (this.#addresses !== undefined) loop.on(this.#addresses, changed);
    if (this.#cidrs !== undefined) loop.on(this.#cidrs, changed);
    loop.enqueue(clusterKey);
  }

  /** The caches of the kinds that not every server serves. */
  get sources(): readonly SyncedSource[] {
    return [this.#addresses, this.#cidrs].filter((informer) => informer !== undefined);
  }

  async reconcile(): Promise<ReconcileResult> {
    const lists = [this.#services, this.#addresses, this.#cidrs];
    if (lists.some((informer) => informer?.isListing === true)) return { requeueAfterMs: collectMs };
    const { clock } = this.#context;
    const { serviceCidrs } = this.#options;
    const ranges =
      this.#cidrs === undefined
        ? rangesOfFlags(serviceCidrs)
        : rangesOf(this.#cidrs.cache.values(), serviceCidrs);
    this.#allocations.setCidrs(ranges.cidrs);
    const present = new Set<string>();
    const confirmed: Finding[] = [];
    let hasUnsettled = false;
    const now = clock.monotonic();
    const found = planAudit({
      allocations: this.#allocations,
      services: this.#services.cache.values(),
      addresses: this.#addresses?.cache,
      serviceOfKey: (key) => this.#services.cache.get(key),
    });
    const slices = new TimeSlices();
    for (const finding of found) {
      if (slices.due) await slices.yield();
      if (finding === undefined) continue;
      const id = [finding.kind, finding.key, finding.reason, finding.value].join(' ');
      present.add(id);
      const known = this.#known.get(id) ?? { since: now, isReported: false };
      this.#known.set(id, known);
      if (now - known.since < settleMs) {
        hasUnsettled = true;
        continue;
      }
      confirmed.push(finding);
      if (known.isReported) continue;
      known.isReported = true;
      this.#report(finding);
    }
    for (const [id, { isReported }] of this.#known) {
      if (present.has(id)) continue;
      this.#known.delete(id);
      if (isReported) this.#context.log.info({ finding: id }, 'allocation finding is gone');
    }
    this.#metrics.setFindings(confirmed.map(({ reason }) => reason));
    return { requeueAfterMs: hasUnsettled ? settleMs : resyncMs };
  }

  #report({ kind, key, reason, message }: Finding): void {
    const object: KubeObject | undefined =
      kind === 'Service' ? this.#services.cache.get(key) : this.#addresses?.cache.get(key);
    this.#context.log.warn({ key, kind, reason, detail: message }, 'allocation finding');
    this.#metrics.countProblem(reason);
    if (object !== undefined) this.#context.events.event(object, 'Warning', reason, message);
  }
}
