import type { IncomingMessage } from 'node:http';

/**
 * Ends requests that were answered and whose bodies do not arrive in time. Node's `requestTimeout` does so for every
 * request of a server, but a proxied upload may take longer. Kept are only the few requests that are answered before
 * their body has arrived.
 */
export class LateBodies {
  readonly #milliseconds: number;
  /** The start of the wait for each, by `performance.now()`. */
  readonly #expected = new Map<IncomingMessage, number>();

  /** @param milliseconds in which a body must be there. */
  constructor(milliseconds: number) {
    this.#milliseconds = milliseconds;
  }

  /**
   * A request was answered before its body had arrived: the rest of the body has a time limit.
   *
   * @param since the time of the answer, by `performance.now()`.
   */
  answered(incoming: IncomingMessage, since: number): void {
    if (incoming.complete || incoming.destroyed || this.#expected.has(incoming)) return;
    this.#expected.set(incoming, since);
  }

  /** Closes the connections of late requests. */
  sweep(): void {
    const latest = performance.now() - this.#milliseconds;
    for (const [incoming, since] of this.#expected) {
      const isLate = !incoming.complete && !incoming.destroyed && since <= latest;
      if (isLate) incoming.socket.destroy();
      if (isLate || incoming.complete || incoming.destroyed) this.#expected.delete(incoming);
    }
  }
}
