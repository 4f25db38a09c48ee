/**
 * Takes away what a manager applied the last time and not now, unless another one owns it, and never anything that this
 * manager did not apply (structured-merge-diff `merge/update.go`, `prune`).
 */
import type { StructSchema } from '../../schema/schema.ts';
import { fieldsOf } from './compare.ts';
import { fieldSetDifference, type FieldSet, intersection, isEmptySet, union, unionAll } from './field-set.ts';
import type { Managed, Managers } from './managers.ts';
import { removeFields, withNamedParents } from './merge.ts';
import { runInSlices } from '../../time-slice.ts';
import type { Conversions } from './other-versions.ts';

/**
 * The merged object without what its manager no longer applies, where all versions have the same fields. Yields
 * between steps, of which each takes time by the size of the object.
 *
 * @param managers with the row of this apply.
 * @param last the row of the last apply of this manager.
 */
export function* prune(
  schema: StructSchema,
  merged: unknown,
  managers: Managers,
  last: Managed,
): Generator<undefined, unknown, undefined> {
  const owned = ownedBy(managers.values());
  // All that this manager applied the last time is still owned: nothing goes.
  if (isEmptySet(fieldSetDifference(last.fields, owned))) return merged;
  yield;
  const bare = withoutFields(schema, merged, withNamedParents(schema, last.fields));
  yield;
  const kept = yield* addBack(schema, merged, bare, owned);
  yield;
  return yield* takeGone(schema, merged, kept, last);
}

/**
 * As {@link prune}, where versions have different fields: what managers own is added back in the version of each.
 *
 * @param own the version of the request, and of the result.
 * @param schema of that version, for rows in a version that the kind no longer has.
 * @throws {StatusError} when an object cannot be converted.
 */
export async function pruneInVersions(
  conversions: Conversions,
  { own, schema }: { readonly own: string; readonly schema: StructSchema },
  merged: unknown,
  managers: Managers,
  last: Managed,
): Promise<unknown> {
  const schemaOf = (apiVersion: string) => conversions.schemaOf(apiVersion) ?? schema;
  const lastSchema = schemaOf(last.apiVersion);
  const whole = await conversions.convert(merged, last.apiVersion);
  let kept = withoutFields(lastSchema, whole, withNamedParents(lastSchema, last.fields));
  const rows = [...managers.values()];
  // The version of the last apply first: the other versions are converted from what it leaves.
  for (const version of new Set([last.apiVersion, ...rows.map(({ apiVersion }) => apiVersion)])) {
    const owned = ownedBy(rows.filter(({ apiVersion }) => apiVersion === version));
    const there = await conversions.convert(merged, version);
    const bare = await conversions.convert(kept, version);
    kept = await runInSlices(addBack(schemaOf(version), there, bare, owned));
  }
  const left = await conversions.convert(kept, last.apiVersion);
  return conversions.convert(await runInSlices(takeGone(lastSchema, whole, left, last)), own);
}

function ownedBy(rows: Iterable<Managed>): FieldSet {
  return unionAll([...rows].map(({ fields }) => fields));
}

/** A pruned object with what managers own of the whole. */
function* addBack(
  schema: StructSchema,
  whole: unknown,
  pruned: unknown,
  owned: FieldSet,
): Generator<undefined, unknown, undefined> {
  const named = (set: FieldSet): FieldSet => withNamedParents(schema, set);
  const keep = union(named(fieldsOf(schema, pruned)), named(owned));
  yield;
  const all = named(fieldsOf(schema, whole));
  yield;
  return withoutFields(schema, whole, fieldSetDifference(all, keep));
}

/** The whole without those fields of the last apply that are not left. */
function* takeGone(
  schema: StructSchema,
  whole: unknown,
  left: unknown,
  last: Managed,
): Generator<undefined, unknown, undefined> {
  const all = withNamedParents(schema, fieldsOf(schema, whole));
  yield;
  const gone = fieldSetDifference(all, withNamedParents(schema, fieldsOf(schema, left)));
  yield;
  return withoutFields(schema, whole, intersection(gone, withNamedParents(schema, last.fields)));
}

function withoutFields(schema: StructSchema, value: unknown, fields: FieldSet): unknown {
  return removeFields(schema, value, fields) ?? {};
}
