/** `signal.aborted` behind a function call: TypeScript would keep the narrowed value over an `await`. */
export function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

/** Resolves when the signal aborts. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
