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

const maxItems = 5;
const maxItemLength = 300;

/**
 * The first items of a list and the number of the others: `a, b, c, d, e, and 3 more`. A condition's message has at most
 * 32,768 characters.
 */
export function firstFew(list: readonly string[], separator = ', '): string {
  const named = list
    .slice(0, maxItems)
    .map((text) => (text.length > maxItemLength ? `${text.slice(0, maxItemLength)}…` : text));
  const more = list.length - named.length;
  return [...named, ...(more > 0 ? [`and ${more} more`] : [])].join(separator);
}

/** The items of a list with commas, trimmed, without empty ones. */
export function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** Does work in steps all at once, for callers that cannot wait. @returns its result. */
export function resultOf<T>(steps: Generator<unknown, T, undefined>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}
