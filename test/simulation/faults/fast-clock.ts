import type { Clock, Timer } from '../../../src/client/clock.ts';

/** Milliseconds of ours between two ticks, and those of the clock that pass with each. */
const tick = { every: 2, passes: 40 };

/**
 * Milliseconds in which this process ran, or had nothing to do. Those in which it was ready to run and the machine did
 * something else are not among them.
 */
function available(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000 + performance.eventLoopUtilization().idle;
}

interface Pending {
  readonly at: number;
  readonly callback: () => void;
}

/**
 * The time of a simulation: of its controllers, its network and its mishaps. It runs up to twenty times faster than the
 * real one, so that back-offs of seconds take milliseconds. It goes on by ticks, and only as far as this process was
 * {@link available}: a machine that is busy or stops makes no deadline pass.
 */
export class FastClock implements Clock {
  /** How many of its milliseconds pass in one of ours, at most. */
  static readonly speed = tick.passes / tick.every;
  #elapsed = 0;
  #tickedAt = available();
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

  /** Waits for so many milliseconds of ours, as far as this process was available in them. */
  pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return this.sleep(milliseconds * FastClock.speed, signal);
  }

  /** Looks until it is so, every 5 ms of ours, and answers whether it came to be so. */
  async eventually(isSo: () => boolean | Promise<boolean>, looks: number): Promise<boolean> {
    for (let left = looks; left > 0; left--) {
      if (await isSo()) return true;
      await this.pause(5);
    }
    return false;
  }

  /** Time stands still from now on. */
  stop(): void {
    clearInterval(this.#ticker);
  }

  #tick(): void {
    const now = available();
    if (now - this.#tickedAt < tick.every) return;
    this.#tickedAt = now;
    this.#elapsed += tick.passes;
    const due = [...this.#pending].filter(({ at }) => at <= this.#elapsed).sort((a, b) => a.at - b.at);
    for (const pending of due) {
      if (this.#pending.delete(pending)) pending.callback();
    }
  }
}
