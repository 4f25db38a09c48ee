import type { StructSchema } from '../../schema/schema.ts';
import { fieldsOf, removeFields, withNamedParents } from './typed-value.ts';
import { fieldSetDifference, type FieldSet, intersection, isEmptySet, union, unionAll } from './field-set.ts';
import {
  type Managed,
  type Managers,
  Conversions,
  encodeManagers,
  noOtherVersions,
  type OtherVersions,
} from './managers.ts';
import { runInSlices } from '../../../telemetry/time-slice.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { badRequest } from '../../../objects/status.ts';
import { expectedApiVersion, type ApplyRequest, ApplyRun } from './apply-run.ts';
import { checkConfigKind, parseConfig } from './config.ts';
import type { Patched } from '../patch.ts';

/**
 * - Takes away what a manager applied the last time and not now, unless another one owns it, and never anything that
 *   this manager did not apply (structured-merge-diff `merge/update.go`, `prune`).
 * - Server-side apply (apiserver `endpoints/handlers/patch.go` applyPatcher, apimachinery `util/managedfields`).
 */

/**
 * The merged object without what its manager no longer applies, where all versions have the same fields. Yields
 * between steps, of which each takes time by the size of the object.
 *
 * @param managers with the row of this apply.
 * @param last the row of the last apply of this manager.
 */
function* prune(
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
async function pruneInVersions(
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

/**
 * Server-side apply: merges a configuration into the stored object, removes what its manager no longer applies, and
 * records the owners of fields.
 *
 * Yields between steps, of which each takes time by the size of the object: between them others may have their turn.
 *
 * @throws {StatusError} 400 for a body that is no configuration of this kind, 409 for conflicts, 500 for values that do
 *   not fit the schema, as kube-apiserver.
 */
export function* applyObject(request: ApplyRequest): Generator<undefined, Patched, undefined> {
  const { config, duplicates } = readConfig(request);
  yield;
  const run = new ApplyRun(request, config);
  let object: KubeObject;
  try {
    const start = yield* run.start();
    yield;
    const { merged, managers, previous } = start;
    const pruned =
      previous === undefined ? merged : yield* prune(request.expected.schema, merged, managers, previous);
    yield;
    yield* run.settleConflicts(start, pruned, noOtherVersions);
    yield;
    object = yield* run.made(start, pruned);
    yield;
    setManagers(object, start.managers);
  } catch (error) {
    throw run.explain(error);
  }
  return applied(request, object, duplicates);
}

/** As {@link applyObject}, where managers may use versions that a webhook converts to. */
export async function applyConverting(request: ApplyRequest, versions: OtherVersions): Promise<Patched> {
  const { config, duplicates } = readConfig(request);
  const run = new ApplyRun(request, config);
  const conversions = new Conversions(versions);
  let object: KubeObject;
  try {
    const start = await runInSlices(run.start());
    const { before, merged, managers, previous } = start;
    // The stored object must be there in each version that a manager used.
    for (const { apiVersion } of before.values()) await conversions.convert(run.base, apiVersion);
    const own = expectedApiVersion(request.expected);
    const { schema } = request.expected;
    const pruned =
      previous === undefined
        ? merged
        : await pruneInVersions(conversions, { own, schema }, merged, managers, previous);
    const others = await conversions.changes(managers, own, run.base, pruned);
    await runInSlices(run.settleConflicts(start, pruned, others));
    object = await runInSlices(run.made(start, pruned));
    setManagers(object, managers);
  } catch (error) {
    throw run.explain(error);
  }
  return applied(request, object, duplicates);
}

function readConfig({ bytes, expected }: ApplyRequest): ReturnType<typeof parseConfig> {
  const parsed = parseConfig(bytes);
  checkConfigKind(parsed.config, expected);
  return parsed;
}

function applied(request: ApplyRequest, object: KubeObject, duplicates: string | undefined): Patched {
  if (duplicates !== undefined) {
    const text = `error converting YAML to JSON: ${duplicates}`;
    if (request.fieldValidation === 'Strict') throw badRequest(`error strict decoding patch: ${text}`);
    if (request.fieldValidation === 'Warn') return { object, warnings: [text] };
  }
  return { object, warnings: [] };
}

/** Writes managedFields. */
function setManagers(object: KubeObject, managers: Managers): void {
  const entries = encodeManagers(managers);
  if (entries.length === 0) delete object.metadata.managedFields;
  else object.metadata.managedFields = entries;
}
