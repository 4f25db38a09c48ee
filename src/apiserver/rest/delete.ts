import type { KubeObject } from '../../objects/meta.ts';
import { type StatusError, conflict, notFound } from '../../objects/status.ts';
import type { Strategy, UserInfo } from '../../registry/generic/strategy.ts';
import { PreconditionError, type StoredObject } from '../storage/storage.ts';
import type { AdmissionAttributes } from './admission.ts';
import { commit, emptyReservation, readableObject } from './commit.ts';
import { type CheckedDeleteOptions, deleteOptionsObject } from './options.ts';
import { storageKeyOf, type ServedResource, readServedVersion } from './served-resource.ts';
import { type ServerCore, strategyContext, timestamp } from './server-core.ts';

export interface Deletion {
  readonly namespace: string;
  readonly name: string;
  readonly user: UserInfo;
  readonly options: CheckedDeleteOptions;
  warn(text: string): void;
}

export interface Deleted {
  /** The object as it was removed, or as it waits for its finalizers or its grace period. */
  readonly object: KubeObject;
  /** False when the object is still there. */
  readonly removed: boolean;
}

/**
 * Deletes an object (`Store.Delete`): preconditions, admission, graceful deletion, garbage-collection finalizers;
 * an object that waits for something stays with a deletionTimestamp.
 *
 * @throws {StatusError}
 */
export async function deleteObject(
  core: ServerCore,
  resource: ServedResource,
  deletion: Deletion,
): Promise<Deleted> {
  for (;;) {
    try {
      return await deleteOnce(core, resource, deletion);
    } catch (error) {
      if (!(error instanceof PreconditionError)) throw error;
    }
  }
}

async function deleteOnce(core: ServerCore, resource: ServedResource, deletion: Deletion): Promise<Deleted> {
  const { namespace, name, options } = deletion;
  const { conversion } = resource;
  const stored = core.storage.getForUpdate(storageKeyOf(resource, namespace, name));
  const live = conversion === undefined || stored === undefined ? stored : await conversion.readNow(stored);
  const attributes: AdmissionAttributes = {
    operation: 'DELETE',
    resource,
    subresource: '',
    namespace,
    name,
    object: undefined,
    oldObject: live?.object,
    user: deletion.user,
    dryRun: options.dryRun,
    options: deleteOptionsObject(options),
  };
  if (options.ignoresReadErrors === true) core.checkUnsafeDelete?.(attributes);
  if (live === undefined) throw notFound(resource.groupResource, name);
  // What is stored here can be read.
  if (options.ignoresReadErrors === true) {
    throw conflict(resource.groupResource, name, readableObject(resource, namespace, name));
  }
  checkPreconditions(resource, live.object, name, options);
  const reply = { warn: (text: string) => deletion.warn(text) };
  const mutated = core.admission.mutate(attributes, reply);
  if (mutated instanceof Promise) await mutated;
  const validated = core.admission.validate(attributes, reply);
  if (validated instanceof Promise) await validated;
  const now = core.now();
  const next = markForDeletion(resource.definition.strategy, live.object, options, now);
  if (next === 'pending') return { object: live.object, removed: false };
  if (next !== undefined) {
    const removable = isRemovable(resource.definition.strategy, next);
    if (options.dryRun) return { object: next, removed: removable };
    const object = conversion === undefined ? next : await conversion.write(next);
    const [written] = await core.storage.commit([{ key: live.key, expect: live.revision, object }]);
    const marked = await readServedVersion(resource, written);
    if (!removable || marked === undefined) return { object: marked?.object ?? next, removed: false };
    return removeNow(core, resource, marked, false);
  }
  return removeNow(core, resource, live, options.dryRun);
}

const apiextensions = 'apiextensions.k8s.io';

/**
 * @throws {StatusError} 409 naming the Kind, as `rest.BeforeDelete` does, or the resource where it goes by a controller
 *   (`registry/core/namespace/storage`, apiextensions `registry/customresourcedefinition/etcd.go`).
 */
