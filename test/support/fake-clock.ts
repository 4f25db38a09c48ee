import { setImmediate } from 'node:timers/promises';
import type { Clock, Timer } from '../../src/client/clock.ts';

interface Pending {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock that moves only on demand. */
export class FakeClock implements Clock {
  #wall: number;
  #monotonic = 0;
  #order = 0;
  readonly #pending = new Set<Pending>();
  readonly #watchers = new Set<() => void>();

  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#wall = start;
  }

  now(): number {
    return this.#wall;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  after(milliseconds: number, callback: () => void): Timer {
    const pending = { at: this.#monotonic + Math.max(0, milliseconds), order: this.#order++, callback };
    this.#pending.add(pending);
    for (const watcher of [...this.#watchers]) watcher();
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

  /** Milliseconds until each pending timer, soonest first. */
  get timers(): number[] {
    return [...this.#pending].map(({ at }) => at - this.#monotonic).sort((a, b) => a - b);
  }

  /** The wall clock is set to another time; nothing else changes. */
  jump(milliseconds: number): void {
    this.#wall += milliseconds;
  }

  /** Moves on and calls what is due, in order, letting promises settle after each call. */
  async advance(milliseconds: number): Promise<void> {
    const end = this.#monotonic + milliseconds;
    for (;;) {
      await settle();
      const next = this.#next();
      if (next === undefined || next.at > end) break;
      this.#moveTo(Math.max(next.at, this.#monotonic));
      this.#pending.delete(next);
      next.callback();
    }
    this.#moveTo(end);
    await settle();
  }

  /** Resolves when a timer between the two limits (milliseconds from now) is pending. */
  async timerWithin(least: number, most: number): Promise<void> {
    const found = (): boolean => this.timers.some((time) => time >= least && time <= most);
    while (!found()) {
      await new Promise<void>((resolve) => {
        const watcher = (): void => {
          this.#watchers.delete(watcher);
          resolve();
        };
        this.#watchers.add(watcher);
      });
    }
  }

  #next(): Pending | undefined {
    let first: Pending | undefined;
    for (const pending of this.#pending) {
      const before =
        first === undefined ||
        pending.at < first.at ||
        (pending.at === first.at && pending.order < first.order);
      if (before) first = pending;
    }
    return first;
  }

  #moveTo(at: number): void {
    this.#wall += at - this.#monotonic;
    this.#monotonic = at;
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 3; i++) await setImmediate();
}
