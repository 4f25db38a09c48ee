import type { KubeObject } from '../../objects/meta.ts';
import { jsonEqual } from '../../objects/json.ts';
import { StatusError, conflict, modified, notFound } from '../../objects/status.ts';
import { asReported, invalidObject } from '../../registry/validation/field-errors.ts';
import { validateCommonFields } from '../../registry/generic/metadata.ts';
import type { StrategyContext, SubresourceStrategy, UserInfo } from '../../registry/generic/strategy.ts';
import { PreconditionError, type StoredObject, type Write } from '../storage/storage.ts';
import type { AdmissionAttributes, BodyKind } from './admission.ts';
import { commit, emptyReservation, uidMismatch } from './commit.ts';
import {
  matchNamespace,
  checkResourceVersion,
  checkVersionIsNumber,
  dedupOwnerReferences,
  keepSystemFields,
  wipeSystemFields,
} from './system-fields.ts';
import { createObject, type CreateRequest, type WriteResult } from './create.ts';
import {
  storageKeyOf,
  type ServedResource,
  toServedVersion,
  readServedVersion,
  invalidSubjectOf,
} from './served-resource.ts';
import { type ServerCore, strategyContext } from './server-core.ts';
import { runInSlices, TimeSlice } from '../../telemetry/time-slice.ts';

/** A write to an object that exists, or that the write may create. */
export interface UpdateRequest {
  readonly namespace: string;
  readonly name: string;
  /** "" for the main resource. */
  readonly subresource: string;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  /** UpdateOptions or PatchOptions as JSON, for webhooks. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** The form of the object for admission, if it differs: the Scale of a workload. */
  readonly view?: ObjectView;
  /** Whether a missing object is created: a PUT if the kind's strategy allows it, an apply always, a patch never. */
  readonly create: 'if-allowed' | 'always' | 'never';
  /** The uid that the object must have, as named by the body; "" for none. */
  readonly uid: string;
  warn(text: string): void;
  /**
   * The next version, computed from the stored one (undefined: to be created); decoded, defaulted, owned by the
   * caller of `produce`. Called again when the object changed in between. Its resourceVersion, when set, must be
   * the stored one.
   */
  produce(live: StoredObject | undefined): KubeObject | Promise<KubeObject>;
  /** Records the managers of the fields of the next version. */
  track(object: KubeObject, live: KubeObject | undefined): void | Promise<void>;
}

/** Another object through which one is read and changed. */
export interface ObjectView {
  readonly subresource: string;
  readonly body: BodyKind;
  read(object: KubeObject): KubeObject;
  /** The object with the members of the other one. */
  write(object: KubeObject, view: KubeObject): KubeObject;
}

export interface Updated extends WriteResult {
  /** The write created the object. */
  readonly created: boolean;
}

/** Attempts before a write gives up that always finds a newer version: each was overtaken by another writer. */
const maxAttempts = 20;

/**
 * Replaces or patches an object (`Store.Update`): read, compute, admission, allocation, validation, store; again
 * from the start after a conflict, if the client named no resourceVersion.
 *
 * @throws {StatusError}
 */
export async function updateObject(
  core: ServerCore,
  resource: ServedResource,
  update: UpdateRequest,
): Promise<Updated> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await updateOnce(core, resource, update);
    } catch (error) {
      if (!(error instanceof PreconditionError)) throw error;
      if (attempt === maxAttempts) throw conflict(resource.groupResource, update.name, modified);
    }
  }
}

function seenThrough(
  view: ObjectView,
  attributes: AdmissionAttributes,
  object: KubeObject,
  old: KubeObject,
): AdmissionAttributes {
  const { subresource, body } = view;
  return { ...attributes, subresource, body, object: view.read(object), oldObject: view.read(old) };
}

