import type { IncomingMessage, ServerResponse } from 'node:http';
import { refuseSocket } from './client-errors.ts';

interface Expected {
  readonly response: ServerResponse;
  /** When it began, by `performance.now()`. */
  readonly since: number;
}

/**
 * Ends requests whose bodies do not arrive in time. Node's `requestTimeout` does so for every request of a server; a
 * proxied upload takes as long as it takes.
 */
export class LateBodies {
  readonly #milliseconds: number;
  readonly #expected = new Map<IncomingMessage, Expected>();

  /** @param milliseconds in which a body must be there. */
  constructor(milliseconds: number) {
    this.#milliseconds = milliseconds;
  }

  /** The body of a request has its time from now on. Whoever is told of its answer's end calls {@link settle}. */
  expect(incoming: IncomingMessage, response: ServerResponse): void {
    const { headers } = incoming;
    if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) return;
    if (incoming.complete || this.#expected.has(incoming)) return;
    this.#expected.set(incoming, { response, since: performance.now() });
  }

  /** The answer was given: what is still to come of the body is waited for no longer than any other. */
  settle(incoming: IncomingMessage, response: ServerResponse): void {
    if (incoming.complete || incoming.destroyed) this.#expected.delete(incoming);
    else this.expect(incoming, response);
  }

  /** Cuts off who is late: with 408 where no answer has begun. */
  sweep(): void {
    const latest = performance.now() - this.#milliseconds;
    for (const [incoming, { response, since }] of this.#expected) {
      if (incoming.complete || incoming.destroyed) this.#expected.delete(incoming);
      else if (since <= latest) {
        this.#expected.delete(incoming);
        if (response.headersSent) incoming.socket.destroy();
        else refuseSocket(new LateBody(), incoming.socket);
      }
    }
  }
}

class LateBody extends Error {
  readonly code = 'ERR_HTTP_REQUEST_TIMEOUT';
}
