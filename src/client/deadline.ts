import { StatusError } from '../objects/status.ts';
import { ConnectionError, UnexpectedAnswer } from './transport.ts';

/** A time limit and the caller's signal in one; both are removed when the request is over. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort: () => void;
  readonly #end: number;
  #timedOut = false;

  constructor(milliseconds: number, outer: AbortSignal | undefined) {
    this.#outer = outer;
    this.#end = performance.now() + milliseconds;
    this.#onAbort = () => this.#controller.abort();
    this.#timer = setTimeout(() => {
      this.#timedOut = true;
      this.#controller.abort();
    }, milliseconds);
    if (outer?.aborted === true) this.#controller.abort();
    else outer?.addEventListener('abort', this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Milliseconds that are left. */
  get left(): number {
    return this.#end - performance.now();
  }

  /** Ends the time limit: from now on only the caller's signal counts. */
  extend(): void {
    clearTimeout(this.#timer);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener('abort', this.#onAbort);
  }

  /** Turns a failure without an answer into a {@link ConnectionError}. Other errors stay as they are. */
  explain(error: unknown, what: string): unknown {
    if (answered(error)) return error;
    if (this.#timedOut) return new ConnectionError('TIMEOUT', `${what}: no answer in time`, error);
    if (this.#outer?.aborted === true) return new ConnectionError('ABORTED', `${what}: stopped`, error);
    const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
    if (typeof code !== 'string') return error;
    const word = code.startsWith('UND_ERR_') ? (undiciWords.get(code) ?? 'RESET') : code;
    const why = error instanceof Error && error.message !== '' ? error.message : word;
    return new ConnectionError(word, `${what}: ${why}`, error);
  }
}

/** Errors that are about an answer already. */
function answered(error: unknown): boolean {
  return (
    error instanceof StatusError || error instanceof ConnectionError || error instanceof UnexpectedAnswer
  );
}

const undiciWords = new Map([
  ['UND_ERR_CONNECT_TIMEOUT', 'TIMEOUT'],
  ['UND_ERR_HEADERS_TIMEOUT', 'TIMEOUT'],
  ['UND_ERR_BODY_TIMEOUT', 'TIMEOUT'],
  ['UND_ERR_ABORTED', 'ABORTED'],
  ['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'TOO_LARGE'],
  ['UND_ERR_CLOSED', 'CLOSED'],
  ['UND_ERR_DESTROYED', 'CLOSED'],
]);
