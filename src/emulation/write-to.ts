import type { Writable } from 'node:stream';

/**
 * Writes to a stream that may have ended.
 *
 * @returns a promise that resolves when there is room for more, or the stream has ended; undefined: there is room.
 */
export function writeTo(stream: Writable, chunk: Buffer): Promise<void> | undefined {
  if (stream.destroyed || stream.writableEnded || chunk.length === 0 || stream.write(chunk)) return undefined;
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done).off('close', done);
      resolve();
    };
    stream.once('drain', done).once('close', done);
  });
}
