import { StatusError, badRequest, conflict, notFound } from '../../objects/status.ts';
import type { ApiRequest, Reply } from '../http/exchange.ts';
import {
  type CheckedDeleteOptions,
  type ListOptions,
  checkCollectionDelete,
  deleteOptions,
  listOptions,
  parseResourceVersion,
  booleanParameter,
  writeOptionsObject,
  writeOptions,
} from './options.ts';
import { deleteObject, warnOfDeletion } from './delete.ts';
import { type Listed, listObjects, waitForRevision } from './list.ts';
import { type ListFilter, outputOf, listFilterOf } from './output.ts';
import { type ServedResource, storageKeyOf, readServedVersion } from './served-resource.ts';
import { type ServerCore, timestamp } from './server-core.ts';
import { TimeSlice, runInSlices } from '../../telemetry/time-slice.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { applyConverting, applyObject } from '../patch/apply/apply.ts';
import type { ApplyRequest } from '../patch/apply/apply-run.ts';
import { bodyMediaType, patchType } from '../http/negotiation.ts';
import { checkPatchBody, patchInSteps, type Patched } from '../patch/patch.ts';
import { decodeBody, type ExpectedKind } from '../schema/decode-body.ts';
import { createObject } from './create.ts';
import {
  checkPathName,
  matchName,
  matchNamespace,
  dedupOwnerReferences,
  wipeSystemFields,
} from './system-fields.ts';
import { responderTo } from './responder.ts';
import { ownableFields, fieldManager } from './commit.ts';
import type { StoredObject } from '../storage/storage.ts';
import { updateObject } from './update.ts';
import { watchObjects } from './watch/watch.ts';

/** One function per verb: reads options and body, calls the verb, writes the answer. */

/**
 * Deletes the objects of a list, one delete each (`Store.DeleteCollection`): not atomic, and an object that is gone
 * already is no error.
 *
 * @returns the list as it was before.
 */
async function deleteCollection(
  core: ServerCore,
  resource: ServedResource,
  request: ApiRequest,
  reply: Reply,
  options: ListOptions,
  filter: ListFilter,
  deletion: CheckedDeleteOptions,
): Promise<Listed> {
  const { namespace } = request.info;
  warnOfDeletion(resource.definition.strategy, deletion, (text) => reply.warn(text));
  const listed = await listObjects(core, resource, namespace, asPage(options), filter, request.signal);
  const slice = new TimeSlice();
  for (const { object } of listed.items) {
    if (slice.isOver) await slice.yield();
    try {
      await deleteObject(core, resource, {
        namespace: object.metadata.namespace ?? namespace,
        name: object.metadata.name ?? '',
        user: request.user,
        options: deletion,
        warn: (text) => reply.warn(text),
      });
    } catch (error) {
      if (!(error instanceof StatusError) || error.reason !== 'NotFound') throw error;
    }
  }
  return listed;
}

/** Without a limit the store lists in pages; with a limit, a version means exactly that one. */
function asPage(options: ListOptions): ListOptions {
  const { limit, resourceVersion, resourceVersionMatch } = options;
  if (limit !== 0 || resourceVersionMatch !== '' || resourceVersion === '' || resourceVersion === '0')
    return options;
  return { ...options, resourceVersionMatch: 'Exact' };
}

/** Serves one request for a resource that exists and has the verb. */
export type ResourceHandler = (
  core: ServerCore,
  resource: ServedResource,
  request: ApiRequest,
  reply: Reply,
) => Promise<void>;

export const handleGet: ResourceHandler = async (core, resource, request, reply) => {
  const respond = responderTo(core, resource, request, reply, 'object');
  const { namespace, name } = request.info;
  if (booleanParameter(request.query, 'export') === true) {
    throw badRequest('the export parameter, deprecated since v1.14, is no longer supported');
  }
  checkPathName(name);
  const revision = parseResourceVersion(request.query.get('resourceVersion') ?? '');
  if (revision > 0n) await waitForRevision(core, resource, revision, request.signal);
  const stored = core.storage.get(storageKeyOf(resource, namespace, name));
  if (stored === undefined) throw notFound(resource.groupResource, name);
  await respond.stored(200, await readServedVersion(resource, stored));
};

export const handleList: ResourceHandler = async (core, resource, request, reply) => {
  const respond = responderTo(core, resource, request, reply, 'collection');
  const options = listOptions(request.query, false);
  const filter = listFilterOf(resource, options, request.info.name);
  const { items, metadata } = await listObjects(
    core,
    resource,
    request.info.namespace,
    options,
    filter,
    request.signal,
  );
  await respond.list(items, metadata);
};

