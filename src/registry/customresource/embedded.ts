/** Objects within objects (apiextensions `schema/objectmeta/validation.go`). */
import { isRecord } from '../../objects/json.ts';
import { itemsOf, type JsonSchema, valuesOf } from '../customresourcedefinition/json-schema.ts';
import { type FieldError, invalid, required } from '../field-errors.ts';
import { isDNS1035Label } from '../names.ts';

/** Values deeper than this are refused elsewhere. */
const maxDepth = 500;

/** What is an `x-kubernetes-embedded-resource` says what it is. */
export function validateEmbedded(schema: JsonSchema, value: unknown, path = '', depth = 0): FieldError[] {
  if (depth > maxDepth) return [];
  if (Array.isArray(value)) {
    const items = itemsOf(schema);
    if (items === undefined) return [];
    return value.flatMap((item, i) => validateEmbedded(items, item, `${path}[${i}]`, depth + 1));
  }
  if (!isRecord(value)) return [];
  const { properties = {} } = schema;
  const values = valuesOf(schema);
  const errors = schema['x-kubernetes-embedded-resource'] === true ? validateTypeMeta(value, path) : [];
  for (const [name, member] of Object.entries(value)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const at = path === '' ? name : `${path}.${name}`;
    if (property !== undefined) errors.push(...validateEmbedded(property, member, at, depth + 1));
    else if (values !== undefined) {
      errors.push(...validateEmbedded(values, member, `${path}[${name}]`, depth + 1));
    }
  }
  return errors;
}

function validateTypeMeta(value: Readonly<Record<string, unknown>>, path: string): FieldError[] {
  const members = ['apiVersion', 'kind'] as const;
  const errors = members
    .filter((member) => !Object.hasOwn(value, member))
    .map((member) => required(`${path}.${member}`, 'must not be empty'));
  for (const member of members) {
    if (!Object.hasOwn(value, member)) continue;
    const text = value[member];
    const fail = (detail: string) => errors.push(invalid(`${path}.${member}`, text, detail));
    if (typeof text !== 'string') fail('must be a string');
    else if (text === '') fail('must not be empty');
    else if (member === 'kind') {
      const faults = isDNS1035Label(text.toLowerCase());
      if (faults.length > 0) fail(`may have mixed case, but should otherwise match: ${faults.join(',')}`);
    } else if (text.split('/').length > 2) {
      fail(`unexpected GroupVersion string: ${text}`);
    }
  }
  return errors;
}
