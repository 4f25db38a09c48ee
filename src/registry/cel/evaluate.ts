import type { Call, Comprehension, Expression, ListLiteral, Logical, MapLiteral, Select } from './ast.ts';
import type { Checked } from './checker.ts';
import { equals } from './equality.ts';
import { costs, type Meter } from './meter.ts';
import { namedType, qualifiedName } from './names.ts';
import {
  EvaluationError,
  isList,
  isMap,
  isOptional,
  itemsOf,
  noSuchOverload,
  none,
  Optional,
  PlainList,
  PlainMap,
  TypeValue,
  type Value,
} from './values.ts';

/** Where names get their values: variables of macros hide those around them. */
interface Frame {
  find(name: string): Value | undefined;
}

/**
 * The value of a checked expression.
 *
 * @param bindings the values of the declared variables; one that is missing is an error when it is read.
 * @throws {EvaluationError} when there is no value.
 * @throws {CostLimitError} when it would do too much.
 */
export function evaluate(
  expression: Expression,
  checked: Checked,
  bindings: ReadonlyMap<string, Value>,
  meter: Meter,
): Value {
  const frame: Frame = { find: (name) => bindings.get(name) };
  return new Evaluator(checked, meter).run(expression, frame);
}

class Evaluator {
  readonly #checked: Checked;
  readonly #meter: Meter;

  constructor(checked: Checked, meter: Meter) {
    this.#checked = checked;
    this.#meter = meter;
  }

  run(expression: Expression, frame: Frame): Value {
    switch (expression.kind) {
      case 'literal':
        return expression.value;
      case 'ident':
        return this.#name(expression.name, frame);
      case 'select':
        return this.#select(expression, frame);
      case 'call':
        return this.#call(expression, frame);
      case 'logical':
        return this.#logical(expression, frame);
      case 'list':
        return this.#list(expression, frame);
      case 'map':
        return this.#map(expression, frame);
      case 'comprehension':
        return this.#comprehension(expression, frame);
    }
  }

