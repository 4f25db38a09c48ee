import { type Bitmap } from '../../allocation/bitmap.ts';
import { createBitmap } from '../../allocation/create-bitmap.ts';
import { indexOfSpan, type Span } from './spans.ts';

/** Why an address of a pool cannot be picked. */
export type AddressState = 'used' | 'quarantined' | 'reserved';

/**
 * Random access to the free addresses of one family of one pool. The spans lie one after the other in a single bitmap
 * of what cannot be picked:
 *
 *     spans     192.0.2.10-19     192.0.2.100-199
 *     offsets   0 ………………… 9       10 ……………………… 109
 *
 * Offsets beyond 2^52 (the far end of an IPv6 /64) have no bit: they are never picked, only taken by name.
 */
export class PoolSpace {
  readonly spans: readonly Span[];
  /** Number of addresses. */
  readonly size: bigint;
  readonly #starts: readonly bigint[]; // offset of each span's first address
  readonly #blocked: Bitmap;
  readonly #counts: Record<AddressState, number> = { used: 0, quarantined: 0, reserved: 0 };

  constructor(spans: readonly Span[]) {
    this.spans = spans;
    const starts: bigint[] = [];
    let size = 0n;
    for (const { first, last } of spans) {
      starts.push(size);
      size += last - first + 1n;
    }
    this.#starts = starts;
    this.size = size;
    this.#blocked = createBitmap(Number(size < NEAR_LIMIT ? size : NEAR_LIMIT));
  }

  has(value: bigint): boolean {
    return indexOfSpan(this.spans, value) >= 0;
  }

  count(state: AddressState): number {
    return this.#counts[state];
  }

  /** Addresses that can be picked; rounded above 2^53. */
  get free(): number {
    const { used, quarantined, reserved } = this.#counts;
    return Number(this.size - BigInt(used + quarantined + reserved));
  }

  /** The lowest address that can be picked. */
  lowestFree(): bigint | undefined {
    const offset = this.#blocked.nextFree(0);
    return offset < 0 ? undefined : this.#at(BigInt(offset));
  }

  /** Notes that an address of this space went from one state to another; undefined is free. */
  change(value: bigint, from: AddressState | undefined, to: AddressState | undefined): void {
    if (from !== undefined) this.#counts[from]--;
    if (to !== undefined) this.#counts[to]++;
    const index = indexOfSpan(this.spans, value);
    const offset = Number((this.#starts[index] ?? 0n) + value - (this.spans[index]?.first ?? 0n));
    if (offset >= this.#blocked.size) return;
    if (to === undefined) this.#blocked.clear(offset);
    else this.#blocked.set(offset);
  }

  #at(offset: bigint): bigint | undefined {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0n) <= offset) low = middle;
      else high = middle - 1;
    }
    const span = this.spans[low];
    return span === undefined ? undefined : span.first + offset - (this.#starts[low] ?? 0n);
  }
}

const NEAR_LIMIT = 2n ** 52n;
