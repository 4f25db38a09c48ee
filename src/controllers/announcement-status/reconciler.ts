import type { AnnouncedReason } from '../../objects/reasons.ts';
import { isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { addressPools, endpointSlices, leases, nodes, services } from '../../client/resources.ts';
import { TimeSlices } from '../../telemetry/time-slice.ts';
import { type AgentReport, decodeReport } from '../../network/announcing/agent-report.ts';
import { type Announcer, planAnnouncement } from '../../network/announcing/announcement-plan.ts';
import { readAnnouncerLease } from '../../network/announcing/agent-report.ts';
import { announcerOf } from '../../network/announcing/agent-report.ts';
import {
  announcedPools,
  assignedAddresses,
  poolOf,
  type ServiceAddress,
  loadBalancerReadyCondition,
} from '../../network/announcing/assigned-addresses.ts';
import { longerWaitMs, takeOverAfterMs } from '../../network/announcing/fence.ts';
import { Liveness } from '../../network/announcing/membership.ts';
import { bySliceService, indexBySliceService, serviceOfSlice } from '../../network/forwarding/endpoints.ts';
import { parseStrictAddress } from '../../objects/address.ts';
import type { Lease } from '../../objects/types/coordination.generated.ts';
import type { Node, Service } from '../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import { conditionStatus } from '../../objects/json.ts';
import type { AddressPool } from '../../objects/types/servicenet.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { KeyLoop, ReconcileResult } from '../../runtime/key-loop.ts';
import { replacedCondition } from '../../objects/meta.ts';
import {
  type AnnouncedPlan,
  announcedCondition,
  announcedConditionOf,
  planAnnounced,
  type HostAddress,
  type PlannedAddress,
  type PoolAnnounced,
  reasonOf,
} from './plan.ts';

/** The key of the work queue that plans for all Services; their keys have a slash. */
const everyKey = '*every';

/**
 * Milliseconds in which changes are collected. A move of agents takes less, so that a Service is written once. A
 * process that missed the last renewals for a moment writes nothing.
 */
const collectMs = 1000;

/** Which Services the reconciler writes, and its callbacks. */
export interface AnnouncedOptions {
  /** Whether this process assigns the addresses of a Service. */
  readonly isServed: (service: Service) => boolean;
  /** Called when the result of {@link AnnouncedReconciler.ofPool} may have changed. */
  readonly poolsChanged: () => void;
  /** Called when {@link AnnouncedReconciler.hostAddresses} has changed. */
  readonly hostAddressesChanged: () => void;
}

/**
 * Writes the announcers of addresses into the status of Services: by the same plan as the agents', and their
 * reports. While agents only renew their Leases, nothing is planned or written.
 */
export class AnnouncedReconciler {
  readonly #loop: KeyLoop;
  readonly #context: ControllerContext;
  readonly #options: AnnouncedOptions;
  readonly #services: Informer<Service>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #nodes: Informer<Node>;
  readonly #pools: Informer<AddressPool>;
  readonly #leases: Informer<Lease>;
  readonly #liveness = new Liveness(takeOverAfterMs);
  readonly #reports = new Map<string, AgentReport>();
  #ofPools: ReadonlyMap<string, PoolAnnounced> = new Map();
  #hostAddresses: readonly HostAddress[] = [];
  /** Undefined: to be computed again. */
  #addresses: ReadonlyMap<string, ServiceAddress> | undefined;
  /** Whether anything but the time has changed since all Services were planned. */
  #isDirty = true;
  /** The agents that were alive then. */
  #alive = '';

  /** @param loop of the Services: that of the announcements runs beside it. */
  constructor(loop: KeyLoop, options: AnnouncedOptions) {
    this.#context = loop.context;
    this.#options = options;
    const own = loop.beside('announced', { workers: 4 }, () => (key, signal) => this.#reconcile(key, signal));
    this.#loop = own;

    this.#services = own.cache(services);
    this.#slices = own.cache(endpointSlices, { indexes: { [bySliceService]: indexBySliceService } });
    this.#nodes = own.cache(nodes);
    this.#pools = own.cache(addressPools);
    this.#leases = own.cache(leases);

    own.on(this.#services, (change) => {
      const { object: service } = change;
      if (change.kind !== 'updated' || !jsonEqual(partsOfService(service), partsOfService(change.old))) {
        this.#touch();
      } else if (!jsonEqual(announcedConditionOf(service), announcedConditionOf(change.old))) {
        own.enqueue(keyOf(service), { afterMs: collectMs });
      }
      return [];
    });
    own.on(this.#slices, ({ object: slice }) => {
      const service = this.#services.cache.get(serviceOfSlice(slice) ?? '');
      if (service?.spec.externalTrafficPolicy === 'Local') this.#touch();
      return [];
    });
    own.on(this.#pools, (change) => {
      const isSame = change.kind === 'updated' && jsonEqual(change.object.spec, change.old.spec);
      if (!isSame) this.#touch();
      return [];
    });
    own.on(this.#nodes, (change) => {
      const isSame =
        change.kind === 'updated' && jsonEqual(partsOfNode(change.object), partsOfNode(change.old));
      if (!isSame) this.#touch();
      return [];
    });
    own.on(this.#leases, (change) => {
      if (change.kind === 'deleted') this.#forget(change.object);
      else this.#see(change.object, change.kind === 'updated' ? change.old : undefined);
      return [];
    });
  }

  /** The announcements of a pool's addresses; undefined: none in use. */
  ofPool(name: string): PoolAnnounced | undefined {
    return this.#ofPools.get(name);
  }

  /** The addresses of nodes and of their routers, of those in pools, as agents report. */
  get hostAddresses(): readonly HostAddress[] {
    return this.#hostAddresses;
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    if (key === everyKey) return this.#planAll();
    const service = this.#services.cache.get(key);
    if (service !== undefined) await this.#write(service, this.#plan(service, this.#living()), signal);
    return undefined;
  }

  #touch(): void {
    this.#addresses = undefined;
    this.#isDirty = true;
    this.#loop.enqueue(everyKey, { afterMs: collectMs });
  }

  #forget(lease: Lease): void {
    const read = readAnnouncerLease(lease);
    if (read === undefined) return;
    this.#reports.delete(read.node);
    this.#liveness.forget(read.node);
    this.#touch();
  }

  #see(lease: Lease, old: Lease | undefined): void {
    const read = readAnnouncerLease(lease);
    if (read === undefined) return;
    const { node, version, acquired, seconds, reportText } = read;
    const now = this.#context.clock.monotonic();
    const lived = this.#liveness.isAlive(node, now);
    this.#liveness.observe(node, acquired === undefined ? undefined : version, now, longerWaitMs(seconds));
    const isNew = old === undefined || readAnnouncerLease(old)?.reportText !== reportText;
    if (isNew) {
      this.#reports.set(node, decodeReport(reportText));
      this.#isDirty = true;
    }
    if (isNew || lived !== this.#liveness.isAlive(node, now)) {
      this.#loop.enqueue(everyKey, { afterMs: collectMs });
    }
  }

  /** Enqueues the Services whose condition changes, and plans again when the next Lease would expire. */
  async #planAll(): Promise<ReconcileResult | undefined> {
    const now = this.#context.clock.monotonic();
    const living = this.#living();
    const alive = [...living.reports.keys()].toSorted().join(' ');
    if (this.#isDirty || alive !== this.#alive) {
      this.#isDirty = false;
      this.#alive = alive;
      const slices = new TimeSlices();
      for (const service of [...this.#services.cache.values()]) {
        if (slices.due) await slices.yield();
        const { condition } = this.#plan(service, living);
        if (!jsonEqual(condition, announcedConditionOf(service))) this.#loop.enqueue(keyOf(service));
      }
      await this.#planPools(living, slices);
    }
    const next = this.#liveness.nextEnd(now);
    return Number.isFinite(next) ? { requeueAfterMs: next - now + collectMs } : undefined;
  }

  async #planPools(living: Living, slices: TimeSlices): Promise<void> {
    const ofPools = new Map<string, CountedPool>();
    const ofPool = (name: string): CountedPool => {
      const known = ofPools.get(name) ?? { reasons: new Map<AnnouncedReason, number>(), refused: [] };
      ofPools.set(name, known);
      return known;
    };
    // A cluster without agents may have another announcer: see #plan.
    const addresses = this.#reports.size === 0 ? [] : this.#known().values();
    for (const assigned of addresses) {
      if (slices.due) await slices.yield();
      if (assigned.pool === undefined) continue;
      const { reasons } = ofPool(assigned.pool);
      const reason = reasonOf(planned(assigned, living));
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    }
    const pools = announcedPools(this.#pools.cache.values());
    for (const [node, report] of living.reports) {
      for (const refusal of report.refused) {
        const parsed = parseStrictAddress(refusal.address);
        const pool = parsed === undefined ? undefined : poolOf(parsed, pools);
        if (pool !== undefined) ofPool(pool.name).refused.push({ node, ...refusal });
      }
    }
    this.#ofPools = ofPools;
    const hostAddresses = hostAddressesOf(this.#reports);
    if (!jsonEqual(hostAddresses, this.#hostAddresses)) {
      this.#hostAddresses = hostAddresses;
      this.#options.hostAddressesChanged();
    }
    this.#options.poolsChanged();
  }

  /**
   * No condition before the first agent has made a Lease: pools without `spec.announce` are announced by layer 2,
   * also in clusters where another program announces.
   */
  #plan(service: Service, living: Living): AnnouncedPlan {
    const isSilent = this.#reports.size === 0 && announcedConditionOf(service) === undefined;
    const addresses = isSilent || !this.#options.isServed(service) ? [] : this.#addressesOf(service);
    return planAnnounced(
      service,
      addresses.map((assigned) => planned(assigned, living)),
      this.#context.clock.now(),
    );
  }

  #addressesOf({ status }: Service): readonly ServiceAddress[] {
    return (status.loadBalancer?.ingress ?? []).flatMap(({ ip = '' }) => {
      const address = parseStrictAddress(ip)?.canonical;
      return address === undefined ? [] : (this.#known().get(address) ?? []);
    });
  }

  #known(): ReadonlyMap<string, ServiceAddress> {
    this.#addresses ??= assignedAddresses(
      // Also those of other instances: the agents announce them, and the status of a pool counts all.
      this.#services.cache.values(),
      (key) => this.#slices.cache.byIndex(bySliceService, key),
      announcedPools(this.#pools.cache.values()),
    );
    return this.#addresses;
  }

  #living(): Living {
    const now = this.#context.clock.monotonic();
    const isAlive = (node: string): boolean => this.#liveness.isAlive(node, now);
    return {
      announcers: [...this.#reports].flatMap(([name, report]) => {
        const node = this.#nodes.cache.get(name);
        return node === undefined ? [] : announcerOf(node, report, isAlive(name));
      }),
      reports: new Map([...this.#reports].filter(([name]) => isAlive(name))),
    };
  }

  async #write(service: Service, plan: AnnouncedPlan, signal: AbortSignal): Promise<void> {
    // A Service that is not served loses the condition with its addresses, by the load balancer's reconciler.
    if (loadBalancerReadyCondition(service) === undefined || !this.#options.isServed(service)) return;
    const { condition, events } = plan;
    if (jsonEqual(condition, announcedConditionOf(service))) return;
    const { namespace = '', name = '', resourceVersion } = service.metadata;
    const before = service.status.conditions ?? [];
    const conditions =
      condition === undefined
        ? before.filter(({ type }) => type !== announcedCondition)
        : replacedCondition(before, condition);
    try {
      const patch = { metadata: { resourceVersion }, status: { conditions } };
      await this.#context.clients
        .for(services)
        .mergePatch(namespace, name, patch, { signal, subresource: 'status' });
    } catch (error) {
      if (isNotFound(error)) return;
      throw error;
    }
    for (const { type, reason, message } of events) {
      this.#context.events.event(service, type, reason, message);
      this.#context.log.info({ key: keyOf(service), reason }, message);
    }
  }
}

