/**
 * Upper bounds of the cost of calls (apiserver `pkg/cel/library/cost.go` EstimateCallCost, cel-go `checker/cost.go`
 * functionCost).
 */
import type { Expression } from '../syntax/ast.ts';
import type { CelType } from '../types.ts';
import {
  addSizes,
  fixedSize,
  multiplySizes,
  oneSize,
  plus,
  scaled,
  type SizeRange,
  times,
  unknownSize,
} from './size.ts';
import { units } from './size.ts';

/** One overload that a call may refer to, with its target. */
interface CallForm {
  readonly name: string;
  readonly params: readonly CelType[];
  readonly target: Estimate | undefined;
  readonly args: readonly Estimate[];
}

/** The cost of a call without its arguments, and the size of its result where it is known. */
export interface CallEstimate {
  readonly cost: number;
  readonly size: SizeRange | undefined;
}

type Lookup = (path: readonly string[]) => SizeRange | undefined;
type Rule = (form: CallForm, lookup: Lookup) => CallEstimate | undefined;

const { perCharacter, perPatternCharacter } = units;
/** Addresses and prefixes have 4 or 16 bytes. */
const addressBytes = 16;
/**
 * The size that is assumed for all formats (`MaxNameFormatRegexSize`), and the longest format name (`MaxFormatSize`).
 */
const formatPatternSize = 128;
const formatSize = 64;

const once: CallEstimate = { cost: units.call, size: undefined };

/** The cost of an authorization check: two fit into the budget of an expression. */
const checkCost = 350_000;

function sized(part: Estimate | undefined): SizeRange {
  return part?.size ?? unknownSize;
}

function cost(value: number, size?: SizeRange): CallEstimate {
  return { cost: value, size };
}

/** A call that walks through its target and returns something of that size. */
const walk: Rule = ({ target }) => {
  if (target === undefined) return undefined;
  const size = sized(target);
  return cost(scaled(size.max, perCharacter), size);
};

/** A function that walks through a text. */
const walkArgument: Rule = ({ args: [text] }) => {
  const size = sized(text);
  return cost(scaled(size.max, perCharacter), size);
};

/** Walks all items of a list, and reads the texts among them. */
const walkItems: Rule = ({ target }, lookup) => {
  if (target === undefined) return undefined;
  const count = sized(target).max;
  const item = target.type?.kind === 'list' ? target.type.element : undefined;
  if (item === undefined) return cost(scaled(count, perCharacter));
  const read = isText(item) ? scaled(itemSize(target, lookup).max, perCharacter) : 0;
  return cost(times(count, plus(1, read)));
};

function isText(type: CelType): boolean {
  return type.kind === 'simple' && (type.name === 'string' || type.name === 'bytes');
}

function itemSize({ path }: Estimate, lookup: Lookup): SizeRange {
  return (path.length === 0 ? undefined : lookup([...path, '@items'])) ?? unknownSize;
}

function patternCost(text: SizeRange, pattern: SizeRange): number {
  return times(scaled(plus(text.max, 1), perCharacter), scaled(pattern.max, perPatternCharacter));
}

/** Reads a text `factor` times. */
function reading(factor: number): Rule {
  return ({ params: [type], args: [text] }) =>
    type !== undefined && isText(type) ? cost(scaled(sized(text).max, factor * perCharacter)) : once;
}

const find: Rule = ({ target, args: [pattern] }) => {
  const size = sized(target);
  return cost(patternCost(size, sized(pattern)), { min: 0, max: size.max });
};

const replace: Rule = ({ target, args: [from, to] }) => {
  const text = sized(target);
  const old = sized(from);
  const next = sized(to);
  const twice = scaled(text.max, 2 * perCharacter);
  return cost(twice, { min: minReplaced(text, old, next), max: maxReplaced(text, old, next) });
};

/** The length of a text after replacements that make it as long as possible. */
function maxReplaced(text: SizeRange, from: SizeRange, to: SizeRange): number {
  if (from.min === 0) return plus(times(plus(text.max, 1), to.max), text.max);
  if (to.max <= from.min) return text.max;
  return times(Math.ceil(text.max / from.min), to.max);
}

function minReplaced(text: SizeRange, from: SizeRange, to: SizeRange): number {
  if (from.max === 0) return plus(times(plus(text.min, 1), to.min), text.min);
  if (from.max <= to.min) return text.min;
  return times(Math.ceil(text.min / from.max), to.min);
}

