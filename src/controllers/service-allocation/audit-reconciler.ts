import type { Informer } from '../../client/informers/informer.ts';
import { ipAddresses, serviceCIDRs, services, type ResourceType } from '../../client/resources.ts';
import { TimeSlices } from '../../telemetry/time-slice.ts';
import { keyOf, type KubeObject, type ObjectKey } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { IPAddress, ServiceCIDR } from '../../objects/types/networking.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { KeyLoop, ReconcileResult, SyncedSource } from '../../runtime/key-loop.ts';
import { AllocationState, rangesOf, rangesOfFlags, type ServedKinds } from './allocation-state.ts';
import { AllocationMetrics } from './metrics.ts';
import { planAudit, type Finding } from './plan-audit.ts';
import { viewOf } from './plan-view.ts';
import type { AllocatingOptions } from './allocation-reconciler.ts';
import type { PortRange } from '../../allocation/port-allocator.ts';
import { listIfServed } from '../../client/resource-client.ts';
import type { Transport } from '../../client/transport.ts';

/** The only key of the work queue. */
const clusterKey = 'cluster';
/** Milliseconds in which changes are collected. */
const collectMs = 2000;
/** Milliseconds before a finding is reported: the caches of two kinds show one transaction at different times. */
const settleMs = 10_000;
/** Milliseconds between audits without a change, as in kube-apiserver's repair loops. */
const resyncMs = 180_000;

/** Audits the allocations of an API server. It writes only Events. */
export class AuditReconciler {
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

/** The result of an audit. */
export interface ClusterAudit {
  readonly services: number;
  /** Undefined if the server has no IPAddresses. */
  readonly addresses: number | undefined;
  /** Sorted by kind, key, reason and value. */
  readonly findings: readonly Finding[];
}

/** Reads a cluster once and audits its addresses and node ports. Throws what a list throws. */
export async function auditCluster(transport: Transport, nodePorts: PortRange): Promise<ClusterAudit> {
  // Services are read before and after IPAddresses. Those that changed in between are left out.
  const cidrs = await listByKey(transport, serviceCIDRs);
  const before = await listByKey(transport, services);
  const addresses = await listByKey(transport, ipAddresses);
  const after = await listByKey(transport, services);
  const allocations = new AllocationState(nodePorts);
  allocations.setCidrs(rangesOf(cidrs?.values() ?? [], undefined).cidrs);
  const present = after ?? new Map<ObjectKey, Service>();
  for (const service of present.values())
    allocations.set(viewOf(service), service.metadata.resourceVersion ?? '');
  const hasChanged = (key: string): boolean =>
    before?.get(key)?.metadata.resourceVersion !== after?.get(key)?.metadata.resourceVersion;
  const findings = [
    ...planAudit({
      allocations,
      services: present.values(),
      addresses,
      serviceOfKey: (key) => present.get(key),
    }),
  ].flatMap((finding) => (finding === undefined || hasChanged(finding.key) ? [] : [finding]));
  const order = ({ kind, key, reason, value }: Finding): string => [kind, key, reason, value].join(' ');
  return {
    services: present.size,
    addresses: addresses?.size,
    findings: findings.sort((a, b) => (order(a) < order(b) ? -1 : 1)),
  };
}

/** All objects of a resource by key; undefined if the server does not have the resource. */
async function listByKey<T extends KubeObject>(
  transport: Transport,
  resource: ResourceType<T>,
): Promise<Map<string, T> | undefined> {
  const all = await listIfServed(transport, resource);
  return all === undefined ? undefined : new Map(all.map((object) => [keyOf(object), object]));
}