/** The counts for the status of a pool. */
interface CountedPool extends PoolAnnounced {
  readonly reasons: Map<AnnouncedReason, number>;
  readonly refused: PoolAnnounced['refused'][number][];
}

function hostAddressesOf(reports: ReadonlyMap<string, AgentReport>): readonly HostAddress[] {
  return [...reports]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([node, { refused }]) =>
      refused.flatMap(({ address, reason }) => {
        if (reason === 'NodeAddress') return [{ address, owner: `node ${node}` }];
        return reason === 'GatewayAddress' ? [{ address, owner: `the router of node ${node}` }] : [];
      }),
    );
}

/** The agents, and the reports of those that are alive. */
interface Living {
  readonly announcers: readonly Announcer[];
  readonly reports: ReadonlyMap<string, AgentReport>;
}

function planned(assigned: ServiceAddress, { announcers, reports }: Living): PlannedAddress {
  return { address: assigned.address, plan: planAnnouncement(assigned, announcers), reports };
}

function partsOfService(service: Service): unknown {
  const { metadata, spec, status } = service;
  return [
    ...[spec.type, spec.externalTrafficPolicy, spec.loadBalancerClass, status.loadBalancer],
    ...[metadata.labels, metadata.deletionTimestamp, loadBalancerReadyCondition(service) === undefined],
  ];
}

function partsOfNode({ metadata, spec, status }: Node): unknown {
  const ready = conditionStatus(status.conditions ?? [], 'Ready');
  return [metadata.labels, spec.unschedulable ?? false, ready];
}
