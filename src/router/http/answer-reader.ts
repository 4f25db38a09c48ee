import { type AnswerHead, BadAnswerError, fieldContent, maxHeadBytes, token } from './exchange.ts';

/** What comes with the bytes of an answer. */
export type AnswerPart =
  | { readonly kind: 'information' | 'head'; readonly head: AnswerHead }
  | { readonly kind: 'data'; readonly chunk: Buffer }
  | AnswerEnd
  /** @param first bytes of the other protocol. */
  | { readonly kind: 'upgrade'; readonly head: AnswerHead; readonly first: Buffer };

export interface AnswerEnd {
  readonly kind: 'end';
  /** Names and values in turn. */
  readonly rawTrailers: readonly string[];
  /** Milliseconds that the backend keeps the connection for another request: 0 for none, Infinity where it names no time. */
  readonly keptMs: number;
}

/** Where the body ends. */
type Framing =
  { readonly kind: 'length'; left: number } | { readonly kind: 'chunks' } | { readonly kind: 'connection' };

/** What the next bytes are. */
type Place = 'head' | 'body' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailers' | 'over';

/**
 * Reads one answer of HTTP/1.1 or 1.0 (RFC 9112), and takes nothing that another reader could read otherwise: no bare
 * LF, no folded line, no blank before a colon, no second length or length beside chunks, no byte behind the end.
 */
export class AnswerReader {
  readonly #isHeadAlone: boolean;
  #place: Place = 'head';
  #framing: Framing = { kind: 'connection' };
  /** Bytes of the chunk that are still to come. */
  #chunkLeft = 0;
  #keptMs = 0;
  /** Begun, and not whole. */
  #rest: Buffer = Buffer.alloc(0);
  #hasBegun = false;

  /** @param method of the request: the answer to HEAD has no body. */
  constructor(method: string) {
    this.#isHeadAlone = method === 'HEAD';
  }

  /** Whether any byte has come. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** @throws {BadAnswerError} where the bytes are not of one answer; the rest of them is of no use then either. */
  read(chunk: Buffer): readonly AnswerPart[] {
    this.#hasBegun = true;
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const parts: AnswerPart[] = [];
    let at = 0;
    for (;;) {
      const next = this.#step(bytes, at, parts);
      if (next === undefined) break;
      at = next;
    }
    this.#rest = bytes.subarray(at);
    return parts;
  }

  /** The backend sends no more. @throws {BadAnswerError} where its answer is not whole. */
  end(): AnswerEnd {
    if (this.#place !== 'body' || this.#framing.kind !== 'connection') {
      throw new BadAnswerError('the answer is cut');
    }
    this.#place = 'over';
    return { kind: 'end', rawTrailers: [], keptMs: 0 };
  }

  /** Reads what begins at an index. @returns where the next begins; undefined: more bytes are needed. */
  #step(bytes: Buffer, at: number, parts: AnswerPart[]): number | undefined {
    switch (this.#place) {
      case 'head':
        return this.#head(bytes, at, parts);
      case 'body':
        return this.#body(bytes, at, parts);
      case 'chunk-size':
        return this.#chunkSize(bytes, at);
      case 'chunk':
        return this.#chunk(bytes, at, parts);
      case 'chunk-end':
        if (bytes.length < at + 2) return undefined;
        if (bytes[at] !== cr || bytes[at + 1] !== lf)
          throw new BadAnswerError('a chunk is longer than it says');
        this.#place = 'chunk-size';
        return at + 2;
      case 'trailers':
        return this.#trailers(bytes, at, parts);
      case 'over':
        if (at < bytes.length) throw new BadAnswerError('there are bytes behind the answer');
        return undefined;
    }
  }

  #head(bytes: Buffer, at: number, parts: AnswerPart[]): number | undefined {
    const end = endOfLines(bytes, at, '\r\n\r\n', 'the head');
    if (end === undefined) return undefined;
    const lines = bytes.toString('latin1', at, end).split('\r\n');
    const found = statusLine.exec(lines[0] ?? '');
    if (found === null) throw new BadAnswerError('the first line of the answer is none of HTTP/1.1');
    const [, minor, digits, reason = ''] = found;
    const status = Number(digits);
    const rawHeaders = fieldsOf(lines);
    const head = { status, reason, rawHeaders };
    const next = end + 4;
    if (status === 101) {
      parts.push({ kind: 'upgrade', head, first: bytes.subarray(next) });
      this.#place = 'over';
      return bytes.length;
    }
    if (status < 200) {
      parts.push({ kind: 'information', head });
      return next;
    }
    parts.push({ kind: 'head', head });
    this.#frame(status, rawHeaders, minor === '0', parts);
    return next;
  }

  /** RFC 9112, 6.3 and 9.3. */
  #frame(status: number, rawHeaders: readonly string[], isOld: boolean, parts: AnswerPart[]): void {
    const { length, coding, connection, keepAlive } = framingFields(rawHeaders);
    this.#keptMs = (isOld ? connection.includes('keep-alive') : !connection.includes('close'))
      ? keptMsOf(keepAlive)
      : 0;
    if (this.#isHeadAlone || status === 204 || status === 304) this.#framing = { kind: 'length', left: 0 };
    else if (coding !== undefined) {
      this.#framing = { kind: 'chunks' };
      // HTTP/1.0 has no chunks: who is in between may have read it otherwise (RFC 9112, 6.1).
      if (isOld) this.#keptMs = 0;
    } else if (length === undefined) {
      this.#framing = { kind: 'connection' };
      this.#keptMs = 0;
    } else this.#framing = { kind: 'length', left: length };
    this.#place = coding !== undefined && this.#framing.kind === 'chunks' ? 'chunk-size' : 'body';
    if (this.#framing.kind === 'length' && this.#framing.left === 0) this.#over([], parts);
  }

  #body(bytes: Buffer, at: number, parts: AnswerPart[]): number | undefined {
    if (at === bytes.length) return undefined;
    const framing = this.#framing;
    const end = framing.kind === 'length' ? Math.min(bytes.length, at + framing.left) : bytes.length;
    parts.push({ kind: 'data', chunk: bytes.subarray(at, end) });
    if (framing.kind === 'length') {
      framing.left -= end - at;
      if (framing.left === 0) this.#over([], parts);
    }
    return end;
  }

  #chunkSize(bytes: Buffer, at: number): number | undefined {
    const end = endOfLines(bytes, at, '\r\n', 'the size of a chunk');
    if (end === undefined) return undefined;
    const found = chunkSize.exec(bytes.toString('latin1', at, end));
    if (found === null) throw new BadAnswerError('a chunk has no size');
    this.#chunkLeft = Number.parseInt(found[1] ?? '', 16);
    this.#place = this.#chunkLeft === 0 ? 'trailers' : 'chunk';
    // The line before the trailers ends with theirs: there may be none.
    return this.#chunkLeft === 0 ? end : end + 2;
  }

  #chunk(bytes: Buffer, at: number, parts: AnswerPart[]): number | undefined {
    if (at === bytes.length) return undefined;
    const end = Math.min(bytes.length, at + this.#chunkLeft);
    parts.push({ kind: 'data', chunk: bytes.subarray(at, end) });
    this.#chunkLeft -= end - at;
    if (this.#chunkLeft === 0) this.#place = 'chunk-end';
    return end;
  }

  #trailers(bytes: Buffer, at: number, parts: AnswerPart[]): number | undefined {
    const end = endOfLines(bytes, at, '\r\n\r\n', 'the trailers');
    if (end === undefined) return undefined;
    const lines = bytes.toString('latin1', at, end).split('\r\n');
    this.#over(fieldsOf(lines), parts);
    return end + 4;
  }

  #over(rawTrailers: readonly string[], parts: AnswerPart[]): void {
    this.#place = 'over';
    parts.push({ kind: 'end', rawTrailers, keptMs: this.#keptMs });
  }
}

