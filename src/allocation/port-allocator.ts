import { bandOffset, AlreadyAllocatedError, NotInRangeError, RangeFullError } from './address-range.ts';
import { DenseBitmap, randomFree } from './bitmap.ts';

/** Hands out ports of one range; protocols share the ports, as in kube-apiserver. */
export interface PortAllocation {
  /**
   * Takes one port, from either band.
   *
   * @throws {NotInRangeError}
   * @throws {AlreadyAllocatedError}
   */
  allocate(port: number): void;
  /**
   * Takes a free port: from a random start in the dynamic band, with wrap; when that is full, from the static.
   *
   * @param random gives numbers in [0, 1).
   * @throws {RangeFullError}
   */
  allocateNext(random: () => number): number;
}

/** First and last port of a range, both included. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/**
 * The value of `--service-node-port-range` (`k8s.io/apimachinery/pkg/util/net.ParsePortRange`): `a-b`, `a+n` or `a`,
 * within 0 to 65535; undefined for anything else.
 */
export function parsePortRange(text: string): PortRange | undefined {
  const match = /^(\d{1,5})(?:([-+])(\d{1,5}))?$/.exec(text.trim());
  if (match === null) return undefined;
  const first = Number(match[1]);
  const second = match[3] === undefined ? first : Number(match[3]);
  const last = match[2] === '+' ? first + second : second;
  return first > 65535 || last > 65535 || last < first ? undefined : { first, last };
}

/**
 * The allocator of node ports and health check node ports.
 *
 *     first             first+band                         last
 *       |----- static -----|------------ dynamic ------------|
 *         explicit only, or    explicit, and random picks
 *         random when dynamic  with wrap
 *         is full
 *
 * (KEP-3668; `pkg/registry/core/service/portallocator`. The default range keeps 30000 to 30085 for explicit ports.)
 */
export class PortAllocator implements PortAllocation {
  /** The range as users write it: `30000-32767`. */
  readonly range: string;
  readonly #first: number;
  readonly #band: number;
  readonly #taken: DenseBitmap; // port - first

  constructor({ first, last }: PortRange) {
    this.range = `${first}-${last}`;
    this.#first = first;
    this.#band = bandOffset(last - first + 1, 32, 128);
    this.#taken = new DenseBitmap(last - first + 1);
  }

  /** Number of ports taken. */
  get used(): number {
    return this.#taken.count;
  }

  /** Number of ports left. */
  get free(): number {
    return this.#taken.size - this.#taken.count;
  }

  /** True for a port of the range. */
  contains(port: number): boolean {
    return this.#offsetOf(port) !== undefined;
  }

  allocate(port: number): void {
    const offset = this.#offsetOf(port);
    if (offset === undefined) throw new NotInRangeError('port', port, this.range);
    if (!this.#taken.set(offset)) throw new AlreadyAllocatedError('port', port);
  }

  allocateNext(random: () => number): number {
    let offset = randomFree(this.#taken, this.#band, this.#taken.size, random);
    if (offset < 0) offset = randomFree(this.#taken, 0, this.#band, random);
    if (offset < 0) throw new RangeFullError();
    this.#taken.set(offset);
    return this.#first + offset;
  }

  /** Gives a port back; false if it was not taken. */
  release(port: number): boolean {
    const offset = this.#offsetOf(port);
    return offset !== undefined && this.#taken.clear(offset);
  }

  has(port: number): boolean {
    const offset = this.#offsetOf(port);
    return offset !== undefined && this.#taken.has(offset);
  }

  /** Takes ports; those outside of the range or taken already are passed over. */
  restore(ports: readonly number[]): void {
    for (const port of ports) {
      const offset = this.#offsetOf(port);
      if (offset !== undefined) this.#taken.set(offset);
    }
  }

  /**
   * The allocations of one dry run, without effect, as kube-apiserver answers them: an explicit port fails only if
   * it is taken (outside of the range it passes), and picked ones are 32769, 32770 …, or one above the highest so
   * far.
   */
  dryRun(): PortAllocation {
    return new DryRunPorts(this);
  }

  #offsetOf(port: number): number | undefined {
    const offset = port - this.#first;
    return Number.isInteger(offset) && offset >= 0 && offset < this.#taken.size ? offset : undefined;
  }
}

/** Remembers what its own request took, so that one request cannot take a port twice. */
class DryRunPorts implements PortAllocation {
  readonly #real: PortAllocator;
  readonly #mine = new Set<number>();
  /** The largest port taken so far. */
  #last: number | undefined;

  constructor(real: PortAllocator) {
    this.#real = real;
  }

  allocate(port: number): void {
    if (this.#mine.has(port) || this.#real.has(port)) throw new AlreadyAllocatedError('port', port);
    this.#mine.add(port);
    this.#last = Math.max(this.#last ?? port, port);
  }

  allocateNext(_random: () => number): number {
    const port = (this.#last ?? 32768) + 1;
    this.#last = port;
    this.#mine.add(port);
    return port;
  }
}
