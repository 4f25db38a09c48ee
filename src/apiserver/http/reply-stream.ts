import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ReplyStream } from './exchange.ts';

/**
 * The body of an answer whose head is sent, in pieces. Where it can, it frames its chunks itself and writes each with
 * one call: Node takes three, and does it anew for every one of the hundred watches that get the same bytes.
 */
export function replyStream(response: ServerResponse): ReplyStream {
  return {
    write: (chunk) => {
      const socket = framedSocket(response);
      return socket === undefined || chunk.length === 0 ? response.write(chunk) : socket.write(framed(chunk));
    },
    drained: async () => {
      const socket = framedSocket(response);
      if (response.writableNeedDrain) await drained(response);
      else if (socket !== undefined) await drained(socket);
    },
    end: () => void response.end(),
    destroy: () => void response.destroy(),
  };
}

/**
 * The socket, when chunks can be written to it: not while an earlier answer on the connection is under way
 * (pipelining), nor where the body goes unframed (HTTP/1.0, or a length that a proxied server named).
 */
function framedSocket(response: ServerResponse): Duplex | undefined {
  return response.chunkedEncoding && response.socket !== null ? response.socket : undefined;
}

/** One chunk of the chunked transfer coding (RFC 9112, 7.1). The last one is kept: others often get the same. */
function framed(chunk: Buffer | string): Buffer {
  if (last.chunk !== chunk) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    const frame = Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, lineEnd]);
    if (frame.length > largestKept) return frame;
    last = { chunk, frame };
  }
  return last.frame;
}

const lineEnd = Buffer.from('\r\n');
const largestKept = 256 * 1024;
let last: { readonly chunk: Buffer | string; readonly frame: Buffer } = {
  chunk: '',
  frame: Buffer.alloc(0),
};

async function drained(stream: ServerResponse | Duplex): Promise<void> {
  if (!stream.writableNeedDrain || stream.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      stream.off('drain', done).off('close', done);
      resolve();
    };
    stream.on('drain', done).on('close', done);
  });
}
