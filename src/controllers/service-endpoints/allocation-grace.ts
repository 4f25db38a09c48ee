import type { ObjectKey } from '../../objects/key.ts';
import type { Service } from '../../objects/core.generated.ts';
import { clusterIPOf, isHeadless, namedFamilies } from './service.ts';

/** Milliseconds that a Service without addresses is left alone. */
const grace = 5000;

/**
 * Lets Services be given their addresses first. On an API server that does not allocate, a new Service has neither
 * addresses nor families for a moment: endpoints for all families would be written only to be taken back. Where nobody
 * allocates, they are written after that moment.
 */
export class AllocationGrace {
  readonly #monotonic: () => number;
  /** When each Service without addresses was seen first. */
  readonly #since = new Map<ObjectKey, number>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Milliseconds until the endpoints of a Service may be written; 0: now. The Service's next change may end it early. */
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
