/** Defaults of custom resources (apiextensions-apiserver `apiserver/schema/defaulting`). */
import { isRecord } from '../../objects/json.ts';
import { type Schema, setMember } from './schema.ts';

/**
 * Fills in the defaults of a structural schema, in place: for what is absent, and for null where null is no value.
 * What stays null there without a default is removed.
 */
export function applyCustomDefaults(schema: Schema, value: unknown): void {
  if (Array.isArray(value)) {
    if (schema.type === 'list') for (const item of value) applyCustomDefaults(schema.items, item);
    return;
  }
  if (!isRecord(value)) return;
  if (schema.type === 'map') {
    for (const [key, member] of Object.entries(value))
      defaultMember(schema.values, undefined, value, key, member);
  } else if (schema.type === 'struct' && schema.custom !== undefined) {
    for (const field of schema.fields) {
      if (!Object.hasOwn(value, field.name) && field.default !== undefined) {
        setMember(value, field.name, structuredClone(field.default));
      }
    }
    for (const [key, member] of Object.entries(value)) {
      const field = schema.byName.get(key);
      defaultMember(field?.schema ?? schema.custom.unknownFields, field?.default, value, key, member);
    }
  }
}

function defaultMember(
  schema: Schema,
  fallback: unknown,
  object: Record<string, unknown>,
  key: string,
  member: unknown,
): void {
  if (member !== null) {
    applyCustomDefaults(schema, member);
  } else if (schema.nullable !== true && schema.type !== 'any') {
    if (fallback === undefined) Reflect.deleteProperty(object, key);
    else setMember(object, key, structuredClone(fallback));
  }
}
