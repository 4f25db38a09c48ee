/** Milliseconds after a new address at which all are announced again: neighbours may have missed it. */
const afterNew = [300, 1000] as const;
/** The same without a change. */
const every = 30_000;

/** When the addresses of interfaces are announced to neighbours; milliseconds of a monotonic clock. */
export class AnnouncementTimes {
  readonly #due = new Map<string, readonly number[]>();

  /** An interface has a new address: now, and twice soon after. */
  added(name: string, now: number): void {
    this.#due.set(name, [now, ...afterNew.map((after) => now + after)]);
  }

  /** An interface whose addresses a former process placed is due at once. */
  isDue(name: string, now: number): boolean {
    return this.#times(name, now).some((time) => time <= now);
  }

  /** Its addresses are announced. */
  announced(name: string, now: number): void {
    const later = this.#times(name, now).filter((time) => time > now);
    this.#due.set(name, later.length > 0 ? later : [now + every]);
  }

  /** Not now, but soon. */
  postpone(name: string, now: number): void {
    const soon = now + afterNew[0];
    this.#due.set(
      name,
      this.#times(name, now).map((time) => Math.max(time, soon)),
    );
  }

  /** The next time of some interfaces; infinite: none has one. */
  next(names: Iterable<string>): number {
    let next = Number.POSITIVE_INFINITY;
    for (const name of names) for (const time of this.#due.get(name) ?? []) next = Math.min(next, time);
    return next;
  }

  #times(name: string, now: number): readonly number[] {
    return this.#due.get(name) ?? [now];
  }
}
