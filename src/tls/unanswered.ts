import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

const { IncomingMessage, ServerResponse } = process.getBuiltinModule('node:http');

/**
 * Whether an answer may still be written to a connection of HTTP/1.1 that Node.js has handed over (`upgrade`,
 * `clientError`): the answers to requests before are on their way to none of its bytes, and nothing was written since
 * this was called. Otherwise the connection can only be destroyed: a client would read two answers as one.
 */
export function unanswered(socket: Duplex): () => boolean {
  if (!(socket instanceof Socket)) return () => false;
  const before = socket.bytesWritten;
  const isFree = !isAnswering(socket);
  return () => isFree && socket.writable && socket.bytesWritten === before;
}

/** Node.js knows the answer that a connection belongs to, and does not tell. */
function isAnswering(socket: Socket): boolean {
  const probe = new ServerResponse(new IncomingMessage(socket));
  try {
    probe.assignSocket(socket);
    probe.detachSocket(socket);
    return false;
  } catch {
    return true;
  }
}
