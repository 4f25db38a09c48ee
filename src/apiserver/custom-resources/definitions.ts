import { StatusError } from '../../objects/status.ts';
import { deleteObject } from '../rest/delete.ts';
import type { CheckedDeleteOptions } from '../rest/options.ts';
import type { ServedResource } from '../rest/served-resource.ts';
import { type ServerCore, timestamp } from '../rest/server-core.ts';
import { listPrefix, PreconditionError, type StoredObject } from '../storage/storage.ts';
import { systemUser } from '../authentication/users.ts';
import type { CustomResourceDefinition } from '../../objects/types/apiextensions.generated.ts';
import { setMaxListeners } from 'node:events';
import { jsonEqual } from '../../objects/json.ts';
import {
  withApproval,
  hasCondition,
  isCustomResourceDefinition,
  withCondition,
  customResourceCleanupFinalizer,
} from '../../registry/apiextensions/customresourcedefinition/strategy.ts';
import { recordFieldManager } from '../rest/commit.ts';
import { areNamesAccepted, setEstablished, acceptNames, type NamedDefinition } from './names.ts';
import { LateSchemas } from './late-schemas.ts';
import { type Generation, resourcesOf, storageResourceOf } from './serve.ts';
import { type ConverterContext, WebhookConverter } from './webhook-converter.ts';

const prefix = listPrefix('apiextensions.k8s.io', 'customresourcedefinitions');

/** The time for requests with a replaced definition: twice the longest conversion, as in `tearDown`. */
const drainMs = 60_000;
/** The delay after an object of a deleted definition could not be deleted. */
const retryMs = 2_000;

interface RunningGeneration extends Generation {
  readonly end: AbortController;
}

/** The versions of a definition that are served. */
interface Served {
  /** Not the definition itself, which can be large. */
  readonly stored: StoredObject;
  readonly generation: RunningGeneration;
  readonly resources: readonly ServedResource[];
}

interface Named extends NamedDefinition {
  readonly group: string;
  /** Whether some of its names were refused. */
  readonly hasConflict: boolean;
}

/** True where an update does not change how objects are read and written (`updateCustomResourceDefinition`). */
function isSameGeneration(
  { object: before }: StoredObject,
  { spec, status }: CustomResourceDefinition,
): boolean {
  if (!isCustomResourceDefinition(before)) return false;
  return jsonEqual(before.spec, spec) && jsonEqual(before.status.acceptedNames, status.acceptedNames);
}

/**
 * Follows the stored CustomResourceDefinitions: accepts their names, serves their resources as soon as they are
 * established, and removes their objects when they are deleted (apiextensions' naming, establishing and finalizing
 * controllers in one).
 */
export class CustomResourceDefinitions {
  readonly #core: ServerCore;
  readonly #connect: ConverterContext['connect'];
  readonly #served = new Map<string, Served>();
  /** Names of all definitions, by key. The definitions themselves can be large. */
  readonly #named = new Map<string, Named>();
  readonly #converters = new Set<WebhookConverter>();
  /** Keys of deleted definitions that wait for the deletion of their last object. */
  readonly #awaitingDeletion = new Set<string>();
  /** Keys of deleted definitions whose objects are being deleted; `again` to repeat that afterwards. */
  readonly #emptying = new Map<string, { again: boolean }>();
  /** Keys of deleted definitions that wait for another attempt to delete their objects. */
  readonly #retrying = new Set<string>();
  #queue: Promise<void> = Promise.resolve();

  /** @param connect makes the client of a conversion webhook. */
  constructor(core: ServerCore, connect: ConverterContext['connect']) {
    this.#core = core;
    this.#connect = connect;
  }

  /** Serves the stored definitions, and follows changes. */
  start(): void {
    const { storage } = this.#core;
    const { items, revision } = storage.list(prefix);
    for (const item of items) this.#changed(item);
    storage.watch(prefix, revision, ({ type, current }) => {
      if (type === 'DELETED') this.#removed(current.key);
      else this.#changed(current);
    });
  }

