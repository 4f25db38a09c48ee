/**
 * Quantities of resources: `500m`, `1Gi`, `2e3` (apimachinery `api/resource/quantity.go`). Reading and writing one
 * gives the canonical spelling in the family of suffixes that it was written in.
 */

type QuantityFormat = 'BinarySI' | 'DecimalSI' | 'DecimalExponent';

export interface Quantity {
  /** The value in billionths, the finest unit of Kubernetes. */
  readonly nanos: bigint;
  readonly format: QuantityFormat;
}

const wrongForm =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const wrongSuffix = "unable to parse quantity's suffix";

const form = /^([+-]?)([0-9]*)(?:\.([0-9]*))?((?:[eEinumkKMGTP]+[-+]?|[-+])[0-9]*|)$/;
const exponentForm = /^[eE]([-+]?[0-9]+)$/;
/** Longer texts are refused: arithmetic with them is slow. */
const maxText = 1024;
const nano = 1_000_000_000n;
const nanoPower = -9;
const milliPower = -3;
/** Upper limit of quantities with binary suffixes. */
const maxBinaryNanos = (2n ** 63n - 1n) * nano;
/** Powers of ten above this are not computed. */
const maxPower = 2 * maxText;
/** Decimals of this many digits always fit into 64 bits. */
const maxDigits = 18;

/** In steps of 1024, from 1024. */
const binarySuffixes = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
/** In steps of 1000, from one billionth. */
const decimalSuffixes = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];

/** A quantity's text in parts (`parseQuantityString`). */
interface QuantityText {
  readonly sign: string;
  /** Before the point, without leading zeros; "0" when nothing is left. */
  readonly whole: string;
  /** After the point. */
  readonly fraction: string;
  readonly base: 2 | 10;
  /** The exponent, of `base`. */
  readonly power: number;
  readonly format: QuantityFormat;
}

function splitQuantity(text: string): QuantityText {
  const match = text === '' || text.length > maxText ? null : form.exec(text);
  if (match === null) throw new Error(wrongForm);
  const [, sign = '', whole = '', fraction = '', suffix = ''] = match;
  return { sign, whole: whole.replace(/^0+/, '') || '0', fraction, ...readSuffix(suffix) };
}

/**
 * Reads a quantity; values finer than a billionth are rounded away from zero, those with a binary suffix cut to 2^63-1.
 * A text without digits is zero.
 *
 * @throws {Error} with Go's text when it is not a quantity.
 */
export function parseQuantity(text: string): Quantity {
  return valueOf(splitQuantity(text));
}

function valueOf({ sign, whole, fraction, base, power, format }: QuantityText): Quantity {
  const digits = BigInt(whole + fraction);
  const nanos =
    base === 2 ? scaled(digits << BigInt(power), -fraction.length) : scaled(digits, power - fraction.length);
  const capped = base === 2 && nanos > maxBinaryNanos ? maxBinaryNanos : nanos;
  return { nanos: sign === '-' ? -capped : capped, format };
}

/**
 * The text that Kubernetes prints for a quantity that it has parsed: the given one where `ParseQuantity` takes it for
 * canonical, which includes `1.500` and `+1`.
 *
 * @throws {Error} with Go's text when it is not a quantity.
 */
export function canonicalQuantity(text: string): string {
  const parts = splitQuantity(text);
  return isKept(parts) ? text : formatQuantity(valueOf(parts));
}

/**
 * As {@link canonicalQuantity} for a quantity in a list of resources, of which thousandths are the finest
 * (`SetDefaults_ResourceList`): finer ones are rounded away from zero.
 */
export function canonicalAmount(text: string): string {
  const parts = splitQuantity(text);
  const fine = parts.base === 10 && parts.power - parts.fraction.length < milliPower;
  if (!fine && isKept(parts)) return text;
  const { nanos, format } = valueOf(parts);
  const unit = nano / 1000n;
  return formatQuantity({ nanos: roundedUp(nanos, unit) * unit, format });
}

/** True for texts that need no big integers and contain no redundant zeros. */
function isKept({ whole, fraction, base, power }: QuantityText): boolean {
  if (base === 2) {
    const precision = 15 - whole.length - Math.trunc((power * 3) / 10) - 1;
    return fraction === '' && precision >= 0 && (BigInt(whole) & 7n) !== 0n;
  }
  const scale = power - fraction.length;
  const digits = whole + fraction;
  return (
    digits.length <= maxDigits &&
    scale >= nanoPower &&
    scale % 3 === 0 &&
    !digits.endsWith('000') &&
    !digits.startsWith('0')
  );
}

/** The canonical text: no fraction, the largest suffix that keeps the value whole. */
export function formatQuantity({ nanos, format }: Quantity): string {
  if (nanos === 0n) return '0';
  const sign = nanos < 0n ? '-' : '';
  const size = nanos < 0n ? -nanos : nanos;
  if (format === 'BinarySI' && size >= 1024n * nano && size % nano === 0n) {
    const [number, steps] = withoutFactors(size / nano, 1024n);
    return `${sign}${number}${binarySuffixes[steps - 1] ?? ''}`;
  }
  const [number, steps] = withoutFactors(size, 1000n);
  const power = nanoPower + steps * 3;
  // There is no suffix beyond E; Kubernetes then prints none.
  if (format !== 'DecimalExponent') return `${sign}${number}${decimalSuffixes[steps] ?? ''}`;
  return `${sign}${number}${power === 0 ? '' : `e${power}`}`;
}

/**
 * Negative, zero or positive as `a` is less than, equal to or greater than `b`. @throws {Error} when one is not a
 * quantity.
 */
export function compareQuantities(a: string, b: string): number {
  const left = parseQuantity(a).nanos;
  const right = parseQuantity(b).nanos;
  return left < right ? -1 : Number(left > right);
}

/**
 * A quantity in whole units or thousandths, rounded away from zero (`Value`, `MilliValue`). @throws {Error} when it is
 * not a quantity.
 */
export function quantityIn(text: string, scale: 'units' | 'thousandths'): bigint {
  return roundedUp(parseQuantity(text).nanos, scale === 'units' ? nano : nano / 1000n);
}

/** The number of units, rounded away from zero. */
function roundedUp(nanos: bigint, unit: bigint): bigint {
  const size = nanos < 0n ? -nanos : nanos;
  const count = (size + unit - 1n) / unit;
  return nanos < 0n ? -count : count;
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

/** `digits` × 10^power in billionths, rounded up. Powers above the maximum count as the maximum. */
function scaled(digits: bigint, power: number): bigint {
  const shift = Math.min(power - nanoPower, maxPower);
  if (digits === 0n) return 0n;
  if (shift < -maxPower) return 1n;
  if (shift >= 0) return digits * 10n ** BigInt(shift);
  const divisor = 10n ** BigInt(-shift);
  return (digits + divisor - 1n) / divisor;
}

/** Takes all factors `factor` out of a number that is not 0: what is left, and how many there were. */
function withoutFactors(number: bigint, factor: bigint): [rest: bigint, steps: number] {
  let rest = number;
  let steps = 0;
  while (rest % factor === 0n) {
    rest /= factor;
    steps++;
  }
  return [rest, steps];
}
