/** An evaluation that was stopped because it did too much. */
export class CostLimitError extends Error {
  override readonly name = 'CostLimitError';
  constructor() {
    super('operation cancelled: actual cost limit exceeded');
  }
}

/** Steps of our own that a unit of cost may stand for: cel-go's costs leave out some that take time here. */
const stepsPerUnit = 10;
/** For the budget of several evaluations: what common patterns take is less than their cost says. */
const stepsPerBudgetUnit = 20;

/** Counts what an evaluation costs in cel-go's units, and ends it at a limit. */
export class Meter {
  readonly #limit: number;
  #spent = 0;
  #steps = 0;
  /** Steps that were counted but need not be taken. */
  #spared = 0;
  readonly #patterns = new Set<string>();

  /** @param limit in units of cost. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get spent(): number {
    return this.#spent;
  }

  /** Steps that were taken besides. */
  get steps(): number {
    return this.#steps - this.#spared;
  }

  /** What is left of a budget is less by this: what was spent, or what the steps stand for, where that is more. */
  get burden(): number {
    return Math.max(this.#spent, Math.ceil(this.steps / stepsPerBudgetUnit));
  }

  /** Charges units of cost. @throws {CostLimitError} when the limit is passed. */
  charge(units: number): void {
    this.#spent += units;
    if (this.#spent > this.#limit) throw new CostLimitError();
  }

  /**
   * Counts steps that an evaluation takes here and cel-go does not charge for, so that none takes long whatever its
   * cost is: callers count before they do the work.
   *
   * @throws {CostLimitError}
   */
  work(steps: number): void {
    this.#steps += steps;
    if (this.#steps > this.#limit * stepsPerUnit) throw new CostLimitError();
  }

  /**
   * Counts the steps that compiling a pattern takes, the first time that an evaluation uses it: also when it is known
   * from another one, so that the same evaluation ends the same way each time.
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
