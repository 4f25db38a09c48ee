/** Does work in steps all at once, for callers that cannot wait. @returns its result. */
export function resultOf<T>(steps: Generator<unknown, T, undefined>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}
