import { isRecord } from '../../../objects/json.ts';
import {
  type FieldsV1,
  type ManagedFieldsEntry,
  type KubeObject,
  hasMetadata,
} from '../../../objects/meta.ts';
import { shareJson } from '../../schema/encode.ts';
import {
  emptySet,
  type FieldSet,
  isEmptySet,
  leafSet,
  setOf,
  parseKey,
  sortedByElement,
  fieldSetDifference,
  unionAll,
} from './field-set.ts';
import { compareText } from '../../../objects/formats/go-text.ts';
import type { StructSchema } from '../../schema/schema.ts';
import { changedFields, removedFields } from './typed-value.ts';

/**
 * - Field sets as `managedFields[].fieldsV1` holds them (structured-merge-diff `fieldpath/serialize.go`).
 * - The owners of fields: `metadata.managedFields` as a table (apimachinery `util/managedfields/internal`, files
 *   managedfields.go, capmanagers.go and pathelement… for the identifiers).
 * - Ownership of fields in other versions than that of a request, for kinds whose versions have different fields
 *   (structured-merge-diff `merge/update.go`, which uses a Converter).
 */

/** Invalid fields; the message has the reason. */
export class FieldsV1Error extends Error {
  override readonly name = 'FieldsV1Error';
}

/** Levels of a set that are read: as many as a body may have (parse-json-slowly.ts), and its path elements. */
const maxDepth = 1_010;

interface Shared {
  readonly fields: FieldsV1;
  readonly set: FieldSet;
}

/**
 * FieldsV1 of the sets written last, by the sets' texts and by their own. Objects that one manager writes in one way
 * have equal sets: they share one FieldsV1, which saves most of the memory that managedFields would take, and the
 * work to sort and to read them.
 */
const shared = new Map<string, Shared>();
const sharedSets = new WeakMap<object, FieldSet>();
/** Texts that are remembered, and what they may come to in characters: what belongs to one takes four times as much. */
const maxShared = { texts: 4_096, characters: 4 * 2 ** 20 };
/** Longer texts are not cached: one would evict many others and is rarely read twice. */
const maxSharedLength = maxShared.characters / 64;
let sharedCharacters = 0;
const none: FieldsV1 = Object.freeze({});

/**
 * The JSON of a set: path elements sorted, `.` for a path that has others below it. Frozen, and shared with other
 * objects.
 */
export function encodeFields(set: FieldSet): FieldsV1 {
  const text = textOf(set, '');
  const known = shared.get(text);
  if (known !== undefined) return known.fields;
  const encoded = encodeNode(set);
  if (text.length > maxSharedLength) return encoded;
  // Equal sets whose elements are in another order.
  const sorted = JSON.stringify(encoded);
  const found = shared.get(sorted) ?? { fields: encoded, set };
  shareJson(found.fields, sorted);
  share(sorted, found);
  share(text, found);
  return found.fields;
}

function share(text: string, entry: Shared): void {
  if (shared.has(text)) return;
  shared.set(text, entry);
  sharedCharacters += text.length;
  sharedSets.set(entry.fields, entry.set);
  for (const [oldest, { fields }] of shared) {
    if (shared.size <= maxShared.texts && sharedCharacters <= maxShared.characters) break;
    shared.delete(oldest);
    sharedCharacters -= oldest.length;
    sharedSets.delete(fields);
  }
}

/**
 * Appends a text to `text` that only equal sets have: clients choose names, so each comes with its length. Takes
 * elements in the order that they have: sorting them costs more than the rest.
 */
