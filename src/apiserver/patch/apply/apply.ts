/** Server-side apply (apiserver `endpoints/handlers/patch.go` applyPatcher, apimachinery `util/managedfields`). */
import type { KubeObject } from '../../../objects/meta.ts';
import { badRequest } from '../../../objects/status-errors.ts';
import { runInSlices } from '../../time-slice.ts';
import { expectedApiVersion, type ApplyRequest, ApplyRun } from './apply-run.ts';
import { encodeManagers, type Managers } from './managers.ts';
import { Conversions, noOtherVersions, type OtherVersions } from './other-versions.ts';
import { checkConfigKind, parseConfig } from './parse-config.ts';
import { prune, pruneInVersions } from './prune.ts';
import type { Patched } from '../patch.ts';

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
    if (request.fieldValidation === 'Strict') throw badRequest(`error strict decoding YAML: ${text}`);
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