const split: Rule = ({ target, args }) => {
  const size = sized(target);
  const limit = args[1]?.expression;
  const most = limit?.kind === 'literal' && typeof limit.value === 'bigint' ? Number(limit.value) : size.max;
  return cost(scaled(size.max, 2 * perCharacter), { min: 0, max: most < 0 ? unknownSize.max : most });
};

const join: Rule = ({ target, args: [separator] }, lookup) => {
  if (target === undefined) return undefined;
  const count = sized(target);
  let size = multiplySizes(count, itemSize(target, lookup));
  if (separator !== undefined) {
    const gaps = { min: Math.max(0, count.min - 1), max: Math.max(0, count.max - 1) };
    size = addSizes(size, multiplySizes(sized(separator), gaps));
  }
  return cost(scaled(size.max, perCharacter), size);
};

/** Comparing prefixes; a text is parsed first. */
function contained(extra: number): Rule {
  return ({ target, params, args: [other] }) => {
    if (target === undefined) return undefined;
    const text = params[1];
    const reading = text !== undefined && isText(text) ? scaled(sized(other).max, perCharacter) : 0;
    return cost(plus(scaled(2 * addressBytes, perCharacter), extra, reading));
  };
}

const validate: Rule = ({ target, args: [text] }) =>
  target === undefined
    ? undefined
    : cost(scaled(scaled(sized(text).max, perCharacter), formatPatternSize * perPatternCharacter));

const equal: Rule = ({ args: [a, b] }) => {
  const smaller = Math.min(sized(a).max, sized(b).max);
  return cost(scaled(smaller, perCharacter));
};

/** Values of Kubernetes' types are compared at a fixed cost, formats and URLs at that of their texts. */
const equalOfKind: Rule = (form, lookup) => {
  const [a, b] = form.args;
  const name = a?.type?.kind === 'opaque' && b?.type?.kind === 'opaque' ? a.type.name : undefined;
  if (name === undefined || (b?.type?.kind === 'opaque' && b.type.name !== name)) return equal(form, lookup);
  if (name === 'kubernetes.NamedFormat') return cost(scaled(formatSize, perCharacter));
  if (name === 'kubernetes.URL') return cost(scaled((b?.size ?? oneSize).max, perCharacter));
  return once;
};

/** Texts and bytes are compared character by character, other values in one step. */
const ordered: Rule = (form, lookup) =>
  form.params[0] !== undefined && isText(form.params[0]) ? equal(form, lookup) : once;

const joined: Rule = ({ params: [type], args: [a, b] }) => {
  if (type === undefined || (!isText(type) && type.kind !== 'list')) return once;
  const size = addSizes(sized(a), sized(b));
  return cost(type.kind === 'list' ? units.call : scaled(size.max, perCharacter), size);
};

const quoted: Rule = ({ args: [text] }) => {
  const { min, max } = sized(text);
  return cost(scaled(max, perCharacter), { min: plus(min, 2), max: plus(times(max, 2), 2) });
};

/** A walk for one overload, with the size of its result. */
function converted(from: string, resize: (size: SizeRange) => SizeRange): Rule {
  return ({ params: [type], args: [value] }) => {
    if (type?.kind !== 'simple' || type.name !== from) return once;
    const size = sized(value);
    return cost(scaled(size.max, perCharacter), resize(size));
  };
}

function sets(factor: number): Rule {
  return ({ args: [a, b] }) => cost(plus(units.call, scaled(times(sized(a).max, sized(b).max), factor)));
}

/** Parsing a selector, with one requirement for every two characters. */
const selector: Rule = ({ args: [text] }) => {
  const size = sized(text).max;
  const perRequirement = units.list + units.struct;
  return cost(plus(units.list, scaled(size, perCharacter), times(scaled(size, 0.5), perRequirement)));
};

/** A call that returns a new list of `size` items, at `factor` per item. */
function makes(size: SizeRange, factor = 1): CallEstimate {
  return cost(plus(scaled(size.max, factor), units.list, units.call), size);
}

/** The value of an integer literal, 0 for negative ones. */
function literalInteger(part: Estimate | undefined, otherwise: number): number {
  const value = part?.expression.kind === 'literal' ? part.expression.value : undefined;
  return typeof value === 'bigint' ? Math.max(0, Number(value)) : otherwise;
}

