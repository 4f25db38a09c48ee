import { tooLarge } from '../../../objects/status-errors.ts';

/** Each takes up to 25 ns. */
const maxSteps = 6_000_000;

/** Steps that the check of one value by one schema counts for, and each error on its way out of a list or object. */
export const stepsOfCheck = 32;

/**
 * The limits of the validation of one object. RE2 takes time by the size of a pattern as well as by that of its
 * text: instructions times characters are its steps. A schema with alternatives checks each value many times.
 */
export class ValidationBudget {
  #left = maxSteps;

  /** @throws {StatusError} 413 when more is taken than there was. */
  take(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) {
      throw tooLarge(
        `Request entity too large: its schema takes more than ${maxSteps} steps to check (patterns: characters times instructions, others: ${stepsOfCheck} each)`,
      );
    }
  }
}
