/**
 * The cost of a call with known arguments (apiserver `pkg/cel/library/cost.go` CallCost, cel-go
 * `interpreter/runtimecost.go`).
 */
import { sortByKeys } from '../library/lists.ts';
import { isBytes, isList, isMap, listItems, type Value } from '../values.ts';
import { sizeOf, units } from './size.ts';

/** @param result undefined when the call failed. */
type Rule = (args: readonly Value[], result: Value | undefined) => number;

const { perCharacter, perPatternCharacter, call: once } = units;
/** The cost of an authorization check. */
const checkCost = 350_000;

function size(value: Value | undefined): number {
  return value === undefined ? 1 : sizeOf(value);
}

function walked(elements: number, factor = 1): number {
  return Math.ceil(elements * factor * perCharacter);
}

const walk: Rule = ([text]) => walked(size(text));
const walkTwice: Rule = ([text]) => walked(size(text), 2);

/** The cost of walking a value; texts count by their bytes. */
function traversal(value: Value | undefined): number {
  if (value === undefined) return 1;
  if (typeof value === 'string') return Math.floor(Buffer.byteLength(value) * perCharacter);
  if (isBytes(value)) return Math.floor(value.length * perCharacter);
  if (isList(value)) return listItems(value).reduce((sum: number, item) => sum + traversal(item), 0);
  if (!isMap(value)) return 1;
  return value.keys().reduce((sum: number, key) => sum + traversal(key) + traversal(value.find(key)), 0);
}

const traverse: Rule = ([value]) => traversal(value);

const match: Rule = ([text, pattern]) =>
  walked(1 + size(text)) * Math.ceil(size(pattern) * perPatternCharacter);

/** The cost of a comparison: one unit for scalars, more for texts, lists and maps when both are large. */
const compare: Rule = ([a, b]) => walked(Math.min(size(a), size(b)));

const order: Rule = (args, result) =>
  typeof args[0] === 'string' || args[0] instanceof Uint8Array ? compare(args, result) : once;

const equal: Rule = (args, result) => {
  const [a] = args;
  const opaque = typeof a === 'object' && a !== null && !isBytes(a) && a.kind === 'opaque';
  return opaque ? once : compare(args, result);
};

const join: Rule = (_args, result) => walked(size(result), 2);

const concat: Rule = ([a, b]) =>
  typeof a === 'string' || a instanceof Uint8Array ? walked(size(a) + size(b)) : once;

const isIn: Rule = ([, container]) => (container !== undefined && isList(container) ? container.size : once);

/** The cost of a conversion: only those between texts and bytes depend on the size. */
const toBytes: Rule = ([value]) => (typeof value === 'string' ? walked(size(value)) : once);
const toText: Rule = ([value]) => (value instanceof Uint8Array ? walked(value.length) : once);

const parseAddress: Rule = ([value]) => (typeof value === 'string' ? walked(size(value)) : once);

const readOther = (other: Value | undefined) => (typeof other === 'string' ? walked(size(other)) : 0);
const containsIP: Rule = ([range, other]) => walked(size(range), 2) + readOther(other);
const containsCIDR: Rule = ([range, other]) =>
  walked(size(range), 2) + walked(size(range)) + 1 + readOther(other);

const validate: Rule = ([format, text]) =>
  walked(1 + size(text)) * Math.ceil(size(format) * perPatternCharacter);

const selector: Rule = ([, text]) => {
  const length = size(text);
  return units.list + walked(length) + Math.ceil(length * 0.5) * (units.list + units.struct);
};

function sets(factor: number): Rule {
  return ([a, b]) => size(a) * size(b) * factor + once;
}

/** The cost of a call that returns a new list. */
function makes(cost: number): number {
  return Math.floor(cost) + units.call + units.list;
}

const listed: Rule = (_args, result) => makes(size(result));

const flatten: Rule = ([list, depth]) =>
  makes(size(list) * (typeof depth === 'bigint' ? (depth < 0n ? 1 : Number(depth)) : 1));

/** The cost of comparing each item, or key, with each other. */
function compareItems(keys: Value | undefined): number {
  if (keys === undefined || !isList(keys)) return makes(0);
  const first = keys.at(0);
  const factor = typeof first === 'string' || first instanceof Uint8Array ? 2 + perCharacter : 2;
  return makes(keys.size ** 2 * factor);
}

const rules: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['check', () => checkCost],
  ['fieldSelector', selector],
  ['labelSelector', selector],
  ...['isSorted', 'sum', 'max', 'min', 'indexOf', 'lastIndexOf'].map((name): [string, Rule] => [
    name,
    traverse,
  ]),
  ...[
    ...[
      'url',
      'lowerAscii',
      'upperAscii',
      'substring',
      'trim',
      'jsonpatch.escapeKey',
      'cidr',
      'isIP',
      'isCIDR',
    ],
    ...['quantity', 'isQuantity', 'semver', 'isSemver', 'startsWith', 'endsWith', 'format', 'strings.quote'],
  ].map((name): [string, Rule] => [name, walk]),
  ...['replace', 'split', 'ip.isCanonical'].map((name): [string, Rule] => [name, walkTwice]),
  ...['find', 'findAll', 'matches'].map((name): [string, Rule] => [name, match]),
  ...['_<_', '_<=_', '_>_', '_>=_'].map((name): [string, Rule] => [name, order]),
  ['_==_', equal],
  ['_!=_', compare],
  ['join', join],
  ['_+_', concat],
  ['@in', isIn],
  ['bytes', toBytes],
  ['string', toText],
  ['ip', parseAddress],
  ['containsIP', containsIP],
  ['containsCIDR', containsCIDR],
  ['validate', validate],
  ['contains', ([text, part]) => walked(size(text)) * walked(size(part))],
  ['slice', listed],
  ['lists.range', listed],
  ['reverse', listed],
  ['flatten', flatten],
  ['distinct', ([list]) => compareItems(list)],
  ['sort', ([list]) => compareItems(list)],
  [sortByKeys, ([, keys]) => compareItems(keys)],
  ['sets.contains', sets(1)],
  ['sets.intersects', sets(1)],
  ['sets.equivalent', sets(2)],
]);

/**
 * The cost of a call, in units.
 *
 * @param isMember called on its first argument.
 * @param result undefined when the call, or one of its arguments, failed.
 */
export function callCost(
  name: string,
  args: readonly Value[],
  result: Value | undefined,
  isMember: boolean,
): number {
  // The global form of `matches` costs one unit.
  if (name === 'matches' && !isMember) return once;
  return rules.get(name)?.(args, result) ?? once;
}
