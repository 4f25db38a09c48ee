import { MultiVersionStore, type MultiVersionOptions } from './multi-version.ts';
import type { Storage } from './storage.ts';

/** A store that lives as long as the process: every write is visible as soon as it is accepted. */
export function createMemoryStorage(options: MultiVersionOptions): Storage {
  const store = new MultiVersionStore(options);
  let closed = false;
  return {
    get revision() {
      return store.revision;
    },
    get compactedRevision() {
      return store.compactedRevision;
    },
    get: (key) => store.get(key),
    getForUpdate: (key) => store.getForUpdate(key),
    list: (prefix, listOptions) => store.list(prefix, listOptions),
    count: (prefix) => store.count(prefix),
    watch: (prefix, after, listener) => store.watch(prefix, after, listener),
    commit: (writes) =>
      new Promise((resolve) => {
        if (closed) throw new Error('the storage is closed');
        const commit = store.stage(writes);
        store.publish(commit);
        resolve(commit.events.map((event) => event.current));
      }),
    close: () => {
      closed = true;
      return Promise.resolve();
    },
  };
}
