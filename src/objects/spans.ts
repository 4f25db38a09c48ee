/** Consecutive addresses of one family, both ends included. */
export interface Span {
  readonly first: bigint;
  readonly last: bigint;
}

/** The same addresses in ascending, disjoint spans, as few as possible. */
export function mergeSpans(spans: readonly Span[]): Span[] {
  const result: { first: bigint; last: bigint }[] = [];
  for (const { first, last } of [...spans].sort(byFirst)) {
    const previous = result.at(-1);
    if (previous !== undefined && first <= previous.last + 1n) {
      if (last > previous.last) previous.last = last;
    } else result.push({ first, last });
  }
  return result;
}

function byFirst(a: Span, b: Span): number {
  return a.first < b.first ? -1 : a.first > b.first ? 1 : 0;
}

/** The addresses of `spans` that are not in `holes`. Both are ascending and disjoint, see {@link mergeSpans}. */
export function subtractSpans(spans: readonly Span[], holes: readonly Span[]): Span[] {
  const result: Span[] = [];
  let hole = 0;
  for (const span of spans) {
    let { first } = span;
    while (hole < holes.length && (holes[hole]?.last ?? 0n) < first) hole++;
    for (let i = hole; i < holes.length; i++) {
      const next = holes[i];
      if (next === undefined || next.first > span.last) break;
      if (next.first > first) result.push({ first, last: next.first - 1n });
      first = next.last + 1n;
      if (first > span.last) break;
    }
    if (first <= span.last) result.push({ first, last: span.last });
  }
  return result;
}

/** The addresses that both have. Both are ascending and disjoint. */
export function intersectSpans(a: readonly Span[], b: readonly Span[]): Span[] {
  return subtractSpans(a, subtractSpans(a, b));
}

/** Index of the span that contains a value, or -1. Binary search. */
export function indexOfSpan(spans: readonly Span[], value: bigint): number {
  let low = 0;
  let high = spans.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const span = spans[middle];
    if (span === undefined) return -1;
    if (value < span.first) high = middle - 1;
    else if (value > span.last) low = middle + 1;
    else return middle;
  }
  return -1;
}