function textOf(set: FieldSet, text: string): string {
  for (const [element, child] of set.children) {
    text += `${child.owned ? '+' : '-'}${element.length}:${element}`;
    if (child.children.size > 0) text = `${textOf(child, `${text}(`)})`;
  }
  return text;
}

function sortedElements(set: FieldSet): string[] {
  const elements = [...set.children.keys()];
  if (elements.length < 2) return elements;
  return elements.every((element) => element.startsWith('f:'))
    ? elements.sort()
    : sortedByElement(elements, (element) => element);
}

function encodeNode(set: FieldSet): FieldsV1 {
  if (set.children.size === 0) return none;
  const fields: FieldsV1 = {};
  for (const element of sortedElements(set)) {
    const child = set.children.get(element);
    if (child === undefined) continue;
    const encoded = encodeNode(child);
    fields[element] =
      child.owned && child.children.size > 0 ? Object.freeze({ '.': none, ...encoded }) : encoded;
  }
  return Object.freeze(fields);
}

/** The set of a FieldsV1. @throws {FieldsV1Error} when it is none. */
export function decodeFields(fields: unknown): FieldSet {
  if (fields === undefined || fields === null) return emptySet;
  if (!isRecord(fields)) throw new FieldsV1Error('fieldsV1 must be an object');
  // Objects that were made of their texts again have FieldsV1 of their own.
  return sharedSets.get(fields) ?? shared.get(JSON.stringify(fields))?.set ?? decodeNode(fields, false, 0);
}

function decodeNode(fields: Record<string, unknown>, owned: boolean, depth: number): FieldSet {
  if (depth > maxDepth) throw new FieldsV1Error('fieldsV1 is nested too deeply');
  const children = new Map<string, FieldSet>();
  for (const [key, value] of Object.entries(fields)) {
    if (key === '.') continue;
    if (isFromLaterVersion(key)) continue;
    const element = canonicalElement(key);
    const below = value ?? none;
    if (!isRecord(below)) throw new FieldsV1Error(`fieldsV1 has no object at ${JSON.stringify(key)}`);
    const child = decodeNode(below, Object.hasOwn(below, '.'), depth + 1);
    children.set(element, isEmptySet(child) ? leafSet : child);
  }
  return setOf(owned, children);
}

/** True for path elements of kinds that do not exist yet: they are left out. */
function isFromLaterVersion(key: string): boolean {
  return /^[^fvki]:/.test(key);
}

/** Keys are sorted, in whatever order the client sent them. */
function canonicalElement(key: string): string {
  const content = key.slice(2);
  switch (key.slice(0, 2)) {
    case 'f:':
      return key;
    case 'i:':
      if (/^\d{1,9}$/.test(content)) return key;
      break;
    case 'v:':
    case 'k:':
      try {
        if (key.startsWith('v:')) return `v:${JSON.stringify(JSON.parse(content))}`;
        const entries = Object.entries(parseKey(content)).sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
        return `k:${JSON.stringify(Object.fromEntries(entries))}`;
      } catch {
        break;
      }
  }
  throw new FieldsV1Error(`unknown path element in fieldsV1: ${JSON.stringify(key)}`);
}

/** One manager's fields. */
export interface Managed {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string | undefined;
  readonly fields: FieldSet;
}

/** Managers by identifier; see {@link managerId}. Changed by replacing whole rows. */
export type Managers = Map<string, Managed>;

/** `managedFields` that cannot be read; the message is apimachinery's. */
export class ManagedFieldsError extends Error {
  override readonly name = 'ManagedFieldsError';
}

/**
 * The identifier of an entry. An applier is the same in every version. Identifiers sort as Kubernetes', which are JSON
 * texts.
 */
export function managerId(
  row: Pick<Managed, 'manager' | 'operation' | 'apiVersion' | 'subresource'>,
): string {
  return JSON.stringify({
    ...(row.manager === '' ? {} : { manager: row.manager }),
    operation: row.operation,
    ...(row.operation === 'Apply' ? {} : { apiVersion: row.apiVersion }),
    ...(row.subresource === '' ? {} : { subresource: row.subresource }),
  });
}

/** Reads `managedFields`. @throws {ManagedFieldsError} */
export function decodeManagers(entries: readonly ManagedFieldsEntry[] | undefined): Managers {
  const managers: Managers = new Map();
  for (const [i, entry] of (entries ?? []).entries()) {
    const { operation, apiVersion } = entry;
    const fieldsType = widened(entry.fieldsType);
    if (operation !== 'Apply' && operation !== 'Update') {
      throw new ManagedFieldsError('operation must be `Apply` or `Update`');
    }
    if (apiVersion === undefined || apiVersion === '') {
      throw new ManagedFieldsError('apiVersion must not be empty');
    }
    if (fieldsType !== 'FieldsV1') {
      throw new ManagedFieldsError(
        fieldsType === undefined
          ? `missing fieldsType in managed fields entry ${i}`
          : `invalid fieldsType ${JSON.stringify(fieldsType)} in managed fields entry ${i}`,
      );
    }
    const row: Managed = {
      manager: entry.manager ?? '',
      operation,
      apiVersion,
      subresource: entry.subresource ?? '',
      time: entry.time,
      fields: readFields(entry, i),
    };
    managers.set(managerId(row), row);
  }
  return managers;
}

/** As text: a client may have sent another word than the type allows. */
function widened(word: string | undefined): string | undefined {
  return word;
}

function readFields(entry: ManagedFieldsEntry, i: number): FieldSet {
  try {
    return decodeFields(entry.fieldsV1);
  } catch (error) {
    if (!(error instanceof FieldsV1Error)) throw error;
    throw new ManagedFieldsError(`error decoding versioned set at entry ${i}: ${error.message}`);
  }
}

/** `managedFields` of a table, in Kubernetes' order: appliers first, each kind by time and name. */
export function encodeManagers(managers: Managers): ManagedFieldsEntry[] {
  const rows = [...managers.values()];
  if (rows.length > 1) rows.sort(compareRows);
  return rows.map(({ manager, operation, apiVersion, time, fields, subresource }) => ({
    ...(manager === '' ? {} : { manager }),
    operation,
    apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: encodeFields(fields),
    ...(subresource === '' ? {} : { subresource }),
  }));
}

function compareRows(a: Managed, b: Managed): number {
  return (
    compareText(a.operation, b.operation) ||
    compareText(a.time ?? '', b.time ?? '') ||
    compareText(a.manager, b.manager) ||
    compareText(a.apiVersion, b.apiVersion) ||
    compareText(a.subresource, b.subresource)
  );
}

/** Takes fields from a row; a row that has none left is dropped. */
export function takeFields(managers: Managers, id: string, gone: FieldSet): void {
  const row = managers.get(id);
  if (row === undefined) return;
  const fields = fieldSetDifference(row.fields, gone);
  if (fields === row.fields) return;
  if (isEmptySet(fields)) managers.delete(id);
  else managers.set(id, { ...row, fields });
}

/** Rows of updates that an object keeps apart (DefaultMaxUpdateManagers). */
const maxUpdaters = 10;
const oldUpdates = 'ancient-changes';

/** Merges the oldest updates of each version into one row until no more than ten are left. */
export function capUpdaters(managers: Managers): void {
  if (managers.size <= maxUpdaters) return;
  const updaters = [...managers].filter(([, row]) => row.operation === 'Update');
  let left = updaters.length;
  if (left <= maxUpdaters) return;
  updaters.sort(([idA, a], [idB, b]) => compareText(a.time ?? '', b.time ?? '') || compareText(idA, idB));
  const firstOfVersion = new Map<string, string>();
  // What goes into each bucket, joined at the end: one after the other takes a time that grows with the square.
  const buckets = new Map<string, FieldSet[]>();
  for (const [id, row] of updaters) {
    if (left <= maxUpdaters) break;
    const first = firstOfVersion.get(row.apiVersion);
    if (first === undefined) {
      firstOfVersion.set(row.apiVersion, id);
      continue;
    }
    const bucket: Managed = { ...row, manager: oldUpdates, subresource: '' };
    const bucketId = managerId(bucket);
    let parts = buckets.get(bucketId);
    if (parts === undefined) {
      const source = managers.has(bucketId) ? bucketId : first;
      const before = managers.get(source);
      managers.delete(source);
      parts = before === undefined ? [] : [before.fields];
      buckets.set(bucketId, parts);
    }
    parts.push(row.fields);
    managers.delete(id);
    managers.set(bucketId, bucket);
    left--;
  }
  for (const [id, parts] of buckets) {
    const bucket = managers.get(id);
    if (bucket !== undefined) managers.set(id, { ...bucket, fields: unionAll(parts) });
  }
}

/** Drops rows without fields, which a client may have sent (`merge.Updater.update`). */
export function dropEmptyRows(managers: Managers): void {
  for (const [id, { fields }] of managers) if (isEmptySet(fields)) managers.delete(id);
}

/** The versions of a kind whose objects have other fields in each. */
export interface OtherVersions {
  /** Undefined for an apiVersion that the kind has not. */
  schemaOf(apiVersion: string): StructSchema | undefined;
  /** @throws {StatusError} when the object cannot be converted. */
  toVersion(object: KubeObject, apiVersion: string): Promise<KubeObject>;
}

/** What a write changes or adds, and what it removes. */
export interface Changes {
  readonly changed: FieldSet;
  readonly removed: FieldSet;
}

/** The changes of a write by the apiVersion in which they are seen; the version of the request is not among them. */
export type ChangesByVersion = ReadonlyMap<string, Changes>;

/** Of a kind that has the same fields in all versions. */
export const noOtherVersions: ChangesByVersion = new Map();

/** Converts the objects of one write, each to a version once. */
export class Conversions {
  readonly #versions: OtherVersions;
  readonly #known = new Map<KubeObject, Map<string, KubeObject>>();

  constructor(versions: OtherVersions) {
    this.#versions = versions;
  }

  /** See {@link OtherVersions.schemaOf}. */
  schemaOf(apiVersion: string): StructSchema | undefined {
    return this.#versions.schemaOf(apiVersion);
  }

  /**
   * A value in a version. What has no version of its own, as the object before a create, is the same in all.
   *
   * @throws {StatusError} when it cannot be converted.
   */
  async convert(value: unknown, apiVersion: string): Promise<unknown> {
    if (!hasMetadata(value) || value.apiVersion === undefined || value.apiVersion === apiVersion)
      return value;
    let known = this.#known.get(value);
    if (known === undefined) this.#known.set(value, (known = new Map<string, KubeObject>()));
    const converted = known.get(apiVersion) ?? (await this.#versions.toVersion(value, apiVersion));
    known.set(apiVersion, converted);
    return converted;
  }

  /**
   * The changes of a write in each version of the managers but that of the request. An object that cannot be converted
   * to one of them fails the whole (`reconcileManagedFieldsWithSchemaChanges`).
   *
   * @throws {StatusError}
   */
  async changes(managers: Managers, own: string, from: unknown, to: unknown): Promise<ChangesByVersion> {
    const changes = new Map<string, Changes>();
    for (const { apiVersion } of managers.values()) {
      if (apiVersion === own || changes.has(apiVersion)) continue;
      const before = await this.convert(from, apiVersion);
      const after = await this.convert(to, apiVersion);
      const schema = this.schemaOf(apiVersion);
      if (schema === undefined) continue;
      changes.set(apiVersion, {
        changed: changedFields(schema, before, after),
        removed: removedFields(schema, before, after),
      });
    }
    return changes;
  }
}
