import type { Clock } from '../../client/clock.ts';

/** Milliseconds that a change may wait to be written: twice kube-proxy's default `--sync-period`. */
const maxWait = 60_000;

/**
 * Whether a node's rules follow the API (`pkg/proxy/healthcheck/proxy_health.go`). Only the age of what is not written
 * counts: it is healthy while nothing changes, and before the first sync.
 */
export class SyncHealth {
  readonly #clock: Clock;
  /** Monotonic milliseconds of the oldest change that no sync has taken up, and of that which the last sync took up. */
  #queued: number | undefined;
  #writing: number | undefined;
  #lastSynced: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something has changed that has to be written. */
  queued(): void {
    this.#queued ??= this.#clock.monotonic();
  }

  /** A sync takes up all that is queued; what an earlier one failed to write stays as old as it is. */
  begin(): void {
    this.#writing ??= this.#queued;
    this.#queued = undefined;
  }

  /** The changes of the sync are written. */
  synced(): void {
    this.#writing = undefined;
    this.#lastSynced = this.#clock.now();
  }

  /** There is nothing to write for the sync. */
  skipped(): void {
    this.#writing = undefined;
  }

  get isHealthy(): boolean {
    const oldest = this.#writing ?? this.#queued;
    if (oldest === undefined || this.#lastSynced === undefined) return true;
    return this.#clock.monotonic() - oldest < maxWait;
  }

  /** Milliseconds since 1970 of the last sync that succeeded; undefined before the first. */
  get lastSynced(): number | undefined {
    return this.#lastSynced;
  }
}
