import type { Writable } from 'node:stream';

/**
 * Bytes that wait for a client that is attached and does not read. Processes are held back long before; programs of ours
 * go on, and what they print from then on is in their log alone.
 */
export const maxUnread = 1024 * 1024;

/**
 * Writes to a stream that may have ended.
 *
 * @param most bytes that may wait in the stream: behind them, the chunk is lost.
 * @returns a promise that resolves when there is room for more, or the stream has ended; undefined: there is room.
 */
export function writeTo(stream: Writable, chunk: Buffer, most = Infinity): Promise<void> | undefined {
  if (stream.destroyed || stream.writableEnded || chunk.length === 0) return undefined;
  if (stream.writableLength < most && stream.write(chunk)) return undefined;
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done).off('close', done);
      resolve();
    };
    stream.once('drain', done).once('close', done);
  });
}
