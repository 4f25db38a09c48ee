import { sizeOf } from './cost/units.ts';
import type { Meter } from './meter.ts';
import { listItems, type ListValue, type Value } from './values.ts';

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
