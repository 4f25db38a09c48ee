import type {
  Call,
  Expression,
  ListLiteral,
  Logical,
  MapLiteral,
  Select,
  StructLiteral,
} from './syntax/ast.ts';
import type { Checked } from './checker.ts';
import { callCost } from './cost/call-cost.ts';
import { units } from './cost/size.ts';
import { equals } from './equality.ts';
import { evaluateMacro, type Evaluation, type Frame } from './macros.ts';
import type { Meter } from './meter.ts';
import { functionName, namedType, qualifiedName } from './overload.ts';
import {
  EvaluationError,
  isBytes,
  isList,
  isMap,
  isOptional,
  listItems,
  noSuchOverload,
  noValue,
  Optional,
  PlainList,
  PlainMap,
  StructValue,
  TypeValue,
  type Value,
} from './values.ts';

/** Constant parts of an expression, which cost nothing. */
export type Constants = ReadonlyMap<Expression, Value>;

/**
 * The value of a checked expression.
 *
 * @param bindings the values of the declared variables; a missing one is an error when it is read.
 * @throws {EvaluationError} when there is no value.
 * @throws {CostLimitError} when the cost limit is passed.
 */
export function evaluate(
  expression: Expression,
  checked: Checked,
  constants: Constants,
  bindings: ReadonlyMap<string, Value>,
  meter: Meter,
): Value {
  const frame: Frame = { find: (name) => bindings.get(name) };
  return new Evaluator(checked, constants, meter).run(expression, frame);
}

/**
 * Charges what cel-go charges (`interpreter/runtimecost.go`): one unit for a variable and for each member selected from
 * it.
 */
class Evaluator implements Evaluation {
  readonly meter: Meter;
  readonly #checked: Checked;
  readonly #constants: Constants;

  constructor(checked: Checked, constants: Constants, meter: Meter) {
    this.#checked = checked;
    this.#constants = constants;
    this.meter = meter;
  }

  /** @param isAttributeStart whether the expression is part of a longer attribute, so that its variable costs nothing. */
  run(expression: Expression, frame: Frame, isAttributeStart = false): Value {
    switch (expression.kind) {
      case 'literal':
        return expression.value;
      case 'ident':
        return this.#name(expression.name, frame, isAttributeStart);
      case 'select':
        return this.#select(expression, frame, isAttributeStart);
      case 'call':
        return this.#constants.get(expression) ?? this.#call(expression, frame, isAttributeStart);
      case 'logical':
        return this.#logical(expression, frame);
      case 'list':
        return this.#constants.get(expression) ?? this.#list(expression, frame);
      case 'map':
        return this.#constants.get(expression) ?? this.#map(expression, frame);
      case 'struct':
        return this.#struct(expression, frame);
      case 'comprehension':
        return evaluateMacro(expression, frame, this);
    }
  }

