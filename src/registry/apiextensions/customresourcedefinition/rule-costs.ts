/** What a definition's rules may cost in the worst case (apiextensions `validation/{cel_validation,validation}.go`). */
import { plus } from '../../../cel/cost/range.ts';
import { type FieldError, forbiddenField } from '../../validation/field-errors.ts';

/** Units for one rule over all values that it is asked about, and for all rules of a schema. */
const ruleLimit = 10_000_000;
const schemaLimit = 100_000_000;
/** Rules that take less of the limit are not told of when all together take too much. */
const notableCost = schemaLimit / 100;
const mostToldOf = 4;

/** Adds up what the rules of one schema cost. */
export class RuleCosts {
  #total = 0;
  #notable: { readonly field: string; readonly cost: number }[] = [];

  /**
   * Counts an expression.
   *
   * @param what `rule` or `messageExpression`.
   * @returns what is wrong when it is too costly by itself.
   */
  observe(field: string, what: string, cost: number): FieldError[] {
    this.#total = plus(this.#total, cost);
    if (cost >= notableCost) {
      this.#notable.push({ field, cost });
      this.#notable.sort((a, b) => b.cost - a.cost);
      this.#notable.splice(mostToldOf);
    }
    return cost > ruleLimit
      ? [forbiddenField(field, tooCostly(`estimated ${what} cost`, cost / ruleLimit))]
      : [];
  }

  /** What is wrong when all rules together are too costly. */
  total(path: string): FieldError[] {
    if (this.#total <= schemaLimit) return [];
    const share = 'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema';
    const what = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema';
    return [
      ...this.#notable.map(({ field }) => forbiddenField(field, share)),
      forbiddenField(path, tooCostly(what, this.#total / schemaLimit)),
    ];
  }
}

const hint =
  'try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared';

function tooCostly(what: string, factor: number): string {
  return `${what} exceeds budget by factor of ${shownFactor(factor)} (${hint})`;
}

function shownFactor(factor: number): string {
  if (factor > 100) return 'more than 100x';
  return factor < 1.5 ? `${factor.toFixed(6)}x` : `${factor.toFixed(1)}x`;
}
