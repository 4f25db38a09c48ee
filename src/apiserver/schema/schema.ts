/**
 * The description of a type by which it is decoded, encoded, patched and applied as kube-apiserver does with its Go
 * types (built-in kinds) or its structural schemas (custom resources).
 */

/** The treatment of unknown and duplicate fields (`fieldValidation`). */
export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

/** A value's type. `goType` is how Go's error texts name it (`[]v1.ServicePort`, `int32`). */
export type Schema = StructSchema | MapSchema | ListSchema | UnionSchema | LeafSchema;

/** An object with declared fields. */
export interface StructSchema {
  readonly type: 'struct';
  /** The Go type without its package (`ServiceSpec`): the head of `Go struct field ServiceSpec.spec.ports`. */
  readonly name: string;
  readonly goType: string;
  /** In Go struct order, which is the order of the encoding. */
  readonly fields: readonly Field[];
  readonly byName: ReadonlyMap<string, Field>;
  /** Owned as a whole by one manager (`x-kubernetes-map-type: atomic`). */
  readonly atomic: boolean;
  /** What custom resources add; undefined for a Go type. */
  readonly custom: CustomStruct | undefined;
  /** Custom resources: null is a value. */
  readonly nullable?: boolean;
}

/** The parts of a structural schema beyond its fields. */
export interface CustomStruct {
  /** Undeclared fields are kept (`x-kubernetes-preserve-unknown-fields`). */
  readonly keepUnknown: boolean;
  /** The type of undeclared fields (`additionalProperties` beside `properties` is not structural; kept fields). */
  readonly unknownFields: Schema;
  /** Holds a whole object (`x-kubernetes-embedded-resource`, and the root): apiVersion, kind and metadata are implied. */
  readonly embedded: boolean;
}

/** One declared field of a struct. */
export interface Field {
  readonly name: string;
  /** Resolved on first use: types may be recursive. */
  readonly schema: Schema;
  /** A missing value is left out, or written as null, or as the type's zero value (`""`, 0, false, `{}`). */
  readonly absent: 'omit' | 'null' | 'zero';
  /** The zero value counts as missing, as omitempty on a Go field that is no pointer does. */
  readonly dropZero: boolean;
  readonly required: boolean;
  /** The default of the schema, undefined if none. Built-in kinds default in registry/ instead. */
  readonly default: unknown;
  /** Strategic merge patch. */
  readonly patchStrategy: readonly string[];
  readonly patchMergeKey: string | undefined;
}

/** An object with arbitrary keys. */
export interface MapSchema {
  readonly type: 'map';
  readonly goType: string;
  readonly values: Schema;
  readonly atomic: boolean;
  readonly nullable?: boolean;
}

export interface ListSchema {
  readonly type: 'list';
  readonly goType: string;
  readonly items: Schema;
  /** How server-side apply merges it. */
  readonly listType: 'atomic' | 'set' | 'map';
  /** The keys of `listType: map`, in declared order. */
  readonly mapKeys: readonly string[];
  readonly nullable?: boolean;
}

/** apiextensions' JSONSchemaPropsOrBool and its like: a struct, or a boolean, or a list. */
export interface UnionSchema {
  readonly type: 'union';
  readonly goType: string;
  readonly object: StructSchema;
  readonly other: 'boolean' | 'structs' | 'strings';
  readonly nullable?: boolean;
}

export type LeafType =
  | 'string'
  | 'boolean'
  | 'int32'
  | 'int64'
  | 'number'
  | 'bytes'
  | 'time'
  | 'microTime'
  | 'intOrString'
  | 'quantity'
  | 'any'
  | 'fieldsV1';

export interface LeafSchema {
  readonly type: LeafType;
  readonly goType: string;
  readonly nullable?: boolean;
}

/** Anything at all, kept as it is. */
export const anySchema: LeafSchema = { type: 'any', goType: 'interface {}' };

/** Custom resources: the meaning of `additionalProperties: true` for values. Objects among them lose their members. */
export const undeclaredSchema: LeafSchema = { type: 'any', goType: 'interface {}' };

/** A fresh zero value of a type, as Go encodes it. */
export function zeroValue(schema: Schema): unknown {
  switch (schema.type) {
    case 'struct':
      return zeroStruct(schema);
    case 'string':
    case 'bytes':
      return '';
    case 'boolean':
      return false;
    case 'int32':
    case 'int64':
    case 'number':
    case 'intOrString':
      return 0;
    case 'quantity':
      return '0';
    default:
      return null;
  }
}

function zeroStruct(schema: StructSchema): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  for (const field of schema.fields) {
    if (field.absent === 'null') value[field.name] = null;
    else if (field.absent === 'zero') value[field.name] = zeroValue(field.schema);
  }
  return value;
}

/** Sets a member whose name a client chose: `__proto__` becomes a member like any other. */
export function setMember(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    object[key] = value;
  }
}
