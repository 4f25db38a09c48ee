/** Arithmetic of sizes and costs in cel-go's estimates (`checker/cost.go`), which saturates at the upper limit. */

/** The smallest and largest size of a text, list or map: characters, bytes, items or members. */
export interface SizeRange {
  readonly min: number;
  readonly max: number;
}

/** The upper limit of sizes and costs (`math.MaxUint64`). */
const limit = 2 ** 64;

/** Any size. */
export const unknownSize: SizeRange = { min: 0, max: limit };
export const oneSize: SizeRange = { min: 1, max: 1 };

export function fixedSize(size: number): SizeRange {
  return { min: size, max: size };
}

export function plus(...values: readonly number[]): number {
  return Math.min(
    limit,
    values.reduce((sum, value) => sum + value, 0),
  );
}

export function times(a: number, b: number): number {
  return a === 0 || b === 0 ? 0 : Math.min(limit, a * b);
}

/** The product, rounded up, for fractional factors. */
export function scaled(value: number, factor: number): number {
  return Math.min(limit, Math.ceil(value * factor));
}

export function addSizes(a: SizeRange, b: SizeRange): SizeRange {
  return { min: plus(a.min, b.min), max: plus(a.max, b.max) };
}

export function multiplySizes(a: SizeRange, b: SizeRange): SizeRange {
  return { min: times(a.min, b.min), max: times(a.max, b.max) };
}

/** The smallest range that includes both. */
export function uniteSizes(a: SizeRange, b: SizeRange): SizeRange {
  return { min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) };
}