function checkPreconditions(
  resource: ServedResource,
  object: KubeObject,
  name: string,
  options: CheckedDeleteOptions,
): void {
  const { uid, resourceVersion } = options.preconditions;
  const failed = resource.groupKind.group === apiextensions ? 'precondition failed' : 'Precondition failed';
  const other = (what: string, wanted: string, present = ''): StatusError => {
    const detail = `${what} in precondition: ${wanted}, ${what} in object meta: ${present}`;
    return conflict(resource.groupResource, name, `${failed}: ${detail}`);
  };
  const terminates = resource.definition.strategy.termination !== undefined;
  const subject = { group: resource.groupKind.group, resource: resource.groupKind.kind };
  const { metadata } = object;
  if (uid !== undefined && uid !== metadata.uid) {
    if (terminates) throw other('UID', uid, metadata.uid);
    throw conflict(
      subject,
      name,
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid ?? ''}). ` +
        'The object might have been deleted and then recreated',
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    if (terminates) throw other('ResourceVersion', resourceVersion, metadata.resourceVersion);
    throw conflict(
      subject,
      name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record ` +
        `(${metadata.resourceVersion ?? ''}). The object might have been modified`,
    );
  }
}

/**
 * The object as it must be stored before it can go: with a deletionTimestamp and the finalizers of the garbage
 * collector. Undefined when it can be removed as it is; `pending` when its deletion is under way and nothing about
 * it changes (`Store.updateForGracefulDeletionAndFinalizers`).
 */
function markForDeletion(
  strategy: Strategy,
  live: KubeObject,
  options: CheckedDeleteOptions,
  now: number,
): KubeObject | 'pending' | undefined {
  const object: KubeObject = { ...live, metadata: { ...live.metadata } };
  const { metadata } = object;
  if (strategy.termination !== undefined) {
    if (metadata.deletionTimestamp === undefined) {
      metadata.deletionTimestamp = timestamp(now);
      strategy.termination.mark(object);
      if (strategy.termination.takesPropagation === true) {
        setFinalizers(object, askedFinalizers(metadata.finalizers ?? [], options));
      }
      return object;
    }
    // An emptied namespace that waits for finalizers is deleted like other objects.
    if (!strategy.termination.finished(object)) return 'pending';
  }
  const graceful = markGraceful(strategy, object, options, now);
  // Finalizers cannot change during a grace period.
  if (graceful === 'pending') return 'pending';
  const present = metadata.finalizers ?? [];
  const finalizers = garbageCollectionFinalizers(strategy, present, options);
  const sameFinalizers = sameSet(finalizers, present);
  if (!sameFinalizers) setFinalizers(object, finalizers);
  if (graceful === 'changed') return object;
  if (finalizers.length === 0) return undefined;
  return markAsDeleting(object, now) || !sameFinalizers ? object : 'pending';
}

function setFinalizers({ metadata }: KubeObject, finalizers: string[]): void {
  if (finalizers.length === 0) delete metadata.finalizers;
  else metadata.finalizers = finalizers;
}

/** Without a grace period an object waits for its finalizers only. @returns whether anything changed. */
function markAsDeleting({ metadata }: KubeObject, now: number): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds, generation = 0 } = metadata;
  if (deletionTimestamp === undefined && generation > 0) metadata.generation = generation + 1;
  if (deletionTimestamp === undefined || Date.parse(deletionTimestamp) > now) {
    metadata.deletionTimestamp = timestamp(now);
  }
  metadata.deletionGracePeriodSeconds = 0;
  return metadata.deletionTimestamp !== deletionTimestamp || deletionGracePeriodSeconds !== 0;
}

/**
 * `rest.BeforeDelete`: the first delete starts the grace period, a later one may only shorten it, to a second at least
 * when it is over already. `none` for kinds without one, and when it was 0.
 */
