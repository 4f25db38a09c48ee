import type { LoadBalancerReason } from '../../objects/reasons.ts';
import { Counter, Gauge } from 'prom-client';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { FamilyUsage, AddressPool } from '../../objects/types/servicenet.ts';
import { isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { nodes, serviceCIDRs, addressPools } from '../../client/resources.ts';
import { jsonEqual } from '../../objects/json.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Node } from '../../objects/types/core.generated.ts';
import type { ServiceCIDR } from '../../objects/types/networking.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { KeyLoop, ReconcileResult, SyncedSource } from '../../runtime/key-loop.ts';
import type { ForeignServices, LoadBalancerAllocator } from './allocator.ts';
import { planPoolStatus } from './plan.ts';
import type { HostAddress, PoolAnnounced } from '../announcement-status/plan.ts';
import { readPool, forbiddenRanges, type PoolLayout } from './pools.ts';
import { readQuarantined } from './allocations.ts';

/** Metrics of the load balancer. */
export class LoadBalancerMetrics {
  readonly #addresses: Gauge<'pool' | 'family' | 'state'>;
  readonly #transitions: Counter<'reason'>;
  readonly #waiting: Gauge;

  constructor({ registry }: Metrics) {
    const registers = [registry];
    this.#addresses = new Gauge({
      name: 'servicenet_pool_addresses',
      help: 'Addresses of a pool, by family and state: used, free, quarantined.',
      labelNames: ['pool', 'family', 'state'],
      registers,
    });
    this.#transitions = new Counter({
      name: 'servicenet_load_balancer_transitions_total',
      help: "Changes of the reason in a Service's condition, by the new reason.",
      labelNames: ['reason'],
      registers,
    });
    this.#waiting = new Gauge({
      name: 'servicenet_load_balancer_waiting_services',
      help: 'Services that are waiting for an address.',
      registers,
    });
  }

  transition(reason: LoadBalancerReason): void {
    this.#transitions.inc({ reason });
  }

  waiting(count: number): void {
    this.#waiting.set(count);
  }

  usage(pool: string, family: string, usage: FamilyUsage): void {
    for (const state of addressStates) {
      this.#addresses.set({ pool, family, state }, usage[state]);
    }
  }

  forgetPool(pool: string): void {
    for (const family of ['IPv4', 'IPv6']) {
      for (const state of addressStates) this.#addresses.remove({ pool, family, state });
    }
  }
}

const addressStates = ['used', 'free', 'quarantined'] as const;

/** The reconciler of Services, as the reconciler of pools uses it. */
export interface ServiceReconciler {
  /** Called after the allocator may have changed addresses of Services. */
  changed(): void;
  /** The Services of other load balancers, when the allocator knows new pools. */
  foreign(): ForeignServices;
  readonly waitFor: readonly SyncedSource[];
  /** Records the addresses of all Services, once. Called before every use of the allocator. */
  adopt(signal: AbortSignal): Promise<void>;
  /** The announcements of a pool's addresses; undefined: none in use. */
  announced(pool: string): PoolAnnounced | undefined;
  /** Addresses of nodes and of their routers, as agents report. */
  hostAddresses(): readonly HostAddress[];
}

/** Keys of the work queue beside the names of pools, which have no star. */
const layoutKey = '*layout';
const quarantineKey = '*quarantine';
const statusKey = '*status';

/** Milliseconds in which changes are collected. */
const layoutDelayMs = 50;
const statusDelayMs = 500;

/** Loads AddressPools into the allocator, ends quarantines, and writes the status of the pools. */
export class PoolReconciler {
  readonly #loop: KeyLoop;
  readonly #context: ControllerContext;
  readonly #allocator: LoadBalancerAllocator;
  readonly #metrics: LoadBalancerMetrics;
  readonly #services: ServiceReconciler;
  readonly #pools: Informer<AddressPool>;
  readonly #nodes: Informer<Node>;
  readonly #cidrs: Informer<ServiceCIDR>;
  #layouts: ReadonlyMap<string, PoolLayout> = new Map();
  /** The last input of {@link load} as JSON. */
  #loaded = '';
  #problems = new Map<string, readonly string[]>(); // pool -> invalid parts of its spec
  #generations = new Map<string, number | undefined>(); // pool -> metadata.generation

  /** @param loop of the Services: that of the pools runs beside it. */
  constructor(
    loop: KeyLoop,
    allocator: LoadBalancerAllocator,
    metrics: LoadBalancerMetrics,
    services: ServiceReconciler,
  ) {
    this.#context = loop.context;
    this.#allocator = allocator;
    this.#metrics = metrics;
    this.#services = services;
    this.#loop = loop.beside(
      'address_pool',
      { workers: 2 },
      () => (key, signal) => this.#reconcile(key, signal),
    );

