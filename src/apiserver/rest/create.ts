import type { KubeObject } from '../../objects/meta.ts';
import { alreadyExists, plainError } from '../../objects/status.ts';
import { StatusError } from '../../objects/status.ts';
import { asReported, invalidObject } from '../../registry/validation/field-errors.ts';
import { validateCustomObjectMeta } from '../../registry/generic/metadata.ts';
import { nameIsPathSegment } from '../../objects/names.ts';
import { type Reservation, type StrategyContext, type UserInfo } from '../../registry/generic/strategy.ts';
import { PreconditionError, type StoredObject } from '../storage/storage.ts';
import type { AdmissionAttributes } from './admission.ts';
import { commit, emptyReservation } from './commit.ts';
import { generateName, matchNamespace } from './system-fields.ts';
import {
  storageKeyOf,
  type ServedResource,
  toServedVersion,
  readServedVersion,
  invalidSubjectOf,
} from './served-resource.ts';
import { type ServerCore, strategyContext } from './server-core.ts';
import { dedupOwnerReferences, fillSystemFields, isVersion } from './system-fields.ts';
import { runInSlices, TimeSlice } from '../../telemetry/time-slice.ts';

/** An object on its way into the store. */
export interface CreateRequest {
  /** Decoded, defaulted, with its namespace. Belongs to the callee. */
  readonly object: KubeObject;
  readonly namespace: string;
  readonly subresource: string;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  /** An update or an apply makes it, which needs the right to create besides. */
  readonly byUpdate?: true;
  /** CreateOptions as JSON, for webhooks. */
  readonly options?: Readonly<Record<string, unknown>>;
  warn(text: string): void;
  /** Called with the object after mutating admission: records the managers of its fields. */
  track(object: KubeObject): void | Promise<void>;
}

/** What a write came to. */
export interface WriteResult {
  /** The stored object; for a dry run, and for an object that the write removed, as it would be stored. */
  readonly object: KubeObject;
  /** The stored version; undefined for a dry run, and when the write removed the object. */
  readonly stored: StoredObject | undefined;
}

/** Tries for a free name from `generateName` (KEP 4420). */
const maxNameTries = 8;

/**
 * Creates an object: admission, allocation, strategy, validation, store, in kube-apiserver's order (section 2.2 of
 * service-semantics: allocation comes before validation).
 */
export async function createObject(
  core: ServerCore,
  resource: ServedResource,
  creation: CreateRequest,
): Promise<WriteResult> {
  for (let attempt = 1; ; attempt++) {
    const generated =
      (creation.object.metadata.name ?? '') === '' && (creation.object.metadata.generateName ?? '') !== '';
    const last = !generated || attempt === maxNameTries;
    try {
      return await createOnce(
        core,
        resource,
        last ? creation : { ...creation, object: structuredClone(creation.object) },
      );
    } catch (error) {
      if (last || !(error instanceof StatusError) || error.reason !== 'AlreadyExists')
        throw lastNameTried(error, creation.object.metadata.generateName);
    }
  }
}

/** With `generateName` the error is that no name was found, also for an explicit name (`CheckGeneratedNameError`). */
function lastNameTried(error: unknown, generateName = ''): unknown {
  if (generateName === '' || !(error instanceof StatusError) || error.reason !== 'AlreadyExists')
    return error;
  return new StatusError(
    409,
    'AlreadyExists',
    `${error.message}, the server was not able to generate a unique name for the object`,
    {
      details: { ...error.details, retryAfterSeconds: 1 },
    },
  );
}

