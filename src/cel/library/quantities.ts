import { parseQuantity } from '../../objects/formats/quantity.ts';
import {
  intParam,
  type Library,
  member,
  overload1,
  overload2,
  stringParam,
  boolParam,
  instance,
  opaque,
} from '../overload.ts';
import { boolType, doubleType, intType } from '../types.ts';
import { EvaluationError, type OpaqueValue, checkedInt } from '../values.ts';
import { walk } from '../equality.ts';
import { errorMessage } from '../../objects/status.ts';

export const quantityType = opaque('kubernetes.Quantity');
const nano = 1_000_000_000n;

class QuantityValue implements OpaqueValue {
  readonly kind = 'opaque';
  readonly type = quantityType;
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
  equals(other: OpaqueValue): boolean {
    return other instanceof QuantityValue && other.nanos === this.nanos;
  }
}

function read(value: string): QuantityValue {
  try {
    return new QuantityValue(parseQuantity(value).nanos);
  } catch (error) {
    throw new EvaluationError(errorMessage(error));
  }
}

function isQuantity(value: string): boolean {
  try {
    read(value);
    return true;
  } catch {
    return false;
  }
}

const maxInt = 2n ** 63n;
const isInteger = ({ nanos }: QuantityValue) =>
  nanos % nano === 0n && nanos / nano < maxInt && nanos / nano >= -maxInt;
const order = (a: bigint, b: bigint) => (a < b ? -1n : a > b ? 1n : 0n);
const quantity = instance(quantityType, QuantityValue);

/** `quantity(…)` (`apiserver/pkg/cel/library/quantity.go`). */
export const quantityFunctions: Library = [
  [
    'quantity',
    [
      overload1(stringParam, quantityType, (value, meter) => {
        walk(meter, value);
        return read(value);
      }),
    ],
  ],
  ['isQuantity', [overload1(stringParam, boolType, isQuantity)]],
  // Not a member function of quantities, contrary to the documentation.
  ['sign', [overload1(quantity, intType, ({ nanos }) => order(nanos, 0n))]],
  ['isInteger', [member(overload1(quantity, boolType, isInteger))]],
  [
    'asInteger',
    [
      member(
        overload1(quantity, intType, (value) => {
          if (!isInteger(value)) throw new EvaluationError('cannot convert value to integer');
          return value.nanos / nano;
        }),
      ),
    ],
  ],
  ['asApproximateFloat', [member(overload1(quantity, doubleType, ({ nanos }) => Number(nanos) / 1e9))]],
  [
    'add',
    [
      member(overload2(quantity, quantity, quantityType, (a, b) => new QuantityValue(a.nanos + b.nanos))),
      member(overload2(quantity, intParam, quantityType, (a, b) => new QuantityValue(a.nanos + b * nano))),
    ],
  ],
  [
    'sub',
    [
      member(overload2(quantity, quantity, quantityType, (a, b) => new QuantityValue(a.nanos - b.nanos))),
      member(overload2(quantity, intParam, quantityType, (a, b) => new QuantityValue(a.nanos - b * nano))),
    ],
  ],
  ['isLessThan', [member(overload2(quantity, quantity, boolType, (a, b) => a.nanos < b.nanos))]],
  ['isGreaterThan', [member(overload2(quantity, quantity, boolType, (a, b) => a.nanos > b.nanos))]],
  ['compareTo', [member(overload2(quantity, quantity, intType, (a, b) => order(a.nanos, b.nanos)))]],
];

const semverType = opaque('kubernetes.Semver');
const number = '(0|[1-9]\\d*)';
const identifiers = '[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*';
const form = new RegExp(`^${number}\\.${number}\\.${number}(?:-(${identifiers}))?(?:\\+(${identifiers}))?$`);
const maxText = 256;

class SemverValue implements OpaqueValue {
  readonly kind = 'opaque';
  readonly type = semverType;
  readonly numbers: readonly [bigint, bigint, bigint];
  readonly pre: readonly string[];

