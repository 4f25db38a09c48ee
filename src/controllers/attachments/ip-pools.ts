import {
  chooseWhereaboutsAddress,
  type PoolChoice,
  type PoolEntry,
  type PoolOwner,
  readEntries,
} from '../../allocation/whereabouts-pool.ts';
import {
  offsetKey,
  poolName,
  reservationName,
  type WhereaboutsRange,
} from '../../allocation/whereabouts-range.ts';
import { AllocationError } from '../../allocation/errors.ts';
import { isAlreadyExists, isConflict, isInvalid, isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { PatchOperation, ResourceClient } from '../../client/resource-client.ts';
import { ipPools, overlappingRangeIPReservations } from '../../client/resources.ts';
import { AttachmentError } from '../../network/attachments/errors.ts';
import { joinKey } from '../../objects/key.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { IPPool, OverlappingRangeIPReservation } from '../../objects/types/attachments.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { addressText, entriesOf, networkNameOf, networkOf } from './plan-orphans.ts';

/** The namespace of whereabouts' objects, for Pods of every namespace. */
const poolNamespace = 'kube-system';
/** How often a write is tried again after a conflict (`storage.DatastoreRetries`). */
const retries = 100;

/** The range that an address comes from. */
export interface PoolRange {
  readonly range: WhereaboutsRange;
  /** "" without a name. */
  readonly networkName: string;
  /** Whether the address is reserved in all ranges that have it. */
  readonly overlapping: boolean;
}

/** An address that was given back. */
export interface Released {
  readonly pool: IPPool;
  readonly address: string;
  /** Of the container that had it. */
  readonly id: string;
}

/** What all Pods of one name have, as it was read. */
export interface HeldAddresses {
  readonly entries: readonly { readonly pool: IPPool; readonly entry: PoolEntry }[];
  readonly reservations: readonly OverlappingRangeIPReservation[];
}

/**
 * Allocates addresses of IPPools as whereabouts does (`pkg/storage/kubernetes/ipam.go`): each write is a patch of
 * the version that was read, so that any number of writers gives no address twice. First the pool, then the
 * reservation. A crash between the two leaves one half: the next attempt for the same Pod and interface makes the
 * other, and the garbage collector gives back what belongs to no Pod.
 */
export class IPPools {
  readonly #pools: ResourceClient<IPPool>;
  readonly #reservations: ResourceClient<OverlappingRangeIPReservation>;
  readonly #known: Informer<OverlappingRangeIPReservation>;

  /** @param known reservations; may be behind. */
  constructor(context: Pick<ControllerContext, 'clients'>, known: Informer<OverlappingRangeIPReservation>) {
    this.#pools = context.clients.for(ipPools);
    this.#reservations = context.clients.for(overlappingRangeIPReservations);
    this.#known = known;
  }

  /**
   * The address of a range for an owner: the same one for the same owner.
   *
   * @throws {AttachmentError} if none is free, or after too many conflicts; errors of requests.
   */
  async allocate(of: PoolRange, owner: PoolOwner, signal: AbortSignal): Promise<bigint> {
    const { range, networkName, overlapping } = of;
    const { network } = range;
    const elsewhere = new Set<bigint>();
    const reservationOf = (value: bigint): string => reservationName(network.family, value, networkName);
    // The cache saves most reads; what it lacks is read below.
    const isElsewhere = (value: bigint): boolean => {
      if (!overlapping) return false;
      const known = this.#known.cache.get(joinKey(poolNamespace, reservationOf(value)));
      return elsewhere.has(value) || (known !== undefined && !isReservedFor(known, owner));
    };
    for (let conflicts = 0; conflicts < retries;) {
      const pool = await this.#pool(of, signal);
      const choice = choose(of, pool, owner, isElsewhere);
      if (overlapping && !(await this.#mayReserve(reservationOf(choice.value), owner, signal))) {
        elsewhere.add(choice.value);
        continue;
      }
      if (!(await this.#record(pool, offsetKey(network, choice.value), choice, owner, signal))) {
        conflicts++;
        continue;
      }
      if (!overlapping || (await this.#reserve(reservationOf(choice.value), owner, signal))) {
        // Its address before another range gave that to another Pod.
        await this.#releaseFrom(pool, (entry) => entry.value !== choice.value && isOf(entry, owner), signal);
        return choice.value;
      }
      // Conflict with another range: the recorded address is given back.
      elsewhere.add(choice.value);
      await this.#releaseFrom(pool, (entry) => entry.value === choice.value && isOf(entry, owner), signal);
    }
    throw new AttachmentError(
      `IPPool ${poolName(network.text, networkName)}: ${retries} writes met others' writes`,
    );
  }

  /**
   * The entries and reservations of all Pods of one name.
   *
   * @param podref `namespace/name`
   */
  async held(podref: string, signal: AbortSignal): Promise<HeldAddresses> {
    const entries: HeldAddresses['entries'][number][] = [];
    for await (const { items } of this.#pools.pages({ namespace: poolNamespace, signal })) {
      for (const pool of items) {
        for (const entry of entriesOf(pool)) if (entry.podref === podref) entries.push({ pool, entry });
      }
    }
    const names = new Set(
      entries.map(({ pool, entry }) => poolName(addressText(pool, entry), networkNameOf(pool))),
    );
    for (const { metadata, spec } of this.#known.cache.values()) {
      if (spec.podref === podref) names.add(metadata.name ?? '');
    }
    const reservations: OverlappingRangeIPReservation[] = [];
    for (const name of names) {
      const found = await this.#reservation(name, signal);
      if (found?.spec.podref === podref) reservations.push(found);
    }
    return { entries, reservations };
  }

  /**
   * Gives back what {@link held} found. What the next Pod of the same name has taken over since then stays: who looks
   * whether there is a Pod after `held`, and gives back when there is none, takes nothing from a later one.
   */
  async release({ entries, reservations }: HeldAddresses, signal: AbortSignal): Promise<readonly Released[]> {
    const released: Released[] = [];
    for (const { pool, entry } of entries) {
      if (!(await this.releaseEntry(pool, entry, signal))) continue;
      released.push({ pool, address: addressText(pool, entry), id: entry.id });
    }
    for (const reservation of reservations) await this.releaseReservation(reservation, signal);
    return released;
  }

  /** Gives back one address of a pool, if the Pod has it still. */
  async releaseEntry(pool: IPPool, stale: PoolEntry, signal: AbortSignal): Promise<boolean> {
    const isStale = (entry: PoolEntry): boolean =>
      entry.value === stale.value && entry.id === stale.id && isOf(entry, stale);
    return (await this.#releaseFrom(pool, isStale, signal)).length > 0;
  }

  /** Deletes a reservation; one that has changed since it was read stays. */
  async releaseReservation(
    { metadata: { name = '', uid, resourceVersion } }: OverlappingRangeIPReservation,
    signal: AbortSignal,
  ): Promise<boolean> {
    const preconditions = { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) };
    try {
      await this.#reservations.delete(poolNamespace, name, { preconditions, signal });
      return true;
    } catch (error) {
      if (isNotFound(error) || isConflict(error)) return false;
      throw error;
    }
  }

  /** The pool of a range; made at its first use. */
  async #pool({ range, networkName }: PoolRange, signal: AbortSignal): Promise<IPPool> {
    const name = poolName(range.network.text, networkName);
    for (let attempt = 0; attempt < retries; attempt++) {
      try {
        return await this.#pools.get(poolNamespace, name, { signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      const spec = { range: range.network.text, allocations: {} };
      try {
        return await this.#pools.create({ metadata: { name, namespace: poolNamespace }, spec }, { signal });
      } catch (error) {
        if (isInvalid(error)) throw new AttachmentError(`k8s create error: ${error.message}`);
        if (!isAlreadyExists(error)) throw error;
      }
    }
    throw new AttachmentError(`IPPool ${name}: comes and goes`);
  }

  /** @returns false where the pool has changed since it was read. */
  async #record(
    pool: IPPool,
    key: string,
    { present }: PoolChoice,
    owner: PoolOwner,
    signal: AbortSignal,
  ): Promise<boolean> {
    const path = `/spec/allocations/${key}`;
    if (present === undefined) {
      const isEmpty: PatchOperation = { op: 'test', path, value: null };
      return patchUnchanged(this.#pools, pool, [isEmpty, { op: 'add', path, value: { ...owner } }], signal);
    }
    if (present.id === owner.id) return true;
    return patchUnchanged(
      this.#pools,
      pool,
      [{ op: 'replace', path: `${path}/id`, value: owner.id }],
      signal,
    );
  }

  /** @returns the entries that were given back. */
  async #releaseFrom(
    read: IPPool,
    isStale: (entry: PoolEntry) => boolean,
    signal: AbortSignal,
  ): Promise<readonly PoolEntry[]> {
    let pool = read;
    for (let attempt = 0; attempt < retries; attempt++) {
      const stale = entriesOf(pool).filter((entry) => isStale(entry));
      if (stale.length === 0) return [];
      const network = networkOf(pool);
      const operations = stale.map(({ value }): PatchOperation => {
        const key = network === undefined ? '' : offsetKey(network, value);
        return { op: 'remove', path: `/spec/allocations/${key}` };
      });
      if (await patchUnchanged(this.#pools, pool, operations, signal)) return stale;
      try {
        pool = await this.#pools.get(poolNamespace, pool.metadata.name ?? '', { signal });
      } catch (error) {
        if (isNotFound(error)) return [];
        throw error;
      }
    }
    throw new Error(`IPPool ${pool.metadata.name ?? ''}: ${retries} writes met others' writes`);
  }

  async #reservation(name: string, signal: AbortSignal): Promise<OverlappingRangeIPReservation | undefined> {
    try {
      return await this.#reservations.get(poolNamespace, name, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #mayReserve(name: string, owner: PoolOwner, signal: AbortSignal): Promise<boolean> {
    const found = await this.#reservation(name, signal);
    return found === undefined || isReservedFor(found, owner);
  }

  /**
   * Reserves an address. A reservation of the last Pod of the same name is taken over, which changes it: who was about to
   * delete it does not.
   *
   * @returns false if another owner has it.
   */
  async #reserve(name: string, owner: PoolOwner, signal: AbortSignal): Promise<boolean> {
    const { id: containerid, podref, ifname } = owner;
    const metadata = { name, namespace: poolNamespace };
    for (let attempt = 0; attempt < retries; attempt++) {
      try {
        await this.#reservations.create({ metadata, spec: { podref, ifname } }, { signal });
        return true;
      } catch (error) {
        if (isInvalid(error)) throw new AttachmentError(`k8s create error: ${error.message}`);
        if (!isAlreadyExists(error)) throw error;
      }
      const found = await this.#reservation(name, signal);
      if (found === undefined) continue;
      if (!isReservedFor(found, owner)) return false;
      if (found.spec.containerid === containerid) return true;
      const operation: PatchOperation = { op: 'add', path: '/spec/containerid', value: containerid };
      if (await patchUnchanged(this.#reservations, found, [operation], signal)) return true;
    }
    throw new AttachmentError(`OverlappingRangeIPReservation ${name}: ${retries} writes met others' writes`);
  }
}

/** @returns false where the object has changed since it was read, or is gone. */
async function patchUnchanged<T extends KubeObject>(
  client: ResourceClient<T>,
  { metadata: { name = '', resourceVersion = '' } }: T,
  operations: readonly PatchOperation[],
  signal: AbortSignal,
): Promise<boolean> {
  const unchanged: PatchOperation = { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion };
  try {
    await client.jsonPatch(poolNamespace, name, [unchanged, ...operations], { signal });
    return true;
  } catch (error) {
    if (isConflict(error) || isInvalid(error) || isNotFound(error)) return false;
    throw error;
  }
}

function isOf(entry: PoolEntry, { podref, ifname }: Pick<PoolOwner, 'podref' | 'ifname'>): boolean {
  return entry.podref === podref && entry.ifname === ifname;
}

/**
 * Old reservations have no interface. (whereabouts compares the Pods alone: two interfaces of a Pod on ranges that overlap
 * get one address.)
 */
function isReservedFor({ spec }: OverlappingRangeIPReservation, { podref, ifname }: PoolOwner): boolean {
  return spec.podref === podref && (spec.ifname ?? ifname) === ifname;
}

function choose(
  { range, networkName }: PoolRange,
  pool: IPPool,
  owner: PoolOwner,
  isElsewhere: (value: bigint) => boolean,
): PoolChoice {
  // In a pool that was edited by hand, offsets count from elsewhere.
  if (networkOf(pool)?.text !== range.network.text) {
    const name = poolName(range.network.text, networkName);
    throw new AttachmentError(`IPPool ${name} has the range ${pool.spec.range}, not ${range.network.text}`);
  }
  try {
    return chooseWhereaboutsAddress(
      range,
      readEntries(range.network, pool.spec.allocations),
      owner,
      isElsewhere,
    );
  } catch (error) {
    if (!(error instanceof AllocationError)) throw error;
    throw new AttachmentError(`error at storage engine: ${error.message}`);
  }
}