async function updateOnce(
  core: ServerCore,
  resource: ServedResource,
  update: UpdateRequest,
): Promise<Updated> {
  const { name, namespace } = update;
  const slice = new TimeSlice();
  const stored = core.storage.getForUpdate(storageKeyOf(resource, namespace, name));
  if (stored === undefined) return createByUpdate(core, resource, update);
  const { conversion } = resource;
  const live = conversion === undefined ? stored : await conversion.readNow(stored);
  const { strategy } = resource.definition;
  const old = live.object;
  if (update.uid !== '' && update.uid !== old.metadata.uid) {
    throw conflict(
      resource.groupResource,
      name,
      uidMismatch(resource, namespace, name, update.uid, old.metadata.uid),
    );
  }
  const produced = update.produce(live);
  let object = produced instanceof Promise ? await produced : produced;
  if (slice.isOver) await slice.yield();
  const attributes: AdmissionAttributes = {
    operation: 'UPDATE',
    resource,
    subresource: update.subresource,
    namespace,
    name,
    object,
    oldObject: old,
    user: update.user,
    dryRun: update.dryRun,
    ...(update.options === undefined ? {} : { options: update.options }),
  };
  const reply = { warn: (text: string) => update.warn(text) };
  const tracking = update.track(object, old);
  if (tracking instanceof Promise) await tracking;
  if (slice.isOver) await slice.yield();
  const { view } = update;
  const seen = view === undefined ? attributes : seenThrough(view, attributes, object, old);
  const mutating = core.admission.mutate(seen, reply);
  const mutated = mutating instanceof Promise ? await mutating : mutating;
  if (mutated !== undefined) object = view === undefined ? mutated : view.write(object, mutated);
  dedupOwnerReferences(object, 'admitted', reply.warn);
  const context = {
    ...strategyContext(core, update.dryRun, update.user),
    verb: update.options?.['kind'] === 'PatchOptions' ? 'patch' : 'update',
  };
  if (update.subresource === '') strategy.authorize?.(object, old, context);
  checkResourceVersion(resource, object, live);
  const rules = update.subresource === '' ? strategy : subresourceStrategy(resource, update.subresource);
  const begin = update.subresource === '' ? strategy.beginUpdate?.(object, old, context) : undefined;
  let reservation = begin ?? emptyReservation;
  let removed: boolean;
  let next: KubeObject;
  try {
    matchNamespace(object, resource.definition.namespaced ? update.namespace : '');
    const preparing = strategy.prepareValidation?.(object);
    if (preparing !== undefined) await runInSlices(preparing);
    finishObject(resource, rules, object, old, context, update);
    const validated = core.admission.validate({ ...seen, object: view?.read(object) ?? object }, reply);
    if (validated instanceof Promise) await validated;
    removed = isFinished(resource, object, old);
    if (removed) {
      // The stored object is deleted: the next version never held anything.
      reservation.rollback();
      reservation = emptyReservation;
      reservation = strategy.beginDelete?.(old, context) ?? emptyReservation;
    }
    next = conversion === undefined || removed ? object : await conversion.write(object);
    if (slice.isOver) await slice.yield();
  } catch (error) {
    reservation.rollback();
    throw error;
  }
  if (update.dryRun || (!removed && isUnchanged(next, stored.object))) {
    reservation.rollback();
    return update.dryRun
      ? {
          object: removed ? object : await toServedVersion(resource, object, next),
          stored: undefined,
          created: false,
        }
      : { object: old, stored: live, created: false };
  }
  const write: Write = { key: stored.key, expect: stored.revision, object: removed ? undefined : next };
  const written = await commit(core, reservation, write, context);
  if (!removed) {
    const shown = await readServedVersion(resource, written);
    return {
      object: conversion === undefined ? object : (shown?.object ?? object),
      stored: shown,
      created: false,
    };
  }
  if (written !== undefined) object.metadata.resourceVersion = String(written.revision);
  return { object, stored: undefined, created: false };
}