  #name(name: string, frame: Frame): Value {
    this.#meter.charge(costs.reference);
    const value = frame.find(name);
    if (value !== undefined) return value;
    if (namedType(name) !== undefined) return new TypeValue(name);
    throw new EvaluationError(`no such attribute(s): ${name}`);
  }

  #select(select: Select, frame: Frame): Value {
    const qualified = qualifiedName(select);
    if (qualified !== undefined && namedType(qualified) !== undefined) return new TypeValue(qualified);
    const operand = this.run(select.operand, frame);
    this.#meter.charge(costs.reference);
    if (isOptional(operand)) {
      const found = operand.value === undefined ? undefined : member(operand.value, select.field);
      return select.test ? found !== undefined : new Optional(found);
    }
    const value = member(operand, select.field);
    if (select.test) return value !== undefined;
    if (value === undefined) throw new EvaluationError(`no such key: ${select.field}`);
    return value;
  }

  #call(call: Call, frame: Frame): Value {
    this.#meter.charge(costs.call);
    if (call.name === '_?_:_') return this.#conditional(call, frame);
    if (call.name === '_?._' || call.name === '_[?_]') return this.#optionalMember(call, frame);
    if (call.name === '_==_' || call.name === '_!=_') {
      const [a, b] = this.#args(call.args, frame);
      return a !== undefined && b !== undefined && equals(a, b, this.#meter) === (call.name === '_==_');
    }
    const overloads = this.#checked.overloads.get(call) ?? [];
    const isMember = overloads[0]?.member === true;
    if (!isMember || call.target === undefined) return this.#apply(call, this.#args(call.args, frame));
    const target = this.run(call.target, frame);
    if (isOptional(target) && (call.name === 'or' || call.name === 'orValue')) {
      if (target.value !== undefined) return call.name === 'or' ? target : target.value;
    }
    return this.#apply(call, [target, ...this.#args(call.args, frame)]);
  }

  #args(args: readonly Expression[], frame: Frame): Value[] {
    return args.map((arg) => this.run(arg, frame));
  }

  #apply(call: Call, args: readonly Value[]): Value {
    for (const overload of this.#checked.overloads.get(call) ?? []) {
      const value = overload.call(args, this.#meter);
      if (value !== undefined) return value;
    }
    throw noSuchOverload();
  }

  #conditional({ args: [condition, yes, no] }: Call, frame: Frame): Value {
    if (condition === undefined || yes === undefined || no === undefined) throw noSuchOverload();
    const value = this.run(condition, frame);
    if (typeof value !== 'boolean') throw noSuchOverload();
    return this.run(value ? yes : no, frame);
  }

  #optionalMember({ args: [operand, key] }: Call, frame: Frame): Value {
    if (operand === undefined || key === undefined) throw noSuchOverload();
    const value = this.run(operand, frame);
    const target = isOptional(value) ? value.value : value;
    if (target === undefined) return none;
    const name = this.run(key, frame);
    return new Optional(typeof name === 'string' ? member(target, name) : item(target, name));
  }

  /** An operand that decides makes up for others that fail, wherever they stand. */
  #logical({ operator, operands }: Logical, frame: Frame): Value {
    const deciding = operator === '||';
    let failure: EvaluationError | undefined;
    for (const operand of operands) {
      const value = this.#attempt(operand, frame);
      if (value === deciding) return deciding;
      if (value instanceof EvaluationError) failure ??= value;
      else if (typeof value !== 'boolean') failure ??= noSuchOverload();
    }
    if (failure !== undefined) throw failure;
    return !deciding;
  }

  #attempt(expression: Expression, frame: Frame): Value | EvaluationError {
    try {
      return this.run(expression, frame);
    } catch (error) {
      if (error instanceof EvaluationError) return error;
      throw error;
    }
  }

  #list({ elements }: ListLiteral, frame: Frame): Value {
    this.#meter.charge(costs.list);
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
    this.#meter.charge(costs.map);
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

  #comprehension(node: Comprehension, frame: Frame): Value {
    const range = this.run(node.range, frame);
    if (node.macro === 'optMap' || node.macro === 'optFlatMap') return this.#overOptional(node, range, frame);
    switch (node.macro) {
      case 'all':
      case 'exists':
        return this.#quantify(node, range, frame);
      case 'existsOne':
        return this.#chosen(node, range, frame, node.body).length === 1;
      case 'filter':
        return new PlainList(this.#chosen(node, range, frame, node.body).map(({ first }) => first));
      case 'map':
      case 'transformList':
        return new PlainList(this.#chosen(node, range, frame).map(({ inner }) => this.run(node.body, inner)));
      case 'transformMap':
        return new PlainMap(
          this.#chosen(node, range, frame).map(({ first, inner }) => [first, this.run(node.body, inner)]),
        );
      case 'transformMapEntry':
        return new PlainMap(
          this.#chosen(node, range, frame).flatMap(({ inner }) => {
            const made = this.run(node.body, inner);
            if (!isMap(made)) throw noSuchOverload();
            return made.keys().map((key): [Value, Value] => [key, made.find(key) ?? null]);
          }),
        );
    }
  }

  #overOptional({ macro, variables: [name], body }: Comprehension, range: Value, frame: Frame): Value {
    if (!isOptional(range)) throw noSuchOverload();
    const { value } = range;
    if (value === undefined) return none;
    const result = this.run(body, bind(frame, name, value));
    return macro === 'optFlatMap' ? result : new Optional(result);
  }

  /** Like a chain of && or ||: it ends with the first item that decides. */
  #quantify(node: Comprehension, range: Value, frame: Frame): Value {
    const deciding = node.macro === 'exists';
    let failure: EvaluationError | undefined;
    for (const { inner } of this.#rounds(node, range, frame)) {
      const value = this.#attempt(node.body, inner);
      if (value === deciding) return deciding;
      if (value instanceof EvaluationError) failure ??= value;
      else if (typeof value !== 'boolean') failure ??= noSuchOverload();
    }
    if (failure !== undefined) throw failure;
    return !deciding;
  }

  /** The rounds whose filter is true. */
  #chosen(node: Comprehension, range: Value, frame: Frame, filter = node.filter): Round[] {
    const rounds: Round[] = [];
    for (const round of this.#rounds(node, range, frame)) {
      const taken = filter === undefined ? true : this.run(filter, round.inner);
      if (typeof taken !== 'boolean') throw noSuchOverload();
      if (taken) rounds.push(round);
    }
    return rounds;
  }

  *#rounds({ variables: [first, second] }: Comprehension, range: Value, frame: Frame): Generator<Round> {
    if (!isList(range) && !isMap(range)) throw noSuchOverload();
    this.#meter.charge(range.size);
    const items = isList(range) ? itemsOf(range) : range.keys();
    for (const [i, value] of items.entries()) {
      // What cel-go counts for a round: the condition, the step and the accumulator.
      this.#meter.charge(costs.reference + 2 * costs.call);
      if (second === undefined) {
        yield { first: value, inner: bind(frame, first, value) };
        continue;
      }
      const key = isList(range) ? BigInt(i) : value;
      const other = isList(range) ? value : (range.find(value) ?? null);
      yield { first: key, inner: bind(bind(frame, first, key), second, other) };
    }
  }
}

/** One turn of a macro over a list or map. */
interface Round {
  /** What the first variable holds. */
  readonly first: Value;
  readonly inner: Frame;
}

function bind(frame: Frame, bound: string, value: Value): Frame {
  return { find: (name) => (name === bound ? value : frame.find(name)) };
}

function member(target: Value, name: string): Value | undefined {
  if (isMap(target)) return target.find(name);
  throw noSuchOverload();
}

function item(target: Value, key: Value): Value | undefined {
  if (isMap(target)) return target.find(key);
  if (isList(target) && typeof key === 'bigint') return target.at(Number(key));
  throw noSuchOverload();
}
