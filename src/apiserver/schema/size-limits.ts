/**
 * Limits of one body. kube-apiserver limits bytes, and has many threads. Here one request must not hold the event
 * loop, and its cost depends on the number of its values.
 */
import { countJsonValues } from '../../objects/json-size.ts';
import { tooLarge } from '../../objects/status-errors.ts';

/**
 * Values of a JSON body at all depths: objects, lists, strings, numbers, booleans and nulls. A value of a write takes up
 * to 5 µs from parsing to storing. The largest definitions that people apply have 30,000.
 */
export const maxJsonValues = 40_000;
/** Values of a body in YAML or protobuf, which take longer to read. */
const maxValues = 20_000;

function tooManyValues(limit: number): Error {
  return tooLarge(`Request entity too large: limit is ${limit} values`);
}

/** Refuses a JSON text of too many values, before it is parsed. @throws {StatusError} 413 */
export function checkJsonSize(bytes: Buffer): void {
  // A value takes two bytes at least.
  if (bytes.length < 2 * maxJsonValues) return;
  if (countJsonValues(bytes.toString('latin1'), maxJsonValues) > maxJsonValues)
    throw tooManyValues(maxJsonValues);
}

/** Counts the values of a body that is not JSON while it is read. */
export class ValueCounter {
  #values = 0;

  /** @throws {StatusError} 413 */
  count(): void {
    this.#values += 1;
    if (this.#values > maxValues) throw tooManyValues(maxValues);
  }
}
