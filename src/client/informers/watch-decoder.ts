import { isRecord } from '../../objects/json.ts';
import { UnexpectedAnswer } from '../transport.ts';

/** One line of a watch. `object` is not validated yet. */
export interface WatchEvent {
  readonly type: string;
  readonly object: unknown;
}

/** Limit of one event in bytes. etcd's limit for an object is 1.5 MiB; this leaves room for more. */
const largestEvent = 64 * 1024 * 1024;
const newline = 0x0a;

/** Cuts the chunks of a watch into JSON lines. Parts of a line are kept until it is complete. */
export class WatchDecoder {
  #pieces: Buffer[] = [];
  #waiting = 0;

  /** The events that the chunk completes. @throws {UnexpectedAnswer} for a line that is not an event. */
  *decode(chunk: Buffer): Generator<WatchEvent> {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      const line = this.#complete(chunk.subarray(start, end));
      start = end + 1;
      if (line.length > 0) yield parseEvent(line);
    }
    if (start === chunk.length) return;
    const rest = chunk.subarray(start);
    this.#waiting += rest.length;
    if (this.#waiting > largestEvent) throw new UnexpectedAnswer('a watch event is larger than 64 MiB');
    this.#pieces.push(rest);
  }

  #complete(tail: Buffer): Buffer {
    if (this.#pieces.length === 0) return tail;
    const line = Buffer.concat([...this.#pieces, tail]);
    this.#pieces = [];
    this.#waiting = 0;
    return line;
  }
}

function parseEvent(line: Buffer): WatchEvent {
  let value: unknown;
  try {
    value = JSON.parse(line.toString('utf8'));
  } catch (error) {
    throw new UnexpectedAnswer('a watch event is not JSON', { cause: error });
  }
  if (!isRecord(value) || typeof value['type'] !== 'string') {
    throw new UnexpectedAnswer('a line of a watch is no event');
  }
  return { type: value['type'], object: value['object'] };
}
