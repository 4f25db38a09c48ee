/** What of a new object decides which fields its creator owns: the names it has, and the identities of list items. */
import { isRecord } from '../../../objects/json.ts';
import type { Schema } from '../../schema/schema.ts';
import { itemElement } from './path-element.ts';
import { asFields, asItems, isEmptyValue, memberSchema } from './typed-value.ts';

/**
 * A text that is equal for objects of one schema only when `changedFields` from an empty object is equal. Members are
 * taken in their own order.
 *
 * @throws {PathElementError} for a list item without an identity.
 */
export function shapeOf(schema: Schema, value: unknown): string {
  const fields = asFields(schema, value);
  if (fields !== undefined && isRecord(value)) {
    const isGoStruct = fields.type === 'struct' && fields.custom === undefined;
    let text = '{';
    for (const name of Object.keys(value)) {
      const type = memberSchema(fields, name);
      if (type === undefined) continue;
      // Names that clients choose come with their lengths; those of Go's fields end where a shape, no letter, begins.
      text += isGoStruct ? name : `${name.length}:${name}`;
      text += shapeOf(type, value[name]);
    }
    return `${text}}`;
  }
  const list = asItems(schema);
  if (list !== undefined && Array.isArray(value)) {
    let text = '[';
    for (const item of value) {
      const element = itemElement(list, item);
      text += `${element.length}:${element}${shapeOf(list.items, item)}`;
    }
    return `${text}]`;
  }
  return shapeOfLeaf(value);
}

/** Only values that an empty object may have too differ from others. */
function shapeOfLeaf(value: unknown): string {
  if (value === undefined) return '?';
  if (value === '' || value === '0' || value === 0 || value === false || value === null) {
    return `=${JSON.stringify(value)};`;
  }
  if (isEmptyValue(value)) return '-';
  return typeof value === 'object' ? '#' : '.';
}
