import type { Duplex } from 'node:stream';

/** Status lines for connections that are not HTTP, too slow or too large. */
const answers: ReadonlyMap<string, string> = new Map([
  ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
  ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', '413 Payload Too Large'],
]);

/** Errors of connections on which no text can be sent; Node reports those of TLS as client errors, too. */
const closedErrors: ReadonlySet<string> = new Set(['ECONNRESET', 'ERR_TLS_HANDSHAKE_TIMEOUT']);

/**
 * Ends a connection whose bytes cannot be read as a request, with the text that Go's server sends. Listener of
 * the server's `clientError`.
 */
export function refuseSocket(error: Error & { code?: string }, socket: Duplex): void {
  if (closedErrors.has(error.code ?? '') || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = answers.get(error.code ?? '') ?? '400 Bad Request';
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n${status}`,
    () => socket.destroy(),
  );
}
