/**
 * The owners of fields: `metadata.managedFields` as a table (apimachinery `util/managedfields/internal`, files
 * managedfields.go, capmanagers.go and pathelement… for the identifiers).
 */
import { compareText } from '../../../objects/go-text.ts';
import type { ManagedFieldsEntry } from '../../../objects/meta.ts';
import { fieldSetDifference, type FieldSet, isEmptySet, unionAll } from './field-set.ts';
import { decodeFields, encodeFields, FieldsV1Error } from './fields-v1.ts';

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
    const fieldsType = textOf(entry.fieldsType);
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
function textOf(word: string | undefined): string | undefined {
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
