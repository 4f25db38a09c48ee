import { isAlreadyExists, isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { controllerRevisions } from '../../client/resources.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import type { ControllerRevision } from '../../objects/types/apps.generated.ts';
import type { PodTemplateSpec } from '../../objects/types/core.generated.ts';
import type { KeyLoop } from '../../runtime/key-loop.ts';
import { OwnWrites } from '../../runtime/own-writes.ts';
import { Ownership, type Selecting } from './ownership.ts';
import { outdatedRevisions, planHistory, type RevisionHash } from './plan-history.ts';

/** The revisions of one owner, including that of its present template. */
export interface Revisions {
  readonly all: readonly ControllerRevision[];
  readonly update: ControllerRevision;
}

/** Maintains the ControllerRevisions of a kind of workload. */
export class History<Owner extends Selecting> {
  readonly #client: ResourceClient<ControllerRevision>;
  readonly #hash: RevisionHash;
  readonly #writes: OwnWrites<ControllerRevision>;
  readonly #ownership: Ownership<Owner, ControllerRevision>;

  constructor(loop: KeyLoop, owners: Informer<Owner>, hash: RevisionHash) {
    this.#client = loop.context.clients.for(controllerRevisions);
    this.#hash = hash;

    const revisions = loop.cache(controllerRevisions);

    this.#writes = new OwnWrites(loop, revisions);

    this.#ownership = new Ownership(loop, {
      selector: ({ spec }) => spec.selector,
      owners,
      children: revisions,
    });
  }

  /** Milliseconds until the cache shows all writes for the owner of this key: {@link OwnWrites.pendingMs}. */
  pendingMs(key: ObjectKey): number {
    return this.#writes.pendingMs(key);
  }

  /**
   * Makes the template the newest revision.
   *
   * @returns undefined when another template has its name: count a collision and try again.
   */
  async sync(
    key: ObjectKey,
    owner: Owner,
    template: PodTemplateSpec,
    collisions: number | undefined,
    signal: AbortSignal,
  ): Promise<Revisions | undefined> {
    const all = await this.#ownership.claim(owner, signal);
    const plan = planHistory(owner, template, all, this.#hash, collisions);
    if (plan.update !== undefined) {
      if (plan.renumber === undefined) return { all, update: plan.update };
      const { namespace = '', name = '', resourceVersion } = plan.update.metadata;
      const patch = { metadata: { resourceVersion }, revision: plan.renumber };
      const update = await this.#client.mergePatch(namespace, name, patch, { signal });
      this.#writes.written(key, update);
      return { all: all.map((revision) => (revision === plan.update ? update : revision)), update };
    }
    if (plan.create === undefined) return undefined;
    try {
      const update = await this.#client.create(plan.create, { signal });
      this.#writes.written(key, update);
      return { all: [...all, update], update };
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const { namespace = '', name = '' } = plan.create.metadata;
    const present = await this.#client.get(namespace, name, { signal });
    return jsonEqual(present.data, plan.create.data)
      ? { all: [...all, present], update: present }
      : undefined;
  }

  /** Deletes revisions beyond the limit that no Pod has. */
  async truncate(
    key: ObjectKey,
    revisions: readonly ControllerRevision[],
    isLive: (revision: ControllerRevision) => boolean,
    limit: number,
    signal: AbortSignal,
  ): Promise<void> {
    for (const revision of outdatedRevisions(revisions, isLive, limit)) {
      const { namespace = '', name = '', uid = '' } = revision.metadata;
      this.#writes.deleting(key, revision);
      try {
        await this.#client.delete(namespace, name, { preconditions: { uid }, signal });
      } catch (error) {
        this.#writes.notDeleted(revision);
        if (!isNotFound(error)) throw error;
      }
    }
  }
}
