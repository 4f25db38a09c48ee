import { tooManyRequests } from '../../objects/status-errors.ts';
import type { RequestInfo } from './exchange.ts';
import { isLongRunning } from './request-timeout.ts';

export interface InFlightLimits {
  /** `--max-requests-inflight`. */
  readonly readOnly: number;
  /** `--max-mutating-requests-inflight`. */
  readonly mutating: number;
}

/** Gives back the place that a request took. */
export type Leave = () => void;

const readOnlyVerbs: ReadonlySet<string> = new Set(['get', 'list', 'head', 'options']);

/** Takes no place, so gives none back. */
const unlimited: Leave = () => undefined;

/**
 * Bounds the requests that are served at the same time, reads and writes apart, so that a crowd of one cannot
 * starve the other (apiserver `server/filters/maxinflight.go`). Watches and other long-running requests do not
 * count.
 */
export class InFlight {
  readonly #limits: InFlightLimits;
  #reading = 0;
  #writing = 0;
  readonly #leaveReading: Leave = () => {
    this.#reading--;
  };
  readonly #leaveWriting: Leave = () => {
    this.#writing--;
  };

  constructor(limits: InFlightLimits) {
    this.#limits = limits;
  }

  /** @throws {StatusError} 429 */
  enter(info: RequestInfo): Leave {
    if (isLongRunning(info)) return unlimited;
    if (readOnlyVerbs.has(info.verb)) {
      if (this.#reading >= this.#limits.readOnly) throw refused();
      this.#reading++;
      return this.#leaveReading;
    }
    if (this.#writing >= this.#limits.mutating) throw refused();
    this.#writing++;
    return this.#leaveWriting;
  }
}

function refused(): Error {
  return tooManyRequests('Too many requests, please try again later.', 1);
}
