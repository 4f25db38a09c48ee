import type { ServerResponse } from 'node:http';

const nothing = Buffer.alloc(0);

/**
 * Sends the status and headers that were written, a byte for each character. With a text behind them (the empty one of
 * `flushHeaders` too) Node sends both in UTF-8, and what is not ASCII in a header is encoded a second time.
 */
export function sendHead(response: ServerResponse): void {
  response.write(nothing);
}
