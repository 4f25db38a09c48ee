/**
 * A set of offsets in `[0, size)` that finds free ones fast at any fill. Offsets are integers; the caller keeps
 * them in range.
 */
export interface Bitmap {
  /** Number of offsets, at most 2^53. */
  readonly size: number;
  /** Number of offsets in the set. */
  readonly count: number;
  has(offset: number): boolean;
  /** Adds an offset; false if it was there. */
  set(offset: number): boolean;
  /** Removes an offset; false if it was not there. */
  clear(offset: number): boolean;
  /** The lowest offset ≥ `from` that is not in the set, or -1. `from` may equal `size`. */
  nextFree(from: number): number;
  /** The lowest offset ≥ `from` that is in the set, or -1. `from` may equal `size`. */
  nextUsed(from: number): number;
}

/**
 * A free offset in `[low, high)`: the first one at or after a random start, with wrap; -1 if there is none.
 *
 * @param random gives numbers in [0, 1).
 */
export function randomFree(bitmap: Bitmap, low: number, high: number, random: () => number): number {
  if (high <= low) return -1;
  const start = low + Math.floor(random() * (high - low));
  const after = bitmap.nextFree(start);
  if (after >= 0 && after < high) return after;
  const before = bitmap.nextFree(low);
  return before >= 0 && before < start ? before : -1;
}
