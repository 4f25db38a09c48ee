import { setImmediate } from 'node:timers/promises';
import type { WebSocket } from 'ws';

/** Messages that wait for what comes before them; behind so many, no more are read. */
const maxWaiting = 16;
/** Messages, or frames in them, that are handled in one turn of the event loop: clients may send thousands at once. */
export const maxInTurn = 256;

/**
 * Passes the messages of a connection to `handle`, one after the other, and reads at its pace. A failure closes the
 * connection and is passed to `failed`.
 */
export function onMessages(
  socket: WebSocket,
  handle: (message: Buffer) => Promise<void>,
  failed: (error: unknown) => void,
): void {
  let waiting = 0;
  let handled = 0;
  let last = Promise.resolve();
  socket.on('message', (data) => {
    const message = Buffer.isBuffer(data)
      ? data
      : Buffer.concat(Array.isArray(data) ? data : [Buffer.from(data)]);
    if (++waiting >= maxWaiting) socket.pause();
    last = last
      .then(async () => {
        if (++handled % maxInTurn === 0) await setImmediate();
        await handle(message);
      })
      .then(
        () => {
          if (--waiting < maxWaiting && socket.isPaused) socket.resume();
        },
        (error: unknown) => {
          failed(error);
          socket.close(protocolError);
        },
      );
  });
}

/** The close code of RFC 6455, 7.4.1. */
const protocolError = 1002;

/** Sends a message. Resolves when it is on its way; rejects where the connection is closed. */
export async function send(socket: WebSocket, message: Buffer): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    socket.send(message, (error) => {
      if (error instanceof Error) reject(error);
      else resolve();
    });
  });
}

/** Sends bytes on a channel of `*.channel.k8s.io`: the channel is the first byte. */
export async function sendOn(socket: WebSocket, channel: number, bytes: Buffer): Promise<void> {
  await send(socket, Buffer.concat([Buffer.from([channel]), bytes]));
}
