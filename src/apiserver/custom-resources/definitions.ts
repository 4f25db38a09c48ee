import type { CustomResourceDefinition } from '../../objects/types/apiextensions.generated.ts';
import { setMaxListeners } from 'node:events';
import { jsonEqual } from '../../objects/json.ts';
import { withApproval } from '../../registry/apiextensions/customresourcedefinition/approval.ts';
import {
  hasCondition,
  isCustomResourceDefinition,
  withCondition,
} from '../../registry/apiextensions/customresourcedefinition/definition.ts';
import { customResourceCleanupFinalizer } from '../../registry/apiextensions/customresourcedefinition/strategy.ts';
import { type ServerCore, timestamp } from '../rest/server-core.ts';
import type { ServedResource } from '../rest/served-resource.ts';
import { trackAs } from '../rest/tracker.ts';
import { listPrefix, PreconditionError, type StoredObject } from '../storage/storage.ts';
import { emptyResource } from './empty.ts';
import { areNamesAccepted, establish, judgeNames, type NamedDefinition } from './names.ts';
import { type Generation, resourcesOf, storageResourceOf } from './serve.ts';
import { type ConverterContext, WebhookConverter } from './webhook-converter.ts';

const prefix = listPrefix('apiextensions.k8s.io', 'customresourcedefinitions');

/** Milliseconds that requests with an old definition have (twice the longest question, as `tearDown` gives them). */
const drainTime = 60_000;
/** Milliseconds until what failed for an object of a definition that goes is tried again. */
const retryTime = 2_000;

interface RunningGeneration extends Generation {
  readonly end: AbortController;
}

/** The versions of a definition that are served. */
interface Served {
  readonly definition: CustomResourceDefinition;
  readonly generation: RunningGeneration;
  readonly resources: readonly ServedResource[];
}

interface Named extends NamedDefinition {
  readonly group: string;
  /** Some of its names were refused. */
  readonly waits: boolean;
}

