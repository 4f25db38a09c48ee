import { pushAll } from '../objects/lists.ts';
import {
  type Call,
  type Expression,
  type ListLiteral,
  type Logical,
  type MapLiteral,
  type Select,
  type StructLiteral,
  type Issue,
  maxIssues,
} from './syntax/ast.ts';
import { checkMacro, type Checking, type Locals } from './macros.ts';
import { namedType, qualifiedName, type Overload } from './overload.ts';
import * as types from './types.ts';
import { type CelType, formatType, isDynamic, Substitution } from './types.ts';
import { isBytes, isUint, type Value } from './values.ts';

/** The names that an expression may use. */
export interface Scope {
  readonly variables: ReadonlyMap<string, CelType>;
  readonly functions: ReadonlyMap<string, readonly Overload[]>;
  /** Types that can be constructed, by name. */
  readonly structs?: (name: string) => types.ObjectType | undefined;
}

/** The result of a check. */
export interface Checked {
  readonly type: CelType;
  readonly issues: readonly Issue[];
  /** The overloads that each call may refer to. */
  readonly overloads: ReadonlyMap<Call, readonly Overload[]>;
  /** The declared variables that the expression reads. */
  readonly variables: ReadonlySet<string>;
  /** The type of each subexpression. */
  readonly types: ReadonlyMap<Expression, CelType>;
}

/** Checks the types of an expression (cel-go `checker/checker.go`). */
export function check(expression: Expression, scope: Scope): Checked {
  const checker = new Checker(scope);
  const type = checker.settled(checker.visit(expression, new Map()));
  const { issues, overloads, variables } = checker;
  for (const [part, found] of checker.types) checker.types.set(part, checker.settled(found));
  return { type, issues, overloads, variables, types: checker.types };
}

class Checker implements Checking {
  readonly issues: Issue[] = [];
  readonly overloads = new Map<Call, readonly Overload[]>();
  readonly variables = new Set<string>();
  readonly types = new Map<Expression, CelType>();
  readonly #scope: Scope;
  readonly #substitution = new Substitution();

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  apply(type: CelType): CelType {
    return this.#substitution.apply(type);
  }

  fresh(): CelType {
    return this.#substitution.fresh();
  }

  settled(type: CelType): CelType {
    return this.#substitution.apply(type, true);
  }

  visit(expression: Expression, locals: Locals): CelType {
    const type = this.#visit(expression, locals);
    this.types.set(expression, type);
    return type;
  }

