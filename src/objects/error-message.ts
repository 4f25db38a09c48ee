/** What was thrown, as text: the message of an error, anything else as a string. */
export function errorMessage(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
