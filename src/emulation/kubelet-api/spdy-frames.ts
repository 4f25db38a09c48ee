/** Frames of SPDY/3.1, as far as Kubernetes' clients need them (draft-mbelshe-httpbis-spdy-00, 2.2 and 2.6). */
import { constants, createDeflate, createInflate, type Deflate, type Inflate } from 'node:zlib';

/** A frame that begins, ends or feeds a stream. Others are answered or left aside by the session. */
export type SpdyFrame =
  | { readonly kind: 'synStream'; readonly stream: number; readonly block: Buffer; readonly isLast: boolean }
  | { readonly kind: 'data'; readonly stream: number; readonly payload: Buffer; readonly isLast: boolean }
  | { readonly kind: 'reset'; readonly stream: number }
  | { readonly kind: 'ping'; readonly id: number }
  /** Further headers of a stream; all blocks share one compression, and have to be read. */
  | { readonly kind: 'headers'; readonly stream: number; readonly block: Buffer; readonly isLast: boolean }
  /** A control frame of a type that needs no answer. */
  | { readonly kind: 'other' };

/** The peer violates SPDY/3.1, or exceeds a limit. */
export class SpdyError extends Error {
  override readonly name = 'SpdyError';
}

const headerLength = 8;
const controlBit = 0x8000_0000;
const version = 3;
const types = { synStream: 1, synReply: 2, reset: 3, ping: 6, goAway: 7, headers: 8 } as const;
const finFlag = 1;
/** Bytes of a frame, and of the headers of a stream: far more than clients send. */
const maxControl = 64 * 1024;
const maxData = 4 * 1024 * 1024;

/** Cuts the bytes of a connection into frames. */
export class SpdyReader {
  /** The bytes of the next frame. */
  #pieces: Buffer[] = [];
  #length = 0;
  /** Bytes of the next frame, as far as they are known. */
  #needed = headerLength;

