/** The upper bound of the cost of an expression, before any value is known (cel-go `checker/cost.go`). */
import type { Call, Comprehension, Expression, Select } from '../syntax/ast.ts';
import type { Checked } from '../checker.ts';
import { functionName, namedType, qualifiedName } from '../overload.ts';
import type { Overload } from '../overload.ts';
import type { CelType } from '../types.ts';
import {
  type CallEstimate,
  compareItems,
  estimateCall,
  type EntrySize,
  type Estimate,
} from './estimate-calls.ts';
import { fixedSize, plus, type SizeRange, times, uniteSizes, unknownSize } from './size.ts';
import { characterCount, units } from './size.ts';

/**
 * The largest size of a value by its path: a variable, then fields, `@items`, `@keys` and `@values`. Undefined where it
 * is unknown.
 */
export type SizeLookup = (path: readonly string[]) => number | undefined;

interface Local {
  readonly path: readonly string[];
  readonly size: SizeRange | undefined;
  readonly entry: EntrySize | undefined;
}

type Locals = ReadonlyMap<string, Local>;

/** The worst-case cost of an expression, in cel-go's units. */
export function estimateCost(expression: Expression, checked: Checked, sizeAt: SizeLookup): number {
  return new Estimator(checked, sizeAt).visit(expression, new Map()).cost;
}

class Estimator {
  readonly #checked: Checked;
  readonly #sizeAt: SizeLookup;

  constructor(checked: Checked, sizeAt: SizeLookup) {
    this.#checked = checked;
    this.#sizeAt = sizeAt;
  }

  visit(expression: Expression, locals: Locals): Estimate {
    switch (expression.kind) {
      case 'literal':
        return this.#part(expression, { cost: 0 });
      case 'ident': {
        const local = locals.get(expression.name);
        const path = local?.path ?? [expression.name];
        return this.#part(expression, { cost: units.reference, path, local });
      }
      case 'select':
        return this.#select(expression, locals);
      case 'call':
        return this.#call(expression, locals);
      case 'logical': {
        const operands = expression.operands.map((operand) => this.visit(operand, locals).cost);
        return this.#part(expression, { cost: plus(...operands) });
      }
      case 'list':
      case 'map':
        return this.#container(expression, locals);
      case 'struct': {
        const fields = expression.fields.map(({ value }) => this.visit(value, locals).cost);
        return this.#part(expression, { cost: plus(units.struct, ...fields) });
      }
      case 'comprehension':
        return this.#comprehension(expression, locals);
    }
  }

