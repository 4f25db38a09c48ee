import type { AddressRange } from './address-range.ts';
import { addressAt, AssignmentError, firstFree, type WhereaboutsRange } from './whereabouts-range.ts';

/** One address that a pool has given. */
export interface PoolEntry {
  readonly value: bigint;
  /** Of the container. */
  readonly id: string;
  /** `namespace/name` of the Pod. */
  readonly podref: string;
  /** "" in entries of old versions. */
  readonly ifname: string;
}

/** The owner of an address. */
export type PoolOwner = Omit<PoolEntry, 'value'>;

/** The choice for an owner. */
export interface PoolChoice {
  readonly value: bigint;
  /** The owner's present address; its container may be another one. */
  readonly present?: PoolEntry;
}

/**
 * The entries of a pool. Keys that are no offsets of the range are left out: they take no address (`toIPReservationList`).
 *
 * @param allocations `spec.allocations` of an IPPool.
 */
export function readEntries(
  network: AddressRange,
  allocations: Readonly<Record<string, { id: string; podref: string; ifname?: string }>>,
): readonly PoolEntry[] {
  return Object.entries(allocations).flatMap(([key, { id, podref, ifname = '' }]) => {
    // 2^128 has 39 digits.
    if (!/^\d{1,39}$/.test(key)) return [];
    const value = addressAt(network, BigInt(key));
    return value === undefined ? [] : [{ value, id, podref, ifname }];
  });
}

/**
 * The address of a range for an owner: what its Pod has for the interface already, else the first that is free
 * (`allocate.IterateForAssignment`, `AssignIP`).
 *
 * @param isElsewhere whether another range has given an address: passed over, even where the entries say that it is the
 *   owner's.
 * @throws {AssignmentError} when nothing is free.
 */
export function chooseWhereaboutsAddress(
  range: WhereaboutsRange,
  entries: readonly PoolEntry[],
  { podref, ifname }: Pick<PoolOwner, 'podref' | 'ifname'>,
  isElsewhere: (value: bigint) => boolean = () => false,
): PoolChoice {
  const present = entries.find(
    (entry) => entry.podref === podref && entry.ifname === ifname && !isElsewhere(entry.value),
  );
  if (present !== undefined) return { value: present.value, present };
  const taken = new Set(entries.map(({ value }) => value));
  const value = firstFree(range, (each) => taken.has(each) || isElsewhere(each));
  if (value === undefined) throw new AssignmentError(range);
  return { value };
}
