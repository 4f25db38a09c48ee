/** The worst-case cost of a definition's rules (apiextensions `validation/{cel_validation,validation}.go`). */
import { plus } from '../../../cel/cost/range.ts';
import { type FieldError, forbiddenField } from '../../validation/field-errors.ts';

/** Units for all evaluations of one rule, and for all rules of a schema. */
const ruleLimit = 10_000_000;
const schemaLimit = 100_000_000;
/** Rules below this share of the limit are not listed when the total is too high. */
const notableCost = schemaLimit / 100;
const maxListed = 4;

/** Sums the cost of the rules of one schema. */
export class RuleCosts {
  #total = 0;
  #notable: { readonly field: string; readonly cost: number }[] = [];

  /**
   * Counts an expression.
   *
   * @param what `rule` or `messageExpression`.
   * @returns the error when it alone is too costly.
   */
  observe(field: string, what: string, cost: number): FieldError[] {
    this.#total = plus(this.#total, cost);
    if (cost >= notableCost) {
      this.#notable.push({ field, cost });
      this.#notable.sort((a, b) => b.cost - a.cost);
      this.#notable.splice(maxListed);
    }
    return cost > ruleLimit
      ? [forbiddenField(field, tooCostly(`estimated ${what} cost`, cost / ruleLimit))]
      : [];
  }

  /** The errors when all rules together are too costly. */
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
