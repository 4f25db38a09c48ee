import { isNotFound } from '../client/errors.ts';
import type { Informer } from '../client/informers/informer.ts';
import type { ResourceClient } from '../client/resource-client.ts';
import { jsonEqual } from '../objects/json.ts';
import { keyOf, type ObjectKey } from '../objects/key.ts';
import type { KubeObject } from '../objects/meta.ts';
import type { ControllerContext } from './context.ts';
import { Expectations } from './expectations.ts';

/** Milliseconds after which to reconcile again when no event has shown an own write. */
export const lookAgain = 1000;

/** Writes the objects that a controller reconciles, and tracks whether the cache shows these writes. */
export class StatusWriter<T extends KubeObject & { status: object }> {
  readonly #client: ResourceClient<T>;
  readonly #expectations: Expectations<T>;

  constructor(context: ControllerContext, informer: Informer<T>) {
    this.#client = context.clients.for(informer.resource);
    this.#expectations = new Expectations(informer, context.clock);
  }

  /** False while the cache is behind an own write of this object. */
  settled(key: ObjectKey): boolean {
    return this.#expectations.settled(key);
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
      this.noteWritten(await this.#client.replaceStatus({ ...object, metadata, status }, { signal }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** Call after the object was written by other means. */
  noteWritten(object: T): void {
    this.#expectations.written(keyOf(object), object);
  }
}
