import type { ObjectKey } from '../../objects/key.ts';
import type { Pool } from './plan.ts';

interface Line {
  /** Counts what was freed. */
  generation: number;
  /** Each with the generation in which it was last tried. */
  readonly keys: Map<ObjectKey, number>;
}

/** Services that a full range could not serve, in the order in which they came. */
export class Waiters {
  readonly #lines = new Map<Pool, Line>();

  /** A Service found nothing left. */
  wait(pool: Pool, key: ObjectKey): void {
    for (const [other, { keys }] of this.#lines) if (other !== pool) keys.delete(key);
    const line = this.#lineOf(pool);
    line.keys.set(key, line.generation);
  }

  /** A Service waits no more. */
  leave(key: ObjectKey): void {
    for (const { keys } of this.#lines.values()) keys.delete(key);
  }

  /** Something became free: everyone may try once more. */
  freed(pool: Pool): void {
    this.#lineOf(pool).generation++;
  }

  /** The next to try. Each is answered once for all that was freed so far: who fails again does not make us spin. */
  next(pool: Pool): ObjectKey | undefined {
    const line = this.#lines.get(pool);
    if (line === undefined) return undefined;
    for (const [key, tried] of line.keys) {
      if (tried === line.generation) continue;
      line.keys.set(key, line.generation);
      return key;
    }
    return undefined;
  }

  /** The pools that somebody waits for. */
  *pools(): Generator<Pool> {
    for (const [pool, { keys }] of this.#lines) if (keys.size > 0) yield pool;
  }

  #lineOf(pool: Pool): Line {
    const known = this.#lines.get(pool);
    if (known !== undefined) return known;
    const line: Line = { generation: 0, keys: new Map() };
    this.#lines.set(pool, line);
    return line;
  }
}
