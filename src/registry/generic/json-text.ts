import { isRecord, type JsonRecord } from '../../objects/json.ts';

/**
 * Parses a JSON object in a user's text. `null` gives an empty one, as in Go.
 *
 * @returns `fault`: the error of Go's decoder; "" for a valid text.
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
