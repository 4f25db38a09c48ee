import type { ServerHttp2Session } from 'node:http2';

/** How long the head of a request of HTTP/2 may take. */
export interface HeadBounds {
  readonly timeoutMs: number;
  /** Between two looks whether bytes came. */
  readonly checkIntervalMs: number;
  /** Calls back once, and keeps no process alive. */
  after(milliseconds: number, callback: () => void): { cancel(): void };
  /** Is called when the client is late; the session is destroyed then. */
  readonly onLate?: () => void;
  /** Whether heads are not looked at now; default: never. */
  readonly isExempt?: () => boolean;
}

/** What a PING and answers of HTTP/2 itself take at most between two looks, TLS included. */
const pingBytes = 1024;

/**
 * Cuts a client that does not complete the head of a request in time. Within one no other frame may come (RFC 9113,
 * 4.3): the answer to a PING shows that none is begun. It is asked after bytes came, until none do. An answer that
 * flows may delay it.
 */
export function boundHeads(session: ServerHttp2Session, bounds: HeadBounds): void {
  const { timeoutMs, checkIntervalMs, onLate, isExempt = () => false } = bounds;
  let answeredBytes = -1;
  const look = (): void => {
    if (session.destroyed) return;
    if (isExempt() || session.socket.bytesRead === answeredBytes) {
      lookLater();
      return;
    }
    awaitAnswer(session.socket.bytesWritten);
    session.ping((error) => {
      timer.cancel();
      if (error !== null || session.destroyed) return;
      answeredBytes = session.socket.bytesRead;
      lookLater();
    });
  };
  const awaitAnswer = (writtenBytes: number): void => {
    timer = bounds.after(timeoutMs, () => {
      if (session.destroyed) return;
      const { bytesWritten } = session.socket;
      if (bytesWritten - writtenBytes > pingBytes) {
        awaitAnswer(bytesWritten);
        return;
      }
      onLate?.();
      session.destroy();
    });
  };
  const lookLater = (): void => {
    timer = bounds.after(checkIntervalMs, look);
  };
  let timer = bounds.after(0, look);
  session.on('close', () => timer.cancel());
}