  #name(name: string, frame: Frame, isAttributeStart: boolean): Value {
    const value = frame.find(name);
    if (value === undefined && namedType(name) !== undefined) return new TypeValue(name);
    if (!isAttributeStart) this.meter.charge(units.reference);
    if (value !== undefined) return value;
    throw new EvaluationError(`no such attribute(s): ${name}`);
  }

  /** The operand of a selection. One that is not an attribute pays for the start of a new one. */
  #operand(operand: Expression, frame: Frame, isAttributeStart: boolean): Value {
    const value = this.run(operand, frame, isAttributeStart);
    if (!isAttributeStart && !isAttribute(operand)) this.meter.charge(units.reference);
    return value;
  }

  #select(select: Select, frame: Frame, isAttributeStart: boolean): Value {
    const qualified = qualifiedName(select);
    if (qualified !== undefined) {
      const declared = frame.find(qualified);
      if (declared !== undefined) {
        this.meter.charge(units.reference);
        return declared;
      }
      if (namedType(qualified) !== undefined) return new TypeValue(qualified);
    }
    const operand = this.#operand(select.operand, frame, isAttributeStart);
    if (isOptional(operand)) {
      const found = operand.value === undefined ? undefined : member(operand.value, select.field);
      if (select.test) return found !== undefined;
      if (found !== undefined) this.meter.charge(units.reference);
      return new Optional(found);
    }
    // Testing the presence of a member costs nothing.
    if (!select.test) this.meter.charge(units.reference);
    const value = member(operand, select.field);
    if (select.test) return value !== undefined;
    if (value === undefined) throw new EvaluationError(`no such key: ${select.field}`);
    return value;
  }

  #call(call: Call, frame: Frame, isAttributeStart: boolean): Value {
    switch (call.name) {
      case '_?_:_':
        return this.#conditional(call, frame);
      case '_?._':
      case '_[?_]':
        return this.#optionalMember(call, frame, isAttributeStart);
      case '_[_]':
        return this.#index(call, frame, isAttributeStart);
      case '_==_':
      case '_!=_':
        return this.#equality(call, frame);
      case '@in': {
        const known = this.#inConstants(call, frame);
        if (known !== undefined) return known;
      }
    }
    const overloads = this.#checked.overloads.get(call) ?? [];
    const isMember = overloads[0]?.member === true;
    if (!isMember || call.target === undefined) return this.#apply(call, call.args, frame, false);
    if (call.name !== 'or' && call.name !== 'orValue') {
      return this.#apply(call, [call.target, ...call.args], frame, true);
    }
    const target = this.run(call.target, frame);
    const [other] = call.args;
    if (!isOptional(target) || other === undefined) throw noSuchOverload();
    if (target.value === undefined) return this.run(other, frame);
    return call.name === 'or' ? target : target.value;
  }

  /** Evaluates all arguments even when one fails, as cel-go checks for errors afterwards. @throws {EvaluationError} */
  #args(parts: readonly Expression[], frame: Frame): Value[] {
    let failure: EvaluationError | undefined;
    const values = parts.map((part) => {
      const value = this.attempt(part, frame);
      if (!(value instanceof EvaluationError)) return value;
      failure ??= value;
      return null;
    });
    if (failure === undefined) return values;
    this.meter.charge(units.call);
    throw failure;
  }

  #apply(call: Call, parts: readonly Expression[], frame: Frame, isMember: boolean): Value {
    const args = this.#args(parts, frame);
    const overloads = this.#checked.overloads.get(call) ?? [];
    let result: Value | undefined;
    try {
      for (const overload of overloads) {
        result = overload.call(args, this.meter);
        if (result !== undefined) return result;
      }
    } finally {
      this.meter.charge(callCost(functionName(call, overloads), args, result, isMember));
    }
    throw noSuchOverload();
  }

  #equality(call: Call, frame: Frame): Value {
    const args = this.#args(call.args, frame);
    const [a, b] = args;
    const same = a !== undefined && b !== undefined && equals(a, b, this.meter);
    this.meter.charge(callCost(call.name, args, same, false));
    return same === (call.name === '_==_');
  }

  /** Membership in a constant list of scalars, which costs nothing. */
  #inConstants({ args: [item, list] }: Call, frame: Frame): Value | undefined {
    const items = list === undefined ? undefined : this.#constants.get(list);
    if (item === undefined || items === undefined || !isList(items)) return undefined;
    const scalars = listItems(items);
    if (!scalars.every((one) => one !== null && !isBytes(one) && typeof one !== 'object')) return undefined;
    if (scalars.length === 0) return false;
    const value = this.run(item, frame);
    return scalars.some((one) => equals(value, one, this.meter));
  }

  #conditional({ args: [condition, yes, no] }: Call, frame: Frame): Value {
    if (condition === undefined || yes === undefined || no === undefined) throw noSuchOverload();
    const value = this.run(condition, frame);
    if (typeof value !== 'boolean') throw noSuchOverload();
    return this.run(value ? yes : no, frame, true);
  }

  #index(call: Call, frame: Frame, isAttributeStart: boolean): Value {
    const [operand, key] = call.args;
    if (operand === undefined || key === undefined) throw noSuchOverload();
    const args = [this.#operand(operand, frame, isAttributeStart), this.run(key, frame, true)];
    this.meter.charge(units.reference);
    for (const overload of this.#checked.overloads.get(call) ?? []) {
      const value = overload.call(args, this.meter);
      if (value !== undefined) return value;
    }
    throw noSuchOverload();
  }

  #optionalMember({ args: [operand, key] }: Call, frame: Frame, isAttributeStart: boolean): Value {
    if (operand === undefined || key === undefined) throw noSuchOverload();
    const value = this.#operand(operand, frame, isAttributeStart);
    const target = isOptional(value) ? value.value : value;
    if (target === undefined) return noValue;
    const name = this.run(key, frame, true);
    const found = typeof name === 'string' ? member(target, name) : item(target, name);
    if (found !== undefined) this.meter.charge(units.reference);
    return new Optional(found);
  }

  /** An operand that decides the result hides the errors of others, in any order. */
  #logical({ operator, operands }: Logical, frame: Frame): Value {
    const deciding = operator === '||';
    let failure: EvaluationError | undefined;
    for (const operand of operands) {
      const value = this.attempt(operand, frame);
      if (value === deciding) return deciding;
      if (value instanceof EvaluationError) failure ??= value;
      else if (typeof value !== 'boolean') failure ??= noSuchOverload();
    }
    if (failure !== undefined) throw failure;
    return !deciding;
  }

  attempt(expression: Expression, frame: Frame): Value | EvaluationError {
    try {
      return this.run(expression, frame);
    } catch (error) {
      if (error instanceof EvaluationError) return error;
      throw error;
    }
  }

  #list({ elements }: ListLiteral, frame: Frame): Value {
    this.meter.charge(units.list);
    const items: Value[] = [];
    for (const { value, optional } of elements) {
      const item = this.run(value, frame);
      if (!optional) items.push(item);
      else if (!isOptional(item)) throw noSuchOverload();
      else if (item.value !== undefined) items.push(item.value);
    }
    return new PlainList(items);
  }

  #map({ entries }: MapLiteral, frame: Frame): Value {
    this.meter.charge(units.map);
    const pairs: [Value, Value][] = [];
    for (const { key, value, optional } of entries) {
      const name = this.run(key, frame);
      const item = this.run(value, frame);
      if (!optional) pairs.push([name, item]);
      else if (!isOptional(item)) throw noSuchOverload();
      else if (item.value !== undefined) pairs.push([name, item.value]);
    }
    return new PlainMap(pairs);
  }

  #struct({ name, fields }: StructLiteral, frame: Frame): Value {
    this.meter.charge(units.struct);
    const pairs: [Value, Value][] = [];
    for (const { name: field, value, optional } of fields) {
      const made = this.run(value, frame);
      if (!optional) pairs.push([field, made]);
      else if (!isOptional(made)) throw noSuchOverload();
      else if (made.value !== undefined) pairs.push([field, made.value]);
    }
    return new StructValue(name, pairs);
  }

  isConstant(expression: Expression): boolean {
    return expression.kind === 'literal' || this.#constants.has(expression);
  }
}

/** True for cel-go's attributes: variables, selections, indexes and conditionals (`interpreter/attributes.go`). */
function isAttribute(expression: Expression): boolean {
  if (expression.kind === 'ident') return true;
  if (expression.kind === 'select') return !expression.test;
  return expression.kind === 'call' && attributeCalls.has(expression.name);
}

const attributeCalls = new Set(['_[_]', '_?._', '_[?_]', '_?_:_']);

function member(target: Value, name: string): Value | undefined {
  if (isMap(target)) return target.find(name);
  throw noSuchOverload();
}

function item(target: Value, key: Value): Value | undefined {
  if (isMap(target)) return target.find(key);
  if (isList(target) && typeof key === 'bigint') return target.at(Number(key));
  throw noSuchOverload();
}
