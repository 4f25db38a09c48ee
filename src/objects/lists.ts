/** Appends all items of other lists. `list.push(...items)` throws a RangeError from about 120,000 items on. */
export function pushAll<T>(list: T[], ...others: readonly Iterable<T>[]): void {
  for (const other of others) for (const item of other) list.push(item);
}

/** The largest of some numbers; -Infinity of none. `Math.max(...numbers)` has the limit of `push(...items)`. */
export function maxOf(numbers: Iterable<number>): number {
  let max = -Infinity;
  for (const number of numbers) if (number > max) max = number;
  return max;
}
