import { isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informer.ts';
import { nodes, serviceCIDRs } from '../../client/resources.ts';
import { jsonEqual } from '../../objects/json.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { Node } from '../../objects/core.generated.ts';
import type { ServiceCIDR } from '../../objects/networking.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { Controller, type ReconcileResult } from '../../runtime/controller.ts';
import type { LoadBalancerAllocator } from './allocator.ts';
import { forbiddenRanges } from './forbidden.ts';
import type { LoadBalancerMetrics } from './metrics.ts';
import { planPoolStatus, readResting } from './plan-pool.ts';
import { readPool, type AddressPool } from './pool.ts';
import type { PoolLayout } from './pool-layout.ts';
import { addressPools } from './resource.ts';

/** Something that must be in the cache first. */
type SyncedSource = Pick<Informer<KubeObject>, 'synced'>;

/** What a keeper of pools tells and asks its owner. */
export interface PoolKeeperOwner {
  /** The allocator changed addresses of Services. */
  changed(): void;
  /** Must be in the cache before pools are laid out. */
  readonly waitFor: readonly SyncedSource[];
  /** AllocationState what Services have; must come before anything else is done with the pools. */
  warmUp(signal: AbortSignal): Promise<void>;
}

/** Keys of the queue that are no names of pools: a pool's name has no star. */
const layOutKey = '*layout';
const restKey = '*rest';
const countKey = '*count';

/** Milliseconds in which changes of pools, nodes and counts are gathered. */
const gather = { layout: 50, count: 500 };

/** Tells the allocator of pools, ends rests in time, and writes the pools' status. */
export class PoolKeeper {
  readonly controller: Controller;
  readonly #context: ControllerContext;
  readonly #allocator: LoadBalancerAllocator;
  readonly #metrics: LoadBalancerMetrics;
  readonly #owner: PoolKeeperOwner;
  readonly #pools: Informer<AddressPool>;
  readonly #nodes: Informer<Node>;
  readonly #cidrs: Informer<ServiceCIDR>;
  #layouts: ReadonlyMap<string, PoolLayout> = new Map();
  /** What was read last, as text: books of many addresses are not built anew for the same. */
  #loaded = '';
  #problems = new Map<string, readonly string[]>(); // pool -> what is wrong with its spec
  #generations = new Map<string, number | undefined>(); // pool -> that of the spec in force

  constructor(
    context: ControllerContext,
    allocator: LoadBalancerAllocator,
    metrics: LoadBalancerMetrics,
    owner: PoolKeeperOwner,
  ) {
    this.#context = context;
    this.#allocator = allocator;
    this.#metrics = metrics;
    this.#owner = owner;
    this.#pools = context.informers.informer(addressPools);
    this.#nodes = context.informers.informer(nodes);
    this.#cidrs = context.informers.informer(serviceCIDRs);
    this.controller = new Controller({
      name: 'address_pool',
      context,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      workers: 2,
      waitFor: [...owner.waitFor, ...this.sources],
    });
    const layOutAgain = (): void => this.controller.enqueue(layOutKey, { after: gather.layout });
    this.#pools.addHandler({
      added: layOutAgain,
      // Whatever changed: after a lost watch an edit and its undoing show as a change of nothing but the generation, and
      // what a status was compared with may have been older than an own write. What is the same costs a comparison.
      updated: layOutAgain,
      deleted: (pool) => {
        this.#metrics.forget(keyOf(pool));
        layOutAgain();
      },
    });
    this.#nodes.addHandler({
      added: layOutAgain,
      updated: (node, old) => {
        const same = jsonEqual(node.status.addresses, old.status.addresses);
        if (!same || !jsonEqual(node.spec.podCIDRs, old.spec.podCIDRs)) layOutAgain();
      },
      deleted: layOutAgain,
    });
    this.#cidrs.addHandler({
      added: layOutAgain,
      updated: (cidr, old) => {
        if (!jsonEqual(cidr.spec, old.spec)) layOutAgain();
      },
      deleted: layOutAgain,
    });
  }

  /** What must be in the cache before pools can be known. */
  get sources(): readonly SyncedSource[] {
    return [this.#pools, this.#nodes, this.#cidrs];
  }

  /** Reads all pools into the allocator, unless it has them so. */
  load(): void {
    const objects = [...this.#pools.cache.values()];
    const forbidden = forbiddenRanges(this.#nodes.cache.values(), this.#cidrs.cache.values());
    // Also where the specs are what they were: an edit that was undone is observed.
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
    );
    this.#loaded = input;
  }

  /** Lets rest what rested when the last process wrote the pools' status. Comes after what Services have. */
  loadRests(): void {
    const { book } = this.#allocator;
    const now = this.#context.clock.now();
    for (const pool of this.#pools.cache.values()) {
      for (const rest of readResting(pool, now)) book.rest(rest);
    }
    this.count();
  }

  /** Looks, a little later, at what the pools' status should say, and at when the next rest ends. */
  count(): void {
    this.controller.enqueue(countKey, { after: gather.count });
    const next = this.#allocator.book.nextRest;
    if (next !== undefined) {
      this.controller.enqueue(restKey, { after: Math.max(0, next - this.#context.clock.now()) });
    }
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    await this.#owner.warmUp(signal);
    if (key === layOutKey) {
      this.load();
      this.#owner.changed();
    } else if (key === countKey) {
      for (const name of this.#allocator.book.pools.keys()) this.controller.enqueue(name);
    } else if (key === restKey) {
      this.#allocator.tick(this.#context.clock.now());
      this.#owner.changed();
    } else await this.#writeStatus(key, signal);
    return undefined;
  }

  async #writeStatus(name: string, signal: AbortSignal): Promise<void> {
    const pool = this.#pools.cache.get(name);
    const stocked = this.#allocator.book.pools.get(name);
    if (pool === undefined || stocked === undefined) return;
    const { book } = this.#allocator;
    const usage = { IPv4: book.usage(stocked, 'IPv4'), IPv6: book.usage(stocked, 'IPv6') };
    this.#metrics.usage(name, 'IPv4', usage.IPv4);
    this.#metrics.usage(name, 'IPv6', usage.IPv6);
    const problems = this.#problems.get(name) ?? [];
    const conflicts = this.#layouts.get(name)?.conflicts ?? [];
    const generation = this.#generations.get(name);
    const resting = book.restingIn(stocked);
    const facts = { usage, problems, conflicts, resting, generation };
    const status = planPoolStatus(pool, facts, this.#context.clock.now());
    if (status === undefined) return;
    try {
      await this.#context.clients.for(addressPools).replaceStatus({ ...pool, status }, { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
