import type { ObjectKey } from '../../objects/meta.ts';
import type { RangeKind } from './plan.ts';

interface Queue {
  /** Incremented when a value becomes free. */
  generation: number;
  /** Service -> the generation in which it was last retried. */
  readonly keys: Map<ObjectKey, number>;
}

/** Services that wait for a value of a full range, first come, first served. */
export class RangeQueues {
  readonly #queues = new Map<RangeKind, Queue>();

  /** Puts a Service into the queue of a range, and removes it from all others. */
  add(range: RangeKind, key: ObjectKey): void {
    for (const [other, { keys }] of this.#queues) if (other !== range) keys.delete(key);
    const queue = this.#queueOf(range);
    queue.keys.set(key, queue.generation);
  }

  delete(key: ObjectKey): void {
    for (const { keys } of this.#queues.values()) keys.delete(key);
  }

  /** A value became free: every Service in the queue may be retried once. */
  freed(range: RangeKind): void {
    this.#queueOf(range).generation++;
  }

  /** The next Service to retry. Each is returned once per generation, so that those that fail again do not loop. */
  next(range: RangeKind): ObjectKey | undefined {
    const queue = this.#queues.get(range);
    if (queue === undefined) return undefined;
    for (const [key, tried] of queue.keys) {
      if (tried === queue.generation) continue;
      queue.keys.set(key, queue.generation);
      return key;
    }
    return undefined;
  }

  /** The ranges that a Service waits for. */
  *ranges(): Generator<RangeKind> {
    for (const [range, { keys }] of this.#queues) if (keys.size > 0) yield range;
  }

  #queueOf(range: RangeKind): Queue {
    const known = this.#queues.get(range);
    if (known !== undefined) return known;
    const queue: Queue = { generation: 0, keys: new Map() };
    this.#queues.set(range, queue);
    return queue;
  }
}
