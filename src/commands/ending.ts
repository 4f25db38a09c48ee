/** Ends something that was started. */
export type End = () => Promise<void>;

/**
 * Ends what was started, the last first, each when the one before has ended. One that cannot be ended does not keep the
 * others from it.
 *
 * @throws the first error, when all have been told.
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
