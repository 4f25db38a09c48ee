import type { Clock } from '../client/clock.ts';
import { Heap } from './heap.ts';
import type { QueueRecorder } from './queue-metrics.ts';

export interface KeyedQueueOptions {
  readonly clock: Clock;
  /** Absent: no metrics. */
  readonly recorder?: QueueRecorder;
}

interface Entry {
  readonly key: string;
  readonly priority: number;
  /** Sequence number: keys of one priority leave in the order in which they came. */
  readonly sequence: number;
  readonly addedAt: number;
}

/**
 * A queue of keys, the bottom layer (client-go `util/workqueue/queue.go` with priorities).
 *
 * A key is in one of three states, never in two: waiting (once, however often it was added), running, or running with a
 * second run due. So a key never runs twice at once, and no added key is lost.
 */
export class WorkQueue {
  /** Called when a key may be taken; set by the owner of the workers. */
  onReady: () => void = () => undefined;
  protected readonly clock: Clock;
  readonly #recorder: QueueRecorder | undefined;
  readonly #waiting = new Map<string, Entry>();
  /** Entries that a more urgent one replaced stay in the heap until they reach the top. */
  readonly #order = new Heap<Entry>(
    (a, b) => a.priority > b.priority || (a.priority === b.priority && a.sequence < b.sequence),
  );
  readonly #running = new Map<string, number>();
  readonly #again = new Map<string, number>();
  #sequence = 0;
  #closed = false;

  constructor({ clock, recorder }: KeyedQueueOptions) {
    this.clock = clock;
    this.#recorder = recorder;
    recorder?.observe(() => ({ startedAt: this.#running.values(), now: clock.monotonic() }));
  }

  /** The number of keys that wait for a worker, without second runs that are due. */
  get depth(): number {
    return this.#waiting.size;
  }

  /** The number of keys that are running. */
  get running(): number {
    return this.#running.size;
  }

  /** Adds a key; higher priorities leave first. A key that waits already keeps its position and the higher priority. */
  add(key: string, priority = 0): void {
    if (this.#closed) return;
    if (this.#running.has(key)) {
      const due = this.#again.get(key);
      if (due === undefined) this.#recorder?.added(this.depth);
      this.#again.set(key, Math.max(due ?? priority, priority));
      return;
    }
    this.#enqueue(key, priority);
  }

  /** The next key, which counts as running until {@link done}; undefined when none waits. */
  take(): string | undefined {
    for (let entry = this.#order.pop(); entry !== undefined; entry = this.#order.pop()) {
      if (this.#waiting.get(entry.key) !== entry) continue;
      this.#waiting.delete(entry.key);
      const now = this.clock.monotonic();
      this.#running.set(entry.key, now);
      this.#recorder?.taken((now - entry.addedAt) / 1000, this.depth);
      return entry.key;
    }
    return undefined;
  }

  /** Ends the run of a key. A key that was added meanwhile waits again. */
  done(key: string): void {
    const startedAt = this.#running.get(key);
    if (startedAt === undefined) return;
    this.#running.delete(key);
    this.#recorder?.done((this.clock.monotonic() - startedAt) / 1000);
    const priority = this.#again.get(key);
    if (priority === undefined) return;
    this.#again.delete(key);
    if (!this.#closed) this.#place(key, priority);
  }

  /** Takes no more keys and drops those that wait; running keys go on. */
  close(): void {
    this.#closed = true;
    this.#waiting.clear();
    this.#again.clear();
    this.#recorder?.emptied();
  }

  #enqueue(key: string, priority: number): void {
    const present = this.#waiting.get(key);
    if (present === undefined) {
      this.#place(key, priority);
      this.#recorder?.added(this.depth);
    } else if (priority > present.priority) {
      const urgent = { ...present, priority };
      this.#waiting.set(key, urgent);
      this.#order.push(urgent);
    }
  }

  #place(key: string, priority: number): void {
    const entry = { key, priority, sequence: this.#sequence++, addedAt: this.clock.monotonic() };
    this.#waiting.set(key, entry);
    this.#order.push(entry);
    this.onReady();
  }
}
