import { isAlreadyExists, isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import type { ControllerRevision } from '../../objects/types/apps.generated.ts';
import type { PodTemplateSpec } from '../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { Expectations } from '../../runtime/own-writes.ts';
import { Ownership, type Selecting } from './ownership.ts';
import { outdatedRevisions, planHistory, type RevisionHash } from './plan-history.ts';
import { controllerRevisions } from '../../client/resources.ts';

/** The revisions of one owner, including that of its present template. */
export interface Revisions {
  readonly all: readonly ControllerRevision[];
  readonly update: ControllerRevision;
}

/** Maintains the ControllerRevisions of a kind of workload. */
export class History<Owner extends Selecting> {
  /** Informers to wait for at the start. */
  readonly informer: Informer<ControllerRevision>;
  readonly #client: ResourceClient<ControllerRevision>;
  readonly #ownership: Ownership<Owner, ControllerRevision>;
  readonly #expectations: Expectations<ControllerRevision>;
  readonly #hash: RevisionHash;

  constructor(
    context: ControllerContext,
    owners: Informer<Owner>,
    hash: RevisionHash,
    enqueue: (key: ObjectKey) => void,
  ) {
    this.informer = context.informers.informer(controllerRevisions);
    this.#client = context.clients.for(controllerRevisions);
    this.#expectations = new Expectations(this.informer, context.clock);
    this.#ownership = new Ownership({
      selector: ({ spec }) => spec.selector,
      owners,
      children: this.informer,
      client: this.#client,
      enqueue,
    });
    this.#hash = hash;
  }

  /** True when the cache shows all writes for the owner of this key. */
  settled(key: ObjectKey): boolean {
    return this.#expectations.settled(key);
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
      this.#expectations.written(key, update);
      return { all: all.map((revision) => (revision === plan.update ? update : revision)), update };
    }
    if (plan.create === undefined) return undefined;
    try {
      const update = await this.#client.create(plan.create, { signal });
      this.#expectations.written(key, update);
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
      try {
        await this.#client.delete(namespace, name, { preconditions: { uid }, signal });
        this.#expectations.deleted(key, revision);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
  }
}
