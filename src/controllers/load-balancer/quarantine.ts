import { parseStrictAddress } from '../../objects/address.ts';
import type { ObjectKey } from '../../objects/key.ts';
import { parseTime } from '../../objects/time.ts';
import { Heap } from '../../runtime/heap.ts';
import type { AddressPool } from '../../objects/types/servicenet.ts';

/** A released address that only its last Service may get before `until`: the `reuseDelay` of its pool. */
export interface QuarantinedAddress {
  readonly address: string;
  /** Milliseconds since 1970. */
  readonly until: number;
  /** The Service that released it, which may get it back at once. */
  readonly service: ObjectKey;
}

/** The addresses in quarantine, and when each leaves it. */
export class Quarantine {
  readonly #byAddress = new Map<string, QuarantinedAddress>();
  /** Earliest end on top. Entries that #byAddress no longer has are dropped when they reach the top. */
  readonly #byEnd = new Heap<QuarantinedAddress>((a, b) => a.until < b.until);

  get(address: string): QuarantinedAddress | undefined {
    return this.#byAddress.get(address);
  }

  values(): Iterable<QuarantinedAddress> {
    return this.#byAddress.values();
  }

  add(entry: QuarantinedAddress): void {
    this.#byAddress.set(entry.address, entry);
    this.#byEnd.push(entry);
  }

  delete(address: string): void {
    this.#byAddress.delete(address);
  }

  /** When the next address leaves, in milliseconds since 1970; undefined when there is none. */
  get nextEnd(): number | undefined {
    return this.#first()?.until;
  }

  /** Removes and returns the addresses whose quarantine has ended. */
  takeEnded(now: number): string[] {
    const ended: string[] = [];
    for (let first = this.#first(); first !== undefined && first.until <= now; first = this.#first()) {
      this.#byEnd.pop();
      this.#byAddress.delete(first.address);
      ended.push(first.address);
    }
    return ended;
  }

  #first(): QuarantinedAddress | undefined {
    for (let top = this.#byEnd.peek(); top !== undefined; top = this.#byEnd.peek()) {
      if (this.#byAddress.get(top.address) === top) return top;
      this.#byEnd.pop();
    }
    return undefined;
  }
}

/**
 * The quarantined addresses in a pool's status, which outlives the process. Entries that have ended or cannot be parsed
 * are left out.
 *
 * @param now milliseconds since 1970.
 */
export function readQuarantined({ status }: AddressPool, now: number): QuarantinedAddress[] {
  return (status?.resting ?? []).flatMap(({ address, service, until }): QuarantinedAddress[] => {
    const parsed = parseStrictAddress(address);
    const time = parseTime(until);
    return parsed === undefined || time === undefined || time <= now
      ? []
      : [{ address: parsed.canonical, service, until: time }];
  });
}