  /** Reads the frames that `chunk` completes, one when it is asked for. @throws {SpdyError} */
  *push(chunk: Buffer): Generator<SpdyFrame> {
    this.#pieces.push(chunk);
    this.#length += chunk.length;
    // Joined once a frame is whole: many small chunks would be copied again and again.
    if (this.#length < this.#needed) return;
    let rest = this.#pieces.length === 1 ? chunk : Buffer.concat(this.#pieces);
    this.#needed = headerLength;
    while (rest.length >= headerLength) {
      const first = rest.readUInt32BE(0);
      const length = rest.readUInt32BE(4) & 0xff_ffff;
      const isControl = first >= controlBit;
      if (length > (isControl ? maxControl : maxData)) throw new SpdyError(`a frame has ${length} bytes`);
      this.#needed = headerLength + length;
      if (rest.length < this.#needed) break;
      const body = rest.subarray(headerLength, this.#needed);
      const isLast = ((rest[4] ?? 0) & finFlag) !== 0;
      rest = rest.subarray(this.#needed);
      this.#needed = headerLength;
      yield isControl ? control(first, body, isLast) : { kind: 'data', stream: first, payload: body, isLast };
    }
    this.#pieces = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
  }
}

/** Bytes that a frame of a type has at least, behind its header. */
const shortest: ReadonlyMap<number, number> = new Map([
  [types.synStream, 10],
  [types.synReply, 4],
  [types.reset, 4],
  [types.ping, 4],
  [types.headers, 4],
]);

function control(first: number, body: Buffer, isLast: boolean): SpdyFrame {
  if (((first >>> 16) & 0x7fff) !== version) throw new SpdyError('the peer does not speak SPDY/3');
  const type = first & 0xffff;
  const needs = shortest.get(type) ?? 0;
  if (body.length < needs) throw new SpdyError(`a frame of type ${type} has ${body.length} bytes`);
  switch (type) {
    case types.synStream:
      return {
        ...{ kind: 'synStream', stream: body.readUInt32BE(0) & 0x7fff_ffff, isLast },
        block: body.subarray(10),
      };
    case types.reset:
      return { kind: 'reset', stream: body.readUInt32BE(0) & 0x7fff_ffff };
    case types.ping:
      return { kind: 'ping', id: body.readUInt32BE(0) };
    case types.headers:
    case types.synReply:
      return {
        ...{ kind: 'headers', stream: body.readUInt32BE(0) & 0x7fff_ffff, isLast },
        block: body.subarray(4),
      };
    default:
      return { kind: 'other' };
  }
}

/** A data frame. @param isLast the sender's side of the stream ends. */
export function dataFrame(stream: number, payload: Buffer, isLast: boolean): Buffer {
  const header = Buffer.alloc(headerLength);
  header.writeUInt32BE(stream, 0);
  header.writeUInt32BE(((isLast ? finFlag : 0) << 24) + payload.length, 4);
  return Buffer.concat([header, payload]);
}

/** Ends both sides of a stream. @param status 1 to 11: `CANCEL` is 5. */
export function resetFrame(stream: number, status: number): Buffer {
  const body = Buffer.alloc(8);
  body.writeUInt32BE(stream, 0);
  body.writeUInt32BE(status, 4);
  return controlFrame(types.reset, body);
}

/** The answer to a ping has its id. */
export function pingFrame(id: number): Buffer {
  const body = Buffer.alloc(4);
  body.writeUInt32BE(id, 0);
  return controlFrame(types.ping, body);
}

/** Says that no further stream is accepted. @param lastStream the last one that was. */
export function goAwayFrame(lastStream: number): Buffer {
  const body = Buffer.alloc(8);
  body.writeUInt32BE(lastStream, 0);
  return controlFrame(types.goAway, body);
}

/** Accepts a stream. @param block compressed headers. */
export function replyFrame(stream: number, block: Buffer): Buffer {
  const body = Buffer.alloc(4);
  body.writeUInt32BE(stream, 0);
  return controlFrame(types.synReply, Buffer.concat([body, block]));
}

function controlFrame(type: number, body: Buffer): Buffer {
  const header = Buffer.alloc(headerLength);
  header.writeUInt32BE(controlBit + (version << 16) + type, 0);
  header.writeUInt32BE(body.length, 4);
  return Buffer.concat([header, body]);
}

/** Headers of one direction of a connection: one zlib stream through all its frames (2.6.10.1). */
export class HeaderBlocks {
  readonly #inflate: Inflate = createInflate({ dictionary, finishFlush: constants.Z_SYNC_FLUSH });
  readonly #deflate: Deflate = createDeflate({ dictionary });

  constructor() {
    // Reported where a block is read; an `error` event without a listener would end the process.
    this.#inflate.on('error', () => undefined);
  }

  /** @throws {SpdyError} where the block does not decompress, or to too much. */
  async read(block: Buffer): Promise<Map<string, string>> {
    const chunks: Buffer[] = [];
    let length = 0;
    const collect = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > maxControl) this.#inflate.destroy();
      else chunks.push(chunk);
    };
    this.#inflate.on('data', collect);
    let failure: Error | undefined;
    await new Promise<void>((resolve) => {
      const done = (error?: Error | null): void => {
        this.#inflate.off('data', collect).off('error', done).off('close', done);
        failure ??= error ?? undefined;
        resolve();
      };
      this.#inflate.once('error', done).once('close', done);
      this.#inflate.write(block, done);
    });
    if (failure !== undefined) throw new SpdyError('headers do not decompress', { cause: failure });
    if (length > maxControl || this.#inflate.destroyed) throw new SpdyError('headers are too long');
    return readPairs(Buffer.concat(chunks));
  }

  async write(headers: ReadonlyMap<string, string>): Promise<Buffer> {
    const chunks: Buffer[] = [];
    const collect = (chunk: Buffer): void => void chunks.push(chunk);
    this.#deflate.on('data', collect);
    try {
      await new Promise<void>((resolve) => {
        this.#deflate.write(writePairs(headers));
        this.#deflate.flush(constants.Z_SYNC_FLUSH, resolve);
      });
    } finally {
      this.#deflate.off('data', collect);
    }
    return Buffer.concat(chunks);
  }

  close(): void {
    this.#inflate.destroy();
    this.#deflate.destroy();
  }
}

function readPairs(bytes: Buffer): Map<string, string> {
  let at = 0;
  const number = (): number => {
    if (at + 4 > bytes.length) throw new SpdyError('headers are cut short');
    at += 4;
    return bytes.readUInt32BE(at - 4);
  };
  const text = (): string => {
    const length = number();
    if (at + length > bytes.length) throw new SpdyError('headers are cut short');
    at += length;
    return bytes.toString('latin1', at - length, at);
  };
  const headers = new Map<string, string>();
  for (let count = number(); count > 0; count--) {
    const name = text().toLowerCase();
    headers.set(name, text());
  }
  return headers;
}

function writePairs(headers: ReadonlyMap<string, string>): Buffer {
  const number = (value: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value, 0);
    return bytes;
  };
  const parts = [number(headers.size)];
  for (const text of [...headers].flat())
    parts.push(number(Buffer.byteLength(text, 'latin1')), Buffer.from(text, 'latin1'));
  return Buffer.concat(parts);
}

/** The dictionary of both sides' zlib streams (2.6.10.1): words with their lengths, and a text. */
const dictionary = Buffer.concat([
  ...[
    ...'options head post put delete trace accept accept-charset accept-encoding accept-language'.split(' '),
    ...'accept-ranges age allow authorization cache-control connection content-base content-encoding'.split(
      ' ',
    ),
    ...'content-language content-length content-location content-md5 content-range content-type date'.split(
      ' ',
    ),
    ...'etag expect expires from host if-match if-modified-since if-none-match if-range'.split(' '),
    ...'if-unmodified-since last-modified location max-forwards pragma proxy-authenticate'.split(' '),
    ...'proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade'.split(' '),
    ...'user-agent vary via warning www-authenticate method get status'.split(' '),
    ...['200 OK', 'version', 'HTTP/1.1', 'url', 'public', 'set-cookie', 'keep-alive', 'origin'],
  ].flatMap((word) => [Buffer.from([0, 0, 0, word.length]), Buffer.from(word)]),
  Buffer.from(
    '100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505' +
      '203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized' +
      '403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable' +
      'Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT' +
      'chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,' +
      'text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.',
  ),
]);
