/**
 * Query parameters as apimachinery's conversion reads them (`runtime/converter`, `meta/v1/conversion.go`): the
 * first value counts; a boolean is false for "false" and "0", true for any other text and for none.
 */
import { badRequest } from '../../objects/status-errors.ts';

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
  if (!/^[+-]?\d{1,64}$/.test(text))
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  const value = Number(text);
  if (BigInt(text) > 9223372036854775807n || BigInt(text) < -9223372036854775808n) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: value out of range`);
  }
  return value;
}

/** The text parameter `name`, or "" when absent. */
export function textParameter(query: URLSearchParams, name: string): string {
  return query.get(name) ?? '';
}
