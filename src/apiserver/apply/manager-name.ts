/**
 * The manager that a write is recorded under: the `fieldManager` parameter, else the User-Agent up to the first
 * "/", cut to 128 bytes, without unprintable characters; "unknown" when nothing is left.
 */
export function managerName(fieldManager: string | null, userAgent: string | undefined): string {
  return fieldManager ?? userAgent ?? 'unknown';
}
