/** Ownership after a write that is not an apply (apimachinery `util/managedfields`, the Update half). */
import { jsonEqual } from '../../../objects/json.ts';
import type { KubeObject, ManagedFieldsEntry } from '../../../objects/meta.ts';
import { StatusError } from '../../../objects/status.ts';
import { resultOf } from '../../../objects/lists.ts';
import type { OwnableFields } from '../../../registry/generic/strategy.ts';
import { type StructSchema, zeroValue } from '../../schema/schema.ts';
import { changedFields, removedFields, shapeOf } from './typed-value.ts';
import { emptySet, isEmptySet, union, PathElementError } from './field-set.ts';
import {
  capUpdaters,
  decodeManagers,
  dropEmptyRows,
  encodeManagers,
  type Managed,
  ManagedFieldsError,
  managerId,
  type Managers,
  takeFields,
  type Changes,
  type ChangesByVersion,
  Conversions,
  noOtherVersions,
  type OtherVersions,
} from './managers.ts';
import { onlyOwnable, stripUnowned } from './conflicts.ts';

export interface UpdateToTrack {
  readonly schema: StructSchema;
  /** The stored object; for a create undefined. */
  readonly live: KubeObject | undefined;
  /**
   * The object as the client sent it: decoded and defaulted, before the strategy has allocated anything (kube-apiserver
   * tracks at this moment, so a clusterIP that the server allocates has no owner).
   */
  readonly next: KubeObject;
  readonly manager: string;
  readonly subresource: string;
  /** `v1`, `discovery.k8s.io/v1` …: the version of the request. */
  readonly apiVersion: string;
  /** RFC 3339, UTC, whole seconds. */
  readonly now: string;
  /** Which fields a write to this endpoint can own. */
  readonly ownable: OwnableFields;
}

/**
 * The managedFields of `next` after a write that is not an apply; undefined when there are none. Entries that do
 * not change keep their time; when nothing changes the entries of `live` are returned as they are.
 *
 * A client that sends `managedFields: []` or `[{}]` gives up tracking: the object has none until it is applied.
 */
export function trackUpdate(update: UpdateToTrack): ManagedFieldsEntry[] | undefined {
  return resultOf(trackingUpdate(update));
}

/** The same in steps: the ownership of tens of thousands of list items takes a tenth of a second. */
export function* trackingUpdate(update: UpdateToTrack): Tracking {
  const { live, next } = update;
  const isPlainCreate = live === undefined && next.metadata.managedFields === undefined;
  return yield* isPlainCreate ? trackCreate(update) : track(update);
}

/**
 * As {@link trackUpdate}, where managers may use versions that a webhook converts to. An object that cannot be
 * converted keeps the managedFields that it had (`FieldManager.UpdateNoErrors`).
 */
export async function trackConverting(
  update: UpdateToTrack,
  versions: OtherVersions,
): Promise<ManagedFieldsEntry[] | undefined> {
  const start = startTracking(update);
  if (start === undefined) return undefined;
  const conversions = new Conversions(versions);
  try {
    const changes = changesBy(update, start.managers, start.from, start.to);
    if (changes !== undefined) {
      const others = await conversions.changes(start.managers, update.apiVersion, start.from, start.to);
      record(start.managers, update, changes, others);
    }
  } catch (error) {
    if (error instanceof StatusError || error instanceof PathElementError) {
      return update.live?.metadata.managedFields;
    }
    throw error;
  }
  return entriesOf(start);
}

type Entries = ManagedFieldsEntry[] | undefined;
/** Yields where other requests may have their turn. */
type Tracking = Generator<undefined, Entries, undefined>;

/** What was found for the shapes of the objects created last, of each schema. */
const created = new WeakMap<StructSchema, Map<string, Entries>>();
const maxShapes = 256;
const maxShapeLength = 4_096;

/** Objects that one program creates mostly have one shape: what their creator owns is worked out once. */
function* trackCreate(update: UpdateToTrack): Tracking {
  const { schema, next, subresource, apiVersion, ownable, now } = update;
  let shape: string;
  try {
    shape = `${apiVersion} ${subresource} ${String(ownable.resetFields)} ${shapeOf(schema, next)}`;
  } catch (error) {
    if (error instanceof PathElementError) return undefined;
    throw error;
  }
  if (shape.length > maxShapeLength) {
    yield;
    return yield* track(update);
  }
  let shapes = created.get(schema);
  if (shapes === undefined) created.set(schema, (shapes = new Map<string, Entries>()));
  if (shapes.has(shape)) {
    return shapes.get(shape)?.map((entry) => ({ ...entry, manager: managerOf(update), time: now }));
  }
  const entries = yield* track(update);
  if (shapes.size >= maxShapes) shapes.clear();
  shapes.set(shape, entries);
  return entries;
}

function managerOf({ manager }: Pick<UpdateToTrack, 'manager'>): string {
  return manager === '' ? 'unknown' : manager;
}

function* track(update: UpdateToTrack): Tracking {
  const start = startTracking(update);
  if (start === undefined) return undefined;
  yield;
  try {
    const changes = changesBy(update, start.managers, start.from, start.to);
    yield;
    if (changes !== undefined) record(start.managers, update, changes, noOtherVersions);
  } catch (error) {
    // List items without an identity: validation will refuse them, and its answer is the one to give.
    if (error instanceof PathElementError) return update.live?.metadata.managedFields;
    throw error;
  }
  yield;
  return entriesOf(start);
}

