/** Thrown when an evaluation passes its cost limit. */
export class CostLimitError extends Error {
  override readonly name = 'CostLimitError';
  constructor() {
    super('operation cancelled: actual cost limit exceeded');
  }
}

/** Steps per unit of cost; steps are counted for operations that take time here and cost nothing in cel-go. */
const stepsPerUnit = 10;
/** The same for the budget of several evaluations: common patterns take fewer steps than their cost allows. */
const stepsPerBudgetUnit = 20;

/** Counts the cost of an evaluation in cel-go's units, and stops it at a limit. */
export class Meter {
  readonly #limit: number;
  #spent = 0;
  #steps = 0;
  /** Steps that were counted and need not be executed. */
  #spared = 0;
  readonly #patterns = new Set<string>();

  /** @param limit in units of cost. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The units of cost so far. */
  get spent(): number {
    return this.#spent;
  }

  /** The executed steps so far. */
  get steps(): number {
    return this.#steps - this.#spared;
  }

  /** The charge to a shared budget: the cost, or the equivalent of the steps if that is more. */
  get burden(): number {
    return Math.max(this.#spent, Math.ceil(this.steps / stepsPerBudgetUnit));
  }

  /** Charges units of cost. @throws {CostLimitError} when the limit is passed. */
  charge(units: number): void {
    this.#spent += units;
    if (this.#spent > this.#limit) throw new CostLimitError();
  }

  /**
   * Counts steps, which bound the time of operations that cel-go does not charge for. To be called before the work.
   *
   * @throws {CostLimitError}
   */
  work(steps: number): void {
    this.#steps += steps;
    if (this.#steps > this.#limit * stepsPerUnit) throw new CostLimitError();
  }

  /**
   * Counts the steps of compiling a pattern, on its first use in an evaluation. They count also when the pattern is
   * cached, so that an evaluation always has the same result.
   *
   * @throws {CostLimitError}
   */
  compile(pattern: string, steps: number, isKnown = false): void {
    if (this.#patterns.has(pattern)) return;
    this.#patterns.add(pattern);
    this.work(steps);
    if (isKnown) this.#spared += steps;
  }
}
