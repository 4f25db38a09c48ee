import type { ServerResponse } from 'node:http';
import type { ReplyStream } from './exchange.ts';

/** The body of an answer whose head is sent, in pieces. */
export function replyStream(response: ServerResponse): ReplyStream {
  return {
    write: (chunk, onSent) => response.write(chunk, onSent),
    drained: async () => drained(response),
    get unsent() {
      return response.writableLength;
    },
    end: () => void response.end(),
    destroy: () => void response.destroy(),
  };
}

async function drained(response: ServerResponse): Promise<void> {
  if (!response.writableNeedDrain || response.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });
}
