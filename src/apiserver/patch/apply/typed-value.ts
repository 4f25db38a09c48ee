/**
 * How a value is seen by server-side apply, given its schema: what is one whole (a leaf), what is made of fields, and
 * what is a list of items with an identity (structured-merge-diff `schema`).
 */
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import type { LeafSchema, ListSchema, MapSchema, Schema, StructSchema } from '../../schema/schema.ts';
import { fieldElement, itemElement, memberElement } from './path-element.ts';

/** A schema whose values are merged field by field. `any`: objects without a schema. */
export type FieldsSchema = StructSchema | MapSchema | (LeafSchema & { readonly type: 'any' });

/**
 * The schema as one whose values are merged field by field; undefined when they are not. `value` decides where the
 * schema does not: of the parts of custom resources that have none, objects are merged and the rest are leaves.
 */
export function asFields(schema: Schema, value: unknown): FieldsSchema | undefined {
  if (schema.type === 'struct' || schema.type === 'map') return schema.atomic ? undefined : schema;
  return schema.type === 'any' && schema.goType === 'interface {}' && isRecord(value) ? anyFields : undefined;
}

const anyFields: FieldsSchema = { type: 'any', goType: 'interface {}' };

/** The schema as one whose values are merged item by item; undefined when they are not. */
export function asItems(schema: Schema): ListSchema | undefined {
  return schema.type === 'list' && schema.listType !== 'atomic' ? schema : undefined;
}

/** The schema of a member; undefined when it is not declared. */
export function memberSchema(schema: FieldsSchema, name: string): Schema | undefined {
  if (schema.type === 'map') return schema.values;
  if (schema.type === 'any') return schema;
  const field = schema.byName.get(name);
  if (field !== undefined) return field.schema;
  return schema.custom?.keepUnknown === true ? schema.custom.unknownFields : undefined;
}

/** The path element of a member. */
export function elementOf(schema: FieldsSchema, name: string): string {
  return isNamedField(schema, name) ? fieldElement(name) : memberElement(name);
}

/** True for a named field, as opposed to a key that a client chose. */
export function isNamedField(schema: FieldsSchema, name: string): boolean {
  return schema.type === 'struct' && schema.byName.has(name);
}

/** The members of an object; none for null, undefined and other values. */
export function membersOf(value: unknown): JsonRecord {
  return isRecord(value) ? value : noMembers;
}

const noMembers: JsonRecord = {};

/** The items of a list; none for null, undefined and other values. */
export function listItemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : noItems;
}

const noItems: readonly unknown[] = [];

/** True for what holds nothing: absent, null, or empty. */
export function isEmptyValue(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  if (!isRecord(value)) return false;
  for (const key in value) if (value[key] !== undefined) return false;
  return true;
}

/** The items of a list by path element, in list order; an identity that comes twice has several. */
export function indexItems(list: ListSchema, value: unknown): Map<string, unknown[]> {
  const index = new Map<string, unknown[]>();
  for (const item of listItemsOf(value)) {
    const element = itemElement(list, item);
    const same = index.get(element);
    if (same === undefined) index.set(element, [item]);
    else same.push(item);
  }
  return index;
}
