import type { Comprehension, Expression } from './syntax/ast.ts';
import { sortByKeys, orderedTypes, sortedBy } from './library/lists.ts';
import * as types from './types.ts';
import { type CelType, formatType, isAny, isDynamic } from './types.ts';
import { callCost } from './cost/call-cost.ts';
import { units } from './cost/size.ts';
import type { Meter } from './meter.ts';
import {
  EvaluationError,
  isList,
  isMap,
  isOptional,
  listItems,
  type MapValue,
  noSuchOverload,
  noValue,
  Optional,
  PlainList,
  PlainMap,
  type Value,
} from './values.ts';

/**
 * Macros over lists, maps and optionals: their types (cel-go `checker/checker.go` checkComprehension) and their values,
 * whose cost is that of the loops that cel-go expands them to (`parser/macro.go`).
 */

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
      if (orderedTypes.some((type) => checking.fits(types.listType(type), keys)) && isListType(range))
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

function isListType(type: CelType): boolean {
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

/** The scope of names: variables of macros hide outer ones. */
export interface Frame {
  find(name: string): Value | undefined;
}

/** The evaluator as macros use it. */
export interface Evaluation {
  readonly meter: Meter;
  /** @throws {EvaluationError} @throws {CostLimitError} */
  run(expression: Expression, frame: Frame): Value;
  /** The value, or the evaluation error. @throws {CostLimitError} */
  attempt(expression: Expression, frame: Frame): Value | EvaluationError;
  /** True for expressions that cost nothing. */
  isConstant(expression: Expression): boolean;
}

const { reference, call, list } = units;
/** `accu + [item]` without the cost of the item. */
const append = reference + list + call;

/** The result of a macro. @throws {EvaluationError} @throws {CostLimitError} */
export function evaluateMacro(node: Comprehension, frame: Frame, evaluation: Evaluation): Value {
  const { meter } = evaluation;
  const before = meter.spent;
  const range = evaluation.run(node.range, frame);
  if (node.macro === 'optMap' || node.macro === 'optFlatMap') {
    return optionalMacro(node, range, meter.spent - before, frame, evaluation);
  }
  if (node.macro === 'bind') {
    // cel-go makes it of a loop over an empty list.
    meter.charge(list);
    return evaluation.run(node.body, bind(frame, node.variables[0], range));
  }
  if (node.macro === 'sortBy') return sortBy(node, range, frame, evaluation);
  return new MacroLoop(node, range, frame, evaluation).run();
}

/** cel-go binds the range to a variable, which is read for its keys and for its items. */
function sortBy(node: Comprehension, range: Value, frame: Frame, evaluation: Evaluation): Value {
  const { meter } = evaluation;
  meter.charge(2 * reference);
  const keys = new MacroLoop({ ...node, macro: 'map' }, range, frame, evaluation).run();
  meter.charge(callCost(sortByKeys, [range, keys], undefined, true));
  if (!isList(range) || !isList(keys)) throw noSuchOverload();
  return sortedBy(range, keys, meter);
}

/** cel-go evaluates the optional twice: for the test and for the value. */
function optionalMacro(
  { macro, variables: [name], body }: Comprehension,
  range: Value,
  rangeCost: number,
  frame: Frame,
  evaluation: Evaluation,
): Value {
  const { meter } = evaluation;
  if (!isOptional(range)) throw noSuchOverload();
  meter.charge(call);
  const { value } = range;
  if (value === undefined) {
    meter.charge(call);
    return noValue;
  }
  meter.charge(rangeCost + call);
  const result = evaluation.run(body, bind(frame, name, value));
  if (macro === 'optFlatMap') return result;
  meter.charge(call);
  return new Optional(result);
}

/** One round of a macro over a list or map. */
interface Round {
  /** The value of the first variable. */
  readonly first: Value;
  readonly inner: Frame;
}

class MacroLoop {
  readonly #node: Comprehension;
  readonly #range: Value;
  readonly #frame: Frame;
  readonly #evaluation: Evaluation;
  readonly #meter: Meter;

  constructor(node: Comprehension, range: Value, frame: Frame, evaluation: Evaluation) {
    this.#node = node;
    this.#range = range;
    this.#frame = frame;
    this.#evaluation = evaluation;
    this.#meter = evaluation.meter;
  }

  run(): Value {
    const { macro, body, filter } = this.#node;
    if (macro === 'all' || macro === 'exists') return this.#quantify(macro === 'exists');
    const made = this.#make(macro, body, filter);
    this.#meter.charge(macro === 'existsOne' ? reference + call : reference);
    return made;
  }

  #make(macro: Comprehension['macro'], body: Expression, filter: Expression | undefined): Value {
    const valueIn = ({ inner }: Round) => this.#evaluation.run(body, inner);
    switch (macro) {
      case 'existsOne':
        return [...this.#chosen(body, reference + call)].length === 1;
      case 'filter':
        return new PlainList(Array.from(this.#chosen(body, append + reference), ({ first }) => first));
      case 'map':
      case 'transformList': {
        // cel-go folds the list of one constant item, which then costs nothing.
        const cost = this.#evaluation.isConstant(body) ? append - list : append;
        return new PlainList(Array.from(this.#chosen(filter, cost), valueIn));
      }
      case 'transformMap': {
        const chosen = this.#chosen(filter, 2 * reference + call);
        return new PlainMap(Array.from(chosen, (round) => [round.first, valueIn(round)]));
      }
      default: {
        const chosen = this.#chosen(filter, reference + call);
        return new PlainMap(Array.from(chosen, (round) => entriesOf(valueIn(round))).flat());
      }
    }
  }

  /** `all` and `exists`: as with && and ||, the first item that decides ends the loop. */
  #quantify(deciding: boolean): Value {
    const condition = deciding ? 2 * call + reference : call + reference;
    let failure: EvaluationError | undefined;
    let decided = false;
    for (const { inner } of this.#rounds()) {
      this.#meter.charge(condition);
      if (decided) break;
      this.#meter.charge(reference);
      const value = this.#evaluation.attempt(this.#node.body, inner);
      if (value === deciding) decided = true;
      else if (value instanceof EvaluationError) failure ??= value;
      else if (typeof value !== 'boolean') failure ??= noSuchOverload();
    }
    this.#meter.charge(reference);
    if (decided) return deciding;
    if (failure !== undefined) throw failure;
    return !deciding;
  }

  /** The rounds whose filter is true. @param cost per round. */
  *#chosen(filter: Expression | undefined, cost: number): Generator<Round> {
    for (const round of this.#rounds()) {
      const taken = filter === undefined ? true : this.#evaluation.run(filter, round.inner);
      if (typeof taken !== 'boolean') throw noSuchOverload();
      if (!taken) continue;
      this.#meter.charge(cost);
      yield round;
    }
  }

  *#rounds(): Generator<Round> {
    const [first, second] = this.#node.variables;
    const range = this.#range;
    if (!isList(range) && !isMap(range)) throw noSuchOverload();
    this.#meter.work(range.size);
    const items = isList(range) ? listItems(range) : range.keys();
    for (const [i, value] of items.entries()) {
      this.#meter.work(1);
      if (second === undefined) {
        yield { first: value, inner: bind(this.#frame, first, value) };
        continue;
      }
      const key = isList(range) ? BigInt(i) : value;
      const other = isList(range) ? value : (range.find(value) ?? null);
      yield { first: key, inner: bind(bind(this.#frame, first, key), second, other) };
    }
  }
}

function bind(frame: Frame, bound: string, value: Value): Frame {
  return { find: (name) => (name === bound ? value : frame.find(name)) };
}

function entriesOf(made: Value): (readonly [Value, Value])[] {
  if (!isMap(made)) throw noSuchOverload();
  const map: MapValue = made;
  return map.keys().map((key) => [key, map.find(key) ?? null]);
}
