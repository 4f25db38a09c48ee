import type { Writable } from 'node:stream';
import { createGzip } from 'node:zlib';

/** Where an answer is written: Node's ServerResponse, or the like of it for HTTP/2. */
export interface OutgoingAnswer extends Writable {
  readonly statusCode: number;
  /** False: the connection ends behind it. Of HTTP/1.1 only. */
  shouldKeepAlive: boolean;
  /** @param headers names and values, one after the other. */
  writeHead(status: number, headers: string[]): unknown;
  /** Sends the head before there is a body. */
  flushHeaders(): void;
}

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
export function endWith(response: OutgoingAnswer, body: LongBody, length: number): void {
  if (length < longFrom) {
    response.end(body.join(''));
    return;
  }
  // On their own: Node copies what it writes together into fresh memory.
  response.flushHeaders();
  writeInto(response, body);
}

/** Ends an answer whose status and headers are set with a body that is made while the client reads it. */
export function endWhileMade(response: OutgoingAnswer, body: Iterable<string>): void {
  response.flushHeaders();
  writeInto(response, body);
}

/** Ends an answer whose status and headers are set with a compressed body of unknown length. */
export function endCompressed(
  response: OutgoingAnswer,
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

/**
 * Whether an answer is indented: `?pretty=true`, or a client that shows text to people (apiserver
 * `handlers/negotiation`, isPrettyPrint).
 */
export function wantsPretty(query: string, userAgent: string | undefined): boolean {
  // Without parsing the query: it may be refused for its length.
  const [, value = ''] = /(?:^|&)pretty=([^&]*)/.exec(query) ?? [];
  if (value !== '') return goTrue.has(value);
  if (userAgent === undefined) return false;
  return userAgent.startsWith('curl') || userAgent.startsWith('Wget') || userAgent.startsWith('Mozilla/5.0');
}

const goTrue: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);

/** Characters that are indented at a time, in a few milliseconds. */
const maxSlice = 64 * 1024;

/**
 * Indents valid JSON text by two spaces, changing no value: numbers stay as they are written, which a parser
 * would not promise.
 */
export function indentJson(text: string): string {
  return [...indented([text])].join('');
}

/** The text of {@link indentJson} in parts, for a body that comes in parts. */
export function* indented(parts: LongBody): Generator<string> {
  const indenter = new Indenter();
  for (const part of parts) {
    const text = part.toString();
    let at = 0;
    while (at < text.length) {
      // Not between the halves of a character: each slice is encoded on its own.
      const isHalf = (text.codePointAt(at + maxSlice - 1) ?? 0) > 0xffff;
      const end = at + maxSlice + (isHalf ? 1 : 0);
      yield indenter.next(text.slice(at, end));
      at = end;
    }
  }
}

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const opening: ReadonlySet<number> = new Set([0x7b, 0x5b]);
const closing: ReadonlySet<number> = new Set([0x7d, 0x5d]);
/** Outside of strings: the text may be indented already. */
const space: ReadonlySet<number> = new Set([0x20, 0x0a, 0x0d, 0x09]);

class Indenter {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** Behind a bracket that stays on its line when the next one closes it. */
  #isOpened = false;

  /** The next piece of the text, indented. */
  next(text: string): string {
    let made = '';
    let runStart = 0;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === backslash) this.#isEscaped = true;
        else if (code === quote) this.#isInString = false;
        continue;
      }
      if (space.has(code)) {
        made += text.slice(runStart, i);
        runStart = i + 1;
        continue;
      }
      const isClosing = closing.has(code);
      if (isClosing) this.#depth--;
      if (isClosing !== this.#isOpened) {
        made += text.slice(runStart, i) + this.#newline();
        runStart = i;
      }
      this.#isOpened = opening.has(code);
      if (this.#isOpened) this.#depth++;
      else if (code === quote) this.#isInString = true;
      else if (code === comma || code === colon) {
        made += text.slice(runStart, i + 1) + (code === comma ? this.#newline() : ' ');
        runStart = i + 1;
      }
    }
    return made + text.slice(runStart);
  }

  #newline(): string {
    return `\n${'  '.repeat(this.#depth)}`;
  }
}
