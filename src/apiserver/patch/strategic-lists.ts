import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { RawNumber } from '../schema/json.ts';
import { goQuote } from '../../objects/formats/go-text.ts';

/**
 * - Values as Go's `fmt` prints them with %v: what patch errors show of a patch.
 * - What a strategic merge patch may get wrong, in the words of apimachinery `util/mergepatch/errors.go`.
 * - How a strategic merge patch merges and orders lists (apimachinery `util/strategicpatch/patch.go`, and the design
 *   "preserve order in strategic merge patch").
 */

/** `map[a:1 b:[x y]]`: members sorted, strings bare, null as `<nil>`. */
export function goPrint(value: unknown): string {
  if (value === null || value === undefined) return '<nil>';
  if (Array.isArray(value)) return `[${value.map(goPrint).join(' ')}]`;
  if (value instanceof RawNumber) {
    return value.isInteger ? String(BigInt(value.literal)) : printFloat(Number(value.literal));
  }
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : printFloat(value);
  if (isRecord(value)) {
    const members = Object.keys(value).sort();
    return `map[${members.map((key) => `${key}:${goPrint(value[key])}`).join(' ')}]`;
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Numbers from a million on have an exponent, as those below 0.0001 have; it has two digits. */
function printFloat(value: number): string {
  if (Object.is(value, -0)) return '-0';
  const size = Math.abs(value);
  const text = size >= 1e6 || (size > 0 && size < 1e-4) ? value.toExponential() : String(value);
  return text.replace(/e([+-])(\d)$/, 'e$10$2');
}

/** A patch that cannot be merged. */
export class StrategicPatchError extends Error {
  override readonly name = 'StrategicPatchError';
  /** How the API server answers: `badRequest` 400, `unprocessable` 422, `plain` 500. */
  readonly answer: 'badRequest' | 'unprocessable' | 'plain';

  constructor(message: string, answer: StrategicPatchError['answer'] = 'plain') {
    super(message);
    this.answer = answer;
  }
}

function noMergeKey(item: unknown, mergeKey: string): StrategicPatchError {
  return new StrategicPatchError(`map: ${goPrint(item)} does not contain declared merge key: ${mergeKey}`);
}

export function badPatchType(directive: unknown, item: unknown): StrategicPatchError {
  // Go's %s has a special form for values that are not strings.
  const shown =
    typeof directive === 'string'
      ? directive
      : directive === null
        ? noType
        : Array.isArray(directive) || isRecord(directive)
          ? goPrint(directive)
          : `%!s(${goType(directive)}=${goPrint(directive)})`;
  return new StrategicPatchError(`unknown patch type: ${shown} in map: ${goPrint(item)}`);
}

/** A field that a directive names and the type does not have. */
export function noSuchField(struct: string, field: string): StrategicPatchError {
  return new StrategicPatchError(
    `unable to find api field in struct ${struct} for the json field ${goQuote(field)}`,
  );
}

export function badFormat(
  what: 'retainKeys' | 'setElementOrder list' | 'primitive list',
): StrategicPatchError {
  return new StrategicPatchError(`invalid patch format of ${what}`, 'badRequest');
}

export function wrongListArgument(value: unknown): StrategicPatchError {
  return new StrategicPatchError(`expected a []interface {}, but received a ${goType(value)}`);
}

function wrongMapArgument(value: unknown): StrategicPatchError {
  return new StrategicPatchError(`expected a map[string]interface {}, but received a ${goType(value)}`);
}

/** What %s makes of a nil. */
const noType = '%!s(<nil>)';

/** Go types of the values in a `map[string]interface{}`. */
function goType(value: unknown): string {
  if (value === null) return noType;
  if (value instanceof RawNumber) return value.isInteger ? 'int64' : 'float64';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64';
  if (typeof value === 'string') return 'string';
  return Array.isArray(value) ? '[]interface {}' : 'map[string]interface {}';
}

/** Merges an element of the patch into the live one with the same key. */
export type MergeItem = (live: JsonRecord, patch: JsonRecord) => JsonRecord;

/** The key that directives are set by. */
export const directive = '$patch';

/** A list after its merge. */
export interface MergedList {
  items: unknown[];
  /**
   * The order of the live list for the merge. Go merges inside the live list: added elements take the places of
   * deleted ones, and so have a place among the live ones.
   */
  liveOrder: readonly unknown[];
}

/**
 * Merges two lists. `mergeKey` undefined: a list of scalars, or an error when it is none.
 *
 * @param typeName of the elements, for that error.
 * @throws {StrategicPatchError}
 */
export function mergeList(
  live: readonly unknown[],
  patch: readonly unknown[],
  mergeKey: string | undefined,
  typeName: string,
  mergeItem: MergeItem,
): MergedList {
  if (live.length === 0 && patch.length === 0) return { items: [], liveOrder: live };
  if (elementKind(live, patch) !== 'map') {
    const merged = new Set([...live, ...patch].map(scalar));
    return { items: ordered([...merged], patch, live, undefined), liveOrder: live };
  }
  if (mergeKey === undefined) {
    throw new StrategicPatchError(`cannot merge lists without merge key for ${typeName}`);
  }
  const special = applyDirectives(records(live), records(patch), mergeKey);
  const merged = [...special.live];
  const places = placesOf(merged, mergeKey);
  for (const item of special.patch) {
    const value = keyOf(item, mergeKey);
    const at = places.get(value) ?? merged.length;
    const found = merged[at];
    merged[at] = found === undefined ? item : mergeItem(found, item);
    places.set(value, at);
  }
  return {
    items: ordered(merged, special.patch, special.live, mergeKey),
    liveOrder: special.replaced ? live : merged.slice(0, live.length),
  };
}

/**
 * The scalars of a list without those of another (`$deleteFromPrimitiveList`).
 *
 * @throws {StrategicPatchError} when they are not of one type.
 */
export function deleteScalars(live: readonly unknown[], gone: readonly unknown[]): unknown[] {
  elementKind(live, gone);
  const drop = new Set(gone.map(scalar));
  return live.filter((item) => !drop.has(scalar(item)));
}

/** Takes `$patch` elements out of a patch list, and what they delete out of the live one. */
function applyDirectives(
  live: JsonRecord[],
  patch: JsonRecord[],
  mergeKey: string,
): { live: JsonRecord[]; patch: JsonRecord[]; replaced: boolean } {
  const plain: JsonRecord[] = [];
  const gone = new Set<unknown>();
  let replace = false;
  for (const item of patch) {
    const word = item[directive];
    if (!Object.hasOwn(item, directive)) {
      plain.push(item);
    } else if (word === 'delete') {
      gone.add(keyOf(item, mergeKey));
    } else if (word === 'replace') {
      replace = true;
    } else if (word === 'merge') {
      throw new StrategicPatchError('merging lists cannot yet be specified in the patch');
    } else {
      throw badPatchType(word, item);
    }
  }
  if (replace) return { live: plain, patch: [], replaced: true };
  const kept = live.filter((candidate) => !gone.has(scalar(candidate[mergeKey])));
  return { live: kept, patch: plain, replaced: false };
}

/** The index of the first element with each value of the merge key. */
export function placesOf(list: readonly JsonRecord[], mergeKey: string): Map<unknown, number> {
  const places = new Map<unknown, number>();
  for (const [i, item] of list.entries()) {
    const value = scalar(item[mergeKey]);
    if (!places.has(value)) places.set(value, i);
  }
  return places;
}

/**
 * Orders merged elements: those that `patchOrder` names in its order, the others in that of the live list, and both
 * interleaved by the live list for the elements that it has.
 *
 * @throws {StrategicPatchError} when an element has no merge key.
 */
export function ordered(
  merged: readonly unknown[],
  patchOrder: readonly unknown[],
  liveOrder: readonly unknown[],
  mergeKey: string | undefined,
): unknown[] {
  const patchRank = ranks(patchOrder, mergeKey);
  const liveRank = ranks(liveOrder, mergeKey);
  const identity = (item: unknown): unknown => identityOf(item, mergeKey);
  const rankIn = (rank: Map<unknown, number>, item: unknown): number => rank.get(identity(item)) ?? -1;
  const fromPatch = merged
    .filter((item) => patchRank.has(identity(item)))
    .sort((a, b) => rankIn(patchRank, a) - rankIn(patchRank, b));
  const liveOnly = merged
    .filter((item) => !patchRank.has(identity(item)))
    .sort((a, b) => rankIn(liveRank, a) - rankIn(liveRank, b));
  const result: unknown[] = [];
  let i = 0;
  let j = 0;
  while (i < liveOnly.length || j < fromPatch.length) {
    const left = rankIn(liveRank, liveOnly[i]);
    const right = rankIn(liveRank, fromPatch[j]);
    const liveFirst =
      j >= fromPatch.length || (i < liveOnly.length && left >= 0 && right >= 0 && left < right);
    result.push(liveFirst ? liveOnly[i++] : fromPatch[j++]);
  }
  return result;
}

/**
 * Checks that the elements of a patch list come in the order of its `$setElementOrder` list, and are all in it.
 *
 * @throws {StrategicPatchError}
 */
export function checkOrder(
  patch: readonly unknown[],
  order: readonly unknown[],
  mergeKey: string | undefined,
): void {
  if (patch.length === 0 || order.length === 0) return;
  let next = 0;
  let at = 0;
  while (next < patch.length && at < order.length) {
    const item = patch[next];
    if (mergeKey !== undefined && isRecord(item) && Object.hasOwn(item, directive)) {
      next++;
      continue;
    }
    if (identityOf(item, mergeKey) === identityOf(order[at], mergeKey)) next++;
    at++;
  }
  const rest = patch.slice(next).filter((item) => !(isRecord(item) && item[directive] === 'delete'));
  if (rest.length > 0) {
    throw new StrategicPatchError(
      `The order in patch list:\n${goPrint(patch)}\n doesn't match $setElementOrder list:\n${goPrint(order)}\n`,
    );
  }
}

/** The first place of every element. */
function ranks(list: readonly unknown[], mergeKey: string | undefined): Map<unknown, number> {
  const rank = new Map<unknown, number>();
  for (const [i, item] of list.entries()) {
    const identity = identityOf(item, mergeKey);
    if (!rank.has(identity)) rank.set(identity, i);
  }
  return rank;
}

function identityOf(item: unknown, mergeKey: string | undefined): unknown {
  if (item === undefined || mergeKey === undefined) return scalar(item);
  if (!isRecord(item)) throw wrongMapArgument(item);
  return keyOf(item, mergeKey);
}

function keyOf(item: JsonRecord, mergeKey: string): unknown {
  if (!Object.hasOwn(item, mergeKey)) throw noMergeKey(item, mergeKey);
  return scalar(item[mergeKey]);
}

/** Numbers with a spelling of their own compare by it, everything else by value. */
export function scalar(value: unknown): unknown {
  return value instanceof RawNumber ? `number ${value.literal}` : value;
}

function records(list: readonly unknown[]): JsonRecord[] {
  return list.filter(isRecord);
}

/**
 * Checks that two lists hold elements of one type, as Go does before it orders the result.
 *
 * @throws {StrategicPatchError}
 */
export function checkElements(live: readonly unknown[], patch: readonly unknown[]): void {
  if (live.length + patch.length === 0)
    throw new StrategicPatchError('no elements in any of the given slices');
  elementKind(live, patch);
}

/** The one kind that all elements of both lists have; the first must be no list itself. */
function elementKind(live: readonly unknown[], patch: readonly unknown[]): string {
  let kind: string | undefined;
  for (const item of [...live, ...patch]) {
    const type = goType(item);
    if (kind === undefined && Array.isArray(item)) {
      throw new StrategicPatchError('lists of lists are not supported', 'unprocessable');
    }
    kind ??= type;
    if (kind !== type) {
      throw new StrategicPatchError(`list element types are not identical: ${goPrint([live, patch])}`);
    }
  }
  return kind === goType({}) ? 'map' : (kind ?? '');
}
