import type { ObjectKey } from '../../objects/key.ts';

const none: ReadonlySet<string> = new Set();

/** Addresses that Services have no right to any more, and that their statuses may still show. */
export class LeftAddresses {
  readonly #left = new Map<ObjectKey, Set<string>>();

  of(service: ObjectKey): ReadonlySet<string> {
    return this.#left.get(service) ?? none;
  }

  add(service: ObjectKey, address: string): void {
    const left = this.#left.get(service);
    if (left === undefined) this.#left.set(service, new Set([address]));
    else left.add(address);
  }

  /** @returns whether it was there: it may have come back to the Service. */
  remove(service: ObjectKey, address: string): boolean {
    const left = this.#left.get(service);
    const wasThere = left?.delete(address) === true;
    if (left?.size === 0) this.#left.delete(service);
    return wasThere;
  }
}
