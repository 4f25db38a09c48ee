import type { Timer } from '../client/clock.ts';
import { Heap } from './heap.ts';
import { WorkQueue } from './work-queue.ts';

interface Delayed {
  readonly key: string;
  readonly priority: number;
  readonly readyAt: number;
}

/** A {@link WorkQueue} whose keys can be added with a delay (client-go `util/workqueue/delaying_queue.go`). */
export class DelayingQueue extends WorkQueue {
  readonly #delayed = new Map<string, Delayed>();
  /** Entries that an earlier one replaced stay in the heap until they reach the top. */
  readonly #order = new Heap<Delayed>((a, b) => a.readyAt < b.readyAt);
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #stopped = false;

  /** The number of keys that are not due yet. */
  get delayed(): number {
    return this.#delayed.size;
  }

  /** Adds a key after a delay in milliseconds. Of two times for one key the earlier applies. */
  addAfter(key: string, milliseconds: number, priority = 0): void {
    if (this.#stopped) return;
    if (!(milliseconds > 0)) {
      this.add(key, priority);
      return;
    }
    const readyAt = this.clock.monotonic() + milliseconds;
    const present = this.#delayed.get(key);
    if (present !== undefined && present.readyAt <= readyAt && present.priority >= priority) return;
    const entry = {
      key,
      priority: Math.max(priority, present?.priority ?? priority),
      readyAt: Math.min(readyAt, present?.readyAt ?? readyAt),
    };
    this.#delayed.set(key, entry);
    this.#order.push(entry);
    this.#schedule();
  }

  override close(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#delayed.clear();
    super.close();
  }

  #schedule(): void {
    const next = this.#order.peek();
    if (next === undefined || next.readyAt >= this.#timerAt) return;
    this.#timer?.cancel();
    this.#timerAt = next.readyAt;
    this.#timer = this.clock.after(next.readyAt - this.clock.monotonic(), () => this.#release());
  }

  #release(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.clock.monotonic();
    for (
      let next = this.#order.peek();
      next !== undefined && next.readyAt <= now;
      next = this.#order.peek()
    ) {
      this.#order.pop();
      if (this.#delayed.get(next.key) !== next) continue;
      this.#delayed.delete(next.key);
      this.add(next.key, next.priority);
    }
    this.#schedule();
  }
}
