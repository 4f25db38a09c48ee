import { formatAddress, parseAddress, type IPFamily } from '../../objects/address.ts';
import { AttachmentError, type HostLocalRange } from '../../network/attachments/ipam.ts';
import { type Attachment, staticAddresses } from '../../network/attachments/attachments.ts';
import { networkStatusOf } from '../../network/attachments/network-status.ts';
import { keyOf, type ObjectKey, splitKey } from '../../objects/meta.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import type { IPPools, SandboxAttempt } from './ip-pools.ts';
import {
  type Addressed,
  addressText,
  entriesOf,
  type Holding,
  holdingOf,
  reservationHolding,
} from './plan.ts';
import type { PoolEntry } from '../../allocation/whereabouts.ts';
import { isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { ipPools, overlappingRangeIPReservations, pods as podsResource } from '../../client/resources.ts';
import { parseCronSchedule } from '../../objects/formats/cron-schedule.ts';
import type { IPPool, OverlappingRangeIPReservation } from '../../objects/types/openshift.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { KeyLoop, ReconcileResult } from '../../runtime/key-loop.ts';

interface Holder {
  readonly uid: string;
  readonly interface: string;
}

/**
 * The addresses of the plugin `host-local`: given on each node by itself, so that two nodes may give the same one. The
 * plugin keeps them in files of the node; here they are read from the Pods at the start.
 */
export class HostLocalAddresses {
  /** By node and network, then by address. */
  readonly #holders = new Map<string, Map<string, Holder>>();
  /** By node, network and the number of the set: the last address that was given. */
  readonly #last = new Map<string, bigint>();

  /** Records an address that a Pod has. @param scope node and network. @param address canonical. */
  observe(scope: string, address: string, holder: Holder): void {
    const holders = this.#holders.get(scope) ?? new Map<string, Holder>();
    this.#holders.set(scope, holders);
    if (!holders.has(address)) holders.set(address, holder);
  }

  /**
   * One address of each set: the present one of the interface, the requested one, else the one after the last that
   * was given.
   *
   * @param asked addresses of the selection, with or without a prefix length.
   * @throws {AttachmentError} where a set has none left, or a requested one cannot be given.
   */
  assign(
    scope: string,
    sets: readonly (readonly HostLocalRange[])[],
    asked: readonly string[],
    holder: Holder,
  ): readonly string[] {
    const wanted = new Set(asked.map((text) => parseAddress(text.split('/')[0] ?? '')?.canonical ?? text));
    const chosen = sets.map((set, index) => this.#choose(`${scope}#${index}`, scope, set, wanted, holder));
    if (wanted.size > 0) {
      throw new AttachmentError(`failed to allocate all requested IPs: ${[...wanted].join(',')}`);
    }
    for (const address of chosen) this.observe(scope, address, holder);
    return chosen;
  }

  /** Gives back the addresses of a Pod. */
  release(uid: string): void {
    for (const [scope, holders] of this.#holders) {
      for (const [address, holder] of holders) if (holder.uid === uid) holders.delete(address);
      if (holders.size === 0) this.#holders.delete(scope);
    }
  }

  #choose(
    counter: string,
    scope: string,
    set: readonly HostLocalRange[],
    wanted: Set<string>,
    holder: Holder,
  ): string {
    const holders = this.#holders.get(scope);
    const family = set[0]?.usable.family ?? 'IPv4';
    const isIn = (address: string): boolean => {
      const parsed = parseAddress(address);
      return parsed !== undefined && set.some(({ usable }) => usable.contains(parsed.family, parsed.value));
    };
    const isOwn = (of: Holder | undefined): boolean =>
      of?.uid === holder.uid && of.interface === holder.interface;
    for (const address of wanted) {
      if (!isIn(address)) continue;
      wanted.delete(address);
      const other = holders?.get(address);
      if (other === undefined || isOwn(other)) return address;
      throw new AttachmentError(
        `requested IP address ${address} is not available in range set ${rangesText(family, set)}`,
      );
    }
    for (const [address, of] of holders ?? []) if (isOwn(of) && isIn(address)) return address;
    const value = nextFree(
      set,
      this.#last.get(counter),
      (each) => holders?.has(formatAddress(family, each)) === true,
    );
    if (value === undefined) {
      const why = `no IP addresses available in range set: ${rangesText(family, set)}`;
      throw new AttachmentError(`failed to allocate for range ${counter.split('#').at(-1) ?? ''}: ${why}`);
    }
    this.#last.set(counter, value);
    return formatAddress(family, value);
  }
}

/** The next free address after `last`, then from the start; gateways are not given. */
function nextFree(
  set: readonly HostLocalRange[],
  last: bigint | undefined,
  isTaken: (value: bigint) => boolean,
): bigint | undefined {
  const at =
    last === undefined ? -1 : set.findIndex(({ usable }) => usable.first <= last && last <= usable.last);
  const parts = set.map(({ usable, gateway }) => ({ first: usable.first, last: usable.last, gateway }));
  const current = parts[at];
  const ordered =
    current === undefined || last === undefined
      ? parts
      : [
          { ...current, first: last + 1n },
          ...parts.slice(at + 1),
          ...parts.slice(0, at),
          { ...current, last },
        ];
  for (const { first, last: end, gateway } of ordered) {
    for (let value = first; value <= end; value++) {
      if (value !== gateway && !isTaken(value)) return value;
    }
  }
  return undefined;
}

function rangesText(family: IPFamily, set: readonly HostLocalRange[]): string {
  const text = (value: bigint): string => formatAddress(family, value);
  return set.map(({ usable }) => `${text(usable.first)}-${text(usable.last)}`).join(',');
}

/** Gives the attachments of Pods their addresses, by the IPAM plugin of each. */
export class AddressAssigner {
  readonly #pools: IPPools;
  readonly #hostLocal = new HostLocalAddresses();

  constructor(pools: IPPools) {
    this.#pools = pools;
  }

  /** Loads the addresses that the plugin `host-local` has given to an attached Pod. */
  observe(pod: Pod, attachments: readonly Attachment[]): void {
    for (const status of networkStatusOf(pod) ?? []) {
      const attachment = attachments.find((each) => each.interface === status.interface);
      if (attachment?.config.plugin.ipam.type !== 'host-local') continue;
      const holder = { uid: pod.metadata.uid ?? '', interface: attachment.interface };
      for (const ip of status.ips ?? []) this.#hostLocal.observe(scopeOf(pod, attachment), ip, holder);
    }
  }

  /** @throws {AttachmentError} where one cannot have an address; and what a request throws. */
  async assign(
    pod: Pod,
    attachments: readonly Attachment[],
    attempt: SandboxAttempt,
    signal: AbortSignal,
  ): Promise<readonly Addressed[]> {
    const addressed: Addressed[] = [];
    for (const attachment of attachments) {
      addressed.push({ attachment, ips: await this.#addresses(pod, attachment, attempt, signal) });
    }
    return addressed;
  }

  /** What the plugin `host-local` has given to a Pod is free. */
  releaseLocal({ metadata }: Pod): void {
    this.#hostLocal.release(metadata.uid ?? '');
  }

  async #addresses(
    pod: Pod,
    attachment: Attachment,
    attempt: SandboxAttempt,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const { ipam } = attachment.config.plugin;
    switch (ipam.type) {
      case 'none':
      case 'other':
        return [];
      case 'static':
        return staticAddresses(attachment).map(({ address }) => address);
      case 'host-local': {
        const holder = { uid: pod.metadata.uid ?? '', interface: attachment.interface };
        return this.#hostLocal.assign(scopeOf(pod, attachment), ipam.sets, attachment.selection.ips, holder);
      }
      case 'whereabouts': {
        const { ranges, networkName, overlapping } = ipam;
        const owner = { podref: keyOf(pod), ifname: attachment.interface };
        const found: string[] = [];
        for (const range of ranges) {
          const value = await this.#pools.allocate(
            { range, networkName, overlapping },
            owner,
            attempt,
            signal,
          );
          found.push(formatAddress(range.network.family, value));
        }
        return found;
      }
    }
  }
}

/** The plugin `host-local` keeps what it gives on each node, by the network's name. */
function scopeOf({ spec }: Pod, { config }: Attachment): string {
  return `${spec.nodeName ?? ''}/${config.name}`;
}

/** When all pools are checked, in UTC (`reconciler_cron_expression`). */
const schedule = '30 4 * * *';
/** How often, and after how many milliseconds, a pending Pod is read again: it may be running soon. */
const pendingReads = { count: 3, delayMs: 250 };
/** The only key: all pools are checked together. */
const all: ObjectKey = 'all';

/**
 * Gives back addresses without a Pod (whereabouts' `ip-reconciler`): at the start, for the remains of a crash, and
 * once a day. Entries without a Pod's name stay, and those that a pending Pod may be about to get.
 */
export class AddressCollector {
  readonly #context: ControllerContext;
  readonly #pods: ResourceClient<Pod>;
  readonly #cached: Informer<Pod>;
  readonly #pools: Informer<IPPool>;
  readonly #reservations: Informer<OverlappingRangeIPReservation>;
  readonly #addresses: IPPools;

  constructor(loop: KeyLoop, addresses: IPPools) {
    this.#context = loop.context;
    this.#addresses = addresses;
    this.#pods = loop.context.clients.for(podsResource);

    this.#cached = loop.cache(podsResource);
    this.#pools = loop.cache(ipPools);
    this.#reservations = loop.cache(overlappingRangeIPReservations);

    loop.enqueue(all);
  }

  async reconcile(signal: AbortSignal): Promise<ReconcileResult> {
    for (const pool of this.#pools.cache.values()) {
      for (const entry of entriesOf(pool)) await this.#collect(pool, entry, signal);
    }
    for (const reservation of this.#reservations.cache.values()) {
      const { podref } = reservation.spec;
      const { name = '' } = reservation.metadata;
      const isOrphan = (pod: Pod | undefined): Holding => reservationHolding(pod, reservation);
      if (podref === '' || !(await this.#isOrphaned(podref, isOrphan, signal))) continue;
      if (await this.#addresses.releaseReservation(reservation, signal)) {
        this.#context.log.info(
          { reservation: name, podref },
          'deleted the reservation of an address that no Pod has',
        );
      }
    }
    const now = this.#context.clock.now();
    const next = parseCronSchedule(schedule).next(now, 'UTC') ?? now;
    return { requeueAfterMs: Math.max(1, next - now) };
  }

  async #collect(pool: IPPool, entry: PoolEntry, signal: AbortSignal): Promise<void> {
    const { podref } = entry;
    const address = addressText(pool, entry);
    if (podref === '') return;
    if (!(await this.#isOrphaned(podref, (pod) => holdingOf(pod, entry.ifname, address), signal))) return;
    if (!(await this.#addresses.releaseEntry(pool, entry, signal))) return;
    const { name = '' } = pool.metadata;
    this.#context.log.info({ pool: name, address, podref }, 'freed an address that no Pod has');
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
      await this.#context.clock.sleep(pendingReads.delayMs, signal);
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
