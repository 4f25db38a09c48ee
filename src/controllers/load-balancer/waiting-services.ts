import type { IPFamily } from '../../objects/address.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import { Heap } from '../../runtime/heap.ts';
import { byServiceAge, type AddressRequest } from './request.ts';

/** What Services wait for. A change of pools retries all of them. */
export const waitKeys = {
  /** A free address of a pool. */
  pool: (pool: string, family: IPFamily): string => `pool:${pool}/${family}`,
  /** One address. */
  address: (address: string): string => `address:${address}`,
  /** An address shared by a key. */
  sharingKey: (sharingKey: string): string => `key:${sharingKey}`,
  /** An address shared by ports. */
  namespace: (pool: string, namespace: string): string => `namespace:${pool}/${namespace}`,
} as const;

/**
 * Services that wait for an address: for each wait key a queue in the order of creation. A Service is in several queues
 * at once, and taking it from one removes it from all. Removal is lazy: an entry is valid while it is the Service's.
 */
export class WaitingServices {
  readonly #entries = new Map<ObjectKey, Entry>();
  readonly #queues = new Map<string, Heap<Entry>>(); // by wait key, oldest Service on top

  get size(): number {
    return this.#entries.size;
  }

  /** Whether there is a queue for a key. It may have no valid entry. */
  hasQueue(key: string): boolean {
    return this.#queues.has(key);
  }

  /** Puts a Service into the queues of these keys and removes it from all others. */
  add(request: AddressRequest, keys: ReadonlySet<string>): void {
    const before = this.#entries.get(request.service);
    if (before?.request.createdAtMs === request.createdAtMs && isSameSet(before.keys, keys)) {
      before.request = request;
      return;
    }
    const entry: Entry = { request, keys };
    this.#entries.set(request.service, entry);
    for (const key of keys) {
      let queue = this.#queues.get(key);
      if (queue === undefined) {
        queue = new Heap(isOlder);
        this.#queues.set(key, queue);
      }
      queue.push(entry);
      if (queue.size > 2 * this.#entries.size + minCompaction)
        this.#queues.set(key, this.#compacted(queue, key));
    }
  }

  delete(service: ObjectKey): void {
    this.#entries.delete(service);
  }

  /** Takes the oldest Service that waits for a key. */
  take(key: string): AddressRequest | undefined {
    const queue = this.#queues.get(key);
    if (queue === undefined) return undefined;
    for (let entry = queue.pop(); entry !== undefined; entry = queue.pop()) {
      const { request } = entry;
      if (this.#entries.get(request.service) !== entry) continue;
      this.#entries.delete(request.service);
      return request;
    }
    this.#queues.delete(key);
    return undefined;
  }

  /** Takes all Services, oldest first. */
  takeAll(): AddressRequest[] {
    const all = [...this.#entries.values()].sort((a, b) => (isOlder(a, b) ? -1 : 1));
    this.#entries.clear();
    this.#queues.clear();
    return all.map(({ request }) => request);
  }

  /** A queue without invalid entries. */
  #compacted(queue: Heap<Entry>, key: string): Heap<Entry> {
    const valid = new Heap<Entry>(isOlder);
    for (let entry = queue.pop(); entry !== undefined; entry = queue.pop()) {
      const isValid = this.#entries.get(entry.request.service) === entry;
      if (isValid && entry.keys.has(key)) valid.push(entry);
    }
    return valid;
  }
}

/** A queue is compacted when it has this many entries more than twice the number of waiting Services. */
const minCompaction = 64;

interface Entry {
  request: AddressRequest;
  readonly keys: ReadonlySet<string>;
}

function isOlder({ request: a }: Entry, { request: b }: Entry): boolean {
  return byServiceAge(a, b) < 0;
}

function isSameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((key) => b.has(key));
}
