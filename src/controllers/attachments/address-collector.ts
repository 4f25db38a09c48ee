import type { PoolEntry } from '../../allocation/whereabouts-pool.ts';
import { isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { ipPools, pods as podsResource } from '../../client/resources.ts';
import { parseCronSchedule } from '../../objects/cron-schedule.ts';
import { type ObjectKey, splitKey } from '../../objects/key.ts';
import type { IPPool, OverlappingRangeIPReservation } from '../../objects/types/attachments.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { ReconcileResult } from '../../runtime/controller.ts';
import { Reconciler } from '../../runtime/reconciler.ts';
import type { IPPools } from './ip-pools.ts';
import { addressText, entriesOf, type Holding, holdingOf, reservationHolding } from './plan-orphans.ts';

/** When all pools are checked, in UTC (`reconciler_cron_expression`). */
const schedule = '30 4 * * *';
/** How often, and after how many milliseconds, a pending Pod is read again: it may be running soon. */
const pendingReads = { count: 3, delay: 250 };
/** The only key: all pools are checked together. */
const all: ObjectKey = 'all';

/**
 * Gives back addresses without a Pod (whereabouts' `ip-reconciler`): at the start, for the remains of a crash, and
 * once a day. Entries without a Pod's name stay, and those that a pending Pod may be about to get.
 */
export class AddressCollector extends Reconciler {
  readonly #pods: ResourceClient<Pod>;
  readonly #cached: Informer<Pod>;
  readonly #pools: Informer<IPPool>;
  readonly #reservations: Informer<OverlappingRangeIPReservation>;
  readonly #addresses: IPPools;

  constructor(
    context: ControllerContext,
    addresses: IPPools,
    reservations: Informer<OverlappingRangeIPReservation>,
  ) {
    super(context, 'ip_pool');
    this.#addresses = addresses;
    this.#pods = context.clients.for(podsResource);
    this.#cached = this.informer(podsResource);
    this.#pools = this.informer(ipPools);
    this.#reservations = reservations;
    this.waitFor(reservations);
    this.queue.enqueue(all);
  }

  protected override async reconcile(_: ObjectKey, signal: AbortSignal): Promise<ReconcileResult> {
    for (const pool of this.#pools.cache.values()) {
      for (const entry of entriesOf(pool)) await this.#collect(pool, entry, signal);
    }
    for (const reservation of this.#reservations.cache.values()) {
      const { podref } = reservation.spec;
      const { name = '' } = reservation.metadata;
      const isOrphan = (pod: Pod | undefined): Holding => reservationHolding(pod, reservation);
      if (podref === '' || !(await this.#isOrphaned(podref, isOrphan, signal))) continue;
      if (await this.#addresses.releaseReservation(reservation, signal)) {
        this.context.log.info(
          { reservation: name, podref },
          'deleted the reservation of an address that no Pod has',
        );
      }
    }
    const now = this.context.clock.now();
    const next = parseCronSchedule(schedule).next(now, 'UTC') ?? now;
    return { requeueAfter: Math.max(1, next - now) };
  }

  async #collect(pool: IPPool, entry: PoolEntry, signal: AbortSignal): Promise<void> {
    const { podref } = entry;
    const address = addressText(pool, entry);
    if (podref === '') return;
    if (!(await this.#isOrphaned(podref, (pod) => holdingOf(pod, entry.ifname, address), signal))) return;
    if (!(await this.#addresses.releaseEntry(pool, entry, signal))) return;
    const { name = '' } = pool.metadata;
    this.context.log.info({ pool: name, address, podref }, 'freed an address that no Pod has');
  }

  /** The cache shows which Pods may be gone; the server is asked before an address is released. */
  async #isOrphaned(
    podref: string,
    holding: (pod: Pod | undefined) => Holding,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (holding(this.#cached.cache.get(podref)) === 'held') return false;
    for (let read = 0; ; read++) {
      const found = holding(await this.#read(podref, signal));
      if (found !== 'pending' || read === pendingReads.count) return found === 'orphaned';
      await this.context.clock.sleep(pendingReads.delay, signal);
    }
  }

  async #read(podref: string, signal: AbortSignal): Promise<Pod | undefined> {
    const { namespace, name } = splitKey(podref);
    if (namespace === '' || name.includes('/')) return undefined;
    try {
      return await this.#pods.get(namespace, name, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}
