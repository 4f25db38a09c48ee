import type { ObjectKey } from '../../objects/key.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import { clusterIPOf, isHeadless, namedFamilies } from './service.ts';

/** Milliseconds to wait for the addresses of a Service. */
const grace = 5000;

/**
 * Delays the endpoints of Services until they have addresses. On an API server that does not allocate, a new Service
 * has neither addresses nor families for a moment: endpoints for all families would be written and removed again. Where
 * no addresses are allocated at all, endpoints are written after the delay.
 */
export class AllocationGrace {
  readonly #monotonic: () => number;
  /** When each Service without addresses was first seen. */
  readonly #since = new Map<ObjectKey, number>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /**
   * Milliseconds until the endpoints of a Service may be written; 0: now. A change of the Service may end the wait
   * early.
   */
  left(key: ObjectKey, service: Service): number {
    const isAllocated =
      isHeadless(service) || clusterIPOf(service) !== undefined || namedFamilies(service).length > 0;
    if (isAllocated) {
      this.#since.delete(key);
      return 0;
    }
    const now = this.#monotonic();
    const since = this.#since.get(key) ?? now;
    this.#since.set(key, since);
    return Math.max(0, since + grace - now);
  }

  forget(key: ObjectKey): void {
    this.#since.delete(key);
  }
}
