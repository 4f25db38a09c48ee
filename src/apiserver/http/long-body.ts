import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { createGzip } from 'node:zlib';

/** A part of a body before it is a string. */
export interface BodyPart {
  /** Bytes in UTF-8. */
  readonly byteLength: number;
  /** Writes it to `target`, where there is room for it; returns where it ends. */
  writeTo(target: Buffer, at: number): number;
  toString(): string;
}

/** A body that is too long for one string: its parts in order. */
export type LongBody = readonly (string | BodyPart)[];

/** Bytes of the body in UTF-8. */
export function lengthOf(body: LongBody): number {
  let length = 0;
  for (const part of body) length += typeof part === 'string' ? Buffer.byteLength(part) : part.byteLength;
  return length;
}

/** Large enough that its way through TLS costs little, small enough to stay in the cache of a core. */
const pieceBytes = 256 * 1024;
/** Shorter bodies are sent in one piece, in the same write as the head. */
const longFrom = pieceBytes / 4;

/** Free buffers, for reuse: the kernel clears fresh memory, and external memory triggers garbage collections. */
const spare: Buffer[] = [];
const maxSpare = 8;

/** Ends an answer whose status and headers are set with a body of `length` bytes. */
export function endWith(response: ServerResponse, body: LongBody, length: number): void {
  if (length < longFrom) {
    response.end(body.join(''));
    return;
  }
  // On their own: Node copies what it writes together into fresh memory.
  response.flushHeaders();
  writeInto(response, body);
}

/** Ends an answer whose status and headers are set with a body that is made while the client reads it. */
export function endWhileMade(response: ServerResponse, body: Iterable<string>): void {
  response.flushHeaders();
  writeInto(response, body);
}

/** Ends an answer whose status and headers are set with a compressed body of unknown length. */
export function endCompressed(
  response: ServerResponse,
  body: Buffer | string | Iterable<string | BodyPart>,
): void {
  const gzip = createGzip({ level: 1 });
  // When one side fails the other is destroyed. `pipeline` would add seven listeners of `close`, beyond Node's warning.
  gzip.on('error', () => response.destroy());
  response.once('close', () => gzip.destroy());
  gzip.pipe(response);
  if (Buffer.isBuffer(body) || typeof body === 'string') gzip.end(body);
  else writeInto(gzip, body);
}

/** Writes a body piece by piece through one buffer, the next piece when the one before was taken, and ends it. */
function writeInto(stream: Writable, body: Iterable<string | BodyPart>): void {
  const buffer = spare.pop() ?? Buffer.allocUnsafeSlow(pieceBytes);
  const pieces = piecesOf(body, buffer);
  const next = (error?: Error | null): void => {
    const piece = error instanceof Error ? undefined : pieces.next().value;
    if (piece !== undefined) {
      stream.write(piece, next);
      return;
    }
    if (spare.length < maxSpare) spare.push(buffer);
    stream.end();
  };
  next();
}

/** The body in UTF-8, in parts of `buffer`, each valid until the next one is read. */
function* piecesOf(body: Iterable<string | BodyPart>, buffer: Buffer): Generator<Buffer, undefined> {
  let at = 0;
  for (const part of body) {
    // A unit of UTF-16 takes at most three bytes.
    const most = typeof part === 'string' ? part.length * 3 : part.byteLength;
    if (most > buffer.length - at && at > 0) {
      yield buffer.subarray(0, at);
      at = 0;
    }
    if (most > buffer.length) yield wholePart(part);
    else at = typeof part === 'string' ? at + buffer.write(part, at) : part.writeTo(buffer, at);
  }
  if (at > 0) yield buffer.subarray(0, at);
}

function wholePart(part: string | BodyPart): Buffer {
  if (typeof part === 'string') return Buffer.from(part);
  const whole = Buffer.allocUnsafeSlow(part.byteLength);
  part.writeTo(whole, 0);
  return whole;
}
