import type { Logger } from 'pino';
import type { Clock } from '../../../client/clock.ts';
import type { Host } from '../../../host/host.ts';
import { keepsForMs, lookAgainMs } from '../../../network/announcing/address-conflict.ts';
import { type AddressOnLink, probeOthers } from './conflict-probe.ts';
import type { Link } from './links.ts';

export interface AddressDefenceOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Who it is that answers for an address: a node of this cluster that does not announce it, another machine, or nothing
   * that matters (undefined).
   */
  readonly conflictingHost: (address: string, mac: string) => 'node' | 'machine' | undefined;
  /** Neighbours are to hear again of the addresses on an interface. */
  readonly announceAgain: (link: Link) => void;
  /** An address is to be announced no more. */
  readonly withdraw: (address: string, rival: 'node' | 'machine', mac: string) => void;
}

/** Milliseconds between two looks at all addresses. */
const probeEveryMs = 30_000;

/** Addresses that are asked for at once: see `probeOthers`. */
const atOnce = 250;

/** A machine that answers for an address of this node. */
interface Conflict {
  readonly mac: string;
  /** When it was first seen, monotonic. */
  readonly sinceMs: number;
}

/**
 * Finds out whether another machine answers for an address that this node announces: soon after the beginning, since two
 * may begin at the same moment, and every 30 seconds. `network/announcing/address-conflict.ts` says who keeps it.
 */
export class AddressDefence {
  readonly #options: AddressDefenceOptions;
  /** By address: when it is asked for, monotonic. */
  readonly #probeAtMs = new Map<string, number>();
  readonly #conflicts = new Map<string, Conflict>();
  #asking: Promise<void> | undefined;

  constructor(options: AddressDefenceOptions) {
    this.#options = options;
  }

  /** Begins to ask for what is due, and does not wait. @param announced all that this node announces. */
  look(announced: readonly AddressOnLink[]): void {
    const nowMs = this.#options.clock.monotonic();
    const known = new Set(announced.map(({ address }) => address));
    for (const address of this.#probeAtMs.keys()) {
      if (known.has(address)) continue;
      this.#probeAtMs.delete(address);
      this.#conflicts.delete(address);
    }
    for (const address of known) {
      if (!this.#probeAtMs.has(address)) this.#probeAtMs.set(address, nowMs + lookAgainMs);
    }
    if (this.#asking !== undefined) return;
    const due = announced
      .filter(({ address }) => (this.#probeAtMs.get(address) ?? nowMs) <= nowMs)
      .slice(0, atOnce);
    if (due.length === 0) return;
    this.#asking = this.#ask(due, nowMs)
      .catch((error: unknown) => {
        this.#options.log.warn(
          { err: error, reason: 'AnnounceFailed' },
          'cannot ask who else has addresses, will retry',
        );
      })
      .finally(() => {
        this.#asking = undefined;
      });
  }

  /** Resolves when nothing is asked for any more. */
  async close(): Promise<void> {
    await this.#asking;
  }

  async #ask(asked: readonly AddressOnLink[], nowMs: number): Promise<void> {
    // All at the same times: one question for many costs as much as for one.
    const next = (Math.floor(nowMs / probeEveryMs) + 1) * probeEveryMs;
    for (const { address } of asked) this.#probeAtMs.set(address, next);
    const macs = await probeOthers(this.#options.host, asked);
    for (const { address, link } of asked) {
      const mac = macs.get(address);
      const rival = mac === undefined ? undefined : this.#options.conflictingHost(address, mac);
      if (mac === undefined || rival === undefined) this.#conflicts.delete(address);
      else if (this.#probeAtMs.has(address)) this.#answer(address, link, rival, mac);
    }
  }

  #answer(address: string, link: Link, rival: 'node' | 'machine', mac: string): void {
    const { announceAgain, clock, log, withdraw } = this.#options;
    const nowMs = clock.monotonic();
    const known = this.#conflicts.get(address);
    const sinceMs = known?.mac === mac ? known.sinceMs : nowMs;
    const keepsMs = keepsForMs(link.mac, mac, rival === 'node');
    this.#probeAtMs.set(address, nowMs + lookAgainMs);
    this.#conflicts.set(address, { mac, sinceMs });
    if (nowMs - sinceMs >= keepsMs) withdraw(address, rival, mac);
    else if (sinceMs === nowMs && keepsMs > lookAgainMs) {
      log.warn(
        { address, holder: mac, reason: 'AddressConflict' },
        'another machine answers for an address that this node announces, and ought to withdraw it',
      );
      announceAgain(link);
    }
  }
}

/** Milliseconds after a new address at which all are announced again: neighbours may have missed it. */
const afterNewMs = [300, 1000] as const;
/** The same without a change. */
const repeatMs = 30_000;

/** When the addresses of interfaces are announced to neighbours; milliseconds of a monotonic clock. */
export class GratuitousArpSchedule {
  readonly #due = new Map<string, readonly number[]>();

  /** An interface has a new address: now, and twice soon after. */
  added(name: string, nowMs: number): void {
    this.#due.set(name, [nowMs, ...afterNewMs.map((after) => nowMs + after)]);
  }

  /** An interface whose addresses a former process placed is due at once. */
  isDue(name: string, nowMs: number): boolean {
    return this.#times(name, nowMs).some((time) => time <= nowMs);
  }

  /** Its addresses are announced. */
  announced(name: string, nowMs: number): void {
    const later = this.#times(name, nowMs).filter((time) => time > nowMs);
    this.#due.set(name, later.length > 0 ? later : [nowMs + repeatMs]);
  }

  /** Not now, but soon. */
  postpone(name: string, nowMs: number): void {
    const soon = nowMs + afterNewMs[0];
    this.#due.set(
      name,
      this.#times(name, nowMs).map((time) => Math.max(time, soon)),
    );
  }

  /** The next time of some interfaces; infinite: none has one. */
  next(names: Iterable<string>): number {
    let next = Number.POSITIVE_INFINITY;
    for (const name of names) for (const time of this.#due.get(name) ?? []) next = Math.min(next, time);
    return next;
  }

  #times(name: string, nowMs: number): readonly number[] {
    return this.#due.get(name) ?? [nowMs];
  }
}
