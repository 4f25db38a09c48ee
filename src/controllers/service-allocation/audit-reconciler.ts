import type { PortRange } from '../../allocation/port-allocator.ts';
import type { ServiceCidr } from '../../allocation/address-range.ts';
import type { Informer } from '../../client/informer.ts';
import { ipAddresses, serviceCIDRs, services } from '../../client/resources.ts';
import { TimeSlices } from '../../client/slices.ts';
import { keyOf } from '../../objects/key.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { Service } from '../../objects/core.generated.ts';
import type { IPAddress, ServiceCIDR } from '../../objects/networking.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { Controller, type ReconcileResult } from '../../runtime/controller.ts';
import { AllocationState } from './allocation-state.ts';
import { AllocationMetrics } from './metrics.ts';
import { audit, type Finding } from './plan-audit.ts';
import { viewOf } from './plan-view.ts';
import { rangesOf, rangesOfFlags } from './ranges.ts';
import type { ServedKinds } from './served.ts';

export interface AuditingOptions {
  readonly serviceCidrs?: readonly ServiceCidr[];
  readonly nodePorts: PortRange;
}

/** The one key: findings are between objects. */
const cluster = 'cluster';
/** Milliseconds that changes are collected. */
const collect = 2000;
/** Milliseconds that a finding must last: caches of different kinds show one transaction at different times. */
const settle = 10_000;
/** Milliseconds between looks with nothing changed, as kube-apiserver's repair loops. */
const resync = 180_000;

/** Watches over what an API server allocated, and tells of what cannot be right. It writes nothing but Events. */
export class AuditReconciler {
  readonly controller: Controller;
  readonly #context: ControllerContext;
  readonly #options: AuditingOptions;
  readonly #services: Informer<Service>;
  readonly #addresses: Informer<IPAddress> | undefined;
  readonly #cidrs: Informer<ServiceCIDR> | undefined;
  readonly #allocations: AllocationState;
  readonly #metrics: AllocationMetrics;
  /** Since when a finding is there (monotonic), and whether users know. */
  readonly #known = new Map<string, { readonly since: number; told: boolean }>();

  constructor(context: ControllerContext, options: AuditingOptions, served: ServedKinds) {
    this.#context = context;
    this.#options = options;
    this.#services = context.informers.informer(services);
    this.#addresses = served.addresses ? context.informers.informer(ipAddresses) : undefined;
    this.#cidrs = served.cidrs ? context.informers.informer(serviceCIDRs) : undefined;
    this.#allocations = new AllocationState(options.nodePorts);
    this.#metrics = new AllocationMetrics(context.metrics, this.#allocations);
    this.controller = new Controller({
      name: 'service_allocation_audit',
      context,
      reconcile: () => this.#look(),
      workers: 1,
      waitFor: [
        this.#services,
        ...(this.#addresses ? [this.#addresses] : []),
        ...(this.#cidrs ? [this.#cidrs] : []),
      ],
    });
    const changed = (): void => this.controller.enqueue(cluster, { after: collect });
    const learn = (service: Service): void => {
      this.#allocations.set(viewOf(service), service.metadata.resourceVersion ?? '');
      changed();
    };
    this.#services.addHandler({
      added: learn,
      updated: learn,
      deleted: (service) => {
        this.#allocations.delete(keyOf(service));
        changed();
      },
    });
    const follow = { added: changed, updated: changed, deleted: changed };
    this.#addresses?.addHandler(follow);
    this.#cidrs?.addHandler(follow);
    this.controller.enqueue(cluster);
  }

  async #look(): Promise<ReconcileResult> {
    const lists = [this.#services, this.#addresses, this.#cidrs];
    if (lists.some((informer) => informer?.isListing === true)) return { requeueAfter: collect };
    const { clock } = this.#context;
    const { serviceCidrs } = this.#options;
    const ranges =
      this.#cidrs === undefined
        ? rangesOfFlags(serviceCidrs)
        : rangesOf(this.#cidrs.cache.values(), serviceCidrs);
    this.#allocations.setCidrs(ranges.cidrs);
    const present = new Set<string>();
    const confirmed: Finding[] = [];
    let fresh = false;
    const now = clock.monotonic();
    const found = audit({
      allocations: this.#allocations,
      services: this.#services.cache.values(),
      addresses: this.#addresses?.cache,
      serviceOfKey: (key) => this.#services.cache.get(key),
    });
    const slices = new TimeSlices();
    for (const finding of found) {
      if (slices.due) await slices.pause();
      if (finding === undefined) continue;
      const id = [finding.kind, finding.key, finding.reason, finding.value].join(' ');
      present.add(id);
      const known = this.#known.get(id) ?? { since: now, told: false };
      this.#known.set(id, known);
      if (now - known.since < settle) {
        fresh = true;
        continue;
      }
      confirmed.push(finding);
      if (known.told) continue;
      known.told = true;
      this.#tell(finding);
    }
    for (const [id, { told }] of this.#known) {
      if (present.has(id)) continue;
      this.#known.delete(id);
      if (told) this.#context.log.info({ finding: id }, 'allocation finding is gone');
    }
    this.#metrics.found(confirmed.map(({ reason }) => reason));
    return { requeueAfter: fresh ? settle : resync };
  }

  #tell({ kind, key, reason, message }: Finding): void {
    const object: KubeObject | undefined =
      kind === 'Service' ? this.#services.cache.get(key) : this.#addresses?.cache.get(key);
    this.#context.log.warn({ key, kind, reason, detail: message }, 'allocation finding');
    this.#metrics.told(reason);
    if (object !== undefined) this.#context.events.event(object, 'Warning', reason, message);
  }
}