  #visit(expression: Expression, locals: Locals): CelType {
    switch (expression.kind) {
      case 'literal':
        return literalType(expression.value);
      case 'ident':
        return this.#name(expression.name, locals) ?? this.#undeclared(expression.at, expression.name);
      case 'select':
        return this.#select(expression, locals);
      case 'call':
        return this.#call(expression, locals);
      case 'logical':
        return this.#logical(expression, locals);
      case 'list':
        return this.#list(expression, locals);
      case 'map':
        return this.#map(expression, locals);
      case 'struct':
        return this.#struct(expression, locals);
      case 'comprehension':
        return checkMacro(expression, locals, this);
    }
  }

  reportTwice(visit: () => CelType): CelType {
    const before = this.issues.length;
    const type = visit();
    // Bounded, since nested macros double the errors at every level.
    if (this.issues.length < maxIssues) pushAll(this.issues, this.issues.slice(before));
    return type;
  }

  fail(at: number, message: string): CelType {
    this.issues.push({ at, message });
    return types.errorType;
  }

  #undeclared(at: number, name: string): CelType {
    return this.fail(at, `undeclared reference to '${name}' (in container '')`);
  }

  #format(type: CelType): string {
    return formatType(this.#substitution.apply(type));
  }

  fits(to: CelType, from: CelType): boolean {
    return this.#substitution.assign([to], [from]);
  }

  #name(name: string, locals: Locals): CelType | undefined {
    const local = locals.get(name);
    if (local !== undefined) return local;
    const declared = this.#scope.variables.get(name);
    if (declared !== undefined) {
      this.variables.add(name);
      return declared;
    }
    const named = namedType(name);
    return named === undefined ? undefined : types.typeType(named);
  }

  #select(select: Select, locals: Locals): CelType {
    const qualified = qualifiedName(select);
    if (qualified !== undefined && !select.test && !locals.has(qualified.split('.')[0] ?? '')) {
      const type = this.#name(qualified, locals);
      if (type !== undefined) return type;
    }
    const target = this.#substitution.apply(this.visit(select.operand, locals));
    const field = this.#field(select.at, target, select.field);
    return select.test ? types.boolType : field;
  }

  #field(at: number, target: CelType, name: string): CelType {
    if (isDynamic(target) || target.kind === 'param') return types.dynType;
    switch (target.kind) {
      case 'map':
        return target.value;
      case 'object':
        if (target.open === true) return types.dynType;
        // After a dot, a keyword is allowed, and so is its escaped name.
        return (
          target.fields.get(name) ??
          target.fields.get(`__${name}__`) ??
          this.fail(at, `undefined field '${name}'`)
        );
      case 'optional':
        return types.optionalType(this.#field(at, this.#substitution.apply(target.of), name));
      default:
        return this.fail(at, `type '${this.#format(target)}' does not support field selection`);
    }
  }

  #call(call: Call, locals: Locals): CelType {
    if (call.name === '_?._') return this.#optionalSelect(call, locals);
    const { target } = call;
    const namespaced = target === undefined ? undefined : qualifiedName(target);
    const args = call.args.map((arg) => this.visit(arg, locals));
    if (namespaced !== undefined && !locals.has(namespaced.split('.')[0] ?? '')) {
      const name = `${namespaced}.${call.name}`;
      const found = this.#scope.functions.get(name);
      if (found !== undefined) return this.#resolve(call, name, found, args, false);
    }
    const forms = this.#scope.functions.get(call.name);
    if (target === undefined) {
      if (forms === undefined) return this.#undeclared(call.at, call.name);
      return this.#resolve(call, call.name, forms, args, false);
    }
    const targetType = this.visit(target, locals);
    if (forms === undefined) return this.#undeclared(call.at, call.name);
    return this.#resolve(call, call.name, forms, [targetType, ...args], true);
  }

  #optionalSelect(call: Call, locals: Locals): CelType {
    const [operand, field] = call.args;
    if (operand === undefined || field?.kind !== 'literal' || typeof field.value !== 'string') {
      return types.errorType;
    }
    const type = this.#substitution.apply(this.visit(operand, locals));
    const found = this.#field(call.at, type, field.value);
    return found.kind === 'optional' && type.kind === 'optional' ? found : types.optionalType(found);
  }

  /** Keeps all overloads that fit: with dyn arguments the values decide at run time. */
  #resolve(
    call: Call,
    name: string,
    forms: readonly Overload[],
    args: readonly CelType[],
    isMember: boolean,
  ): CelType {
    let result: CelType | undefined;
    const fitting: Overload[] = [];
    for (const form of forms) {
      if (form.member !== isMember) continue;
      const { params, result: wanted } = this.#instantiate(form);
      if (!this.#substitution.assign(params, args)) continue;
      fitting.push(form);
      const type = this.#substitution.apply(wanted);
      if (result === undefined) result = type;
      else if (formatType(result) !== formatType(type)) result = types.dynType;
    }
    if (result === undefined) return this.noOverload(call.at, name, args, isMember);
    this.overloads.set(call, fitting);
    return result;
  }

  noOverload(at: number, name: string, args: readonly CelType[], isMember: boolean): CelType {
    const [target, ...rest] = args.map((type) => this.#format(type));
    const signature = isMember ? `${target ?? ''}.(${rest.join(', ')})` : `(${[target, ...rest].join(', ')})`;
    return this.fail(at, `found no matching overload for '${name}' applied to '${signature}'`);
  }

  /** The overload with fresh type parameters. */
  #instantiate({ params, result }: Overload): { params: readonly CelType[]; result: CelType } {
    const fresh = new Map<string, CelType>();
    const rename = (type: CelType): CelType => {
      switch (type.kind) {
        case 'param': {
          const known = fresh.get(type.name) ?? this.#substitution.fresh();
          fresh.set(type.name, known);
          return known;
        }
        case 'list':
          return types.listType(rename(type.element));
        case 'map':
          return types.mapType(rename(type.key), rename(type.value));
        case 'optional':
          return types.optionalType(rename(type.of));
        case 'type':
          return types.typeType(rename(type.of));
        case 'simple':
        case 'object':
        case 'opaque':
          return type;
      }
    };
    return { params: params.map(rename), result: rename(result) };
  }

  #logical({ at, operator, operands }: Logical, locals: Locals): CelType {
    const found = operands.map((operand) => this.visit(operand, locals));
    if (found.every((type) => this.fits(types.boolType, type))) return types.boolType;
    return this.noOverload(at, operator === '&&' ? '_&&_' : '_||_', found.slice(0, 2), false);
  }

  #list({ elements }: ListLiteral, locals: Locals): CelType {
    let type: CelType | undefined;
    for (const { value, optional } of elements) {
      const found = this.#element(value, optional, locals);
      type = this.#join(type, found);
    }
    return types.listType(type ?? this.#substitution.fresh());
  }

  /** The type of an element; after `?`, the type of the optional's value. */
  #element(value: Expression, optional: boolean, locals: Locals): CelType {
    const type = this.#substitution.apply(this.visit(value, locals));
    if (!optional) return type;
    const inner = this.#substitution.fresh();
    if (this.fits(types.optionalType(inner), type)) return this.#substitution.apply(inner);
    const found = this.#format(type);
    return this.fail(value.at, `expected type 'optional_type(${found})' but found '${found}'`);
  }

  #map({ entries }: MapLiteral, locals: Locals): CelType {
    let key: CelType | undefined;
    let value: CelType | undefined;
    for (const entry of entries) {
      key = this.#join(key, this.visit(entry.key, locals));
      value = this.#join(value, this.#element(entry.value, entry.optional, locals));
    }
    return types.mapType(key ?? this.#substitution.fresh(), value ?? this.#substitution.fresh());
  }

  /** The common type of items: dyn where they differ, which `validateHomogeneousLiterals` reports later. */
  #join(before: CelType | undefined, next: CelType): CelType {
    if (before === undefined || isDynamic(before)) return before ?? next;
    return this.fits(before, next) ? before : types.dynType;
  }

  /** Checks the fields against the type, which must be known. */
  #struct({ at, name, fields }: StructLiteral, locals: Locals): CelType {
    const type = this.#scope.structs?.(name);
    for (const { at: place, name: field, value, optional } of fields) {
      const found = this.#element(value, optional, locals);
      if (type === undefined) continue;
      const wanted = type.fields.get(field) ?? (type.open === true ? types.dynType : undefined);
      if (wanted === undefined) this.fail(place, `undefined field '${field}'`);
      else if (!this.fits(wanted, found)) {
        const detail = `'${this.#format(wanted)}' but provided type is '${this.#format(found)}'`;
        this.fail(place, `expected type of field '${field}' is ${detail}`);
      }
    }
    return type ?? this.#undeclared(at, name);
  }
}

function literalType(value: Value): CelType {
  if (typeof value === 'bigint') return types.intType;
  if (typeof value === 'number') return types.doubleType;
  if (typeof value === 'string') return types.stringType;
  if (typeof value === 'boolean') return types.boolType;
  if (value === null) return types.nullType;
  if (isUint(value)) return types.uintType;
  return isBytes(value) ? types.bytesType : types.dynType;
}
