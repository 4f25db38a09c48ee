import type { Clock, Timer } from '../../../src/client/clock.ts';

/** Milliseconds of ours between two ticks, and those of the clock that pass with each. */
const tick = { every: 2, passes: 40 };

interface Pending {
  readonly at: number;
  readonly callback: () => void;
}

/**
 * A clock that runs up to twenty times faster than the real one, so that back-offs of seconds take milliseconds. It
 * goes on by ticks: while the machine has no time for this process, no time passes here either, and nobody misses a
 * deadline for being starved.
 */
export class FastClock implements Clock {
  #elapsed = 0;
  readonly #startedAt = Date.now();
  readonly #pending = new Set<Pending>();
  readonly #ticker: NodeJS.Timeout;

  constructor() {
    this.#ticker = setInterval(() => this.#tick(), tick.every);
  }

  now(): number {
    return this.#startedAt + this.#elapsed;
  }

  monotonic(): number {
    return this.#elapsed;
  }

  after(milliseconds: number, callback: () => void): Timer {
    const pending = { at: this.#elapsed + Math.max(milliseconds, 0), callback };
    this.#pending.add(pending);
    return { cancel: () => this.#pending.delete(pending) };
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const finish = (): void => {
        timer.cancel();
        signal?.removeEventListener('abort', finish);
        resolve();
      };
      const timer = this.after(milliseconds, finish);
      signal?.addEventListener('abort', finish, { once: true });
    });
  }

  /** Time stands still from now on. */
  stop(): void {
    clearInterval(this.#ticker);
  }

  #tick(): void {
    this.#elapsed += tick.passes;
    const due = [...this.#pending].filter(({ at }) => at <= this.#elapsed).sort((a, b) => a.at - b.at);
    for (const pending of due) {
      if (this.#pending.delete(pending)) pending.callback();
    }
  }
}