interface TrackingStart extends StoredManagers {
  /** A copy of {@link managers}, which the write changes. */
  readonly before: Managers;
  readonly from: unknown;
  readonly to: unknown;
}

/** Undefined where the stored object is not tracked. */
function startTracking(update: UpdateToTrack): TrackingStart | undefined {
  const { live, next, schema } = update;
  const { managers, entries } = startingManagers(update);
  if (live !== undefined && managers.size === 0) return undefined;
  const from = live === undefined ? emptyObject(schema) : untracked(live);
  return { managers, entries, before: new Map(managers), from, to: untracked(next) };
}

function entriesOf({ before, managers, entries }: TrackingStart): Entries {
  if (entries !== undefined && sameRows(before, managers)) return entries;
  return managers.size === 0 ? undefined : encodeManagers(managers);
}

/** The object as ownership is about it: without the records of ownership. */
export function untracked(object: KubeObject): KubeObject {
  const { managedFields: _managedFields, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function sameRows(before: Managers, after: Managers): boolean {
  if (before.size !== after.size) return false;
  for (const [id, row] of after) if (before.get(id) !== row) return false;
  return true;
}

const emptyObjects = new WeakMap<StructSchema, unknown>();

/** A freshly made object of a type, not to be changed: its structs are there, but empty. */
export function emptyObject(schema: StructSchema): unknown {
  let empty = emptyObjects.get(schema);
  if (empty === undefined) {
    empty = schema.custom === undefined ? zeroValue(schema) : { metadata: {} };
    emptyObjects.set(schema, empty);
  }
  return empty;
}

/**
 * Records in `managers` that `manager` changed `from` into `to` by an update.
 *
 * @param others the changes in the versions of other managers.
 */
export function recordUpdate(
  managers: Managers,
  update: Omit<UpdateToTrack, 'live' | 'next'>,
  from: unknown,
  to: unknown,
  others: ChangesByVersion,
): void {
  const changes = changesBy(update, managers, from, to);
  if (changes !== undefined) record(managers, update, changes, others);
}

/** What an update changes of what can be owned; undefined: nothing. Drops rows without fields. */
function changesBy(
  { schema, ownable }: Pick<UpdateToTrack, 'schema' | 'ownable'>,
  managers: Managers,
  from: unknown,
  to: unknown,
): Changes | undefined {
  dropEmptyRows(managers);
  const changed = onlyOwnable(changedFields(schema, from, to), ownable);
  // Removed fields matter only to owners, and a new object has none.
  const removed = managers.size === 0 ? emptySet : onlyOwnable(removedFields(schema, from, to), ownable);
  return isEmptySet(changed) && isEmptySet(removed) ? undefined : { changed, removed };
}

function record(
  managers: Managers,
  update: Omit<UpdateToTrack, 'live' | 'next'>,
  { changed, removed }: Changes,
  others: ChangesByVersion,
): void {
  const { apiVersion, subresource } = update;
  const self: Managed = {
    manager: managerOf(update),
    operation: 'Update',
    apiVersion,
    subresource,
    time: update.now,
    fields: stripUnowned(changed),
  };
  const id = managerId(self);
  const gone = union(changed, removed);
  for (const [other, row] of [...managers]) {
    const there = others.get(row.apiVersion);
    takeFields(managers, other, there === undefined ? gone : union(there.changed, there.removed));
  }
  if (!isEmptySet(self.fields)) {
    // What the manager owned and did not touch now stays its own.
    const kept = managers.get(id);
    managers.set(id, kept === undefined ? self : { ...self, fields: union(self.fields, kept.fields) });
  }
  capUpdaters(managers);
}

interface StoredManagers {
  readonly managers: Managers;
  /** The stored entries that `managers` was read from: what a client sends is put in order. */
  readonly entries: ManagedFieldsEntry[] | undefined;
}

/** The table that a write starts from: the one that the client sent, if it makes sense, else the stored one. */
function startingManagers({ live, next, subresource }: UpdateToTrack): StoredManagers {
  const stored = live?.metadata.managedFields;
  const sent = next.metadata.managedFields;
  if (subresource !== '' || sent === undefined || jsonEqual(sent, stored)) return readOrEmpty(stored);
  if (isReset(sent)) return { managers: new Map(), entries: undefined };
  try {
    const managers = decodeManagers(sent);
    return managers.size === 0 ? readOrEmpty(stored) : { managers, entries: undefined };
  } catch (error) {
    if (error instanceof ManagedFieldsError) return readOrEmpty(stored);
    throw error;
  }
}

function readOrEmpty(entries: ManagedFieldsEntry[] | undefined): StoredManagers {
  try {
    return { managers: decodeManagers(entries), entries };
  } catch (error) {
    if (error instanceof ManagedFieldsError) return { managers: new Map(), entries: undefined };
    throw error;
  }
}

function isReset(entries: readonly ManagedFieldsEntry[]): boolean {
  return entries.length === 0 || (entries.length === 1 && Object.keys(entries[0] ?? {}).length === 0);
}
