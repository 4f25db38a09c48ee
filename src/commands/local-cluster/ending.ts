/** Stops something that was started. */
export type End = () => Promise<void>;

/**
 * Stops what was started, in reverse order, one after the other. A failure does not keep the rest from being stopped.
 *
 * @throws the first error, after all were stopped.
 */
export async function endInReverse(started: readonly End[]): Promise<void> {
  const errors: unknown[] = [];
  for (const end of started.toReversed()) {
    try {
      await end();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
