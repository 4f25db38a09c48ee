/** Values as Go's `fmt` prints them with %v: what patch errors show of a patch. */
import { isRecord } from '../../objects/json.ts';
import { RawNumber } from '../schema/json/go-json.ts';

/** `map[a:1 b:[x y]]`: members sorted, strings bare, null as `<nil>`. */
export function goPrint(value: unknown): string {
  if (value === null || value === undefined) return '<nil>';
  if (Array.isArray(value)) return `[${value.map(goPrint).join(' ')}]`;
  if (value instanceof RawNumber) {
    return value.isInteger ? String(BigInt(value.literal)) : printFloat(Number(value.literal));
  }
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : printFloat(value);
  if (isRecord(value)) {
    const members = Object.keys(value).sort();
    return `map[${members.map((key) => `${key}:${goPrint(value[key])}`).join(' ')}]`;
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Numbers from a million on have an exponent, as those below 0.0001 have; it has two digits. */
function printFloat(value: number): string {
  if (Object.is(value, -0)) return '-0';
  const size = Math.abs(value);
  const text = size >= 1e6 || (size > 0 && size < 1e-4) ? value.toExponential() : String(value);
  return text.replace(/e([+-])(\d)$/, 'e$10$2');
}
