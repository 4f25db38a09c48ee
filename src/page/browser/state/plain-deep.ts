import { isRecord } from '../../../objects/json.ts';
import { plain } from '../../../objects/plain.ts';

/**
 * A value of JSON whose texts, keys too, are {@link plain}: what comes from objects never turns a line around. A part that
 * is so already is not copied.
 */
export function plainDeep(value: unknown): unknown {
  if (isPlain(value)) return value;
  if (typeof value === 'string') return plain(value);
  if (Array.isArray(value)) return value.map(plainDeep);
  const members = Object.entries(isRecord(value) ? value : {});
  return Object.fromEntries(members.map(([key, each]) => [plain(key), plainDeep(each)]));
}

function isPlain(value: unknown): boolean {
  if (typeof value === 'string') return plain(value) === value;
  if (Array.isArray(value)) return value.every(isPlain);
  if (!isRecord(value)) return true;
  for (const key in value) if (!isPlain(key) || !isPlain(value[key])) return false;
  return true;
}
