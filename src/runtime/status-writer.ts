import { isNotFound } from '../client/errors.ts';
import type { Informer } from '../client/informers/informer.ts';
import type { ResourceClient } from '../client/resource-client.ts';
import { jsonEqual } from '../objects/json.ts';
import { type KubeObject, keyOf, type ObjectKey } from '../objects/meta.ts';
import type { KeyLoop } from './key-loop.ts';
import { OwnWrites } from './own-writes.ts';

/** Writes the status of the objects that a controller reconciles, and tracks whether the cache shows it. */
export class StatusWriter<T extends KubeObject & { status: object }> {
  readonly #client: ResourceClient<T>;
  readonly #writes: OwnWrites<T>;

  constructor(loop: KeyLoop, informer: Informer<T>) {
    this.#client = loop.context.clients.for(informer.resource);
    this.#writes = new OwnWrites(loop, informer);
  }

  /** Milliseconds until the cache shows this object as it was written: {@link OwnWrites.pendingMs}. */
  pendingMs(key: ObjectKey): number {
    return this.#writes.pendingMs(key);
  }

  /** Puts the status and these annotations, unless they are equal already. Does nothing for an object that is gone. */
  async write(
    object: T,
    status: T['status'],
    signal: AbortSignal,
    annotations: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const present = object.metadata.annotations ?? {};
    const wanted = { ...present, ...annotations };
    if (jsonEqual(object.status, status) && jsonEqual(present, wanted)) return;
    const metadata =
      Object.keys(wanted).length === 0 ? object.metadata : { ...object.metadata, annotations: wanted };
    try {
      this.written(await this.#client.replaceStatus({ ...object, metadata, status }, { signal }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** Call with the answer after the object was written by other means. */
  written(object: T): void {
    this.#writes.written(keyOf(object), object);
  }
}