const cr = 13;
const lf = 10;
const statusLine = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: ([\t\x20-\x7e\x80-\xff]*))?$/;
/** Up to 2^52 bytes; extensions say nothing to us (RFC 9112, 7.1.1). */
const chunkSize = /^([\da-f]{1,13})(?:;[\t\x20-\x7e\x80-\xff]*)?$/i;

/** Where lines end that have to fit into {@link maxHeadBytes}; undefined: they are not whole yet. @throws {BadAnswerError} */
function endOfLines(bytes: Buffer, at: number, mark: string, what: string): number | undefined {
  const end = bytes.indexOf(mark, at, 'latin1');
  const length = (end === -1 ? bytes.length : end) - at;
  if (length > maxHeadBytes) throw new BadAnswerError(`${what} is longer than ${maxHeadBytes} bytes`);
  if (end !== -1) return end;
  // Its sender may wait for us behind such a line.
  if (/(?:^|[^\r])\n/.test(bytes.toString('latin1', at)))
    throw new BadAnswerError(`${what} has a line that ends without CR`);
  return undefined;
}

/** Names and values in turn, of all lines but the first. @throws {BadAnswerError} */
function fieldsOf(lines: readonly string[]): string[] {
  const fields: string[] = [];
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i] ?? '';
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(colon, 0));
    const value = withoutBlanks(line, colon + 1);
    if (!token.test(name) || !fieldContent.test(value))
      throw new BadAnswerError('a line of the head is no header');
    fields.push(name, value);
  }
  return fields;
}

/** The rest of a line, without the blanks around it: those of HTTP alone, not what `trim` takes for one. */
function withoutBlanks(line: string, from: number): string {
  let start = from;
  let end = line.length;
  while (start < end && isBlank(line.charCodeAt(start))) start++;
  while (end > start && isBlank(line.charCodeAt(end - 1))) end--;
  return line.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

interface FramingFields {
  length: number | undefined;
  coding: 'chunked' | undefined;
  /** Words in lower case. */
  readonly connection: string[];
  keepAlive: string;
}

/** @throws {BadAnswerError} where two readers could disagree about the length. */
function framingFields(rawHeaders: readonly string[]): FramingFields {
  const fields: FramingFields = { length: undefined, coding: undefined, connection: [], keepAlive: '' };
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const value = rawHeaders[i + 1] ?? '';
    switch (rawHeaders[i]?.toLowerCase()) {
      case 'content-length':
        if (fields.length !== undefined) throw new BadAnswerError('the answer has two lengths');
        if (!/^\d{1,15}$/.test(value)) throw new BadAnswerError('the length of the answer is no number');
        fields.length = Number(value);
        break;
      case 'transfer-encoding':
        if (fields.coding !== undefined || value.toLowerCase() !== 'chunked') {
          throw new BadAnswerError(`the transfer coding ${value} is not supported`);
        }
        fields.coding = 'chunked';
        break;
      case 'connection':
        for (const word of value.toLowerCase().split(',')) fields.connection.push(word.trim());
        break;
      case 'keep-alive':
        fields.keepAlive = value;
        break;
      default:
    }
  }
  if (fields.length !== undefined && fields.coding !== undefined) {
    throw new BadAnswerError('the answer has a length, and chunks');
  }
  return fields;
}

/** Of `Keep-Alive: timeout=5`, with a second for the way. */
function keptMsOf(keepAlive: string): number {
  const seconds = /(?:^|[,; ])timeout=(\d{1,6})/i.exec(keepAlive)?.[1];
  return seconds === undefined ? Infinity : Math.max(0, Number(seconds) - 1) * 1000;
}
