import type { AddressToAnnounce, AnnouncingView, KernelState } from './agent-io.ts';
import type { KeptAddresses, AnnouncerLease } from './agent-report.ts';

/** Milliseconds that a kernel may be late in ending a lifetime. */
const kernelLateMs = 1000;

/**
 * The addresses that agents have left in the kernels of their nodes at an orderly end (`--restart-grace`). No other
 * agent takes them while they may be there: until the agent holds its Lease again, or the time that it gave them is over. That
 * counts from when its Lease was seen, which is later.
 */
export class RestartGrace {
  readonly #left = new Map<
    string,
    { readonly version: string; readonly kept: KeptAddresses; seenAtMs: number }
  >();

  /**
   * A Lease was seen.
   *
   * @param version another one after each write of the Lease.
   * @param kept undefined: the agent holds its Lease, or left nothing.
   * @param nowMs milliseconds of a monotonic clock.
   */
  observe(node: string, version: string, kept: KeptAddresses | undefined, nowMs: number): void {
    if (kept === undefined) this.#left.delete(node);
    else if (this.#left.get(node)?.version !== version)
      this.#left.set(node, { version, kept, seenAtMs: nowMs });
  }

  /** Addresses that no agent may take now but the one that left them. */
  addresses(nowMs: number): readonly string[] {
    return [...this.#left.values()].flatMap(({ kept, seenAtMs }) =>
      nowMs < seenAtMs + kept.seconds * 1000 + kernelLateMs ? kept.addresses : [],
    );
  }
}

/**
 * Whole seconds for which the kernel of a stopped agent may still have the addresses in its Lease. They count from
 * before the Lease was written: others count from when they saw it, and so never stop waiting earlier.
 *
 * @param seconds of the Lease.
 * @param saidFromMs milliseconds of a monotonic clock, from before the Lease was written.
 * @returns 0: the time is over.
 */
export function secondsLeft(seconds: number, saidFromMs: number, nowMs: number): number {
  return Math.max(0, Math.floor(seconds - (nowMs - saidFromMs) / 1000));
}

/** Milliseconds: longer than a successor needs, shorter than another machine takes to come by one of them. */
const releasedForMs = 5000;

/**
 * Addresses that agents announced until their Leases were given back, by themselves or for them. An agent that
 * takes such an address over at once does not probe for it: the former one has.
 */
export class ReleasedAddresses {
  readonly #holding = new Set<string>();
  /** By address: when its Lease was seen given back. */
  readonly #released = new Map<string, number>();

  /**
   * A Lease was seen.
   *
   * @param lease undefined: it was deleted.
   * @param announced the addresses in the agent's last report.
   * @param nowMs milliseconds of a monotonic clock.
   */
  observe(
    node: string,
    lease: Pick<AnnouncerLease, 'acquired'> | undefined,
    announced: readonly string[],
    nowMs: number,
  ): void {
    if (lease?.acquired !== undefined) this.#holding.add(node);
    else if (this.#holding.delete(node)) for (const address of announced) this.#released.set(address, nowMs);
  }

  /** Whether an address was released a moment ago. */
  has(address: string, nowMs: number): boolean {
    const at = this.#released.get(address);
    if (at === undefined) return false;
    if (nowMs - at <= releasedForMs) return true;
    this.#released.delete(address);
    return false;
  }
}

/**
 * The addresses that this node alone can announce, so that they may stay in its kernel for longer than its Lease lasts. Others
 * hear of it before the kernel has them for longer, and that it is over after the kernel has them for less.
 */
export class SoleAddresses {
  readonly #graceSeconds: number;
  #planned: ReadonlySet<string> = new Set();
  /** Those that the kernel may have for longer. */
  #kept: ReadonlySet<string> = new Set();

  /** @param graceSeconds 0: none stays longer. */
  constructor(graceSeconds: number) {
    this.#graceSeconds = graceSeconds;
  }

  has(address: string): boolean {
    return this.#planned.has(address);
  }

  plan(addresses: ReadonlySet<string>): void {
    if (this.#graceSeconds > 0) this.#planned = addresses;
  }

  /** The kernel is about to get the addresses of the last plan. */
  announcing(): void {
    this.#kept = new Set([...this.#kept, ...this.#planned]);
  }

  /** The kernel has them. */
  announced(): void {
    this.#kept = this.#planned;
  }

  /**
   * The addresses that stay without a Lease.
   *
   * @param wanted before. @param assigned those that Services have. @param announced those that the kernel has.
   */
  staying(
    wanted: readonly AddressToAnnounce[],
    assigned: AnnouncingView['addresses'],
    announced: KernelState['announced'],
    mayStay: (address: string) => boolean,
  ): readonly AddressToAnnounce[] {
    return wanted.filter(
      ({ address }) =>
        this.#planned.has(address) && assigned.has(address) && announced.has(address) && mayStay(address),
    );
  }

  /** For the Lease. */
  get kept(): KeptAddresses | undefined {
    if (this.#kept.size === 0) return undefined;
    return { addresses: [...this.#kept], seconds: this.#graceSeconds };
  }
}
