import { createHash, randomBytes } from 'node:crypto';
import {
  type PoolEntry,
  type PoolChoice,
  type PoolOwner,
  offsetKey,
  poolName,
  reservationName,
} from '../../allocation/whereabouts.ts';
import type { IPPool, OverlappingRangeIPReservation } from '../../objects/types/openshift.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { isAlreadyExists, isConflict, isInvalid, isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { PatchOperation, ResourceClient } from '../../client/resource-client.ts';
import { ipPools, overlappingRangeIPReservations } from '../../client/resources.ts';
import { AttachmentError } from '../../network/attachments/ipam.ts';
import { joinKey, type KubeObject } from '../../objects/meta.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import {
  assignAddress,
  isOwnedBy,
  isReservedFor,
  type PoolRange,
  addressText,
  entriesOf,
  networkNameOf,
  networkOf,
} from './plan.ts';

/** Entries and reservations of the Pods of one name, as they were read or written. */
export interface HeldAddresses {
  readonly entries: readonly { readonly pool: IPPool; readonly entry: PoolEntry }[];
  readonly reservations: readonly OverlappingRangeIPReservation[];
}

/** One attempt to set up the sandbox of a Pod. */
export interface SandboxAttempt extends HeldAddresses {
  /** The id of its sandbox: of this attempt alone. */
  readonly sandbox: string;
  /** What it has made: not what was there of another attempt. */
  readonly entries: HeldAddresses['entries'][number][];
  readonly reservations: OverlappingRangeIPReservation[];
  /** Whether the Pod may hold addresses that this attempt does not give it. */
  hasLeftovers: boolean;
}

/** @param hasLeftovers whether an attempt before it may have left something. */
export function newAttempt(pod: Pod, hasLeftovers: boolean): SandboxAttempt {
  // 64 hex digits, as containerd's.
  const sandbox = `${sandboxPrefix(pod)}${randomBytes(16).toString('hex')}`;
  return { sandbox, entries: [], reservations: [], hasLeftovers };
}

/** Whether a sandbox is of an attempt for this Pod. */
export function isSandboxOf(pod: Pod, sandbox: string): boolean {
  return sandbox.startsWith(sandboxPrefix(pod));
}

/** The first half of the ids of a Pod's sandboxes. */
function sandboxPrefix({ metadata }: Pod): string {
  return createHash('sha256')
    .update(metadata.uid ?? '')
    .digest('hex')
    .slice(0, 32);
}

/** The namespace of whereabouts' objects, for Pods of every namespace. */
const poolNamespace = 'kube-system';
/** How often a write is tried again after a conflict (`storage.DatastoreRetries`). */
const retries = 100;

/** An address that was given back. */
export interface Released {
  readonly pool: IPPool;
  readonly address: string;
  /** Of the container that had it. */
  readonly id: string;
}