/** Nothing has changed by which objects are read or written (`updateCustomResourceDefinition`). */
function isSameGeneration(
  before: CustomResourceDefinition,
  { spec, status }: CustomResourceDefinition,
): boolean {
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
  /** By key: the names and conditions alone, because definitions can be large. */
  readonly #named = new Map<string, Named>();
  readonly #converters = new Set<WebhookConverter>();
  /** Keys of definitions that wait for objects with finalizers. */
  readonly #waiting = new Set<string>();
  /** Keys of definitions whose objects are being removed, and whether to check them again. */
  readonly #emptying = new Map<string, { again: boolean }>();
  /** Keys of definitions whose objects could not be removed, until that is tried again. */
  readonly #retrying = new Set<string>();
  #work: Promise<void> = Promise.resolve();

  /** @param connect makes the connection to a conversion webhook. */
  constructor(core: ServerCore, connect: ConverterContext['connect']) {
    this.#core = core;
    this.#connect = connect;
  }

  /** Serves what is stored, then follows changes. */
  start(): void {
    const { storage } = this.#core;
    const { items, revision } = storage.list(prefix);
    for (const item of items) this.#changed(item);
    storage.watch(prefix, revision, ({ type, current }) => {
      if (type === 'DELETED') this.#withdraw(current.key);
      else this.#changed(current);
    });
  }

  #changed(stored: StoredObject): void {
    const { object } = stored;
    if (!isCustomResourceDefinition(object)) return;
    const { group } = object.spec;
    const { acceptedNames } = object.status;
    this.#named.set(stored.key, { group, status: { acceptedNames }, waits: !areNamesAccepted(object) });
    if (hasCondition(object, 'Established')) this.#serve(stored.key, object);
    else this.#unserve(stored.key);
    this.#look(stored.key);
  }

  /** One after another: the names of a definition depend on the others. */
  #look(key: string): void {
    this.#work = this.#work
      .then(async () => this.#reconcile(key))
      .catch((error: unknown) => {
        this.#core.log.error({ err: error, key }, 'cannot bring a CustomResourceDefinition into effect');
      });
  }

  #serve(key: string, definition: CustomResourceDefinition): void {
    const { resources } = this.#core;
    const before = this.#served.get(key);
    const generation =
      before !== undefined && isSameGeneration(before.definition, definition)
        ? before.generation
        : this.#begin(definition);
    const next = this.#isBuiltIn(definition) ? [] : resourcesOf(definition, generation);
    for (const old of before?.resources ?? []) resources.remove(old.definition);
    for (const resource of next) resources.add(resource);
    this.#served.set(key, { definition, generation, resources: next });
    if (before !== undefined && before.generation !== generation) this.#end(before.generation);
  }

  /** Such a kind stays, and its objects too, as those of an APIService of another server do. */
  #isBuiltIn({ spec: { group, names, versions } }: CustomResourceDefinition): boolean {
    return (versions ?? []).some(
      ({ name }) => this.#core.resources.find(group, name, names.plural)?.custom === false,
    );
  }

  #begin(definition: CustomResourceDefinition): RunningGeneration {
    const end = new AbortController();
    // Every open watch listens.
    setMaxListeners(0, end.signal);
    const converter =
      definition.spec.conversion?.strategy === 'Webhook'
        ? new WebhookConverter(definition, { connect: this.#connect, newUid: () => this.#core.newUid() })
        : undefined;
    if (converter !== undefined) this.#converters.add(converter);
    return { since: Number(definition.metadata.resourceVersion), replaced: end.signal, converter, end };
  }

  /** Requests that are under way go on with the webhook that they began with. */
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
    }, drainTime).unref();
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

  #withdraw(key: string): void {
    this.#unserve(key);
    this.#lookAtOthers(key);
    this.#named.delete(key);
  }

  /** A name may be free now for a definition of the same group that was refused it. */
  #lookAtOthers(than: string): void {
    const group = this.#named.get(than)?.group;
    for (const [key, other] of this.#named) {
      if (key !== than && other.waits && other.group === group) this.#look(key);
    }
  }

  async #reconcile(key: string): Promise<void> {
    const stored = this.#core.storage.getForUpdate(key);
    if (stored === undefined || !isCustomResourceDefinition(stored.object)) return;
    const isDeleted = stored.object.metadata.deletionTimestamp !== undefined;
    try {
      if (!(await this.#accept(stored, stored.object)) && isDeleted) this.#empty(key);
    } catch (error) {
      // Another write came in between: its event calls this again.
      if (!(error instanceof PreconditionError)) throw error;
    }
  }

  /** In parallel with others: the webhooks of one definition may be slow, and no request waits for them. */
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
        // Another write came in between: its event calls this again.
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
      this.#look(key);
    }, retryTime).unref();
  }

  async #finalizeStored(key: string): Promise<void> {
    const stored = this.#core.storage.getForUpdate(key);
    if (stored === undefined || !isCustomResourceDefinition(stored.object)) return;
    await this.#finalize(stored, stored.object);
  }

  /** Decides about names, then establishes, each in a write of its own. @returns false when there is nothing to write. */
  async #accept(stored: StoredObject, definition: CustomResourceDefinition): Promise<boolean> {
    const group = [...this.#named.values()].filter((named) => named.group === definition.spec.group);
    const now = timestamp(this.#core.now());
    const approved = withApproval(definition, now);
    const judged = { ...approved.status, ...judgeNames(approved, group, now) };
    if (!jsonEqual(judged, definition.status)) {
      await this.#write(stored, definition, judged);
      this.#lookAtOthers(stored.key);
      return true;
    }
    const conditions = establish(definition, now);
    if (conditions === definition.status.conditions) return false;
    await this.#write(stored, definition, { ...definition.status, conditions });
    return true;
  }

  /** Writes a status, and finalizers if others are left, as a client of itself would. */
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
      await trackAs(this.#core, resource, 'kube-apiserver', 'status')(next, definition);
    await storage.commit([{ key: stored.key, expect: stored.revision, object: next }]);
  }

  /** Removes the objects of a deleted definition, then its finalizer; the definition goes with its last one. */
  async #finalize(stored: StoredObject, definition: CustomResourceDefinition): Promise<void> {
    const { deletionTimestamp, finalizers = [], ...metadata } = definition.metadata;
    if (deletionTimestamp === undefined || !finalizers.includes(customResourceCleanupFinalizer)) return;
    const now = timestamp(this.#core.now());
    const inProgress = terminating(definition, 'InstanceDeletionInProgress', now);
    // A failure stays reported until a try succeeds.
    if (!hasFailed(definition) && !jsonEqual(inProgress, definition.status)) {
      await this.#write(stored, definition, inProgress);
      return;
    }
    const generation = this.#served.get(stored.key)?.generation;
    const hasObjects = generation !== undefined && !this.#isBuiltIn(definition);
    const resource = hasObjects ? storageResourceOf(definition, generation) : undefined;
    const emptied = resource === undefined ? undefined : await emptyResource(this.#core, resource);
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
    const end = resource === undefined ? 'NeverEstablished' : 'InstanceDeletionCompleted';
    const status = terminating(definition, end, now);
    await this.#write(stored, definition, status, { ...metadata, deletionTimestamp, finalizers: left });
  }

  /** Checks the definition again when its last object is deleted. */
  #waitUntilEmpty(key: string, { definition: { group, plural } }: ServedResource): void {
    if (this.#waiting.has(key)) return;
    const { storage } = this.#core;
    const objects = listPrefix(group, plural);
    const stop = storage.watch(objects, storage.revision, ({ type }) => {
      if (type !== 'DELETED' || storage.count(objects) > 0) return;
      stop();
      this.#waiting.delete(key);
      this.#look(key);
    });
    this.#waiting.add(key);
  }
}

/** The progress of a deletion (apiextensions `pkg/controller/finalizer/crd_finalizer.go`). */
const endings = {
  InstanceDeletionInProgress: ['True', 'CustomResource deletion is in progress'],
  InstanceDeletionFailed: ['True', ''],
  InstanceDeletionCompleted: ['False', 'removed all instances'],
  NeverEstablished: ['False', 'resource was never established'],
} as const;

function terminating(
  { status: before }: CustomResourceDefinition,
  reason: keyof typeof endings,
  now: string,
  why = '',
): CustomResourceDefinition['status'] {
  const [status, message] = endings[reason];
  const condition = {
    ...{ type: 'Terminating', status, lastTransitionTime: now, reason },
    message: why === '' ? message : why,
  };
  return { ...before, conditions: withCondition(before.conditions, condition) };
}

function hasFailed({ status }: CustomResourceDefinition): boolean {
  return (status.conditions ?? []).some(
    ({ type, reason }) => type === 'Terminating' && reason === 'InstanceDeletionFailed',
  );
}
