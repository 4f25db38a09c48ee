/** Quantities: `500m`, `1Gi`, `2e3` (apimachinery `api/resource/quantity.go`). */

const form = /^([+-]?)(\d{0,40})(?:\.(\d{0,40}))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?$/;

const binary: ReadonlyMap<string, bigint> = new Map(
  ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'].map((suffix, i) => [suffix, 1024n ** BigInt(i + 1)]),
);
const decimalPowers: ReadonlyMap<string, number> = new Map([
  ['n', -9],
  ['u', -6],
  ['m', -3],
  ['k', 3],
  ['M', 6],
  ['G', 9],
  ['T', 12],
  ['P', 15],
  ['E', 18],
]);
const nanoDigits = 9;
const maxPower = 60;

/** The value in billionths, rounded up as Kubernetes rounds; undefined when the text is no quantity. */
export function quantityNanos(text: string): bigint | undefined {
  const match = form.exec(text);
  if (match === null) return undefined;
  const [, sign = '', whole = '', fraction = '', suffix = '', exponent = '0'] = match;
  if (whole === '' && fraction === '') return undefined;
  const power = decimalPowers.get(suffix) ?? Number(exponent);
  if (Math.abs(power) > maxPower) return undefined;
  const digits = BigInt(whole + fraction) * (binary.get(suffix) ?? 1n);
  const shift = nanoDigits + power - fraction.length;
  const nanos = shift >= 0 ? digits * 10n ** BigInt(shift) : divideUp(digits, 10n ** BigInt(-shift));
  return sign === '-' ? -nanos : nanos;
}

/** Negative, zero or positive as `a` is less than, equal to or greater than `b`; what is no quantity counts as 0. */
export function compareQuantities(a: string, b: string): number {
  const left = quantityNanos(a) ?? 0n;
  const right = quantityNanos(b) ?? 0n;
  return left < right ? -1 : Number(left > right);
}

function divideUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}
