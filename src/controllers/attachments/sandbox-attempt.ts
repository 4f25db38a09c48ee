import { createHash, randomBytes } from 'node:crypto';
import type { PoolEntry } from '../../allocation/whereabouts-pool.ts';
import type { IPPool, OverlappingRangeIPReservation } from '../../objects/types/attachments.ts';
import type { Pod } from '../../objects/types/core.generated.ts';

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
