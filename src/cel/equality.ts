import { sizeOf } from './cost/size.ts';
import type { Meter } from './meter.ts';
import {
  listItems,
  type ListValue,
  type Value,
  isBytes,
  isDuration,
  isList,
  isMap,
  isTimestamp,
  isUint,
} from './values.ts';

/** Charges the meter for a walk through texts, lists and maps. @throws {CostLimitError} */
export function walk(meter: Meter, ...values: readonly Value[]): void {
  for (const value of values) {
    meter.work(1 + (typeof value === 'string' ? value.length / 10 : sizeOf(value)));
  }
}

/** Charges the meter for a walk through a list and its items. @throws {CostLimitError} */
export function walkItems(meter: Meter, list: ListValue): void {
  walk(meter, list);
  for (const item of listItems(list)) walk(meter, item);
}

/**
 * Equality of any two values: values of different types differ, numbers are compared by value (CEL's heterogeneous
 * equality).
 *
 * @param meter is charged for every item that is compared.
 */
export function equals(a: Value, b: Value, meter: Meter): boolean {
  meter.work(1);
  const left = numeric(a);
  const right = numeric(b);
  if (left !== undefined || right !== undefined) {
    return left !== undefined && right !== undefined && compareNumbers(left, right) === 0;
  }
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    if (typeof a === 'string' && typeof b === 'string') walk(meter, a.length < b.length ? a : b);
    return a === b;
  }
  if (isBytes(a) || isBytes(b)) return isBytes(a) && isBytes(b) && Buffer.compare(a, b) === 0;
  switch (a.kind) {
    case 'timestamp':
    case 'duration':
      return b.kind === a.kind && a.nanos === b.nanos;
    case 'type':
      return b.kind === 'type' && a.name === b.name;
    case 'optional':
      if (b.kind !== 'optional') return false;
      if (a.value === undefined || b.value === undefined) return a.value === b.value;
      return equals(a.value, b.value, meter);
    case 'opaque':
      return b.kind === 'opaque' && a.type.name === b.type.name && a.equals(b);
    case 'list': {
      if (!isList(b)) return false;
      const known = a.sameAs(b, meter);
      if (known !== undefined) return known;
      const others = listItems(b);
      return a.size === b.size && listItems(a).every((item, i) => equals(item, others[i] ?? null, meter));
    }
    case 'map': {
      if (!isMap(b)) return false;
      const known = a.sameAs(b, meter);
      if (known !== undefined) return known;
      if (a.size !== b.size) return false;
      return a.keys().every((key) => {
        const mine = a.find(key);
        const theirs = b.find(key);
        return mine === undefined || theirs === undefined ? mine === theirs : equals(mine, theirs, meter);
      });
    }
    case 'uint':
      return false;
  }
}

function numeric(value: Value): bigint | number | undefined {
  if (typeof value === 'bigint' || typeof value === 'number') return value;
  return isUint(value) ? value.value : undefined;
}

/** JavaScript compares bigints with numbers by value. The result is NaN when one is NaN. */
function compareNumbers(a: bigint | number, b: bigint | number): number {
  if (a < b) return -1;
  if (a > b) return 1;
  return Number.isNaN(a) || Number.isNaN(b) ? Number.NaN : 0;
}

/**
 * The order of two values: negative, zero or positive, NaN for NaN; undefined when their types have no common order.
 */
export function compare(a: Value, b: Value): number | undefined {
  const left = numeric(a);
  const right = numeric(b);
  if (left !== undefined && right !== undefined) return compareNumbers(left, right);
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b);
  if (isBytes(a) && isBytes(b)) return Buffer.compare(a, b);
  if ((isTimestamp(a) && isTimestamp(b)) || (isDuration(a) && isDuration(b))) {
    return compareNumbers(a.nanos, b.nanos);
  }
  return undefined;
}

/** Go compares bytes of UTF-8, which is the order of code points, not of UTF-16. */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