export const handleWatch: ResourceHandler = async (core, resource, request, reply) => {
  const output = outputOf(request, resource, 'watch');
  const options = listOptions(request.query, true);
  const filter = listFilterOf(resource, options, request.info.name);
  const { namespace } = request.info;
  await watchObjects(core, request, reply, { resource, namespace, options, filter, output });
};

export const handleCreate: ResourceHandler = async (core, resource, request, reply) => {
  const respond = responderTo(core, resource, request, reply, 'object');
  const mediaType = bodyMediaType(request.headers['content-type']);
  const bytes = await request.body();
  const slice = new TimeSlice();
  const options = writeOptions(request, 'CreateOptions');
  const { object, warnings } = decodeBody({
    bytes,
    contentType: mediaType,
    expected: expectedKind(resource),
    fieldValidation: options.fieldValidation,
    warn: (text) => reply.warn(text),
  });
  for (const warning of warnings) reply.warn(warning);
  const { namespace, subresource } = request.info;
  wipeSystemFields(object);
  matchNamespace(object, resource.definition.namespaced ? namespace : '');
  dedupOwnerReferences(object, 'sent', (text) => reply.warn(text));
  const stored = storedForm(resource, object);
  if (slice.isOver) await slice.yield();
  const created = await createObject(core, resource, {
    object: stored,
    namespace,
    subresource,
    user: request.user,
    dryRun: options.dryRun,
    options: writeOptionsObject('CreateOptions', options),
    warn: (text) => reply.warn(text),
    track: fieldManager(core, resource, request, options.fieldManager),
  });
  await respond.written(201, created);
};

export const handleUpdate: ResourceHandler = async (core, resource, request, reply) => {
  const respond = responderTo(core, resource, request, reply, 'object');
  const bytes = await request.body();
  const options = writeOptions(request, 'UpdateOptions');
  const mediaType = bodyMediaType(request.headers['content-type']);
  const { namespace, name, subresource } = request.info;
  const decode = (): KubeObject => {
    const { object, warnings } = decodeBody({
      bytes,
      contentType: mediaType,
      expected: expectedKind(resource),
      fieldValidation: options.fieldValidation,
      warn: (text) => reply.warn(text),
    });
    if (first === undefined) for (const warning of warnings) reply.warn(warning);
    matchNamespace(object, resource.definition.namespaced ? namespace : '');
    matchName(object, name);
    dedupOwnerReferences(object, 'sent', first === undefined ? (text) => reply.warn(text) : () => undefined);
    return storedForm(resource, object);
  };
  let first: KubeObject | undefined;
  const slice = new TimeSlice();
  first = decode();
  if (slice.isOver) await slice.yield();
  checkPathName(name);
  const uid = first.metadata.uid ?? '';
  const updated = await updateObject(core, resource, {
    namespace,
    name,
    subresource,
    user: request.user,
    dryRun: options.dryRun,
    options: writeOptionsObject('UpdateOptions', options),
    create: 'if-allowed',
    uid,
    warn: (text) => reply.warn(text),
    produce: () => {
      const object = first ?? decode();
      first = undefined;
      return object;
    },
    track: fieldManager(core, resource, request, options.fieldManager),
  });
  await respond.written(updated.created ? 201 : 200, updated);
};

