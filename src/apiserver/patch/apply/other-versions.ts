/**
 * Ownership of fields in other versions than that of a request (structured-merge-diff `merge/update.go`, which asks a
 * Converter). A computation says which object it needs in which version, and goes on when it has it: whoever runs it
 * may have to ask a webhook.
 */
import { isRecord } from '../../../objects/json.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import type { StructSchema } from '../../schema/schema.ts';
import { changedFields, removedFields } from './compare.ts';
import type { FieldSet } from './field-set.ts';
import type { Managers } from './managers.ts';

/** The versions of a kind whose objects have other fields in each. */
export interface OtherVersions {
  /** Undefined for an apiVersion that the kind has not. */
  schemaOf(apiVersion: string): StructSchema | undefined;
  /** @throws {StatusError} when the object cannot be converted. */
  toVersion(object: KubeObject, apiVersion: string): Promise<KubeObject>;
}

/** An object that is needed in a version. */
interface Wanted {
  readonly object: KubeObject;
  readonly apiVersion: string;
}

/** A computation that may want objects in other versions. */
export type Steps<T> = Generator<Wanted, T, unknown>;

/** Runs a computation about a kind that has the same fields in all versions: it wants nothing. */
export function finishSteps<T>(steps: Steps<T>): T {
  const step = steps.next();
  if (step.done !== true)
    throw new Error(`an object is wanted in ${step.value.apiVersion}, and nobody converts it`);
  return step.value;
}

/** Runs a computation, each conversion once. @throws {StatusError} what it throws, and when a conversion fails. */
export async function finishConverting<T>(steps: Steps<T>, versions: OtherVersions): Promise<T> {
  const known = new Map<KubeObject, Map<string, KubeObject>>();
  let step = steps.next();
  while (step.done !== true) {
    const { object, apiVersion } = step.value;
    const converted = known.get(object) ?? new Map<string, KubeObject>();
    known.set(object, converted);
    const found = converted.get(apiVersion) ?? (await versions.toVersion(object, apiVersion));
    converted.set(apiVersion, found);
    step = steps.next(found);
  }
  return step.value;
}

/** A value in a version; what has no version of its own, as the object before a create, is the same in all. */
export function* inVersion(value: unknown, apiVersion: string): Steps<unknown> {
  if (!isObject(value) || value.apiVersion === undefined || value.apiVersion === apiVersion) return value;
  return yield { object: value, apiVersion };
}

function isObject(value: unknown): value is KubeObject {
  return isRecord(value) && isRecord(value['metadata']);
}

/** What a write adds or changes, and what it takes away. */
export interface Changes {
  readonly changed: FieldSet;
  readonly removed: FieldSet;
}

/**
 * The changes of a write in each version of the managers but that of the request. An object that cannot be had in one
 * of them fails the whole, before anything is looked at (`reconcileManagedFieldsWithSchemaChanges`).
 *
 * @param versions undefined where all versions have the same fields: then there are no others.
 */
export function* changesInOthers(
  managers: Managers,
  own: string,
  versions: Pick<OtherVersions, 'schemaOf'> | undefined,
  from: unknown,
  to: unknown,
): Steps<ReadonlyMap<string, Changes>> {
  const changes = new Map<string, Changes>();
  if (versions === undefined) return changes;
  for (const { apiVersion } of managers.values()) {
    if (apiVersion === own || changes.has(apiVersion)) continue;
    const before = yield* inVersion(from, apiVersion);
    const after = yield* inVersion(to, apiVersion);
    const schema = versions.schemaOf(apiVersion);
    if (schema === undefined) continue;
    changes.set(apiVersion, {
      changed: changedFields(schema, before, after),
      removed: removedFields(schema, before, after),
    });
  }
  return changes;
}
