import { isBytes, isList, isMap, type Value } from './values.ts';

/** cel-go's unit costs (`common/cost.go`). */
export const costs = {
  reference: 1,
  call: 1,
  list: 10,
  map: 30,
  perCharacter: 0.1,
  perPatternCharacter: 0.25,
};

/** An evaluation that was stopped because it did too much. */
export class CostLimitError extends Error {
  override readonly name = 'CostLimitError';
  constructor() {
    super('operation cancelled: actual cost limit exceeded');
  }
}

/**
 * Counts what an evaluation does and ends it at a limit. The units are about those of cel-go's runtime cost tracker:
 * one for a variable, a field, a call and a round of a loop, more where a call walks through text, lists or maps.
 */
export class Meter {
  readonly #limit: number;
  #spent = 0;

  /** @param limit in units of cost. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get spent(): number {
    return this.#spent;
  }

  /** @throws {CostLimitError} when the limit is passed: callers charge before they do the work. */
  charge(units: number): void {
    this.#spent += units;
    if (this.#spent > this.#limit) throw new CostLimitError();
  }

  /** Charges a walk through texts, lists and maps. */
  walk(...values: readonly Value[]): void {
    let units = 0;
    for (const value of values) units += walkCost(value);
    this.charge(Math.ceil(units));
  }

  /** Charges a pattern that is matched with a text: the product of both, as cel-go does. */
  match(text: string, pattern: string): void {
    const walk = Math.ceil((1 + text.length) * costs.perCharacter);
    this.charge(walk * Math.ceil(pattern.length * costs.perPatternCharacter));
  }
}

function walkCost(value: Value): number {
  if (typeof value === 'string') return value.length * costs.perCharacter;
  if (isBytes(value)) return value.length * costs.perCharacter;
  return isList(value) || isMap(value) ? value.size : 0;
}