function markGraceful(
  strategy: Strategy,
  object: KubeObject,
  { gracePeriodSeconds: requested }: CheckedDeleteOptions,
  now: number,
): 'changed' | 'pending' | 'none' {
  if (strategy.gracePeriodSeconds === undefined) return 'none';
  const { metadata } = object;
  if (metadata.deletionTimestamp === undefined) {
    const seconds = strategy.gracePeriodSeconds(object, requested);
    metadata.deletionTimestamp = timestamp(now + seconds * 1000);
    metadata.deletionGracePeriodSeconds = seconds;
    if (metadata.generation !== undefined && metadata.generation > 0) metadata.generation++;
    return 'changed';
  }
  const running = metadata.deletionGracePeriodSeconds ?? 0;
  if (running === 0) return 'none';
  if (requested === undefined) return 'pending';
  const seconds = requested < 0 ? 1 : requested;
  if (seconds >= running) return 'pending';
  const end = Date.parse(metadata.deletionTimestamp) + (seconds - running) * 1000;
  const isOver = end < now;
  metadata.deletionTimestamp = timestamp(isOver ? now : end);
  metadata.deletionGracePeriodSeconds = isOver && seconds !== 0 ? 1 : seconds;
  return 'changed';
}

const orphan = 'orphan';
const foreground = 'foregroundDeletion';

/** The finalizers after `propagationPolicy` has spoken (`deletionFinalizersForGarbageCollection`). */
function garbageCollectionFinalizers(
  { defaultGarbageCollectionPolicy: byDefault }: Strategy,
  present: readonly string[],
  options: CheckedDeleteOptions,
): string[] {
  const kept = present.filter((finalizer) => finalizer !== orphan && finalizer !== foreground);
  if (byDefault === 'Unsupported') return kept;
  const policy = propagationPolicyOf(options);
  if (policy === 'Orphan') return [...kept, orphan];
  if (policy === 'Foreground') return [...kept, foreground];
  if (policy === 'Background') return kept;
  if (present.includes(orphan)) return [...kept, orphan];
  if (present.includes(foreground)) return [...kept, foreground];
  return byDefault === 'OrphanDependents' ? [...kept, orphan] : kept;
}

/** The finalizers of a Namespace, which has no default: only for it does `orphanDependents: false` mean Foreground. */
function askedFinalizers(present: readonly string[], options: CheckedDeleteOptions): string[] {
  const policy = options.orphanDependents === false ? 'Foreground' : propagationPolicyOf(options);
  if (policy === undefined) return [...present];
  const asked = policy === 'Orphan' ? orphan : policy === 'Foreground' ? foreground : undefined;
  const others = present.filter(
    (finalizer) => finalizer === asked || (finalizer !== orphan && finalizer !== foreground),
  );
  return asked === undefined || others.includes(asked) ? others : [...others, asked];
}

/** The propagation policy of a delete, from the old option or the new; undefined without one. */
function propagationPolicyOf({
  orphanDependents,
  propagationPolicy,
}: CheckedDeleteOptions): string | undefined {
  if (orphanDependents === undefined) return propagationPolicy;
  return orphanDependents ? 'Orphan' : 'Background';
}

/** Warns of a delete without a propagation policy, since the default depends on the kind. */
export function warnOfDeletion(
  { deletionWarning }: Strategy,
  options: CheckedDeleteOptions,
  warn: (text: string) => void,
): void {
  if (deletionWarning !== undefined && propagationPolicyOf(options) === undefined) warn(deletionWarning);
}

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item) => b.includes(item));
}

/** True when nothing keeps a marked object: no finalizer, no grace period, no content. */
function isRemovable(strategy: Strategy, object: KubeObject): boolean {
  if ((object.metadata.finalizers ?? []).length > 0) return false;
  if (strategy.termination !== undefined) return false;
  return (object.metadata.deletionGracePeriodSeconds ?? 0) === 0;
}

async function removeNow(
  core: ServerCore,
  resource: ServedResource,
  live: StoredObject,
  dryRun: boolean,
): Promise<Deleted> {
  const context = strategyContext(core, dryRun);
  const reservation = resource.definition.strategy.beginDelete?.(live.object, context) ?? emptyReservation;
  if (dryRun) {
    reservation.rollback();
    return { object: live.object, removed: true };
  }
  const write = { key: live.key, expect: live.revision, object: undefined };
  const removed = await commit(core, reservation, write, context);
  const last = resource.conversion === undefined ? removed : undefined;
  return { object: last?.object ?? live.object, removed: true };
}
