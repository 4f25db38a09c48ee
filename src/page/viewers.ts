import type { Timer } from '../client/clock.ts';
import { Follower, type FollowerListener, type FollowerOptions } from '../view/follower.ts';
import { Journal } from '../view/journal/journal.ts';
import type { Past } from '../view/journal/past.ts';

/** After the last one has gone, the cluster is followed so long: a page that is loaded anew finds all as it was. */
const lingerMs = 60_000;
/** A cluster as it was is kept so long for the next one who asks for the same time. */
const pastMs = 60_000;

/** A cluster that is followed, and its journal. */
interface Viewed {
  readonly follower: Follower;
  readonly journal: Journal;
}

/** Those who look at a cluster: it is followed once for all of them, and only while there is one. */
export class Viewers {
  readonly #options: FollowerOptions;
  readonly #listeners = new Set<FollowerListener>();
  #viewed: Viewed | undefined;
  #linger: Timer | undefined;
  /** The last one that was asked for. */
  #past: { readonly atMs: number; readonly made: Promise<Past> } | undefined;
  #pastTimer: Timer | undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
  }

  /** The cluster as it is followed, from now on and for a while. */
  get follower(): Follower {
    return this.#look().follower;
  }

  /** What has changed there of late. */
  get journal(): Journal {
    return this.#look().journal;
  }

  /** The cluster as it was at a time, in milliseconds since 1970; undefined where that is not known. */
  async past(atMs: number): Promise<Past | undefined> {
    const { follower, journal } = this.#look();
    await follower.complete();
    if (journal.beginMs === undefined || atMs < journal.beginMs) return undefined;
    const past = this.#past?.atMs === atMs ? this.#past : { atMs, made: journal.past(atMs) };
    this.#past = past;
    this.#pastTimer?.cancel();
    this.#pastTimer = this.#options.clock.after(pastMs, () => (this.#past = undefined));
    return await past.made;
  }

  #look(): Viewed {
    const viewed = this.#keepOpen();
    if (this.#listeners.size === 0) this.#leaveLater();
    return viewed;
  }

  #keepOpen(): Viewed {
    this.#linger?.cancel();
    this.#linger = undefined;
    this.#viewed ??= this.#open();
    return this.#viewed;
  }

  #open(): Viewed {
    const follower = new Follower(this.#options, {
      changed: (changes) => {
        for (const listener of this.#listeners) listener.changed(changes);
      },
      stands: (status) => {
        for (const listener of this.#listeners) listener.stands(status);
      },
    });
    const { settings, clock } = this.#options;
    const journal = new Journal(follower.caches, settings, () => clock.now());
    // It resolves, or never does.
    void follower.complete().then(() => journal.begin());
    follower.start();
    return { follower, journal };
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
    this.#pastTimer?.cancel();
    this.#past = undefined;
    const viewed = this.#viewed;
    this.#viewed = undefined;
    await viewed?.follower.stop();
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