/**
 * Allocates addresses of IPPools as whereabouts does (`pkg/storage/kubernetes/ipam.go`): each write is a patch of
 * the version that was read, so that any number of writers gives no address twice. First the pool, then the
 * reservation. A crash between the two leaves one half: the next attempt for the same Pod and interface makes the
 * other, and the garbage collector gives back what belongs to no Pod.
 *
 * While the leader changes, two writers may allocate for one Pod. Each attempt takes over what is there by writing its own
 * id: so an attempt gives back only its own entries.
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
   * The address of a range for a Pod's interface: the one that it has already, else a free one.
   *
   * @param attempt notes what is made.
   * @throws {AttachmentError} if none is free, or after too many conflicts; errors of requests.
   */
  async allocate(
    of: PoolRange,
    { podref, ifname }: Pick<PoolOwner, 'podref' | 'ifname'>,
    attempt: SandboxAttempt,
    signal: AbortSignal,
  ): Promise<bigint> {
    const { range, networkName, overlapping } = of;
    const { network } = range;
    const owner = { id: attempt.sandbox, podref, ifname };
    const elsewhere = new Set<bigint>();
    const reservationOf = (value: bigint): string => reservationName(network.family, value, networkName);
    // The cache saves most reads; what it lacks is read below.
    const isElsewhere = (value: bigint): boolean => {
      if (!overlapping) return false;
      const known = this.#known.cache.get(joinKey(poolNamespace, reservationOf(value)));
      return elsewhere.has(value) || (known !== undefined && !isReservedFor(known, owner));
    };
    for (let conflicts = 0; conflicts < retries;) {
      const read = await this.#pool(of, signal);
      const choice = assignAddress(of, read, owner, isElsewhere);
      const { value } = choice;
      if (overlapping && !(await this.#mayReserve(reservationOf(value), owner, signal))) {
        elsewhere.add(value);
        continue;
      }
      const pool = await this.#record(read, offsetKey(network, value), choice, owner, signal);
      if (pool === undefined) {
        conflicts++;
        continue;
      }
      if (choice.present === undefined) attempt.entries.push({ pool, entry: { ...owner, value } });
      if (!overlapping || (await this.#reserve(reservationOf(value), owner, attempt, signal))) {
        const isOther = (entry: PoolEntry): boolean => entry.value !== value && isOwnedBy(entry, owner);
        attempt.hasLeftovers ||= entriesOf(pool).some((entry) => isOther(entry));
        return value;
      }
      // Another range has given it meanwhile.
      elsewhere.add(value);
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
   * Gives back what an attempt has made or {@link held} has found. What was taken over since then stays: who looks whether
   * there is a Pod after `held`, and gives back when there is none, takes nothing from a later one of the same name.
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
      entry.value === stale.value && entry.id === stale.id && isOwnedBy(entry, stale);
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

  /** @returns the pool with the entry; undefined where it has changed since it was read. */
  async #record(
    pool: IPPool,
    key: string,
    { present }: PoolChoice,
    owner: PoolOwner,
    signal: AbortSignal,
  ): Promise<IPPool | undefined> {
    const path = `/spec/allocations/${key}`;
    if (present === undefined) {
      const isEmpty: PatchOperation = { op: 'test', path, value: null };
      return patchUnchanged(this.#pools, pool, [isEmpty, { op: 'add', path, value: { ...owner } }], signal);
    }
    if (present.id === owner.id) return pool;
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
      if ((await patchUnchanged(this.#pools, pool, operations, signal)) !== undefined) return stale;
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
   * Reserves an address. A reservation that the owner's Pod has is taken over, which changes it: who was about to delete it
   * does not.
   *
   * @returns false if another owner has it.
   */
  async #reserve(
    name: string,
    owner: PoolOwner,
    attempt: SandboxAttempt,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { id: containerid, podref, ifname } = owner;
    const metadata = { name, namespace: poolNamespace };
    for (let conflicts = 0; conflicts < retries; conflicts++) {
      try {
        const spec = { podref, ifname };
        attempt.reservations.push(await this.#reservations.create({ metadata, spec }, { signal }));
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
      if ((await patchUnchanged(this.#reservations, found, [operation], signal)) !== undefined) return true;
    }
    throw new AttachmentError(`OverlappingRangeIPReservation ${name}: ${retries} writes met others' writes`);
  }
}

/** @returns the object as it is then; undefined where it has changed since it was read, or is gone. */
async function patchUnchanged<T extends KubeObject>(
  client: ResourceClient<T>,
  { metadata: { name = '', resourceVersion = '' } }: T,
  operations: readonly PatchOperation[],
  signal: AbortSignal,
): Promise<T | undefined> {
  const unchanged: PatchOperation = { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion };
  try {
    return await client.jsonPatch(poolNamespace, name, [unchanged, ...operations], { signal });
  } catch (error) {
    if (isConflict(error) || isInvalid(error) || isNotFound(error)) return undefined;
    throw error;
  }
}
