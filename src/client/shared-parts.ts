import { isRecord } from '../objects/json.ts';
import type { KubeObject } from '../objects/meta.ts';

/** Parts that are remembered, before those that nobody had again are forgotten. */
const most = 1024;
/** Characters of JSON beyond which a part is not looked up: it will hardly have an equal. */
const longest = 4096;

/**
 * Parts of objects that are equal, in memory once: the Pods of a workload differ in name, node and addresses, but not in
 * their containers, volumes and tolerations, which are most of a Pod; those that came in one second not in their times
 * and conditions. Objects are to be frozen.
 */
export class SharedParts {
  readonly #parts = new Recent<object>();
  readonly #texts = new Recent<string>();

  /** Puts what was seen before in the place of equal members of an object's spec, and of what its status repeats. */
  share(object: KubeObject): void {
    const { metadata } = object;
    const created = metadata.creationTimestamp;
    if (created !== undefined && !Object.isFrozen(metadata)) {
      metadata.creationTimestamp = this.#texts.known(created, created);
    }
    const spec: unknown = Reflect.get(object, 'spec');
    if (isRecord(spec) && !Object.isFrozen(spec)) {
      for (const name in spec) spec[name] = this.#known(spec[name]);
    }
    const status: unknown = Reflect.get(object, 'status');
    if (isRecord(status) && !Object.isFrozen(status)) {
      // Lists of addresses and the like are each object's own.
      for (const name in status) {
        if (name === 'conditions' || typeof status[name] === 'string')
          status[name] = this.#known(status[name]);
      }
    }
  }

  #known(part: unknown): unknown {
    if (typeof part === 'string') return this.#texts.known(part, part);
    if (typeof part !== 'object' || part === null) return part;
    const text = JSON.stringify(part);
    return text.length > longest ? part : this.#parts.known(text, part);
  }
}

/** Values by their texts, as long as they come again. */
class Recent<T> {
  #recent = new Map<string, T>();
  #older = new Map<string, T>();

  /** The value that had this text before, or else this one. */
  known(text: string, value: T): T {
    const recent = this.#recent.get(text);
    if (recent !== undefined) return recent;
    const known = this.#older.get(text) ?? value;
    if (this.#recent.size >= most) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(text, known);
    return known;
  }
}
