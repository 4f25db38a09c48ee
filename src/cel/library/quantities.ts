import { parseQuantity } from '../../objects/quantity.ts';
import { intParam, type Library, member, overload1, overload2, stringParam } from '../overload.ts';
import { boolType, doubleType, intType } from '../types.ts';
import { EvaluationError, type OpaqueValue } from '../values.ts';
import { instance, opaque } from './opaque.ts';
import { walk } from '../walk.ts';
import { errorMessage } from '../../objects/error-message.ts';

const quantityType = opaque('kubernetes.Quantity');
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