  constructor(numbers: readonly [bigint, bigint, bigint], pre: readonly string[]) {
    this.numbers = numbers;
    this.pre = pre;
  }
  equals(other: OpaqueValue): boolean {
    return other instanceof SemverValue && compareSemver(this, other) === 0n;
  }
}

function parse(value: string): SemverValue | undefined {
  const match = value.length > maxText ? null : form.exec(value);
  if (match === null) return undefined;
  const [, major = '', minor = '', patch = '', pre = ''] = match;
  const parts = pre === '' ? [] : pre.split('.');
  if (parts.some((part) => /^0\d+$/.test(part))) return undefined;
  return new SemverValue([BigInt(major), BigInt(minor), BigInt(patch)], parts);
}

/** Without a leading v and leading zeros, with missing numbers added. */
function normalize(value: string): string {
  const parts = value.replace(/^v/, '').split('.');
  const [major = '', minor, ...patch] = parts;
  const numbers = [major, minor, patch.length === 0 ? undefined : patch.join('.')].filter(
    (part) => part !== undefined,
  );
  if (numbers.length < 3 && /[+-]/.test(numbers.at(-1) ?? '')) return value;
  const trimmed = numbers.map((part) => part.replace(/^0+(?=\d)/, ''));
  return [...trimmed, '0', '0'].slice(0, 3).join('.');
}

function compareSemver(a: SemverValue, b: SemverValue): bigint {
  for (let i = 0; i < 3; i++) {
    const left = a.numbers[i] ?? 0n;
    const right = b.numbers[i] ?? 0n;
    if (left !== right) return left < right ? -1n : 1n;
  }
  if (a.pre.length === 0 || b.pre.length === 0)
    return BigInt(Number(a.pre.length === 0) - Number(b.pre.length === 0));
  for (const [i, part] of a.pre.entries()) {
    const other = b.pre[i];
    if (other === undefined) return 1n;
    const found = orderParts(part, other);
    if (found !== 0n) return found;
  }
  return a.pre.length < b.pre.length ? -1n : 0n;
}

/** Numbers sort before words, and are compared as numbers. */
function orderParts(a: string, b: string): bigint {
  const numeric = [a, b].map((part) => /^\d+$/.test(part));
  if (numeric[0] !== numeric[1]) return numeric[0] === true ? -1n : 1n;
  const [left, right] = numeric[0] === true ? [BigInt(a), BigInt(b)] : [a, b];
  if (left === right) return 0n;
  return left < right ? -1n : 1n;
}

function parseSemver(value: string, normalized: boolean): SemverValue {
  const parsed = parse(normalized ? normalize(value) : value);
  if (parsed === undefined) throw new EvaluationError('No Major.Minor.Patch elements found');
  return parsed;
}

const semver = instance(semverType, SemverValue);

function part(name: string, index: 0 | 1 | 2): Library[number] {
  return [name, [member(overload1(semver, intType, ({ numbers }) => checkedInt(numbers[index])))]];
}

/** `semver(…)` (`apiserver/pkg/cel/library/semverlib.go`). */
export const versionFunctions: Library = [
  [
    'semver',
    [
      overload1(stringParam, semverType, (value) => parseSemver(value, false)),
      overload2(stringParam, boolParam, semverType, parseSemver),
    ],
  ],
  [
    'isSemver',
    [
      overload1(stringParam, boolType, (value) => parse(value) !== undefined),
      overload2(
        stringParam,
        boolParam,
        boolType,
        (value, normalized) => parse(normalized ? normalize(value) : value) !== undefined,
      ),
    ],
  ],
  part('major', 0),
  part('minor', 1),
  part('patch', 2),
  ['isLessThan', [member(overload2(semver, semver, boolType, (a, b) => compareSemver(a, b) < 0n))]],
  ['isGreaterThan', [member(overload2(semver, semver, boolType, (a, b) => compareSemver(a, b) > 0n))]],
  ['compareTo', [member(overload2(semver, semver, intType, compareSemver))]],
];
