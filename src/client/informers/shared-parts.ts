import { isRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';

/** Parts that are remembered; the least recently used are dropped. */
const maxParts = 1024;
/** Length in characters of JSON above which a part is not looked up: an equal one is unlikely. */
const maxPartLength = 4096;

/**
 * Keeps equal parts of objects in memory once. The Pods of a workload differ in name, node and addresses, but share
 * containers, volumes and tolerations, which are most of a Pod; Pods of the same second share times and conditions. For
 * objects that will be frozen.
 */
export class SharedParts {
  readonly #parts = new RecentCache<object>();
  readonly #texts = new RecentCache<string>();

  /** Replaces members of an object's spec and repeated parts of its status by equal ones seen before. */
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
      // Short lists such as addresses differ from object to object.
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
    if (text.length > maxPartLength) return part;
    const known = this.#parts.known(text, part);
    if (known === part && !Object.isFrozen(part)) this.#shareMembers(part);
    return known;
  }

  /** Each Pod has a token volume with a name of its own; all but the names in volumes and mounts is alike. */
  #shareMembers(part: object): void {
    for (const item of Array.isArray(part) ? part : [part]) {
      if (!isRecord(item) || Object.isFrozen(item)) continue;
      for (const name in item) {
        const member = item[name];
        if (typeof member === 'object' && member !== null) item[name] = this.#known(member);
      }
    }
  }
}

/** Values by their texts, in two generations. */
class RecentCache<T> {
  #recent = new Map<string, T>();
  #older = new Map<string, T>();

  /** The value seen before with this text, or else this one. */
  known(text: string, value: T): T {
    const recent = this.#recent.get(text);
    if (recent !== undefined) return recent;
    const known = this.#older.get(text) ?? value;
    if (this.#recent.size >= maxParts) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(text, known);
    return known;
  }
}
