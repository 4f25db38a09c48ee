import { isNotFound, isNamespaceTerminating } from '../../../client/errors.ts';
import type { ResourceClient } from '../../../client/resource-client.ts';
import type { EndpointSlice } from '../../../objects/types/discovery.generated.ts';
import type { ObjectKey } from '../../../objects/key.ts';
import type { SliceTracker } from './slice-tracker.ts';

/** The writes of a plan. */
export interface SliceWrites {
  readonly create: readonly EndpointSlice[];
  readonly update: readonly EndpointSlice[];
  readonly delete: readonly EndpointSlice[];
}

/** The object that slices are written for. */
export interface SliceOwner {
  readonly key: ObjectKey;
  readonly uid: string;
}

/** The number of successful writes, for the log. */
export interface WriteCounts {
  created: number;
  updated: number;
  deleted: number;
}

/** A write that failed. */
export interface WriteFailure {
  /** The message up to `for` the owner: `failed to update web-abcde EndpointSlice`. */
  readonly attempt: string;
  readonly error: unknown;
}

/** Sends the writes of a plan one by one and records each in the tracker. */
export class SliceWriter {
  readonly #client: ResourceClient<EndpointSlice>;
  readonly #tracker: SliceTracker;

  constructor(client: ResourceClient<EndpointSlice>, tracker: SliceTracker) {
    this.#client = client;
    this.#tracker = tracker;
  }

  /**
   * Creates, updates, then deletes, one address type after the other. The writes of an address type end at the first
   * failure, or without one when the namespace is terminating. Those of the other types are still sent, so that slices
   * of a family that a Service no longer has are deleted even where no creates are allowed.
   */
  async write(
    writes: SliceWrites,
    owner: SliceOwner,
    signal: AbortSignal,
  ): Promise<{ counts: WriteCounts; failures: WriteFailure[] }> {
    const counts: WriteCounts = { created: 0, updated: 0, deleted: 0 };
    const failures: WriteFailure[] = [];
    const types = [...writes.create, ...writes.update, ...writes.delete].map(
      ({ addressType }) => addressType,
    );
    for (const type of new Set(types)) {
      const isOfType = ({ addressType }: EndpointSlice): boolean => addressType === type;
      const failure = await this.#writeType(
        {
          create: writes.create.filter(isOfType),
          update: writes.update.filter(isOfType),
          delete: writes.delete.filter(isOfType),
        },
        owner,
        counts,
        signal,
      );
      if (failure !== undefined) failures.push(failure);
    }
    return { counts, failures };
  }

  async #writeType(
    writes: SliceWrites,
    owner: SliceOwner,
    counts: WriteCounts,
    signal: AbortSignal,
  ): Promise<WriteFailure | undefined> {
    let attempt = '';
    try {
      for (const slice of writes.create) {
        attempt = 'failed to create EndpointSlice';
        this.#tracker.wrote(owner.key, owner.uid, await this.#client.create(slice, { signal }));
        counts.created++;
      }
      for (const slice of writes.update) {
        attempt = `failed to update ${slice.metadata.name ?? ''} EndpointSlice`;
        this.#tracker.wrote(owner.key, owner.uid, await this.#client.replace(slice, { signal }));
        counts.updated++;
      }
      for (const slice of writes.delete) {
        attempt = `failed to delete ${slice.metadata.name ?? ''} EndpointSlice`;
        await this.#delete(slice, owner, signal);
        counts.deleted++;
      }
    } catch (error) {
      return isNamespaceTerminating(error) ? undefined : { attempt, error };
    }
    return undefined;
  }

  async #delete(slice: EndpointSlice, owner: SliceOwner, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid } = slice.metadata;
    this.#tracker.deleting(owner.key, owner.uid, slice);
    try {
      const preconditions = uid === undefined ? {} : { preconditions: { uid } };
      await this.#client.delete(namespace, name, { signal, ...preconditions });
    } catch (error) {
      if (isNotFound(error)) return;
      this.#tracker.wrote(owner.key, owner.uid, slice);
      throw error;
    }
  }
}
