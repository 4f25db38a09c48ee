/** Bytes that a manager's name may have (apimachinery `meta/v1/validation` FieldManagerMaxLength). */
const maxBytes = 128;

const printable = /[\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;

/**
 * The manager that a write is recorded under: the `fieldManager` parameter, else the User-Agent up to the first
 * "/", without unprintable characters, as much of it as fits into 128 bytes; "unknown" when nothing is left.
 */
export function managerName(fieldManager: string | null, userAgent = ''): string {
  if (fieldManager !== null && fieldManager !== '') return fieldManager;
  if (last.userAgent !== userAgent) last = { userAgent, name: nameOf(userAgent) };
  return last.name;
}

/** Most requests come from the client of the one before. */
let last = { userAgent: '', name: 'unknown' };

function nameOf(userAgent: string): string {
  let name = '';
  for (const character of userAgent.split('/', 1)[0] ?? '') {
    if (!printable.test(character)) continue;
    if (Buffer.byteLength(name + character) > maxBytes) break;
    name += character;
  }
  return name === '' ? 'unknown' : name;
}