async function createOnce(
  core: ServerCore,
  resource: ServedResource,
  creation: CreateRequest,
): Promise<WriteResult> {
  const { strategy } = resource.definition;
  const { namespace, subresource, dryRun, user } = creation;
  const slice = new TimeSlice();
  let { object } = creation;
  const context = strategyContext(core, dryRun, user);
  const attributes: AdmissionAttributes = {
    operation: 'CREATE',
    resource,
    subresource,
    namespace,
    name: object.metadata.name ?? '',
    object,
    oldObject: undefined,
    user,
    dryRun,
    ...(creation.options === undefined ? {} : { options: creation.options }),
  };
  const reply = { warn: (text: string) => creation.warn(text) };
  // Before admission: fields that plugins and webhooks add have no owner (apiserver `handlers/create.go`).
  const tracking = creation.track(object);
  if (tracking instanceof Promise) await tracking;
  if (slice.isOver) await slice.yield();
  const mutated = core.admission.mutate(attributes, reply);
  object = (mutated instanceof Promise ? await mutated : mutated) ?? object;
  matchNamespace(object, resource.definition.namespaced ? namespace : '');
  dedupOwnerReferences(object, 'admitted', reply.warn);
  strategy.authorize?.(object, undefined, context);
  nameObject(core, object);
  fillSystemFields(core, object, context.now);
  // The store of a subresource has no hooks: a Service that a PUT to /status creates gets no address.
  const begin = subresource === '' ? strategy.beginCreate?.(object, context) : undefined;
  const reservation = begin ?? emptyReservation;
  let key: string;
  /** In the version that is stored, where that is another one. */
  let stored: KubeObject | undefined;
  try {
    const preparing = strategy.prepareValidation?.(object);
    if (preparing !== undefined) await runInSlices(preparing);
    finishObject(resource, object, context, creation);
    if (slice.isOver) await slice.yield();
    // Strategies may have named it: LimitRanges need no name of a client.
    key = storageKeyOf(resource, namespace, object.metadata.name ?? '');
    const admitted = { ...attributes, name: object.metadata.name ?? '', object };
    if (creation.byUpdate === true) core.checkCreateOnUpdate?.(admitted);
    const validated = core.admission.validate(admitted, reply);
    if (validated instanceof Promise) await validated;
    if (!dryRun) checkNoResourceVersion(object);
    if (resource.conversion !== undefined) stored = await resource.conversion.write(object);
    if (slice.isOver) await slice.yield();
    checkAbsent(core, resource, key, object);
  } catch (error) {
    reservation.rollback();
    throw error;
  }
  if (dryRun) {
    reservation.rollback();
    return { object: await toServedVersion(resource, object, stored), stored: undefined };
  }
  return store(core, resource, key, stored ?? object, reservation, context);
}

/** Admission has seen the object without the name that is made for it. */
function nameObject(core: ServerCore, { metadata }: KubeObject): void {
  const { name = '', generateName: base = '' } = metadata;
  if (name === '' && base !== '') metadata.name = generateName(base, () => core.random());
}

/** `rest.BeforeCreate`: the strategy's view, then all rules, then those that every kind's metadata has. */
function finishObject(
  resource: ServedResource,
  object: KubeObject,
  context: StrategyContext,
  creation: CreateRequest,
): void {
  const { strategy } = resource.definition;
  strategy.prepareForCreate(object, context);
  const subject = invalidSubjectOf(resource, object);
  const errors = strategy.validateCreate(object, context);
  if (errors.length > 0) {
    throw invalidObject(subject, strategy.repeatsErrors === true ? errors : asReported(errors));
  }
  const { namespaced } = resource.definition;
  const common = validateCustomObjectMeta(object.metadata, { namespaced, nameRule: nameIsPathSegment });
  if (common.length > 0) throw invalidObject(subject, common);
  for (const warning of strategy.warningsOnCreate?.(object) ?? []) creation.warn(warning);
}

/** etcd3's `Create`: one that is no number does not count, and a dry run does not get there. */
function checkNoResourceVersion({ metadata: { resourceVersion = '' } }: KubeObject): void {
  if (isVersion(resourceVersion) && Number(resourceVersion) !== 0) {
    throw plainError('resourceVersion should not be set on objects to be created');
  }
}

function checkAbsent(core: ServerCore, resource: ServedResource, key: string, object: KubeObject): void {
  const present = core.storage.getForUpdate(key);
  if (present !== undefined) throw nameTaken(resource, object.metadata.name ?? '', present.object);
}

function nameTaken(resource: ServedResource, name: string, present: KubeObject | undefined): StatusError {
  return alreadyExists(resource.groupResource, name, present?.metadata.deletionTimestamp !== undefined);
}

async function store(
  core: ServerCore,
  resource: ServedResource,
  key: string,
  object: KubeObject,
  reservation: Reservation,
  context: StrategyContext,
): Promise<WriteResult> {
  try {
    const stored = await commit(core, reservation, { key, expect: 'absent', object }, context);
    if (resource.conversion === undefined) return { object, stored };
    const shown = await readServedVersion(resource, stored);
    return { object: shown?.object ?? object, stored: shown };
  } catch (error) {
    if (error instanceof PreconditionError && error.key === key)
      throw nameTaken(resource, object.metadata.name ?? '', error.present?.object);
    throw error;
  }
}
