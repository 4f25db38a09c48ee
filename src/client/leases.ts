import type { Logger } from 'pino';
import { jsonEqual } from '../objects/json.ts';
import type { Lease } from '../objects/types/coordination.generated.ts';
import { StatusError } from '../objects/status.ts';
import { formatMicroTime } from '../objects/formats/time.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { LogThrottle } from '../telemetry/log.ts';
import { isAborted, type Clock, type Random } from './clock.ts';
import { errorWord, isAlreadyExists, isConflict, isForbidden, isNotFound, isUnreached } from './errors.ts';
import type { ResourceClient } from './resource-client.ts';

export interface LeaderElectionOptions {
  readonly client: ResourceClient<Lease>;
  readonly namespace: string;
  /** The Lease's name. */
  readonly name: string;
  /** Unique to this process, also across restarts: `<host name>_<uuid>`. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics?: Metrics;
  /** Milliseconds that candidates wait for a silent leader; default 15,000 (`--leader-elect-lease-duration`). */
  readonly leaseDurationMs?: number;
  /** Milliseconds that the leader continues without a renewal; default 10,000 (`--leader-elect-renew-deadline`). */
  readonly renewDeadlineMs?: number;
  /** Milliseconds between tries; default 2,000 (`--leader-elect-retry-period`). */
  readonly retryPeriodMs?: number;
}

/** The content of the Lease. */
type LeaseSpec = Lease['spec'];

/** The spread of the retry period (client-go's JitterFactor). */
const jitter = 1.2;

/** Why {@link LeaderElector.run} ended: its signal aborted, or another process may lead. */
export type ElectionEnd = 'stopped' | 'lost';

/** The abort reason of the work's signal when it must end at once because another process may lead. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

/**
 * Leader election by a Lease, after client-go's `tools/leaderelection`. Times in the Lease are ignored, as clocks
 * differ: the lease of another has expired when it has not changed for its duration by our own monotonic clock.
 *
 * Two leaders for a moment are possible (a process that hangs longer than the lease lasts): writes must carry a
 * resourceVersion.
 */
export class LeaderElector {
  readonly #options: LeaderElectionOptions;
  readonly #leaseDurationMs: number;
  readonly #renewDeadlineMs: number;
  readonly #retryPeriodMs: number;
  /** The Lease as last seen, and the time of its last change. */
  #lease: Lease | undefined;
  #observedAt = 0;
  /** Monotonic time of the start of the last successful renewal. */
  #renewedAt = Number.NEGATIVE_INFINITY;
  /** True after a write without an answer: the Lease may be ours, or ours in another version. */
  #isUnsure = false;
  #reportedHolder: string | undefined;
  readonly #throttle: LogThrottle;

