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
    | 'any'
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
/** A value of any type, as dyn; but no loop goes over it. */
export const anyType = simple('any');
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

/** True for `dyn` and `any`, and for the type after an error. */
export function isDynamic(type: CelType): boolean {
  return type.kind === 'simple' && (type.name === 'dyn' || type.name === 'any' || type.name === 'error');
}

/** True for `any`. */
export function isAny(type: CelType): boolean {
  return type.kind === 'simple' && type.name === 'any';
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

/** Substitution of the type parameters of overloads during a check (cel-go `checker/mapping.go`). */
export class Substitution {
  readonly #bound = new Map<string, CelType>();
  /** The last bindings, with their previous values, to undo a failed assignment. */
  #trail: { readonly name: string; readonly before: CelType | undefined }[] = [];
  #fresh = 0;

  /** A new type parameter. */
  fresh(): CelType {
    this.#fresh += 1;
    return { kind: 'param', name: `_var${this.#fresh}` };
  }

  /** The type with all known parameters substituted; unknown ones become dyn when `settle` is set. */
  apply(type: CelType, settle = false): CelType {
    switch (type.kind) {
      case 'param': {
        const bound = this.#bound.get(type.name);
        if (bound !== undefined) return this.apply(bound, settle);
        return settle ? dynType : type;
      }
      case 'list':
        return listType(this.apply(type.element, settle));
      case 'map':
        return mapType(this.apply(type.key, settle), this.apply(type.value, settle));
      case 'optional':
        return optionalType(this.apply(type.of, settle));
      case 'type':
        return typeType(this.apply(type.of, settle));
      case 'simple':
      case 'object':
      case 'opaque':
        return type;
    }
  }

  /** True when values of `from` are assignable to `to`; binds parameters, or none when it fails. */
  assign(to: readonly CelType[], from: readonly CelType[]): boolean {
    this.#trail = [];
    if (to.length !== from.length) return false;
    if (to.every((type, i) => this.#fits(type, from[i] ?? dynType))) return true;
    for (const { name, before } of this.#trail.reverse()) {
      if (before === undefined) this.#bound.delete(name);
      else this.#bound.set(name, before);
    }
    return false;
  }

  #set(name: string, type: CelType): void {
    this.#trail.push({ name, before: this.#bound.get(name) });
    this.#bound.set(name, type);
  }

  #fits(to: CelType, from: CelType): boolean {
    if (to.kind === 'param') return this.#bind(to.name, from, from);
    if (from.kind === 'param') return this.#bind(from.name, to, to);
    if (isDynamic(to) || isDynamic(from)) return true;
    if (from.kind === 'simple' && from.name === 'null') return isNullable(to);
    if (to.kind === 'simple') {
      if (to.name === 'null') return isNullable(from);
      return from.kind === 'simple' && from.name === to.name;
    }
    switch (to.kind) {
      case 'list':
        return from.kind === 'list' && this.#fits(to.element, from.element);
      case 'map':
        return from.kind === 'map' && this.#fits(to.key, from.key) && this.#fits(to.value, from.value);
      case 'optional':
        return from.kind === 'optional' && this.#fits(to.of, from.of);
      case 'type':
        // Types are compared as values: type(1) == string is false, not an error.
        return from.kind === 'type';
      case 'object':
      case 'opaque':
        return from.kind === to.kind && from.name === to.name;
    }
  }

  #bind(name: string, wanted: CelType, type: CelType): boolean {
    const bound = this.#bound.get(name);
    if (bound !== undefined) {
      if (this.#fits(bound, wanted)) {
        // The more general type wins.
        if (isDynamic(wanted)) this.#set(name, dynType);
        return true;
      }
      return false;
    }
    const resolved = this.apply(type);
    if (resolved.kind === 'param' && resolved.name === name) return true;
    if (mentions(resolved, name)) return false;
    this.#set(name, resolved);
    return true;
  }
}

function mentions(type: CelType, name: string): boolean {
  switch (type.kind) {
    case 'param':
      return type.name === name;
    case 'list':
      return mentions(type.element, name);
    case 'map':
      return mentions(type.key, name) || mentions(type.value, name);
    case 'optional':
    case 'type':
      return mentions(type.of, name);
    case 'simple':
    case 'object':
    case 'opaque':
      return false;
  }
}

/** True for types that include null. */
function isNullable(type: CelType): boolean {
  if (type.kind === 'simple') return ['null', 'timestamp', 'duration'].includes(type.name);
  return type.kind === 'object' || type.kind === 'opaque' || type.kind === 'optional';
}
