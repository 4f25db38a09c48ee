import { formatV4, formatV6Words, parseStrictAddress } from '../objects/address.ts';
import type { IPFamily } from '../objects/address.ts';
import type { AddressRange, ServiceCidr } from './address-range.ts';
import { randomFree, type Bitmap } from './bitmap.ts';
import { createBitmap } from './bitmap.ts';
import {
  AlreadyAllocatedError,
  NotCanonicalError,
  NotInRangeError,
  RangeFullError,
} from './address-range.ts';

/**
 * Offsets beyond this are taken only by explicit request: four quadrillion are enough for random picks, and offsets
 * stay exact numbers.
 */
const nearLimit = 2n ** 52n;

/**
 * The allocator of one Service CIDR, or of the Pod addresses of a node, as a bitmap over its usable addresses. Addresses
 * are canonical text, as in `spec.clusterIPs`.
 *
 *     network   first            first+band                  last   broadcast
 *        |        |---- static ----|-------- dynamic ---------|        |
 *     unusable     explicit only,     explicit, and random           unusable in IPv4,
 *                  or random when     picks with wrap                the last of dynamic in IPv6
 *                  dynamic is full
 *
 * (KEP-3070; `pkg/registry/core/service/ipallocator`.)
 */
export class AddressAllocator {
  readonly family: IPFamily;
  /** The range as users write it. */
  readonly range: string;
  readonly #usable: AddressRange;
  readonly #staticBand: number;
  readonly #firstWords: readonly [number, number, number, number]; // of the first usable address, IPv6
  readonly #taken: Bitmap; // offset in the usable range
  readonly #far = new Set<bigint>(); // values with an offset of nearLimit and more

  constructor(cidr: ServiceCidr) {
    this.family = cidr.usable.family;
    this.range = cidr.range.text;
    this.#usable = cidr.usable;
    this.#staticBand = Math.min(cidr.staticBand, Number(cidr.usable.size));
    const word = (shift: bigint): number => Number(BigInt.asUintN(32, cidr.usable.first >> shift));
    this.#firstWords = [word(96n), word(64n), word(32n), word(0n)];
    this.#taken = createBitmap(Number(cidr.usable.size < nearLimit ? cidr.usable.size : nearLimit));
  }

  /** Number of addresses taken. */
  get used(): number {
    return this.#taken.count + this.#far.size;
  }

  /** Number of addresses left; a rounded number above 2^53. */
  get free(): number {
    return Number(this.#usable.size - BigInt(this.used));
  }

  /** True for a canonical address that this range may hand out. */
  contains(address: string): boolean {
    const parsed = parseStrictAddress(address);
    return parsed?.canonical === address && this.#usable.contains(parsed.family, parsed.value);
  }

  /**
   * Takes one address, from either band.
   *
   * @throws {NotCanonicalError} when the text is not a canonical address.
   * @throws {NotInRangeError} when it is outside of the range, or the network or broadcast address.
   * @throws {AlreadyAllocatedError} when it is allocated.
   */
  allocate(address: string): void {
    const value = this.#valueOf(address);
    if (!this.#allocate(value)) throw new AlreadyAllocatedError('IP', address);
  }

  /**
   * Takes a free address: from a random start in the dynamic band, with wrap; when that is full, from the static.
   *
   * @param random gives numbers in [0, 1).
   * @throws {RangeFullError} when both bands are.
   */
  allocateNext(random: () => number): string {
    const { size } = this.#taken;
    let offset = randomFree(this.#taken, this.#staticBand, size, random);
    if (offset < 0) offset = randomFree(this.#taken, 0, this.#staticBand, random);
    if (offset < 0) throw new RangeFullError();
    this.#taken.set(offset);
    return this.#textAt(offset);
  }

  /** Gives an address back; false if it was not taken. */
  release(address: string): boolean {
    const value = this.#find(address);
    if (value === undefined) return false;
    const offset = Number(value - this.#usable.first);
    return offset < this.#taken.size ? this.#taken.clear(offset) : this.#far.delete(value);
  }

  has(address: string): boolean {
    const value = this.#find(address);
    if (value === undefined) return false;
    const offset = Number(value - this.#usable.first);
    return offset < this.#taken.size ? this.#taken.has(offset) : this.#far.has(value);
  }

  #valueOf(address: string): bigint {
    const parsed = parseStrictAddress(address);
    if (parsed?.canonical !== address) throw new NotCanonicalError(address);
    if (!this.#usable.contains(parsed.family, parsed.value))
      throw new NotInRangeError('IP', address, this.range);
    return parsed.value;
  }

  #find(address: string): bigint | undefined {
    const parsed = parseStrictAddress(address);
    if (parsed?.canonical !== address) return undefined;
    return this.#usable.contains(parsed.family, parsed.value) ? parsed.value : undefined;
  }

  #allocate(value: bigint): boolean {
    const offset = Number(value - this.#usable.first);
    if (offset < this.#taken.size) return this.#taken.set(offset);
    if (this.#far.has(value)) return false;
    this.#far.add(value);
    return true;
  }

  #textAt(offset: number): string {
    if (this.family === 'IPv4') return formatV4(Number(this.#usable.first) + offset);
    // Numbers, not bigint: this is most of what a pick costs.
    const [a, b, c, d] = this.#firstWords;
    const low = d + (offset % 2 ** 32);
    const middle = c + Math.floor(offset / 2 ** 32) + (low >= 2 ** 32 ? 1 : 0);
    const high = b + (middle >= 2 ** 32 ? 1 : 0);
    return formatV6Words(high >= 2 ** 32 ? a + 1 : a, high >>> 0, middle >>> 0, low >>> 0);
  }
}
