import { isAlreadyExists, isNotFound, isNamespaceTerminating } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { Draft, ResourceClient } from '../../client/resource-client.ts';
import { pods as podsResource } from '../../client/resources.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { Expectations } from '../../runtime/own-writes.ts';
import { errorMessage } from '../../objects/status.ts';

/** Pods created at once; the first one alone, so that a template that is refused costs one request. */
const widest = 16;

/** The messages of Events about a Pod. */
export interface PodWords {
  readonly created: (pod: string, owner: string) => string;
  readonly deleted: (pod: string, owner: string) => string;
  /** @param pod its name; empty when the server generates it. */
  readonly notCreated: (pod: string, owner: string, why: string) => string;
  readonly notDeleted: (pod: string, owner: string, why: string) => string;
}

/** The messages of all workloads but StatefulSets (`RealPodControl`). */
const commonWords: PodWords = {
  created: (pod) => `Created pod: ${pod}`,
  deleted: (pod) => `Deleted pod: ${pod}`,
  notCreated: (_pod, _owner, why) => `Error creating: ${why}`,
  notDeleted: (_pod, _owner, why) => `Error deleting: ${why}`,
};

/** Creates and deletes the Pods of a workload, records Events, and tracks what the cache has not shown. */
export class PodControl {
  readonly #context: ControllerContext;
  readonly #client: ResourceClient<Pod>;
  readonly #expectations: Expectations<Pod>;
  readonly #words: PodWords;

  constructor(context: ControllerContext, pods: Informer<Pod>, words: PodWords = commonWords) {
    this.#context = context;
    this.#words = words;
    this.#client = context.clients.for(podsResource);
    this.#expectations = new Expectations(pods, context.clock);
  }

  /** True when the cache shows all writes for the owner of this key. */
  settled(key: ObjectKey): boolean {
    return this.#expectations.settled(key);
  }

  /**
   * Creates Pods, in batches that double (`slowStartBatch`).
   *
   * @returns the first failure, after which no more were started; undefined when all were created.
   */
  async create(
    key: ObjectKey,
    owner: KubeObject,
    drafts: readonly Draft<Pod>[],
    signal: AbortSignal,
  ): Promise<Error | undefined> {
    let failure: Error | undefined;
    let batch = 1;
    for (
      let at = 0;
      at < drafts.length && failure === undefined;
      at += batch, batch = Math.min(2 * batch, widest)
    ) {
      const made = drafts.slice(at, at + batch).map(async (draft) => {
        try {
          await this.#createOne(key, owner, draft, signal);
        } catch (error) {
          failure ??= error instanceof Error ? error : new Error(String(error));
        }
      });
      await Promise.all(made);
    }
    return failure;
  }

  async #createOne(key: ObjectKey, owner: KubeObject, draft: Draft<Pod>, signal: AbortSignal): Promise<void> {
    const { events } = this.#context;
    const { name: ownerName = '' } = owner.metadata;
    const { name } = draft.metadata;
    try {
      const pod = await this.#client.create(draft, { signal });
      this.#expectations.written(key, pod);
      const message = this.#words.created(pod.metadata.name ?? '', ownerName);
      events.event(owner, 'Normal', 'SuccessfulCreate', message);
    } catch (error) {
      // The namespace is terminating: creates fail until it is gone, without a report.
      if (isNamespaceTerminating(error)) return;
      // The cache has not shown a Pod with a fixed name yet, or the Pod has another owner.
      if (name === undefined || !isAlreadyExists(error)) {
        const why = errorMessage(error);
        events.event(owner, 'Warning', 'FailedCreate', this.#words.notCreated(name ?? '', ownerName, why));
      }
      throw error;
    }
  }

  /** Deletes Pods, several at once; those that are gone count as deleted. @throws the first failure, at the end. */
  async delete(key: ObjectKey, owner: KubeObject, pods: readonly Pod[], signal: AbortSignal): Promise<void> {
    const { events } = this.#context;
    const { name: ownerName = '' } = owner.metadata;
    const failures: unknown[] = [];
    for (let at = 0; at < pods.length; at += widest) {
      const going = pods.slice(at, at + widest).map(async (pod) => {
        const { namespace = '', name = '', uid = '' } = pod.metadata;
        try {
          await this.#client.delete(namespace, name, { preconditions: { uid }, signal });
          this.#expectations.deleted(key, pod);
          events.event(owner, 'Normal', 'SuccessfulDelete', this.#words.deleted(name, ownerName));
        } catch (error) {
          if (isNotFound(error)) return;
          const why = errorMessage(error);
          events.event(owner, 'Warning', 'FailedDelete', this.#words.notDeleted(name, ownerName, why));
          failures.push(error);
        }
      });
      await Promise.all(going);
    }
    if (failures.length > 0) throw failures[0];
  }
}
