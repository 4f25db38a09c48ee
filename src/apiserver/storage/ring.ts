/** A queue with random access. Taking from the front is O(1): the space is given back now and then. */
export class Ring<T> {
  private items: (T | undefined)[] = [];
  private head = 0;

  get length(): number {
    return this.items.length - this.head;
  }
  first(): T | undefined {
    return this.items[this.head];
  }
  at(index: number): T | undefined {
    return this.items[this.head + index];
  }
  push(item: T): void {
    this.items.push(item);
  }
  /** Takes the first item. */
  shift(): T | undefined {
    const first = this.items[this.head];
    if (this.head < this.items.length) this.items[this.head++] = undefined;
    if (this.head > 1024 && this.head > this.items.length >> 1) {
      this.items = this.items.slice(this.head);
      this.head = 0;
    }
    return first;
  }
  /** The first index whose item passes, given that all behind it pass too; the length when none does. */
  firstIndex(passes: (item: T) => boolean): number {
    let low = this.head;
    let high = this.items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const item = this.items[middle];
      if (item !== undefined && !passes(item)) low = middle + 1;
      else high = middle;
    }
    return low - this.head;
  }
}
