import { type Value, isBytes, isList, isMap } from '../values.ts';

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

/** cel-go's costs of operations (`common/cost.go`). */
export const units = {
  /** Reading a variable, or a member of one. */
  reference: 1,
  call: 1,
  list: 10,
  map: 30,
  struct: 40,
  perCharacter: 0.1,
  perPatternCharacter: 0.25,
} as const;

/** The number of code points of a text. */
export function characterCount(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length; i++) {
    // The first half of a surrogate pair: both halves are one character.
    const code = text.charCodeAt(i);
    if (code >= 0xd800 && code < 0xdc00 && isLowHalf(text.charCodeAt(i + 1))) count--;
  }
  return count;
}

function isLowHalf(code: number): boolean {
  return code >= 0xdc00 && code < 0xe000;
}

/** The size of a value for its cost: characters, bytes, items or members; 1 for scalars. */
export function sizeOf(value: Value): number {
  if (typeof value === 'string') return characterCount(value);
  if (isBytes(value)) return value.length;
  if (isList(value) || isMap(value)) return value.size;
  const sized = typeof value === 'object' && value !== null && value.kind === 'opaque';
  return sized ? (value.size ?? 1) : 1;
}