    for (const source of services.waitFor) this.#loop.waitFor(source);
    this.#pools = this.#loop.cache(addressPools);
    this.#nodes = this.#loop.cache(nodes);
    this.#cidrs = this.#loop.cache(serviceCIDRs);

    // On every change: after a relist, an edit that was reverted changes only the generation, and the status may have
    // been compared with an object older than an own write.
    this.#loop.on(this.#pools, ({ kind, object: pool }) => {
      if (kind === 'deleted') this.#metrics.forgetPool(keyOf(pool));
      this.updateLayout();
      return [];
    });
    this.#loop.on(this.#nodes, (change) => {
      const { object: node } = change;
      const isSame =
        change.kind === 'updated' &&
        jsonEqual(node.status.addresses, change.old.status.addresses) &&
        jsonEqual(node.spec.podCIDRs, change.old.spec.podCIDRs);
      if (!isSame) this.updateLayout();
      return [];
    });
    this.#loop.on(this.#cidrs, (change) => {
      const isSame = change.kind === 'updated' && jsonEqual(change.object.spec, change.old.spec);
      if (!isSame) this.updateLayout();
      return [];
    });
  }

  /** The informers that {@link load} reads. */
  get sources(): readonly SyncedSource[] {
    return [this.#pools, this.#nodes, this.#cidrs];
  }

  /** Reads all pools into the allocator, unless nothing changed. */
  load(): void {
    const objects = [...this.#pools.cache.values()];
    const forbidden = forbiddenRanges(
      ...([this.#nodes.cache.values(), this.#cidrs.cache.values()] as const),
      this.#services.hostAddresses(),
    );
    // Also if the specs are equal: an edit that was reverted has a new generation.
    this.#generations = new Map(objects.map((object) => [keyOf(object), object.metadata.generation]));
    const input = JSON.stringify([
      objects.map(({ metadata: { name, creationTimestamp }, spec }) => [name, creationTimestamp, spec]),
      forbidden.map(({ range, owner }) => [range.text, owner]),
    ]);
    if (input === this.#loaded) return;
    const read = objects.map((object) => readPool(object));
    this.#problems = new Map(read.map(({ pool, problems }) => [pool.name, problems]));
    this.#layouts = this.#allocator.setPools(
      read.map(({ pool }) => pool),
      forbidden,
      () => this.#services.foreign(),
    );
    this.#loaded = input;
  }

  /** Reads the quarantined addresses from the status of all pools. Comes after {@link LoadBalancerAllocator.adopt}. */
  loadQuarantine(): void {
    const { allocations } = this.#allocator;
    const now = this.#context.clock.now();
    for (const pool of this.#pools.cache.values()) {
      for (const entry of readQuarantined(pool, now)) allocations.quarantine(entry);
    }
    this.updateStatus();
  }

  /** Enqueues the reading of all pools. */
  updateLayout(): void {
    this.#loop.enqueue(layoutKey, { afterMs: layoutDelayMs });
  }

  /** Enqueues the status of all pools and the end of the next quarantine. */
  updateStatus(): void {
    this.#loop.enqueue(statusKey, { afterMs: statusDelayMs });
    const next = this.#allocator.allocations.nextQuarantineEnd;
    if (next !== undefined) {
      this.#loop.enqueue(quarantineKey, { afterMs: Math.max(0, next - this.#context.clock.now()) });
    }
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    await this.#services.adopt(signal);
    if (key === layoutKey) {
      this.load();
      this.#services.changed();
    } else if (key === statusKey) {
      for (const name of this.#allocator.allocations.pools.keys()) this.#loop.enqueue(name);
    } else if (key === quarantineKey) {
      this.#allocator.endQuarantines(this.#context.clock.now());
      this.#services.changed();
    } else await this.#writeStatus(key, signal);
    return undefined;
  }

  async #writeStatus(name: string, signal: AbortSignal): Promise<void> {
    const pool = this.#pools.cache.get(name);
    const { allocations } = this.#allocator;
    const allocating = allocations.pools.get(name);
    if (pool === undefined || allocating === undefined) return;
    const usage = {
      IPv4: allocations.usage(allocating, 'IPv4'),
      IPv6: allocations.usage(allocating, 'IPv6'),
    };
    this.#metrics.usage(name, 'IPv4', usage.IPv4);
    this.#metrics.usage(name, 'IPv6', usage.IPv6);
    const problems = this.#problems.get(name) ?? [];
    const conflicts = this.#layouts.get(name)?.conflicts ?? [];
    const generation = this.#generations.get(name);
    const quarantined = allocations.quarantinedIn(allocating);
    const announced = this.#services.announced(name);
    const state = { usage, problems, conflicts, quarantined, announced, generation };
    const status = planPoolStatus(pool, state, this.#context.clock.now());
    if (status === undefined) return;
    try {
      await this.#context.clients.for(addressPools).replaceStatus({ ...pool, status }, { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