  /** Sources of sizes in cel-go's order: computed, literal, schema, type. */
  #part(
    expression: Expression,
    known: {
      cost: number;
      path?: readonly string[];
      size?: SizeRange | undefined;
      entry?: EntrySize | undefined;
      local?: Local | undefined;
    },
  ): Estimate {
    const { cost, path = [], local } = known;
    const type = this.#checked.types.get(expression);
    const size =
      known.size ??
      literalSize(expression) ??
      this.sizeOf(path) ??
      (type !== undefined && isScalar(type) ? fixedSize(1) : local?.size);
    return { cost, type, path, size, entry: known.entry ?? local?.entry, expression };
  }

  sizeOf(path: readonly string[]): SizeRange | undefined {
    const max = path.length === 0 ? undefined : this.#sizeAt(path);
    return max === undefined ? undefined : { min: 0, max };
  }

  #select(select: Select, locals: Locals): Estimate {
    const name = qualifiedName(select);
    if (name !== undefined && namedType(name) !== undefined) {
      return this.#part(select, { cost: units.reference, path: [name] });
    }
    const operand = this.visit(select.operand, locals);
    if (select.test) return this.#part(select, { cost: operand.cost });
    const kind = operand.type?.kind;
    const counts = kind === 'map' || kind === 'object';
    const cost = counts ? plus(operand.cost, units.reference) : operand.cost;
    return this.#part(select, { cost, path: [...operand.path, select.field] });
  }

  #container(expression: Expression & { kind: 'list' | 'map' }, locals: Locals): Estimate {
    if (expression.kind === 'list') {
      const items = expression.elements.map(({ value }) => this.visit(value, locals));
      const cost = plus(units.list, ...items.map((item) => item.cost));
      const entry: EntrySize = { container: 'list', key: fixedSize(1), value: united(items) };
      return this.#part(expression, { cost, entry });
    }
    const keys = expression.entries.map(({ key }) => this.visit(key, locals));
    const values = expression.entries.map(({ value }) => this.visit(value, locals));
    const cost = plus(units.map, ...[...keys, ...values].map((part) => part.cost));
    return this.#part(expression, {
      cost,
      entry: { container: 'map', key: united(keys), value: united(values) },
    });
  }

  #call(call: Call, locals: Locals): Estimate {
    const args = call.args.map((arg) => this.visit(arg, locals));
    const [first, second, third] = args;
    const spent = plus(...args.map(({ cost }) => cost));
    if (call.name === 'dyn' && first !== undefined) {
      return this.#part(call, { cost: plus(1, first.cost), size: first.size, entry: first.entry });
    }
    if (call.name === '_?._') return this.#part(call, { cost: plus(units.call, spent) });
    if (call.name === '_?_:_' && first !== undefined && second !== undefined && third !== undefined) {
      return this.#part(call, {
        cost: plus(first.cost, Math.max(second.cost, third.cost)),
        size: uniteSizes(second.size ?? unknownSize, third.size ?? unknownSize),
        entry: unitedEntries(second.entry, third.entry),
      });
    }
    const overloads = this.#checked.overloads.get(call) ?? [];
    if (overloads.length === 0) return this.#part(call, { cost: 0 });
    const target =
      call.target !== undefined && overloads[0]?.member === true
        ? this.visit(call.target, locals)
        : undefined;
    const made = this.#forms(call, overloads, target, args);
    const entry = call.name === '_+_' ? unitedEntries(first?.entry, second?.entry) : undefined;
    return this.#part(call, {
      cost: plus(target?.cost ?? 0, spent, made.cost),
      path: made.path,
      size: made.size,
      entry,
    });
  }

  /** The maximum over all overloads. */
  #forms(
    call: Call,
    overloads: readonly Overload[],
    target: Estimate | undefined,
    args: readonly Estimate[],
  ): CallEstimate & { readonly path: readonly string[] } {
    let cost = 0;
    let size: SizeRange | undefined;
    let path: readonly string[] = [];
    const name = functionName(call, overloads);
    for (const { params } of overloads) {
      const form = { name, params, target, args };
      const estimate = estimateCall(form, (way) => this.sizeOf(way));
      cost = Math.max(cost, estimate.cost);
      if (estimate.size !== undefined)
        size = size === undefined ? estimate.size : uniteSizes(size, estimate.size);
      const [operand] = args;
      if (call.name === '_[_]' && operand !== undefined) {
        size = operand.entry?.value;
        path = [...operand.path, params[0]?.kind === 'list' ? '@items' : '@values'];
      }
      size ??= this.#part(call, { cost: 0, path }).size;
    }
    return { cost, size, path };
  }

  #comprehension(node: Comprehension, locals: Locals): Estimate {
    const range = this.visit(node.range, locals);
    if (node.macro === 'optMap' || node.macro === 'optFlatMap')
      return this.#optionalMacro(node, range, locals);
    if (node.macro === 'bind') return this.#bind(node, range, locals);
    if (node.macro === 'sortBy') return this.#sortBy(node, range, locals);
    const inner = new Map(locals);
    node.variables.forEach((name, i) => inner.set(name, loopVariable(range, i, node.variables.length === 2)));
    const body = this.visit(node.body, inner);
    const filter = node.filter === undefined ? 0 : this.visit(node.filter, inner).cost;
    const count = range.size ?? unknownSize;
    const { start, round, end } = loopCosts(node, body.cost);
    const cost = plus(range.cost, start, times(count.max, plus(round, filter)), end);
    switch (node.macro) {
      case 'all':
      case 'exists':
      case 'existsOne':
        return this.#part(node, { cost, size: fixedSize(1) });
      case 'filter': {
        const item = inner.get(node.variables[0]);
        const known = this.#localSize(item) ?? unknownSize;
        return this.#part(node, { cost, size: count, entry: appendedItems(known) });
      }
      case 'map':
      case 'transformList':
        return this.#part(node, { cost, size: count, entry: appendedItems(body.size ?? unknownSize) });
      case 'transformMap':
      case 'transformMapEntry':
        return this.#part(node, { cost, size: count });
    }
  }

  /** cel-go makes it of a comprehension over an empty list. */
  #bind(node: Comprehension, range: Estimate, locals: Locals): Estimate {
    const { path, size, entry } = range;
    const body = this.visit(node.body, new Map(locals).set(node.variables[0], { path, size, entry }));
    return this.#part(node, { cost: plus(units.list, range.cost, body.cost), size: body.size });
  }

  /** cel-go binds the range to a variable in a comprehension over an empty list, and reads it twice. */
  #sortBy(node: Comprehension, range: Estimate, locals: Locals): Estimate {
    const inner = new Map(locals).set(node.variables[0], loopVariable(range, 0, false));
    const body = this.visit(node.body, inner);
    const count = range.size ?? unknownSize;
    const { start, round, end } = loopCosts({ ...node, macro: 'map' }, body.cost);
    const sorting = compareItems(count, body.type);
    const keys = plus(start, times(count.max, round), end);
    const cost = plus(units.list, range.cost, 2 * units.reference, keys, sorting.cost);
    return this.#part(node, { cost, size: sorting.size });
  }

  #localSize(local: Local | undefined): SizeRange | undefined {
    return local === undefined ? undefined : (this.sizeOf(local.path) ?? local.size);
  }

  /** `o.hasValue() ? optional.of(body) : optional.none()`, with the value bound in a comprehension over an empty list. */
  #optionalMacro(node: Comprehension, range: Estimate, locals: Locals): Estimate {
    const type = range.type?.kind === 'optional' ? range.type.of : undefined;
    const size = type !== undefined && isScalar(type) ? fixedSize(1) : undefined;
    const inner = new Map(locals).set(node.variables[0], { path: [], size, entry: undefined });
    const body = this.visit(node.body, inner);
    const value = plus(units.call, range.cost);
    const wrapped = node.macro === 'optMap' ? units.call : 0;
    const present = plus(units.list, value, body.cost, wrapped);
    const cost = plus(units.call, range.cost, Math.max(present, units.call));
    return this.#part(node, { cost, size: uniteSizes(body.size ?? unknownSize, unknownSize) });
  }
}

