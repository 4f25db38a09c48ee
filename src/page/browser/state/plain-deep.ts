import { plain } from '../../../objects/plain.ts';

/** A value of JSON whose texts, keys too, are {@link plain}: what comes from objects never turns a line around. */
export function plainDeep(value: unknown): unknown {
  if (typeof value === 'string') return plain(value);
  if (Array.isArray(value)) return value.map(plainDeep);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [plain(key), plainDeep(each)]));
}
