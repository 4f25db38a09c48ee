/** Types of CEL (cel-spec `doc/langdef.md`, "Values"). */
export type CelType =
  | SimpleType
  | { readonly kind: 'list'; readonly element: CelType }
  | { readonly kind: 'map'; readonly key: CelType; readonly value: CelType }
  | { readonly kind: 'optional'; readonly of: CelType }
  | { readonly kind: 'type'; readonly of: CelType }
  | ObjectType
  /** Types of Kubernetes' libraries, such as `kubernetes.URL`. */
  | { readonly kind: 'opaque'; readonly name: string }
  | { readonly kind: 'param'; readonly name: string };

export interface SimpleType {
  readonly kind: 'simple';
  readonly name:
    | 'bool'
    | 'int'
    | 'uint'
    | 'double'
    | 'string'
    | 'bytes'
    | 'null'
    | 'timestamp'
    | 'duration'
    | 'dyn'
    | 'error';
}

/** An object with known fields. */
export interface ObjectType {
  readonly kind: 'object';
  readonly name: string;
  readonly fields: ReadonlyMap<string, CelType>;
  /** Fields of any name exist, as dyn. */
  readonly open?: boolean;
}

function simple(name: SimpleType['name']): SimpleType {
  return { kind: 'simple', name };
}

export const boolType = simple('bool');
export const intType = simple('int');
export const uintType = simple('uint');
export const doubleType = simple('double');
export const stringType = simple('string');
export const bytesType = simple('bytes');
export const nullType = simple('null');
export const timestampType = simple('timestamp');
export const durationType = simple('duration');
export const dynType = simple('dyn');
/** The type after an error: assignable to everything, so that no error is reported twice. */
export const errorType = simple('error');

export function listType(element: CelType): CelType {
  return { kind: 'list', element };
}

export function mapType(key: CelType, value: CelType): CelType {
  return { kind: 'map', key, value };
}

export function optionalType(of: CelType): CelType {
  return { kind: 'optional', of };
}

export function typeType(of: CelType): CelType {
  return { kind: 'type', of };
}

export function paramType(name: string): CelType {
  return { kind: 'param', name };
}

/** True for `dyn` and for the type after an error. */
export function isDynamic(type: CelType): boolean {
  return type.kind === 'simple' && (type.name === 'dyn' || type.name === 'error');
}

/** A type as cel-go's checker prints it in errors (`checker/format.go`). */
export function formatType(type: CelType): string {
  switch (type.kind) {
    case 'simple':
      return type.name === 'error' ? '!error!' : type.name;
    case 'list':
      return `list(${formatType(type.element)})`;
    case 'map':
      return `map(${formatType(type.key)}, ${formatType(type.value)})`;
    case 'optional':
      return `optional_type(${formatType(type.of)})`;
    case 'type':
      return `type(${formatType(type.of)})`;
    case 'object':
    case 'opaque':
    case 'param':
      return type.name;
  }
}
