/** `signal.aborted`, for places where TypeScript believes to know it: it changes while a function waits. */
export function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

/** Resolves when the signal aborts. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
