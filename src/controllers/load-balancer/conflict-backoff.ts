import { backoffDelay } from '../../runtime/backoff.ts';
import type { Service } from '../../objects/core.generated.ts';
import type { ObjectKey } from '../../objects/key.ts';
import { isOverwritten } from './status.ts';

/** Milliseconds between the first and the second repeated write, and at most. */
const limits = { base: 1000, max: 300_000 };

/** When no conflict was seen for this many delays, the count starts anew. */
const resetAfterDelays = 10;

interface Conflict {
  times: number;
  /** Milliseconds since 1970. */
  lastWrite: number;
}

export interface ConflictDelay {
  /** Milliseconds before the addresses may be written again; 0 for now. */
  readonly delayMs: number;
  /** How many times in a row they have been written again, including this time. */
  readonly times: number;
}

/**
 * Delays writes to Services from whose status another client removes our addresses, most likely another load balancer
 * with the same class. Without a growing delay, both would write as fast as they can.
 */
export class ConflictBackoff {
  readonly #conflicts = new Map<ObjectKey, Conflict>();

  /** The delay of the next write of a Service. Call it once before each write. */
  delayOf(key: ObjectKey, service: Service, now: number): ConflictDelay {
    const conflict = this.#conflicts.get(key);
    if (!isOverwritten(service)) return { delayMs: 0, times: 0 };
    if (conflict === undefined) {
      this.#conflicts.set(key, { times: 1, lastWrite: now });
      return { delayMs: 0, times: 1 };
    }
    const delay = backoffDelay(conflict.times - 1, limits, () => 0);
    const delayMs = conflict.lastWrite + delay - now;
    if (delayMs > 0) return { delayMs, times: conflict.times };
    conflict.times = now - conflict.lastWrite > resetAfterDelays * delay ? 1 : conflict.times + 1;
    conflict.lastWrite = now;
    return { delayMs: 0, times: conflict.times };
  }

  forget(key: ObjectKey): void {
    this.#conflicts.delete(key);
  }
}
