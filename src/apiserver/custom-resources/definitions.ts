import { jsonEqual } from '../../objects/json.ts';
import { withApproval } from '../../registry/customresourcedefinition/approval.ts';
import {
  type CustomResourceDefinition,
  hasCondition,
  isCustomResourceDefinition,
  withCondition,
} from '../../registry/customresourcedefinition/definition.ts';
import { cleanupFinalizer } from '../../registry/customresourcedefinition/strategy.ts';
import { type ServerCore, timestamp } from '../rest/server-core.ts';
import type { ServedResource } from '../rest/served-resource.ts';
import { trackAs } from '../rest/tracker.ts';
import { listPrefix, PreconditionError, type StoredObject } from '../storage/storage.ts';
import { emptyResource } from './empty.ts';
import { establish, judgeNames } from './names.ts';
import { resourcesOf } from './serve.ts';

const prefix = listPrefix('apiextensions.k8s.io', 'customresourcedefinitions');

/**
 * Follows the stored CustomResourceDefinitions: accepts their names, serves their resources as soon as they are
 * established, and removes their objects when they are deleted (apiextensions' naming, establishing and finalizing
 * controllers in one).
 */
export class CustomResourceDefinitions {
  readonly #core: ServerCore;
  readonly #served = new Map<string, readonly ServedResource[]>();
  /** Keys of definitions that wait for objects with finalizers. */
  readonly #waiting = new Set<string>();
  #work: Promise<void> = Promise.resolve();

  constructor(core: ServerCore) {
    this.#core = core;
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
    if (hasCondition(object, 'Established')) this.#serve(stored.key, object);
    else this.#unserve(stored.key);
    this.#look(stored.key);
  }

  /** One after another: definitions decide about the names of each other. */
  #look(key: string): void {
    this.#work = this.#work
      .then(async () => this.#reconcile(key))
      .catch((error: unknown) => {
        this.#core.log.error({ err: error, key }, 'cannot bring a CustomResourceDefinition into effect');
      });
  }

  #serve(key: string, definition: CustomResourceDefinition): void {
    const { resources } = this.#core;
    const next = resourcesOf(definition);
    for (const old of this.#served.get(key) ?? []) resources.remove(old.definition);
    for (const resource of next) resources.add(resource);
    this.#served.set(key, next);
  }

  #unserve(key: string): void {
    for (const resource of this.#served.get(key) ?? []) this.#core.resources.remove(resource.definition);
    this.#served.delete(key);
  }

  #withdraw(key: string): void {
    this.#unserve(key);
    this.#lookAtOthers(key);
  }

  /** A name may be free now for a definition that was refused it. */
  #lookAtOthers(than: string): void {
    for (const { key } of this.#core.storage.list(prefix).items) if (key !== than) this.#look(key);
  }

  async #reconcile(key: string): Promise<void> {
    const stored = this.#core.storage.getForUpdate(key);
    if (stored === undefined || !isCustomResourceDefinition(stored.object)) return;
    try {
      if (!(await this.#accept(stored, stored.object))) await this.#finalize(stored, stored.object);
    } catch (error) {
      // Somebody wrote in between: that write brings us here again.
      if (!(error instanceof PreconditionError)) throw error;
    }
  }

  /** Decides about names, then establishes, each in a write of its own. @returns false when there is nothing to write. */
  async #accept(stored: StoredObject, definition: CustomResourceDefinition): Promise<boolean> {
    const group = this.#core.storage
      .list(prefix)
      .items.map(({ object }) => object)
      .filter(isCustomResourceDefinition)
      .filter(({ spec }) => spec.group === definition.spec.group);
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
    if (resource !== undefined) trackAs(this.#core, resource, 'kube-apiserver', 'status')(next, definition);
    await storage.commit([{ key: stored.key, expect: stored.revision, object: next }]);
  }

  /** Removes the objects of a deleted definition, then its finalizer; the definition goes with its last one. */
  async #finalize(stored: StoredObject, definition: CustomResourceDefinition): Promise<void> {
    const { deletionTimestamp, finalizers = [], ...metadata } = definition.metadata;
    if (deletionTimestamp === undefined || !finalizers.includes(cleanupFinalizer)) return;
    const now = timestamp(this.#core.now());
    const inProgress = terminating(definition, 'InstanceDeletionInProgress', now);
    if (!jsonEqual(inProgress, definition.status)) {
      await this.#write(stored, definition, inProgress);
      return;
    }
    const [resource] = this.#served.get(stored.key) ?? [];
    if (resource !== undefined && !(await emptyResource(this.#core, resource))) {
      this.#waitUntilEmpty(stored.key, resource);
      return;
    }
    const left = finalizers.filter((finalizer) => finalizer !== cleanupFinalizer);
    if (left.length === 0) {
      await this.#core.storage.commit([{ key: stored.key, expect: stored.revision, object: undefined }]);
      return;
    }
    const end = resource === undefined ? 'NeverEstablished' : 'InstanceDeletionCompleted';
    const status = terminating(definition, end, now);
    await this.#write(stored, definition, status, { ...metadata, deletionTimestamp, finalizers: left });
  }

  /** Looks at the definition again when its last object has gone. */
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

/** How far the deletion is (apiextensions `pkg/controller/finalizer/crd_finalizer.go`). */
const endings = {
  InstanceDeletionInProgress: ['True', 'CustomResource deletion is in progress'],
  InstanceDeletionCompleted: ['False', 'removed all instances'],
  NeverEstablished: ['False', 'resource was never established'],
} as const;

function terminating(
  { status: before }: CustomResourceDefinition,
  reason: keyof typeof endings,
  now: string,
): CustomResourceDefinition['status'] {
  const [status, message] = endings[reason];
  const condition = { type: 'Terminating', status, lastTransitionTime: now, reason, message };
  return { ...before, conditions: withCondition(before.conditions, condition) };
}