export const handlePatch: ResourceHandler = async (core, resource, request, reply) => {
  const respond = responderTo(core, resource, request, reply, 'object');
  const type = patchType(request.headers['content-type'], resource.custom);
  const bytes = await request.body();
  const options = writeOptions(request, 'PatchOptions', type === 'apply');
  checkPatchBody(type, bytes);
  const { namespace, name, subresource } = request.info;
  const expected = expectedKind(resource);
  const { fieldValidation } = options;
  checkPathName(name);
  let warned = false;
  const patched = (live: StoredObject | undefined): Patched | Promise<Patched> => {
    const stored = live?.object ?? emptyObject(resource, namespace, name);
    const base = servedForm(resource, stored);
    if (type !== 'apply') {
      // Of built-in kinds, the stored text is the encoding of `base`.
      const liveText = base === stored && !resource.custom ? live?.text() : undefined;
      return runInSlices(patchInSteps({ type, bytes, live: base, liveText, expected, fieldValidation }));
    }
    const apply: ApplyRequest = {
      bytes,
      live: base,
      expected,
      fieldValidation,
      manager: options.fieldManager,
      force: options.force,
      subresource,
      now: timestamp(core.now()),
      ownable: ownableFields(resource, subresource),
      setDefaults: (next) => setDefaults(resource, next, true),
    };
    return resource.conversion === undefined
      ? runInSlices(applyObject(apply))
      : applyConverting(apply, resource.conversion);
  };
  const checked = ({ object, warnings }: Patched, live: StoredObject | undefined): KubeObject => {
    if (!warned) for (const warning of warnings) reply.warn(warning);
    warned = true;
    const { uid = '' } = object.metadata;
    if (live === undefined && uid !== '') {
      const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
      throw conflict(resource.groupResource, name, why);
    }
    matchNamespace(object, resource.definition.namespaced ? namespace : '');
    matchName(object, name);
    return storedForm(resource, object, type === 'apply');
  };
  const produce = (live: StoredObject | undefined): KubeObject | Promise<KubeObject> => {
    const next = patched(live);
    return next instanceof Promise ? next.then((made) => checked(made, live)) : checked(next, live);
  };
  const updated = await updateObject(core, resource, {
    namespace,
    name,
    subresource,
    user: request.user,
    dryRun: options.dryRun,
    options: writeOptionsObject('PatchOptions', options),
    create: type === 'apply' ? 'always' : 'never',
    uid: '',
    warn: (text) => reply.warn(text),
    produce,
    track: type === 'apply' ? () => undefined : fieldManager(core, resource, request, options.fieldManager),
  });
  await respond.written(updated.created ? 201 : 200, updated);
};

export const handleDelete: ResourceHandler = async (core, resource, request, reply) => {
  const respond = responderTo(core, resource, request, reply, 'object');
  const options = await deleteOptions(request);
  const { namespace, name } = request.info;
  const { definition } = resource;
  checkPathName(name);
  warnOfDeletion(definition.strategy, options, (text) => reply.warn(text));
  const { object, removed } = await deleteObject(core, resource, {
    namespace,
    name,
    user: request.user,
    options,
    warn: (text) => reply.warn(text),
  });
  const accepted = !removed && options.orphanDependents === false ? 202 : 200;
  if (definition.strategy.deleteReturnsObject || !removed) {
    await respond.object(accepted, object);
    return;
  }
  await respond.status({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: {
      name,
      ...(definition.group === '' ? {} : { group: definition.group }),
      kind: definition.plural,
      ...(object.metadata.uid === undefined ? {} : { uid: object.metadata.uid }),
    },
  });
};

export const handleDeleteCollection: ResourceHandler = async (core, resource, request, reply) => {
  const respond = responderTo(core, resource, request, reply, 'object');
  const options = listOptions(request.query, false);
  const filter = listFilterOf(resource, options, request.info.name);
  const deletion = await deleteOptions(request);
  checkCollectionDelete(deletion);
  const { items, metadata } = await deleteCollection(
    core,
    resource,
    request,
    reply,
    options,
    filter,
    deletion,
  );
  await respond.list(items, metadata);
};

function expectedKind(resource: ServedResource): ExpectedKind {
  const { group, version, kind } = resource.definition;
  const { schema, schemaOfVersion } = resource;
  return { group, version, kind, schema, ...(schemaOfVersion === undefined ? {} : { schemaOfVersion }) };
}

function emptyObject(resource: ServedResource, namespace: string, name: string): KubeObject {
  const { kind, namespaced } = resource.definition;
  return {
    kind,
    apiVersion: resource.apiVersion,
    metadata: { name, ...(namespaced && namespace !== '' ? { namespace } : {}) },
  };
}

/** The decoded object as it is stored, with its defaults. */
function storedForm(resource: ServedResource, object: KubeObject, applied = false): KubeObject {
  const stored = resource.shared === undefined ? object : resource.shared.toStored(object);
  setDefaults(resource, stored, applied);
  return stored;
}

function setDefaults(
  { definition: { strategy } }: ServedResource,
  object: KubeObject,
  applied: boolean,
): void {
  if (applied && strategy.setAppliedDefaults !== undefined) strategy.setAppliedDefaults(object);
  else strategy.setDefaults(object);
}

function servedForm(resource: ServedResource, object: KubeObject): KubeObject {
  return resource.shared === undefined ? object : resource.shared.fromStored(object);
}
