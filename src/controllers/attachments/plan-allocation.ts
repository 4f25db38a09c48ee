/** Which address of an IPPool a Pod's interface gets. */
import { AllocationError } from '../../allocation/errors.ts';
import {
  chooseWhereaboutsAddress,
  type PoolChoice,
  type PoolEntry,
  type PoolOwner,
  readEntries,
} from '../../allocation/whereabouts-pool.ts';
import { poolName, type WhereaboutsRange } from '../../allocation/whereabouts-range.ts';
import { AttachmentError } from '../../network/attachments/errors.ts';
import type { IPPool, OverlappingRangeIPReservation } from '../../objects/types/attachments.ts';
import { networkOf } from './plan-orphans.ts';

/** The range that an address comes from. */
export interface PoolRange {
  readonly range: WhereaboutsRange;
  /** "" without a name. */
  readonly networkName: string;
  /** Whether the address is reserved in all ranges that have it. */
  readonly overlapping: boolean;
}

/** Whether an entry is of an owner's Pod and interface. */
export function isOwnedBy(
  entry: PoolEntry,
  { podref, ifname }: Pick<PoolOwner, 'podref' | 'ifname'>,
): boolean {
  return entry.podref === podref && entry.ifname === ifname;
}

/**
 * Whether a reservation is of an owner's Pod and interface. Old reservations have no interface. (whereabouts compares the Pods alone: two interfaces of a Pod on ranges that overlap
 * get one address.)
 */
export function isReservedFor(
  { spec }: OverlappingRangeIPReservation,
  { podref, ifname }: PoolOwner,
): boolean {
  return spec.podref === podref && (spec.ifname ?? ifname) === ifname;
}

/**
 * The address of a range for an owner.
 *
 * @throws {AttachmentError} if none is free, or where the pool is not of the range.
 */
export function assignAddress(
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
