import { MultiVersionStore, type MultiVersionOptions, storageOf } from './multi-version.ts';
import type { Storage } from './storage.ts';

/** A store in memory only: a write is visible as soon as it is accepted. */
export function createMemoryStorage(options: MultiVersionOptions): Storage {
  const store = new MultiVersionStore(options);
  return storageOf(
    store,
    (writes) =>
      new Promise((resolve) => {
        const commit = store.stage(writes);
        store.publish(commit);
        resolve(commit.events.map((event) => event.current));
      }),
    () => Promise.resolve(),
  );
}
