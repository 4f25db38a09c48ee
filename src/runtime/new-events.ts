import type { PlannedEvent } from '../client/events/events.ts';
import type { KubeObject, ObjectKey } from '../objects/meta.ts';
import type { ControllerContext } from './context.ts';

/** Records the Events of a reconcile when they differ from those of the last one, so that retries do not repeat them. */
export class NewEvents {
  readonly #events: ControllerContext['events'];
  readonly #last = new Map<ObjectKey, string>();

  constructor({ events }: Pick<ControllerContext, 'events'>) {
    this.#events = events;
  }

  /** @param key of the reconcile; no Events: the next ones are new. */
  record(key: ObjectKey, object: KubeObject, events: readonly PlannedEvent[]): void {
    const text = events.map(({ reason, message }) => `${reason} ${message}`).join('\n');
    if (text === (this.#last.get(key) ?? '')) return;
    if (text === '') this.#last.delete(key);
    else this.#last.set(key, text);
    for (const { type, reason, message } of events) this.#events.event(object, type, reason, message);
  }

  forget(key: ObjectKey): void {
    this.#last.delete(key);
  }
}