  /** @throws {RangeError} for inconsistent durations. */
  constructor(options: LeaderElectionOptions) {
    const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2000 } = options;
    if (
      !(retryPeriodMs > 0) ||
      renewDeadlineMs <= retryPeriodMs * jitter ||
      leaseDurationMs <= renewDeadlineMs
    ) {
      throw new RangeError(
        'leader election needs: lease duration > renew deadline > retry period times 1.2, and all above 0',
      );
    }
    this.#options = options;
    this.#throttle = new LogThrottle(() => options.clock.monotonic());
    this.#leaseDurationMs = leaseDurationMs;
    this.#renewDeadlineMs = renewDeadlineMs;
    this.#retryPeriodMs = retryPeriodMs;
  }

  /** True while no other process can have taken the lease. Check it right before writes that only a leader may make. */
  get isLeader(): boolean {
    return this.#options.clock.monotonic() - this.#renewedAt < this.#renewDeadlineMs;
  }

  /** The holder's identity as last seen; "" for none. */
  get holder(): string {
    return this.#lease?.spec.holderIdentity ?? '';
  }

  /**
   * Waits for the lease, then calls `lead` with a signal that aborts when the lease is lost or `signal` aborts, and
   * renews while it runs. When `lead` has ended after a stop, the lease is released, so that the next leader does not
   * have to wait. Resolves after `lead` has ended; rejects only with what `lead` throws.
   */
  async run(signal: AbortSignal, lead: (signal: AbortSignal) => Promise<void>): Promise<ElectionEnd> {
    const { clock, random, log, metrics, identity, name } = this.#options;
    while (!(await this.#tryAcquireOrRenew(signal))) {
      if (!signal.aborted) await clock.sleep(this.#retryPeriodMs * (1 + jitter * random()), signal);
      if (!isAborted(signal)) continue;
      // A try whose answer was lost may have been applied.
      await this.#release();
      return 'stopped';
    }
    log.info({ lease: name, identity }, 'leading');
    metrics?.leader.set({ name }, 1);
    const work = new AbortController();
    const ended = new AbortController();
    // The renewal loop and the work stop each other: whichever ends first.
    const working = lead(work.signal).finally(() => ended.abort());
    const renewing = this.#renewUntilLost(AbortSignal.any([signal, ended.signal]));
    try {
      const lost = await Promise.race([renewing, working.then(() => false)]);
      if (lost) log.error({ lease: name, identity }, 'lost the lease, stopping work');
      work.abort(lost ? new LeaseLost() : undefined);
      metrics?.leader.set({ name }, 0);
      // While the work stops, no other process may begin: renew until it has ended.
      const winding = lost ? undefined : this.#renewUntilLost(ended.signal);
      await working;
      await winding;
      if (lost) return 'lost';
      await this.#release();
      return 'stopped';
    } finally {
      work.abort();
      ended.abort();
      metrics?.leader.set({ name }, 0);
    }
  }

  /** Resolves true when the lease could not be renewed in time, false when the signal aborted. */
  async #renewUntilLost(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      const deadline = this.#renewedAt + this.#renewDeadlineMs;
      await clock.sleep(Math.max(0, Math.min(this.#retryPeriodMs, deadline - clock.monotonic())), signal);
      if (isAborted(signal)) break;
      if (clock.monotonic() >= deadline) return true;
      // A renewal that hangs must not last beyond the deadline.
      const attempt = new AbortController();
      const limit = clock.after(deadline - clock.monotonic(), () => attempt.abort());
      await this.#tryAcquireOrRenew(AbortSignal.any([signal, attempt.signal]));
      limit.cancel();
      if (this.holder !== this.#options.identity && this.#lease !== undefined) return true;
    }
    return false;
  }

  /** One try. True when the lease is ours and was renewed just now. */
  async #tryAcquireOrRenew(signal: AbortSignal): Promise<boolean> {
    const { client, clock, identity, namespace, name, log } = this.#options;
    const started = clock.monotonic();
    try {
      // The holder needs one request: no other process writes the Lease.
      const known = this.#lease;
      if (
        known !== undefined &&
        this.holder === identity &&
        started - this.#renewedAt < this.#leaseDurationMs
      ) {
        try {
          this.#renewed(await this.#write(known, signal), started);
          return true;
        } catch (error) {
          if (!isConflict(error) && !isNotFound(error)) throw error;
        }
      }
      const present = await this.#read(signal);
      if (present === undefined) {
        const spec = this.#spec(undefined);
        const create = client.create({ metadata: { namespace, name }, spec }, this.#call(signal));
        this.#renewed(await this.#sent(create), started);
        return true;
      }
      this.#observe(present);
      if (this.#heldByAnother(present.spec)) return false;
      this.#renewed(await this.#write(present, signal), started);
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      const someoneElse = isConflict(error) || isAlreadyExists(error);
      // Missing permissions and an unreachable server are logged once by the transport (permission-tracker.ts,
      // availability-tracker.ts).
      const isSaid = someoneElse || isForbidden(error) || isUnreached(error);
      const level = !isSaid && this.#throttle.isDue(errorWord(error)) ? 'warn' : 'debug';
      log[level]({ lease: name, err: error }, 'could not take or renew the lease');
      return false;
    }
  }

  async #read(signal?: AbortSignal): Promise<Lease | undefined> {
    const { client, namespace, name } = this.#options;
    try {
      return await client.get(namespace, name, this.#call(signal));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  #write(lease: Lease, signal: AbortSignal): Promise<Lease> {
    const { client } = this.#options;
    return this.#sent(client.replace({ ...lease, spec: this.#spec(lease.spec) }, this.#call(signal)));
  }

  /** Records whether a write was answered. */
  async #sent(write: Promise<Lease>): Promise<Lease> {
    this.#isUnsure = true;
    try {
      const lease = await write;
      this.#isUnsure = false;
      return lease;
    } catch (error) {
      if (error instanceof StatusError && error.code < 500) this.#isUnsure = false;
      throw error;
    }
  }

  /**
   * Half of the deadline: after a hanging connection there is time for a second try (as kube-controller-manager's
   * client).
   */
  #call(signal?: AbortSignal): { timeoutMs: number; signal?: AbortSignal } {
    return { timeoutMs: this.#renewDeadlineMs / 2, ...(signal === undefined ? {} : { signal }) };
  }

  #spec(old: LeaseSpec | undefined): LeaseSpec {
    const { clock, identity } = this.#options;
    const now = formatMicroTime(clock.now());
    const ours = old?.holderIdentity === identity;
    const transitions = typeof old?.leaseTransitions === 'number' ? old.leaseTransitions : 0;
    return {
      ...old,
      holderIdentity: identity,
      leaseDurationSeconds: Math.max(1, Math.ceil(this.#leaseDurationMs / 1000)),
      acquireTime: ours && old.acquireTime !== undefined ? old.acquireTime : now,
      renewTime: now,
      leaseTransitions: old === undefined || ours ? transitions : transitions + 1,
    };
  }

  #heldByAnother({ holderIdentity = '', leaseDurationSeconds }: LeaseSpec): boolean {
    if (holderIdentity === '' || holderIdentity === this.#options.identity) return false;
    const seconds =
      typeof leaseDurationSeconds === 'number' && leaseDurationSeconds > 0 ? leaseDurationSeconds : 0;
    const lasts = Math.min(seconds * 1000, maxForeignLeaseMs);
    return this.#options.clock.monotonic() < this.#observedAt + lasts;
  }

  #renewed(lease: Lease, sentAt: number): void {
    this.#observe(lease);
    this.#renewedAt = sentAt;
  }

  #observe(lease: Lease): void {
    const { clock, log, name } = this.#options;
    if (this.#lease === undefined || !jsonEqual(this.#lease.spec, lease.spec)) {
      this.#observedAt = clock.monotonic();
    }
    this.#lease = lease;
    if (this.holder === this.#reportedHolder) return;
    this.#reportedHolder = this.holder;
    log.info({ lease: name, holder: this.holder }, 'the leader changed');
  }

  /**
   * Releases the lease; when that fails, others wait until it expires. A renewal that was running when the signal
   * aborted may have been applied and made a new version, so the Lease is read again.
   */
  async #release(): Promise<void> {
    const { client, clock, identity, log, name } = this.#options;
    this.#renewedAt = Number.NEGATIVE_INFINITY;
    if (this.holder !== identity && !this.#isUnsure) return;
    try {
      for (let left = releaseTries; left > 0; left--) {
        const lease = this.#isUnsure ? await this.#read() : this.#lease;
        if (lease?.spec.holderIdentity !== identity) return;
        const now = formatMicroTime(clock.now());
        const spec = {
          ...lease.spec,
          holderIdentity: '',
          leaseDurationSeconds: 1,
          renewTime: now,
          acquireTime: now,
        };
        try {
          await client.replace({ ...lease, spec }, this.#call());
          log.info({ lease: name }, 'released the lease');
          return;
        } catch (error) {
          if (!isConflict(error) || left === 1) throw error;
          this.#isUnsure = true;
        }
      }
    } catch (error) {
      log.warn({ lease: name, err: error }, 'could not release the lease');
    }
  }
}

/** A conflict comes from a late write of ours, of which there is at most one; one more try is for other causes. */
const releaseTries = 3;
/** Upper limit in milliseconds of a Lease's duration: an hour. */
const maxForeignLeaseMs = 3_600_000;
