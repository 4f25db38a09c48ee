import { isRecord } from '../objects/json.ts';
import type { KubeObject } from '../objects/meta.ts';

/** Parts that are remembered, before those that nobody had again are forgotten. */
const most = 1024;
/** Characters of JSON beyond which a part is not looked up: it will hardly have an equal. */
const longest = 4096;

/**
 * Parts of objects that are equal, in memory once: the Pods of a workload differ in name, node and status, but not in
 * their containers, volumes and tolerations, which are most of a Pod. Objects are to be frozen.
 */
export class SharedParts {
  #recent = new Map<string, object>();
  #older = new Map<string, object>();

  /** Puts what was seen before in the place of equal members of an object's spec. */
  share(object: KubeObject): void {
    const spec: unknown = Reflect.get(object, 'spec');
    if (!isRecord(spec) || Object.isFrozen(spec)) return;
    for (const name in spec) {
      const part = spec[name];
      if (typeof part === 'object' && part !== null) spec[name] = this.#known(part);
    }
  }

  #known(part: object): object {
    const text = JSON.stringify(part);
    if (text.length > longest) return part;
    const recent = this.#recent.get(text);
    if (recent !== undefined) return recent;
    const known = this.#older.get(text) ?? part;
    if (this.#recent.size >= most) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(text, known);
    return known;
  }
}
