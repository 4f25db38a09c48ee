import { isAlreadyExists, isNotFound, isNamespaceTerminating } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { Draft, ResourceClient } from '../../client/resource-client.ts';
import { pods as podsResource } from '../../client/resources.ts';
import type { KubeObject, ObjectKey } from '../../objects/meta.ts';
import { errorMessage } from '../../objects/status.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { KeyLoop } from '../../runtime/key-loop.ts';
import { OwnWrites } from '../../runtime/own-writes.ts';

/** Pods created at once; the first one alone, so that a template that is refused costs one request. */
const maxBatch = 16;

/** The messages of Events about a Pod. */
export interface PodEventTexts {
  readonly created: (pod: string, owner: string) => string;
  readonly deleted: (pod: string, owner: string) => string;
  /** @param pod its name; empty when the server generates it. */
  readonly notCreated: (pod: string, owner: string, why: string) => string;
  readonly notDeleted: (pod: string, owner: string, why: string) => string;
}

/** The messages of all workloads but StatefulSets (`RealPodControl`). */
const commonTexts: PodEventTexts = {
  created: (pod) => `Created pod: ${pod}`,
  deleted: (pod) => `Deleted pod: ${pod}`,
  notCreated: (_pod, _owner, why) => `Error creating: ${why}`,
  notDeleted: (_pod, _owner, why) => `Error deleting: ${why}`,
};

/** Creates and deletes the Pods of a workload, records Events, and tracks what the cache does not show yet. */
export class PodControl {
  readonly #events: ControllerContext['events'];
  readonly #client: ResourceClient<Pod>;
  readonly #writes: OwnWrites<Pod>;
  readonly #texts: PodEventTexts;

  constructor(loop: KeyLoop, pods: Informer<Pod>, texts: PodEventTexts = commonTexts) {
    this.#events = loop.context.events;
    this.#texts = texts;
    this.#client = loop.context.clients.for(podsResource);
    this.#writes = new OwnWrites(loop, pods);
  }

  /** Milliseconds until the cache shows all writes for the owner of this key: {@link OwnWrites.pendingMs}. */
  pendingMs(key: ObjectKey): number {
    return this.#writes.pendingMs(key);
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
      at += batch, batch = Math.min(2 * batch, maxBatch)
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
    const { name: ownerName = '' } = owner.metadata;
    const { name } = draft.metadata;
    try {
      const pod = await this.#client.create(draft, { signal });
      this.#writes.written(key, pod);
      const message = this.#texts.created(pod.metadata.name ?? '', ownerName);
      this.#events.event(owner, 'Normal', 'SuccessfulCreate', message);
    } catch (error) {
      // The namespace is terminating: creates fail until it is gone, without a report.
      if (isNamespaceTerminating(error)) return;
      // The cache has not shown a Pod with a fixed name yet, or the Pod has another owner.
      if (name === undefined || !isAlreadyExists(error)) {
        const why = errorMessage(error);
        this.#events.event(
          owner,
          'Warning',
          'FailedCreate',
          this.#texts.notCreated(name ?? '', ownerName, why),
        );
      }
      throw error;
    }
  }

  /** Deletes Pods, several at once; those that are gone count as deleted. @throws the first failure, at the end. */
  async delete(key: ObjectKey, owner: KubeObject, pods: readonly Pod[], signal: AbortSignal): Promise<void> {
    const { name: ownerName = '' } = owner.metadata;
    const failures: unknown[] = [];
    for (let at = 0; at < pods.length; at += maxBatch) {
      const going = pods.slice(at, at + maxBatch).map(async (pod) => {
        const { namespace = '', name = '', uid = '' } = pod.metadata;
        this.#writes.deleting(key, pod);
        try {
          await this.#client.delete(namespace, name, { preconditions: { uid }, signal });
          this.#events.event(owner, 'Normal', 'SuccessfulDelete', this.#texts.deleted(name, ownerName));
        } catch (error) {
          this.#writes.notDeleted(pod);
          if (isNotFound(error)) return;
          const why = errorMessage(error);
          this.#events.event(owner, 'Warning', 'FailedDelete', this.#texts.notDeleted(name, ownerName, why));
          failures.push(error);
        }
      });
      await Promise.all(going);
    }
    if (failures.length > 0) throw failures[0];
  }
}
