import type { ServerResponse } from 'node:http';

/** A body that is too long to be put together: its texts, one behind the other. */
export type LongBody = readonly string[];

/** Bytes of the body in UTF-8. */
export function lengthOf(body: LongBody): number {
  let length = 0;
  for (const text of body) length += Buffer.byteLength(text);
  return length;
}

/** Large enough that its way through TLS costs little, small enough to stay in the cache of a core. */
const pieceBytes = 256 * 1024;
/** What is shorter goes out in one piece, with the head of the answer in the same write. */
const longFrom = pieceBytes / 4;

/**
 * Buffers that no answer uses. Fresh memory for each list costs more than to fill it: the kernel has to clear it,
 * and V8 marks the whole heap each time that 64 MiB of buffers came and went.
 */
const spare: Buffer[] = [];
const maxSpare = 8;

/**
 * Ends an answer whose status and headers are set with a body of `length` bytes: piece by piece through one buffer,
 * the next piece when the socket has taken the one before.
 */
export function endWith(response: ServerResponse, body: LongBody, length: number): void {
  if (length < longFrom) {
    response.end(body.join(''));
    return;
  }
  // On their own: Node copies what it writes together into fresh memory.
  response.flushHeaders();
  const buffer = spare.pop() ?? Buffer.allocUnsafeSlow(pieceBytes);
  const pieces = piecesOf(body, buffer);
  const next = (error?: Error | null): void => {
    const piece = error instanceof Error ? undefined : pieces.next().value;
    if (piece !== undefined) {
      response.write(piece, next);
      return;
    }
    if (spare.length < maxSpare) spare.push(buffer);
    response.end();
  };
  next();
}

/** The body in UTF-8, in parts of `buffer` that hold until the next one is asked for. */
function* piecesOf(body: LongBody, buffer: Buffer): Generator<Buffer, undefined> {
  let at = 0;
  for (const text of body) {
    // A unit of UTF-16 takes at most three bytes.
    const most = text.length * 3;
    if (most > buffer.length - at && at > 0) {
      yield buffer.subarray(0, at);
      at = 0;
    }
    if (most > buffer.length) yield Buffer.from(text);
    else at += buffer.write(text, at);
  }
  if (at > 0) yield buffer.subarray(0, at);
}
