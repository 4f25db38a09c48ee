/**
 * What the server knows of a type: enough to decode, encode, patch and apply it as kube-apiserver does with its Go
 * types (built-in kinds) or its structural schemas (custom resources).
 */

/** How strictly unknown and duplicate fields are treated (`fieldValidation`). */
export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

/** A value's type. `goType` is how Go's error texts name it (`[]v1.ServicePort`, `int32`). */
export type Schema = StructSchema | MapSchema | ListSchema | LeafSchema;

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
  /** Custom resources: undeclared fields are kept (`x-kubernetes-preserve-unknown-fields`). */
  readonly keepUnknown: boolean;
  /** Custom resources: holds a whole object, whose apiVersion, kind and metadata are implied. */
  readonly embedded: boolean;
  /** Go's `omitzero`/custom encodings that print nothing for the zero value do not exist for structs: see Field. */
  readonly nullable: boolean;
}

/** One declared field of a struct. */
export interface Field {
  readonly name: string;
  /** Resolved on first use: types may be recursive. */
  readonly schema: Schema;
  /**
   * What the encoding does with a missing value. `omit`: left out (omitempty, pointers). `zero`: written as the
   * type's zero value (`""`, 0, false, null for lists and maps, `{}` for structs).
   */
  readonly missing: 'omit' | 'zero';
  /** True where the zero value is dropped on decode, as omitempty on a non-pointer does. */
  readonly dropZero: boolean;
  readonly required: boolean;
  /** The default of the schema, undefined if none. Built-in kinds default in registry/ instead. */
  readonly default: unknown;
  /** Strategic merge patch. */
  readonly patchStrategy: readonly PatchStrategy[];
  readonly patchMergeKey: string | undefined;
}

export type PatchStrategy = 'merge' | 'replace' | 'retainKeys';

/** An object with arbitrary keys. */
export interface MapSchema {
  readonly type: 'map';
  readonly goType: string;
  readonly values: Schema;
  readonly atomic: boolean;
  readonly nullable: boolean;
}

export interface ListSchema {
  readonly type: 'list';
  readonly goType: string;
  readonly items: Schema;
  /** How server-side apply merges it. */
  readonly listType: 'atomic' | 'set' | 'map';
  /** The keys of `listType: map`, in declared order. */
  readonly mapKeys: readonly string[];
  readonly nullable: boolean;
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
  readonly nullable: boolean;
}