const slice: Rule = ({ target, args: [start, end] }) => {
  const length = literalInteger(end, sized(target).max) - literalInteger(start, 0);
  return makes(fixedSize(length < 0 ? unknownSize.max : length));
};

const flatten: Rule = ({ target, args: [depth] }) =>
  makes(sized(target), depth === undefined ? 1 : literalInteger(depth, unknownSize.max));

/** Compares each item, or key, with each other. As in cel-go, the estimated size of the result is the square, too. */
export function compareItems(keys: SizeRange, type: CelType | undefined): CallEstimate {
  return makes(multiplySizes(keys, keys), type !== undefined && isText(type) ? 2 + perCharacter : 2);
}

const distinct: Rule = ({ target }) => {
  const type = target?.type?.kind === 'list' ? target.type.element : undefined;
  return compareItems(sized(target), type);
};

const sort: Rule = ({ target, params: [list] }) =>
  compareItems(sized(target), list?.kind === 'list' ? list.element : undefined);

const startsOrEnds: Rule = ({ args: [part] }) => cost(scaled(sized(part).max, perCharacter));

const rules: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['check', () => cost(checkCost)],
  ['fieldSelector', selector],
  ['labelSelector', selector],
  ...['isSorted', 'sum', 'max', 'min', 'indexOf', 'lastIndexOf'].map((name): [string, Rule] => [
    name,
    walkItems,
  ]),
  ...['lowerAscii', 'upperAscii', 'substring', 'trim'].map((name): [string, Rule] => [name, walk]),
  ['url', walkArgument],
  ['jsonpatch.escapeKey', walkArgument],
  ...['cidr', 'ip', 'isCIDR', 'isIP', 'isQuantity', 'isSemver', 'quantity', 'semver'].map(
    (name): [string, Rule] => [name, reading(1)],
  ),
  ['ip.isCanonical', reading(2)],
  ['replace', replace],
  ['split', split],
  ['join', join],
  ['find', find],
  ['findAll', find],
  ['containsIP', contained(0)],
  ['containsCIDR', contained(scaled(addressBytes, perCharacter) + 1)],
  ['validate', validate],
  ['_==_', equalOfKind],
  ['_!=_', equal],
  ...['_<_', '_<=_', '_>_', '_>=_'].map((name): [string, Rule] => [name, ordered]),
  ['_+_', joined],
  ['@in', ({ params, args }) => (params[1]?.kind === 'list' ? cost(sized(args[1]).max) : once)],
  ['startsWith', startsOrEnds],
  ['endsWith', startsOrEnds],
  [
    'contains',
    ({ target, args: [part] }) =>
      cost(times(scaled(sized(target).max, perCharacter), scaled(sized(part).max, perCharacter))),
  ],
  [
    'matches',
    // Only the member form on a text has a known cost.
    ({ target, args: [pattern] }) =>
      target === undefined ? once : cost(patternCost(sized(target), sized(pattern))),
  ],
  ['format', ({ target }) => cost(scaled(sized(target).max, perCharacter))],
  ['strings.quote', quoted],
  ['bytes', converted('string', ({ min, max }) => ({ min, max: times(max, 4) }))],
  ['string', converted('bytes', ({ min, max }) => ({ min: Math.floor(min / 4), max }))],
  ['slice', slice],
  ['lists.range', ({ args: [length] }) => makes(fixedSize(literalInteger(length, unknownSize.max)))],
  ['reverse', ({ target }) => makes(sized(target))],
  ['flatten', flatten],
  ['distinct', distinct],
  ['sort', sort],
  ['sets.contains', sets(1)],
  ['sets.intersects', sets(1)],
  ['sets.equivalent', sets(2)],
]);

/** The cost of one overload; one unit for functions whose time does not depend on their arguments. */
export function estimateCall(form: CallForm, lookup: Lookup): CallEstimate {
  return rules.get(form.name)?.(form, lookup) ?? once;
}

/** The known facts about a subexpression. */
export interface Estimate {
  readonly cost: number;
  readonly type: CelType | undefined;
  /** The path of the value; empty for computed values. */
  readonly path: readonly string[];
  readonly size: SizeRange | undefined;
  readonly entry: EntrySize | undefined;
  readonly expression: Expression;
}

/** Sizes of the items of a list, or of the keys and values of a map. */
export interface EntrySize {
  readonly container: 'list' | 'map';
  readonly key: SizeRange;
  readonly value: SizeRange;
}
