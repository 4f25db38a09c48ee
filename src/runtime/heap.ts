/** A binary heap: the item that comes before all others is on top. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #before: (a: T, b: T) => boolean;

  /** @param before a strict order: true when `a` must leave the heap before `b`. */
  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    let at = this.#items.length;
    this.#items.push(item);
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = this.#items[above];
      if (parent === undefined || !this.#before(item, parent)) break;
      this.#items[at] = parent;
      at = above;
    }
    this.#items[at] = item;
  }

  pop(): T | undefined {
    const top = this.#items[0];
    const last = this.#items.pop();
    if (last === undefined || this.#items.length === 0) return top;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      let child = this.#items[below];
      if (child === undefined) break;
      const right = this.#items[below + 1];
      if (right !== undefined && this.#before(right, child)) {
        below++;
        child = right;
      }
      if (!this.#before(child, last)) break;
      this.#items[at] = child;
      at = below;
    }
    this.#items[at] = last;
    return top;
  }
}
