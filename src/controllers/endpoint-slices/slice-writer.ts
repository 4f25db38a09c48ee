import { isNotFound } from '../../client/errors.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import type { EndpointSlice } from '../../objects/endpoint-slice.ts';
import type { ObjectKey } from '../../objects/key.ts';
import { isNamespaceTerminating } from '../service-pods/api-errors.ts';
import type { SliceTracker } from './slice-tracker.ts';

/** The writes that a plan asks for. */
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

/** How many writes went through, for the log. */
export interface WriteCounts {
  created: number;
  updated: number;
  deleted: number;
}

/** Sends the writes of a plan one by one and notes each in the tracker. */
export class SliceWriter {
  readonly #client: ResourceClient<EndpointSlice>;
  readonly #tracker: SliceTracker;

  constructor(client: ResourceClient<EndpointSlice>, tracker: SliceTracker) {
    this.#client = client;
    this.#tracker = tracker;
  }

  /**
   * Creates, updates, then deletes. Stops without an error when the namespace is being emptied, and with the first
   * error otherwise: what follows is not sent.
   */
  async write(writes: SliceWrites, owner: SliceOwner, signal: AbortSignal): Promise<WriteCounts> {
    const counts: WriteCounts = { created: 0, updated: 0, deleted: 0 };
    for (const slice of writes.create) {
      try {
        this.#tracker.wrote(owner.key, owner.uid, await this.#client.create(slice, { signal }));
        counts.created++;
      } catch (error) {
        if (isNamespaceTerminating(error)) return counts;
        throw error;
      }
    }
    for (const slice of writes.update) {
      this.#tracker.wrote(owner.key, owner.uid, await this.#client.replace(slice, { signal }));
      counts.updated++;
    }
    for (const slice of writes.delete) {
      await this.#delete(slice, owner, signal);
      counts.deleted++;
    }
    return counts;
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
