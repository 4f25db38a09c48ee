/**
 * Query parameters as apimachinery's conversion reads them (`runtime/converter`, `meta/v1/conversion.go`): the
 * first value counts; a boolean is false for "false" and "0", true for any other text and for none.
 */
import { badRequest } from '../../../objects/status-errors.ts';

/** The boolean parameter `name`, or undefined when absent. */
export function booleanParameter(query: URLSearchParams, name: string): boolean | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const lower = text.toLowerCase();
  return lower !== 'false' && lower !== '0';
}

/** The integer parameter `name`, or undefined when absent. @throws {StatusError} 400 with Go's words. */
export function integerParameter(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const refused = (why: string): Error =>
    badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`);
  if (!/^[+-]?\d+$/.test(text)) throw refused('invalid syntax');
  const value = boundedInteger(text);
  if (value === undefined || BigInt.asIntN(64, value) !== value) throw refused('value out of range');
  return Number(value);
}

/** The text parameter `name`, or "" when absent. */
export function textParameter(query: URLSearchParams, name: string): string {
  return query.get(name) ?? '';
}

/** Digits with or without a sign; undefined when they are beyond any 64 bits, however many they are. */
export function boundedInteger(text: string): bigint | undefined {
  const digits = text.replace(/^[+-]?0*/, '');
  if (digits.length > 20) return undefined;
  return text.startsWith('-') ? -BigInt(digits) : BigInt(digits);
}
