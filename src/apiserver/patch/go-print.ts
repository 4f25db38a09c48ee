/** Values as Go's `fmt` prints them with %v: what patch errors show of a patch. */
import { isRecord } from '../../objects/json.ts';
import { RawNumber } from '../schema/parse-json.ts';

/** `map[a:1 b:[x y]]`: members sorted, strings bare, null as `<nil>`. */
export function goPrint(value: unknown): string {
  if (value === null || value === undefined) return '<nil>';
  if (Array.isArray(value)) return `[${value.map(goPrint).join(' ')}]`;
  if (value instanceof RawNumber) return value.literal;
  if (isRecord(value)) {
    const members = Object.keys(value).sort();
    return `map[${members.map((key) => `${key}:${goPrint(value[key])}`).join(' ')}]`;
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}
