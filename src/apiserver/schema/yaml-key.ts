/** Keys of YAML maps as the names of JSON members (sigs.k8s.io/yaml convertToJSONableObject). */
import { goQuote } from '../../objects/go-text.ts';
import { isRecord } from '../../objects/json.ts';
import { RawNumber } from './go-json.ts';
import { YamlSyntaxError } from './yaml-syntax-error.ts';

/**
 * The name of a member.
 *
 * @param value of the member, for the text of the error.
 * @throws {YamlSyntaxError} for null, lists and maps, which are no names.
 */
export function keyText(key: unknown, value: () => unknown): string {
  if (typeof key === 'string') return key;
  if (typeof key === 'boolean') return String(key);
  if (key instanceof RawNumber) return key.literal;
  if (typeof key === 'number') {
    if (Number.isNaN(key)) return '.nan';
    return Number.isFinite(key) ? String(key) : key > 0 ? '.inf' : '-.inf';
  }
  if (key === null || key === undefined) {
    const shown = goSyntax(value(), '<nil>');
    throw new YamlSyntaxError(`unsupported map key of type: %!s(<nil>), key: <nil>, value: ${shown}`);
  }
  throw new YamlSyntaxError(`yaml: invalid map key: ${goSyntax(key, '<nil>')}`);
}

/** As Go's `%#v` shows what yaml.v2 makes of a document. */
function goSyntax(value: unknown, none = 'interface {}(nil)'): string {
  if (value === null || value === undefined) return none;
  if (typeof value === 'string') return goQuote(value);
  if (value instanceof RawNumber) return value.literal;
  if (Array.isArray(value)) return `[]interface {}{${value.map((each) => goSyntax(each)).join(', ')}}`;
  if (!isRecord(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${goQuote(key)}:${goSyntax(member)}`);
  return `map[interface {}]interface {}{${members.join(', ')}}`;
}
