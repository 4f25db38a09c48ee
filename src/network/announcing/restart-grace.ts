import type { KeptAddresses } from './agent-report.ts';

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
    { readonly version: string; readonly kept: KeptAddresses; seenAt: number }
  >();

  /**
   * A Lease was seen.
   *
   * @param version another one after each write of the Lease.
   * @param kept undefined: the agent holds its Lease, or left nothing.
   * @param now milliseconds of a monotonic clock.
   */
  observe(node: string, version: string, kept: KeptAddresses | undefined, now: number): void {
    if (kept === undefined) this.#left.delete(node);
    else if (this.#left.get(node)?.version !== version) this.#left.set(node, { version, kept, seenAt: now });
  }

  /** Addresses that no agent may take now but the one that left them. */
  addresses(now: number): readonly string[] {
    return [...this.#left.values()].flatMap(({ kept, seenAt }) =>
      now < seenAt + kept.seconds * 1000 + kernelLateMs ? kept.addresses : [],
    );
  }
}

/**
 * Whole seconds for which the kernel of a stopped agent may still have the addresses in its Lease. They count from
 * before the Lease was written: others count from when they saw it, and so never stop waiting earlier.
 *
 * @param seconds of the Lease.
 * @param saidFrom milliseconds of a monotonic clock, from before the Lease was written.
 * @returns 0: the time is over.
 */
export function secondsLeft(seconds: number, saidFrom: number, now: number): number {
  return Math.max(0, Math.floor(seconds - (now - saidFrom) / 1000));
}
