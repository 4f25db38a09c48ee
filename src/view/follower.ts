import type { Logger } from 'pino';
import { AvailabilityTracker } from '../client/availability-tracker.ts';
import type { Clock, Random, Timer } from '../client/clock.ts';
import { InformerFactory } from '../client/informers/shared-informer.ts';
import type { Transport } from '../client/transport.ts';
import type { RequestSettings } from '../controllers/load-balancer/request.ts';
import { announceSelectors } from '../network/announcing/agent-report.ts';
import { formatTime } from '../objects/formats/time.ts';
import { ClusterCaches } from './caches.ts';
import { RowTables } from './row-tables.ts';
import type { RowChanges } from './stored-rows.ts';

/** How a follower stands to its cluster. */
export interface FollowStatus {
  /** Kinds whose first list is being read, and how many objects have come. */
  readonly loading: readonly { readonly kind: string; readonly read: number }[];
  /** Kinds that may not be listed. */
  readonly forbidden: readonly string[];
  /** The API server does not answer: why, and what to do. */
  readonly disconnected?: { readonly message: string; readonly since: string };
}

export interface FollowerOptions {
  readonly transport: Transport;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
  /** Only this one; undefined: all. */
  readonly namespace: string | undefined;
  readonly settings: RequestSettings;
}

export interface FollowerListener {
  /** At most four times a second. */
  changed(changes: RowChanges): void;
  /** Whenever it is another. */
  stands(status: FollowStatus): void;
}

/** Between two flushes, so that what changes several times meanwhile is told once. */
const flushMs = 250;
/** Between two looks at what lists have read. */
const loadingMs = 100;
/** Between two looks at what depends on the time alone. */
const tickMs = 10_000;

/** Follows a cluster by one watch a kind, and tells its rows, until it is stopped. */
export class Follower {
  readonly caches: ClusterCaches;
  readonly tables: RowTables;
  readonly #informers: InformerFactory;
  readonly #clock: Clock;
  readonly #listener: FollowerListener;
  readonly #ending = new AbortController();
  readonly #complete = Promise.withResolvers<true>();
  #flush: Timer | undefined;
  #look: Timer | undefined;
  #tick: Timer | undefined;
  #flushedAt = -flushMs;
  #disconnected: FollowStatus['disconnected'];
  #said = '';

  constructor({ transport, settings, namespace, ...options }: FollowerOptions, listener: FollowerListener) {
    const { clock, log } = options;
    this.#clock = clock;
    this.#listener = listener;
    // Whoever looks is told; a log would say it once more.
    const silent = log.child({}, { level: 'silent' });
    const tracked = new AvailabilityTracker(transport, silent, clock, (problem) => {
      const since = formatTime(clock.now());
      this.#disconnected = problem === undefined ? undefined : { message: problem, since };
      this.#say();
    });
    this.#informers = new InformerFactory({
      ...options,
      transport: tracked,
      labelSelectors: announceSelectors,
      ...(namespace === undefined ? {} : { namespace }),
    });
    this.caches = new ClusterCaches(this.#informers, namespace === undefined);
    this.tables = new RowTables(
      this.caches,
      settings,
      () => clock.now(),
      () => this.#touched(),
    );
  }

  start(): void {
    this.#informers.start(this.#ending.signal);
    this.#wait();
    this.#each();
  }

  /** Resolves when every kind has been listed, or may not be; never, once it is stopped before. */
  complete(): Promise<true> {
    return this.#complete.promise;
  }

  get status(): FollowStatus {
    return {
      loading: this.caches.loading(),
      forbidden: this.caches.forbidden(),
      ...(this.#disconnected === undefined ? {} : { disconnected: this.#disconnected }),
    };
  }

  /** Ends its watches. */
  async stop(): Promise<void> {
    for (const timer of [this.#flush, this.#look, this.#tick]) timer?.cancel();
    this.#ending.abort();
    await this.#informers.finished();
  }

  /** Tells at once what has changed. */
  flush(): void {
    this.#flush?.cancel();
    this.#flush = undefined;
    this.#flushedAt = this.#clock.monotonic();
    this.#listener.changed(this.tables.flush());
  }

  #touched(): void {
    if (this.#flush !== undefined || this.#ending.signal.aborted) return;
    const waitMs = Math.max(0, this.#flushedAt + flushMs - this.#clock.monotonic());
    this.#flush = this.#clock.after(waitMs, () => this.flush());
  }

  /** Looks at the lists: often while they are being read, and then for rights that were taken or given. */
  #wait(): void {
    if (this.caches.loading().length === 0) {
      this.flush();
      this.#complete.resolve(true);
    }
    this.#say();
    const isLoading = this.caches.loading().length > 0;
    this.#look = this.#clock.after(isLoading ? loadingMs : tickMs, () => this.#wait());
  }

  #each(): void {
    this.tables.tick();
    this.#tick = this.#clock.after(tickMs, () => this.#each());
  }

  #say(): void {
    const { status } = this;
    const text = JSON.stringify(status);
    if (text === this.#said) return;
    this.#said = text;
    this.#listener.stands(status);
  }
}
