import type { Timer } from '../client/clock.ts';
import { Follower, type FollowerListener, type FollowerOptions } from '../view/follower.ts';

/** After the last one has gone, the cluster is followed so long: a page that is loaded anew finds all as it was. */
const lingerMs = 60_000;

/** Those who look at a cluster: it is followed once for all of them, and only while there is one. */
export class Viewers {
  readonly #options: FollowerOptions;
  readonly #listeners = new Set<FollowerListener>();
  #follower: Follower | undefined;
  #linger: Timer | undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
  }

  /** The cluster as it is followed, from now on and for a while. */
  get follower(): Follower {
    const follower = this.#keepOpen();
    if (this.#listeners.size === 0) this.#leaveLater();
    return follower;
  }

  #keepOpen(): Follower {
    this.#linger?.cancel();
    this.#linger = undefined;
    if (this.#follower === undefined) {
      this.#follower = new Follower(this.#options, {
        changed: (changes) => {
          for (const listener of this.#listeners) listener.changed(changes);
        },
        stands: (status) => {
          for (const listener of this.#listeners) listener.stands(status);
        },
      });
      this.#follower.start();
    }
    return this.#follower;
  }

  /** Tells a viewer of all changes. @returns what ends that. */
  add(listener: FollowerListener): () => void {
    this.#listeners.add(listener);
    this.#keepOpen();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#leaveLater();
    };
  }

  /** Ends the watches. */
  async close(): Promise<void> {
    this.#linger?.cancel();
    const follower = this.#follower;
    this.#follower = undefined;
    await follower?.stop();
  }

  #leaveLater(): void {
    this.#linger?.cancel();
    this.#linger = this.#options.clock.after(lingerMs, () => {
      if (this.#listeners.size > 0) return;
      this.close().catch((error: unknown) => {
        this.#options.log.error({ err: error }, 'the watches of the page did not end');
      });
    });
  }
}