  #changed(stored: StoredObject): void {
    const { object } = stored;
    if (!isCustomResourceDefinition(object)) return;
    const { group } = object.spec;
    const { acceptedNames } = object.status;
    this.#named.set(stored.key, { group, status: { acceptedNames }, hasConflict: !areNamesAccepted(object) });
    if (hasCondition(object, 'Established')) this.#serve(stored, object);
    else this.#unserve(stored.key);
    this.#enqueue(stored.key);
  }

  /** Reconciles definitions one after another, since the names of one depend on the others. */
  #enqueue(key: string): void {
    this.#queue = this.#queue
      .then(async () => this.#reconcile(key))
      .catch((error: unknown) => {
        this.#core.log.error({ err: error, key }, 'cannot bring a CustomResourceDefinition into effect');
      });
  }

  #serve(stored: StoredObject, definition: CustomResourceDefinition): void {
    const { key } = stored;
    const { resources } = this.#core;
    const before = this.#served.get(key);
    const generation =
      before !== undefined && isSameGeneration(before.stored, definition)
        ? before.generation
        : this.#begin(stored, definition);
    const next = this.#isBuiltIn(definition) ? [] : resourcesOf(definition, generation);
    for (const old of before?.resources ?? []) resources.remove(old.definition);
    for (const resource of next) resources.add(resource);
    this.#served.set(key, { stored, generation, resources: next });
    if (before !== undefined && before.generation !== generation) this.#end(before.generation);
  }

  /** True for a definition of a built-in kind. It has no effect, and its deletion leaves the objects alone. */
  #isBuiltIn({ spec: { group, names, versions } }: CustomResourceDefinition): boolean {
    return (versions ?? []).some(
      ({ name }) => this.#core.resources.find(group, name, names.plural)?.custom === false,
    );
  }

  #begin(stored: StoredObject, definition: CustomResourceDefinition): RunningGeneration {
    const end = new AbortController();
    // Every open watch adds a listener.
    setMaxListeners(0, end.signal);
    const converter =
      definition.spec.conversion?.strategy === 'Webhook'
        ? new WebhookConverter(definition, { connect: this.#connect, newUid: () => this.#core.newUid() })
        : undefined;
    if (converter !== undefined) this.#converters.add(converter);
    const schemas = new LateSchemas(stored);
    return { since: stored.revision, replaced: end.signal, converter, schemas, end };
  }

  /** Ends watches. Requests that have begun keep their conversion webhook for {@link drainMs}. */
  #end({ end, converter }: RunningGeneration): void {
    end.abort();
    if (converter === undefined) return;
    const close = async (): Promise<void> => {
      this.#converters.delete(converter);
      await converter.close();
    };
    setTimeout(() => {
      close().catch((error: unknown) =>
        this.#core.log.debug({ err: error }, 'closing a webhook client failed'),
      );
    }, drainMs).unref();
  }

  #unserve(key: string): void {
    const served = this.#served.get(key);
    if (served === undefined) return;
    for (const resource of served.resources) this.#core.resources.remove(resource.definition);
    this.#served.delete(key);
    this.#end(served.generation);
  }

  /** Closes all connections to conversion webhooks. */
  async close(): Promise<void> {
    await Promise.all([...this.#converters].map(async (converter) => converter.destroy()));
  }

  #removed(key: string): void {
    this.#unserve(key);
    this.#enqueueConflicting(key);
    this.#named.delete(key);
  }

  /** Checks the other definitions of the group that were refused a name, which may be free now. */
  #enqueueConflicting(changed: string): void {
    const group = this.#named.get(changed)?.group;
    for (const [key, other] of this.#named) {
      if (key !== changed && other.hasConflict && other.group === group) this.#enqueue(key);
    }
  }

  async #reconcile(key: string): Promise<void> {
    const stored = this.#core.storage.getForUpdate(key);
    if (stored === undefined || !isCustomResourceDefinition(stored.object)) return;
    const isDeleted = stored.object.metadata.deletionTimestamp !== undefined;
    try {
      if (!(await this.#accept(stored, stored.object)) && isDeleted) this.#empty(key);
    } catch (error) {
      // A conflict: the event of the other write leads here again.
      if (!(error instanceof PreconditionError)) throw error;
    }
  }

  /** Deletes the objects in the background: webhooks may be slow, and must not hold up other definitions. */
  #empty(key: string): void {
    if (this.#retrying.has(key)) return;
    const running = this.#emptying.get(key);
    if (running !== undefined) {
      running.again = true;
      return;
    }
    const run = { again: false };
    this.#emptying.set(key, run);
    void this.#finalizeStored(key)
      .catch((error: unknown) => {
        // A conflict: the event of the other write leads here again.
        if (error instanceof PreconditionError) return;
        this.#core.log.error({ err: error, key }, 'cannot remove the objects of a CustomResourceDefinition');
      })
      .then(() => {
        this.#emptying.delete(key);
        if (run.again) this.#empty(key);
      });
  }

  #retryLater(key: string): void {
    this.#retrying.add(key);
    setTimeout(() => {
      this.#retrying.delete(key);
      this.#enqueue(key);
    }, retryMs).unref();
  }

  async #finalizeStored(key: string): Promise<void> {
    const stored = this.#core.storage.getForUpdate(key);
    if (stored === undefined || !isCustomResourceDefinition(stored.object)) return;
    await this.#finalize(stored, stored.object);
  }

  /** Writes the accepted names, or else that the definition is established. @returns false when nothing changes. */
  async #accept(stored: StoredObject, definition: CustomResourceDefinition): Promise<boolean> {
    const group = [...this.#named.values()].filter((named) => named.group === definition.spec.group);
    const now = timestamp(this.#core.now());
    const approved = withApproval(definition, now);
    const status = { ...approved.status, ...acceptNames(approved, group, now) };
    if (!jsonEqual(status, definition.status)) {
      await this.#write(stored, definition, status);
      this.#enqueueConflicting(stored.key);
      return true;
    }
    const conditions = setEstablished(definition, now);
    if (conditions === definition.status.conditions) return false;
    await this.#write(stored, definition, { ...definition.status, conditions });
    return true;
  }

  /** Writes a status, and the metadata if given, with `kube-apiserver` as the field manager. */
  async #write(
    stored: StoredObject,
    definition: CustomResourceDefinition,
    status: CustomResourceDefinition['status'],
    metadata = definition.metadata,
  ): Promise<void> {
    const { resources, storage } = this.#core;
    const next: CustomResourceDefinition = { ...definition, metadata: { ...metadata }, status };
    const resource = resources.find('apiextensions.k8s.io', 'v1', 'customresourcedefinitions');
    if (resource !== undefined)
      await recordFieldManager(this.#core, resource, 'kube-apiserver', 'status')(next, definition);
    await storage.commit([{ key: stored.key, expect: stored.revision, object: next }]);
  }

  /** Deletes the objects of a deleted definition, then its finalizer; with its last finalizer, the definition. */
  async #finalize(stored: StoredObject, definition: CustomResourceDefinition): Promise<void> {
    const { deletionTimestamp, finalizers = [], ...metadata } = definition.metadata;
    if (deletionTimestamp === undefined || !finalizers.includes(customResourceCleanupFinalizer)) return;
    const now = timestamp(this.#core.now());
    const inProgress = terminating(definition, 'InstanceDeletionInProgress', now);
    // A failure stays in the status until an attempt succeeds.
    if (!hasFailed(definition) && !jsonEqual(inProgress, definition.status)) {
      await this.#write(stored, definition, inProgress);
      return;
    }
    const generation = this.#served.get(stored.key)?.generation;
    const hasObjects = generation !== undefined && !this.#isBuiltIn(definition);
    const resource = hasObjects ? storageResourceOf(definition, generation) : undefined;
    const emptied = resource === undefined ? undefined : await deleteCustomObjects(this.#core, resource);
    if (resource !== undefined && emptied?.isEmpty === false) {
      this.#waitUntilEmpty(stored.key, resource);
      const { failure } = emptied;
      if (failure !== undefined) this.#retryLater(stored.key);
      const status =
        failure === undefined ? inProgress : terminating(definition, 'InstanceDeletionFailed', now, failure);
      if (!jsonEqual(status, definition.status)) await this.#write(stored, definition, status);
      return;
    }
    const left = finalizers.filter((finalizer) => finalizer !== customResourceCleanupFinalizer);
    if (left.length === 0) {
      await this.#core.storage.commit([{ key: stored.key, expect: stored.revision, object: undefined }]);
      return;
    }
    const reason = resource === undefined ? 'NeverEstablished' : 'InstanceDeletionCompleted';
    const status = terminating(definition, reason, now);
    await this.#write(stored, definition, status, { ...metadata, deletionTimestamp, finalizers: left });
  }

  /** Checks the definition again when its last object is deleted. */
  #waitUntilEmpty(key: string, { definition: { group, plural } }: ServedResource): void {
    if (this.#awaitingDeletion.has(key)) return;
    const { storage } = this.#core;
    const objects = listPrefix(group, plural);
    const stop = storage.watch(objects, storage.revision, ({ type }) => {
      if (type !== 'DELETED' || storage.count(objects) > 0) return;
      stop();
      this.#awaitingDeletion.delete(key);
      this.#enqueue(key);
    });
    this.#awaitingDeletion.add(key);
  }
}

/** The progress of a deletion (apiextensions `pkg/controller/finalizer/crd_finalizer.go`). */
const terminatingReasons = {
  InstanceDeletionInProgress: ['True', 'CustomResource deletion is in progress'],
  InstanceDeletionFailed: ['True', ''],
  InstanceDeletionCompleted: ['False', 'removed all instances'],
  NeverEstablished: ['False', 'resource was never established'],
} as const;

function terminating(
  { status: before }: CustomResourceDefinition,
  reason: keyof typeof terminatingReasons,
  now: string,
  why = '',
): CustomResourceDefinition['status'] {
  const [status, message] = terminatingReasons[reason];
  const condition = { type: 'Terminating', status, lastTransitionTime: now, reason, message: why || message };
  return { ...before, conditions: withCondition(before.conditions, condition) };
}

function hasFailed({ status }: CustomResourceDefinition): boolean {
  return (status.conditions ?? []).some(
    ({ type, reason }) => type === 'Terminating' && reason === 'InstanceDeletionFailed',
  );
}

const deleteOptions: CheckedDeleteOptions = {
  gracePeriodSeconds: undefined,
  preconditions: {},
  orphanDependents: undefined,
  propagationPolicy: undefined,
  dryRun: false,
};

/** The result of the deletion of a definition's objects. */
interface DeletionResult {
  readonly isEmpty: boolean;
  /** The controller's message where objects could not be deleted; undefined when nothing failed. */
  readonly failure: string | undefined;
}

/**
 * Deletes all objects of a custom resource whose definition is being deleted (apiextensions
 * `pkg/controller/finalizer/crd_finalizer.go`). Objects with finalizers stay until these are removed.
 */
async function deleteCustomObjects(core: ServerCore, resource: ServedResource): Promise<DeletionResult> {
  const { group, plural } = resource.definition;
  const prefix = listPrefix(group, plural);
  const { items } = core.storage.list(prefix);
  try {
    await resource.conversion?.read(items);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return { isEmpty: false, failure: `could not list instances: ${error.message}` };
  }
  const failures = new Set<string>();
  for (const { object } of items) {
    const { namespace = '', name = '' } = object.metadata;
    try {
      await deleteObject(core, resource, {
        namespace,
        name,
        user: systemUser,
        options: deleteOptions,
        warn: () => undefined,
      });
    } catch (error) {
      // Deleted already, or refused by a webhook, which the definition waits for.
      if (!(error instanceof StatusError)) throw error;
      if (error.reason === 'NotFound') continue;
      failures.add(error.message);
      core.log.warn(
        { key: `${namespace}/${name}`, resource: plural, err: error },
        'cannot delete an object of a CustomResourceDefinition that is being deleted',
      );
    }
  }
  const texts = [...failures].join(', ');
  return {
    isEmpty: core.storage.count(prefix) === 0,
    failure:
      failures.size === 0
        ? undefined
        : `could not issue all deletes: ${failures.size === 1 ? texts : `[${texts}]`}`,
  };
}