function subresourceStrategy(resource: ServedResource, subresource: string): SubresourceStrategy {
  const { strategy } = resource.definition;
  const found = subresource === 'status' ? strategy.status : strategy.subresources?.get(subresource);
  if (found === undefined)
    throw new Error(`${resource.definition.plural} have no strategy for /${subresource}`);
  return found;
}

async function createByUpdate(
  core: ServerCore,
  resource: ServedResource,
  update: UpdateRequest,
): Promise<Updated> {
  const { name, namespace, user, dryRun } = update;
  const slice = new TimeSlice();
  const { allowCreateOnUpdate } = resource.definition.strategy;
  // An apply forces the store to create, but not through a subresource.
  const forced = update.create === 'always' && update.subresource === '';
  const mayCreate = forced || (update.create !== 'never' && allowCreateOnUpdate);
  if (!mayCreate) throw notFound(resource.groupResource, name);
  // The store checks the precondition before the object is computed.
  if (update.uid !== '') {
    throw conflict(resource.groupResource, name, uidMismatch(resource, namespace, name, update.uid, ''));
  }
  const produced = update.produce(undefined);
  const object = produced instanceof Promise ? await produced : produced;
  if (slice.isOver) await slice.yield();
  wipeSystemFields(object);
  checkVersionIsNumber(object.metadata.resourceVersion);
  // The resourceVersion is of no stored object; a dry run, which stores nothing, returns it.
  if (!dryRun) delete object.metadata.resourceVersion;
  const creation: CreateRequest = {
    object,
    namespace,
    subresource: update.subresource,
    user,
    dryRun,
    byUpdate: true,
    ...(update.options === undefined ? {} : { options: update.options }),
    warn: (text) => update.warn(text),
    track: (next) => update.track(next, undefined),
  };
  try {
    return { ...(await createObject(core, resource, creation)), created: true };
  } catch (error) {
    // Conflict: the update starts again from the version that is stored now.
    const key = storageKeyOf(resource, namespace, name);
    const present = core.storage.getForUpdate(key);
    const isTaken = error instanceof StatusError && error.reason === 'AlreadyExists';
    throw isTaken && present !== undefined ? new PreconditionError(key, present) : error;
  }
}

/** `rest.BeforeUpdate`: system fields, the strategy's view, then all rules. */
function finishObject(
  resource: ServedResource,
  rules: SubresourceStrategy,
  object: KubeObject,
  old: KubeObject,
  context: StrategyContext,
  update: UpdateRequest,
): void {
  if (old.metadata.generation === undefined) delete object.metadata.generation;
  else object.metadata.generation = old.metadata.generation;
  rules.prepareForUpdate(object, old, context);
  keepSystemFields(object, old);
  const errors = [
    ...validateCommonFields(object.metadata, old.metadata, resource.definition.namespaced),
    ...rules.validateUpdate(object, old, context),
  ];
  if (errors.length > 0) {
    const { repeatsErrors } = resource.definition.strategy;
    throw invalidObject(
      invalidSubjectOf(resource, object),
      repeatsErrors === true ? errors : asReported(errors),
    );
  }
  for (const warning of rules.warningsOnUpdate?.(object, old) ?? []) update.warn(warning);
}

/** The write takes the last thing that kept a deleted object (`ShouldDeleteDuringUpdate`). */
function isFinished(resource: ServedResource, object: KubeObject, old: KubeObject): boolean {
  if ((object.metadata.finalizers?.length ?? 0) > 0) return false;
  const { termination } = resource.definition.strategy;
  if (termination !== undefined) {
    return old.metadata.deletionTimestamp !== undefined && termination.finished(object);
  }
  return old.metadata.deletionTimestamp !== undefined && (old.metadata.deletionGracePeriodSeconds ?? 0) === 0;
}

/** A write that changes nothing keeps its resourceVersion and makes no event. */
function isUnchanged(object: KubeObject, old: KubeObject): boolean {
  return jsonEqual(object, old);
}
