import { isRecord, type JsonRecord } from '../../objects/json.ts';

/**
 * Reads a JSON object from a text of a user's. `null` reads as an empty one, as it does for Go.
 *
 * @returns `fault`: what Go's decoder says of a text that is none; "" when it is one.
 */
export function readJsonObject(text: string): { object: JsonRecord; fault: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const first = text.trimStart().charAt(0);
    const cut = first === '' || '{["'.includes(first);
    return {
      object: {},
      fault: cut
        ? 'unexpected end of JSON input'
        : `invalid character '${first}' looking for beginning of value`,
    };
  }
  if (isRecord(value)) return { object: value, fault: '' };
  if (value === null) return { object: {}, fault: '' };
  const type = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
  return {
    object: {},
    fault: `json: cannot unmarshal ${type} into Go value of type map[string]interface {}`,
  };
}