/** The costs of a macro before the first round, in each round, and after the last (`parser/macro.go`). */
function loopCosts({ macro }: Comprehension, body: number): { start: number; round: number; end: number } {
  const { reference, call, list, map } = units;
  /** `accu + [item]` without the cost of the item. */
  const append = reference + list + call;
  switch (macro) {
    case 'all':
      return { start: 0, round: plus(call + reference, reference, body), end: reference };
    case 'exists':
      return { start: 0, round: plus(2 * call + reference, reference, body), end: reference };
    case 'existsOne':
      return { start: 0, round: plus(body, reference + call), end: reference + call };
    case 'filter':
      return { start: list, round: plus(body, append + reference), end: reference };
    case 'map':
    case 'transformList':
      return { start: list, round: plus(body, append), end: reference };
    case 'transformMap':
      return { start: map, round: plus(body, 2 * reference + call), end: reference };
    case 'transformMapEntry':
      return { start: map, round: plus(body, reference + call), end: reference };
    case 'bind':
    case 'sortBy':
    case 'optMap':
    case 'optFlatMap':
      return { start: 0, round: 0, end: 0 };
  }
}

/** A variable of a macro: an item, index, key or value of its range. */
function loopVariable({ path, entry, type }: Estimate, index: number, pair: boolean): Local {
  const container = entry?.container ?? type?.kind;
  const isKey = pair ? index === 0 : container !== 'list';
  const list = container === 'list';
  const step = isKey ? (list ? '@indices' : '@keys') : list ? '@items' : '@values';
  return { path: [...path, step], size: isKey ? entry?.key : entry?.value, entry: undefined };
}

/** The sizes in a list that a macro appends to: from 0, since it starts empty. */
function appendedItems({ max }: SizeRange): EntrySize {
  return { container: 'list', key: fixedSize(1), value: { min: 0, max } };
}

function united(parts: readonly Estimate[]): SizeRange {
  const [first, ...rest] = parts.map(({ size }) => size ?? unknownSize);
  return first === undefined ? fixedSize(0) : rest.reduce(uniteSizes, first);
}

function unitedEntries(a: EntrySize | undefined, b: EntrySize | undefined): EntrySize | undefined {
  if (a === undefined || b === undefined) return undefined;
  return {
    container: a.container,
    key: uniteSizes(a.key, b.key),
    value: uniteSizes(a.value, b.value),
  };
}

/** The size of a literal. */
function literalSize(expression: Expression): SizeRange | undefined {
  switch (expression.kind) {
    case 'literal': {
      const { value } = expression;
      if (typeof value === 'string') return fixedSize(characterCount(value));
      return fixedSize(value instanceof Uint8Array ? value.length : 1);
    }
    case 'list':
      return fixedSize(expression.elements.length);
    case 'map':
      return fixedSize(expression.entries.length);
    case 'ident':
    case 'select':
    case 'call':
    case 'logical':
    case 'struct':
    case 'comprehension':
      return undefined;
  }
}

const scalars = new Set(['bool', 'double', 'duration', 'int', 'timestamp', 'uint']);

function isScalar(type: CelType): boolean {
  if (type.kind === 'optional') return isScalar(type.of);
  return type.kind === 'simple' && scalars.has(type.name);
}
