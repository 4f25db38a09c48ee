/** The types of macros over lists, maps and optionals (cel-go `checker/checker.go` checkComprehension). */
import type { Comprehension, Expression } from './syntax/ast.ts';
import { sortByKeys } from './library/lists.ts';
import { orderedTypes } from './library/lists.ts';
import * as types from './types.ts';
import { type CelType, formatType, isAny, isDynamic } from './types.ts';

/** The variables of enclosing macros, innermost first. */
export type Locals = ReadonlyMap<string, CelType>;

/** The checker as macros use it. */
export interface Checking {
  visit(expression: Expression, locals: Locals): CelType;
  /** The type with the known type parameters substituted. */
  apply(type: CelType): CelType;
  /** A new type parameter. */
  fresh(): CelType;
  /** True when values of the second type are assignable to the first. */
  fits(to: CelType, from: CelType): boolean;
  /** Reports each error of a visit twice. */
  reportTwice(visit: () => CelType): CelType;
  /** Reports an error. */
  fail(at: number, message: string): CelType;
  noOverload(at: number, name: string, args: readonly CelType[], isMember: boolean): CelType;
}

/** The type of a macro's result. */
export function checkMacro(node: Comprehension, locals: Locals, checking: Checking): CelType {
  const visitRange = () => checking.visit(node.range, locals);
  const isOptional = node.macro === 'optMap' || node.macro === 'optFlatMap';
  // cel-go expands these to two calls, each with the range as its target.
  const range = checking.apply(isOptional ? checking.reportTwice(visitRange) : visitRange());
  const inner = new Map(locals);
  const bound = itemTypes(node, range, checking);
  node.variables.forEach((name, i) => inner.set(name, bound[i] ?? types.dynType));
  if (node.filter !== undefined) predicate(node, node.filter, '_?_:_', inner, checking);
  switch (node.macro) {
    case 'bind':
      return checking.visit(node.body, inner);
    case 'all':
      return predicate(node, node.body, '_&&_', inner, checking);
    case 'exists':
      return predicate(node, node.body, '_||_', inner, checking);
    case 'existsOne':
      return predicate(node, node.body, '_?_:_', inner, checking);
    case 'filter':
      predicate(node, node.body, '_?_:_', inner, checking);
      return types.listType(bound[0] ?? types.dynType);
    case 'map':
    case 'transformList':
      return types.listType(checking.visit(node.body, inner));
    case 'transformMap':
      return types.mapType(keyType(range), checking.visit(node.body, inner));
    case 'transformMapEntry': {
      const type = checking.apply(checking.visit(node.body, inner));
      if (type.kind === 'map' || isDynamic(type)) return type;
      return checking.fail(node.body.at, `expected type 'map(dyn, dyn)' but found '${formatType(type)}'`);
    }
    case 'sortBy': {
      const keys = types.listType(checking.visit(node.body, inner));
      if (orderedTypes.some((type) => checking.fits(types.listType(type), keys)) && isList(range))
        return range;
      return checking.noOverload(node.at, sortByKeys, [range, keys], true);
    }
    case 'optMap':
      return types.optionalType(checking.visit(node.body, inner));
    case 'optFlatMap': {
      const type = checking.visit(node.body, inner);
      if (checking.fits(types.optionalType(checking.fresh()), type)) return type;
      const args = [types.boolType, type, types.optionalType(types.dynType)];
      return checking.noOverload(node.at, '_?_:_', args, false);
    }
  }
}

function predicate(
  node: Comprehension,
  body: Expression,
  operator: string,
  locals: Locals,
  checking: Checking,
): CelType {
  const type = checking.visit(body, locals);
  if (checking.fits(types.boolType, type)) return types.boolType;
  const args = operator === '_?_:_' ? [type, types.intType, types.intType] : [types.boolType, type];
  return checking.noOverload(node.at, operator, args, false);
}

function isList(type: CelType): boolean {
  return type.kind === 'list' || isDynamic(type) || type.kind === 'param';
}

function keyType(range: CelType): CelType {
  if (range.kind === 'map') return range.key;
  return range.kind === 'list' ? types.intType : types.dynType;
}

function itemTypes(
  { at: macroAt, macro, range: { at }, variables }: Comprehension,
  range: CelType,
  checking: Checking,
): readonly CelType[] {
  if (macro === 'bind') return [range];
  const isUnknown = (isDynamic(range) && !isAny(range)) || range.kind === 'param';
  if (isUnknown) return variables.map(() => types.dynType);
  if (macro === 'optMap' || macro === 'optFlatMap') {
    if (range.kind === 'optional') return [range.of];
    for (const name of ['hasValue', 'value']) checking.noOverload(macroAt, name, [range], true);
    return [types.errorType];
  }
  const pair = variables.length === 2;
  if (range.kind === 'list') return pair ? [types.intType, range.element] : [range.element];
  if (range.kind === 'map') return pair ? [range.key, range.value] : [range.key];
  const detail = 'cannot be range of a comprehension (must be list, map, or dynamic)';
  checking.fail(at, `expression of type '${formatType(range)}' ${detail}`);
  return variables.map(() => types.errorType);
}
