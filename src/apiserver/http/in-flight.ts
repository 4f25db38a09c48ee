import { tooManyRequests } from '../../objects/status-errors.ts';
import type { RequestInfo } from './exchange.ts';
import { isLongRunning } from './request-timeout.ts';

export interface InFlightLimits {
  /** `--max-requests-inflight`. */
  readonly readOnly: number;
  /** `--max-mutating-requests-inflight`. */
  readonly mutating: number;
}

/** Ends the count of a request. */
export type Release = () => void;

const readOnlyVerbs: ReadonlySet<string> = new Set(['get', 'list', 'head', 'options']);

/** For requests that are not counted. */
const unlimited: Release = () => undefined;

/**
 * Bounds the requests that are served at the same time, reads and writes apart, so that many of one kind cannot
 * starve the other (apiserver `server/filters/maxinflight.go`). Watches and other long-running requests do not
 * count.
 */
export class InFlight {
  readonly #limits: InFlightLimits;
  #reading = 0;
  #writing = 0;
  readonly #releaseReading: Release = () => {
    this.#reading--;
  };
  readonly #releaseWriting: Release = () => {
    this.#writing--;
  };

  constructor(limits: InFlightLimits) {
    this.#limits = limits;
  }

  /** @throws {StatusError} 429 */
  enter(info: RequestInfo): Release {
    if (isLongRunning(info)) return unlimited;
    if (readOnlyVerbs.has(info.verb)) {
      if (this.#reading >= this.#limits.readOnly) throw refused();
      this.#reading++;
      return this.#releaseReading;
    }
    if (this.#writing >= this.#limits.mutating) throw refused();
    this.#writing++;
    return this.#releaseWriting;
  }
}

function refused(): Error {
  return tooManyRequests('Too many requests, please try again later.', 1);
}
