/** The numbers of custom objects, as Go's types have them. */
import type { JsonSchema } from '../customresourcedefinition/json-schema.ts';

/** The least and greatest numbers of formats; the greatest of 64 bits is the first that does not fit. */
const ranges: ReadonlyMap<string, readonly [number, number]> = new Map([
  ['int32', [-(2 ** 31), 2 ** 31 - 1]],
  ['uint32', [0, 2 ** 32 - 1]],
  ['uint64', [0, 2 ** 64]],
]);
const int64 = [-(2 ** 63), 2 ** 63] as const;

/**
 * Why a number does not fit the type that its schema names, undefined where it does (kube-openapi
 * `validate/values.go` IsValueValidAgainstRange).
 *
 * @param path as error messages show it.
 */
export function rangeFault(
  { type = '', format = '' }: JsonSchema,
  value: number,
  path: string,
): string | undefined {
  let ok = true;
  if (type === 'integer') {
    const [low, high] = ranges.get(format) ?? int64;
    ok = Number.isInteger(value) && value >= low && value <= high;
  } else if (format === 'float' || format === 'float32') {
    ok = Number.isFinite(Math.fround(value));
  }
  const what = format === '' ? '(default format)' : `with format ${format}`;
  return ok ? undefined : `Checked value must be of type ${type} ${what} in ${path}`;
}

/**
 * Whether a number is a multiple of a positive factor. Of what Go reads as a float nothing beyond 2^53 is known to be one
 * (go-openapi's IsFloat64AJSONInteger).
 */
export function isMultiple(value: number, factor: number): boolean {
  const times = factor < 1 ? (1 / factor) * value : value / factor;
  // What is an integer that Go reads as one is divided as one.
  if (Math.abs(times) > Number.MAX_SAFE_INTEGER) return Math.abs(value) < 2 ** 63 && value % factor === 0;
  const nearest = Math.trunc(times);
  return times === nearest || Math.abs(times - nearest) / Math.abs(times + nearest) < 1e-9;
}
