import type { StorageEvent, Unsubscribe } from './storage.ts';

/** Called for each event of a watch. */
export type WatchListener = (event: StorageEvent) => void;

/** Called with an error that a listener threw. The listener stays subscribed, and other listeners are not affected. */
export type ListenerErrorHandler = (error: unknown, event: StorageEvent) => void;

interface Watcher {
  readonly listener: WatchListener;
  /** The last revision that the watcher does not get, or that was replayed to it. */
  readonly after: number;
  active: boolean;
}

/**
 * Listeners by prefix: an event looks up those of its resource and its namespace only. Listeners are called
 * synchronously and in the order of events: events that a listener causes are delivered after all listeners got the
 * present one.
 */
export class Watchers {
  readonly #byPrefix = new Map<string, Set<Watcher>>();
  readonly #onError: ListenerErrorHandler;
  #queue: StorageEvent[] = [];
  #delivering = false;

  constructor(onError: ListenerErrorHandler) {
    this.#onError = onError;
  }

  /** Replays `past` to the listener, then calls it for every event with a revision greater than `after`. */
  subscribe(
    prefix: string,
    past: readonly StorageEvent[],
    after: number,
    listener: WatchListener,
  ): Unsubscribe {
    const watcher: Watcher = { listener, after, active: true };
    let watchers = this.#byPrefix.get(prefix);
    if (watchers === undefined) this.#byPrefix.set(prefix, (watchers = new Set()));
    watchers.add(watcher);
    const nested = this.#delivering;
    this.#delivering = true;
    for (const event of past) this.#call(watcher, event);
    this.#delivering = nested;
    if (!nested) this.deliver([]);
    return () => {
      watcher.active = false;
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#byPrefix.get(prefix) === watchers) this.#byPrefix.delete(prefix);
    };
  }

  /** Passes events to the listeners of their resource or namespace. */
  deliver(events: readonly StorageEvent[]): void {
    for (const event of events) this.#queue.push(event);
    if (this.#delivering) return;
    this.#delivering = true;
    for (let i = 0; i < this.#queue.length; i++) {
      const event = this.#queue[i];
      if (event !== undefined) this.#dispatch(event);
    }
    this.#queue = [];
    this.#delivering = false;
  }

  #dispatch(event: StorageEvent): void {
    if (this.#byPrefix.size === 0) return;
    const [resource, namespace] = keyPrefixes(event.current.key);
    for (const prefix of [resource, namespace]) {
      const watchers = this.#byPrefix.get(prefix);
      if (watchers === undefined) continue;
      for (const watcher of watchers) if (event.revision > watcher.after) this.#call(watcher, event);
    }
  }

  #call(watcher: Watcher, event: StorageEvent): void {
    if (!watcher.active) return;
    try {
      watcher.listener(event);
    } catch (error) {
      this.#onError(error, event);
    }
  }
}

/** The resource prefix and the namespace prefix of a full key. */
export function keyPrefixes(key: string): [resource: string, namespace: string] {
  const resourceEnd = key.indexOf('/', key.indexOf('/') + 1) + 1;
  return [key.slice(0, resourceEnd), key.slice(0, key.indexOf('/', resourceEnd) + 1)];
}
