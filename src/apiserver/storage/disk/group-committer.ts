import type { MultiVersionStore, StagedCommit } from '../multi-version.ts';
import type { StorageEvent } from '../storage.ts';
import type { StoredObject, Write } from '../storage.ts';

/** Makes the events of one group durable, all or none; rejects for none. */
export type Persist = (events: readonly StorageEvent[], time: number) => Promise<void>;

interface Pending {
  readonly commit: StagedCommit;
  readonly resolve: (stored: readonly StoredObject[]) => void;
  readonly reject: (error: unknown) => void;
}

/** A group ends at this size, so that no write waits long for others. */
const groupBytes = 4 * 1024 * 1024;

/**
 * Group commit: the commits of one turn of the event loop, or of the time of a sync, are made durable with one sync, and
 * published then. When that fails, the group and all commits that were staged after it are rolled back.
 */
export class GroupCommitter {
  readonly #store: MultiVersionStore;
  readonly #persist: Persist;
  readonly #clock: () => number;
  #pending: Pending[] = [];
  #running: Promise<void> | undefined;

  constructor(store: MultiVersionStore, clock: () => number, persist: Persist) {
    this.#store = store;
    this.#clock = clock;
    this.#persist = persist;
  }

  /** See {@link Storage.commit}. */
  commit(writes: readonly Write[]): Promise<readonly StoredObject[]> {
    return new Promise((resolve, reject) => {
      const commit = this.#store.stage(writes);
      if (commit.events.length === 0) {
        resolve([]);
        return;
      }
      this.#pending.push({ commit, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Resolves when no commit is pending. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async #run(): Promise<void> {
    // The rest of this turn joins the first group.
    await new Promise(setImmediate);
    while (this.#pending.length > 0) {
      const group = this.#nextGroup();
      const time = this.#clock();
      try {
        await this.#persist(
          group.flatMap(({ commit }) => commit.events),
          time,
        );
      } catch (error) {
        const lost = [...group, ...this.#pending.splice(0)];
        this.#store.rollback();
        for (const { reject } of lost) reject(error);
        continue;
      }
      for (const { commit, resolve } of group) {
        this.#store.publish(commit, time);
        resolve(commit.events.map((event) => event.current));
      }
    }
    this.#running = undefined;
  }

  #nextGroup(): Pending[] {
    let bytes = 0;
    let count = 0;
    for (const { commit } of this.#pending) {
      for (const event of commit.events) bytes += event.type === 'DELETED' ? 0 : event.current.byteLength;
      count++;
      if (bytes >= groupBytes) break;
    }
    return this.#pending.splice(0, count);
  }
}
