/**
 * Quantities of resources: `500m`, `1Gi`, `2e3` (apimachinery `api/resource/quantity.go`). Reading and writing one
 * gives the canonical spelling in the family of suffixes that it was written in.
 */

type QuantityFormat = 'BinarySI' | 'DecimalSI' | 'DecimalExponent';

export interface Quantity {
  /** The value in billionths: the finest that Kubernetes keeps. At most 2^63-1 units, either side of zero. */
  readonly nanos: bigint;
  readonly format: QuantityFormat;
}

const wrongForm =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const wrongSuffix = "unable to parse quantity's suffix";

const form = /^([+-]?)([0-9]*)(?:\.([0-9]*))?((?:[eEinumkKMGTP]+[-+]?|[-+])[0-9]*|)$/;
const exponentForm = /^[eE]([-+]?[0-9]+)$/;
/** Longer texts are absurd, and slow to count with. */
const maxText = 1024;
const nano = 1_000_000_000n;
const nanoPower = -9;
const maxNanos = (2n ** 63n - 1n) * nano;

/** In steps of 1024, from 1024. */
const binarySuffixes = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
/** In steps of 1000, from one billionth. */
const decimalSuffixes = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];

/**
 * Reads a quantity; values finer than a billionth are rounded away from zero, larger ones than 2^63-1 cut to it.
 *
 * @throws {Error} with Go's text when it is none.
 */
export function parseQuantity(text: string): Quantity {
  const match = text.length > maxText ? null : form.exec(text);
  const [, sign = '', whole = '', fraction = '', suffix = ''] = match ?? [];
  if (match === null || (whole === '' && fraction === '')) throw new Error(wrongForm);
  const { base, power, format } = readSuffix(suffix);
  const digits = BigInt(whole + fraction);
  const nanos =
    base === 2 ? scaled(digits << BigInt(power), -fraction.length) : scaled(digits, power - fraction.length);
  const capped = nanos > maxNanos ? maxNanos : nanos;
  return { nanos: sign === '-' ? -capped : capped, format };
}

/** The canonical text: no fraction, the largest suffix that keeps the value whole. */
export function formatQuantity({ nanos, format }: Quantity): string {
  if (nanos === 0n) return '0';
  const sign = nanos < 0n ? '-' : '';
  const size = nanos < 0n ? -nanos : nanos;
  if (format === 'BinarySI' && size >= 1024n * nano && size % nano === 0n) {
    const [number, steps] = withoutFactors(size / nano, 1024n, binarySuffixes.length);
    return `${sign}${number}${binarySuffixes[steps - 1] ?? ''}`;
  }
  const [number, steps] = withoutFactors(size, 1000n, decimalSuffixes.length - 1);
  const power = nanoPower + steps * 3;
  if (format !== 'DecimalExponent') return `${sign}${number}${decimalSuffixes[steps] ?? ''}`;
  return `${sign}${number}${power === 0 ? '' : `e${power}`}`;
}

/** Negative, zero or positive as `a` is less than, equal to or greater than `b`. @throws {Error} when one is none. */
export function compareQuantities(a: string, b: string): number {
  const left = parseQuantity(a).nanos;
  const right = parseQuantity(b).nanos;
  return left < right ? -1 : Number(left > right);
}

/** A quantity in whole units or thousandths, rounded away from zero (`Value`, `MilliValue`). @throws {Error} when it is none. */
export function quantityIn(text: string, scale: 'units' | 'thousandths'): bigint {
  const { nanos } = parseQuantity(text);
  const divisor = scale === 'units' ? nano : nano / 1000n;
  const size = nanos < 0n ? -nanos : nanos;
  const rounded = (size + divisor - 1n) / divisor;
  return nanos < 0n ? -rounded : rounded;
}

function readSuffix(suffix: string): { base: 2 | 10; power: number; format: QuantityFormat } {
  const decimal = decimalSuffixes.indexOf(suffix);
  if (decimal !== -1) return { base: 10, power: nanoPower + decimal * 3, format: 'DecimalSI' };
  const binary = binarySuffixes.indexOf(suffix);
  if (binary !== -1) return { base: 2, power: (binary + 1) * 10, format: 'BinarySI' };
  const exponent = exponentForm.exec(suffix)?.[1];
  const power = Number(exponent);
  if (exponent === undefined || !Number.isSafeInteger(power)) throw new Error(wrongSuffix);
  return { base: 10, power, format: 'DecimalExponent' };
}

/** `digits` × 10^power in billionths, rounded up. Powers beyond every representable value are not computed. */
function scaled(digits: bigint, power: number): bigint {
  const shift = power - nanoPower;
  if (digits === 0n) return 0n;
  if (shift > 64) return maxNanos + 1n;
  if (shift < -2 * maxText) return 1n;
  if (shift >= 0) return digits * 10n ** BigInt(shift);
  const divisor = 10n ** BigInt(-shift);
  return (digits + divisor - 1n) / divisor;
}

/** The number with up to `most` factors taken out, and how many those were. */
function withoutFactors(number: bigint, factor: bigint, most: number): [rest: bigint, steps: number] {
  let rest = number;
  let steps = 0;
  while (steps < most && rest % factor === 0n) {
    rest /= factor;
    steps++;
  }
  return [rest, steps];
}
