import { constants, crc32, gzipSync } from 'node:zlib';
import { isRecord } from '../../objects/json.ts';
import { writeProtobuf } from '../schema/protobuf/write-protobuf.ts';
import { writeYaml } from '../schema/yaml/write-yaml.ts';
import { type MediaType, negotiateError } from './negotiation.ts';
import { randomUUID } from 'node:crypto';
import type { Writable } from 'node:stream';
import type { IncomingRequest, Reply, ReplyStream } from './exchange.ts';
import {
  endCompressed,
  endWhileMade,
  endWith,
  lengthOf as bodyLengthOf,
  type LongBody,
  type OutgoingAnswer,
  indented,
  indentJson,
  wantsPretty,
} from './long-body.ts';
import { pushAll } from '../../objects/lists.ts';
import type { StatusError } from '../../objects/status.ts';

/**
 * Writes a JSON value: JSON in one line with a newline behind it, as Go's encoder does, YAML, or protobuf, for which
 * it must be an object with its kind.
 *
 * @throws {StatusError} 406 for a kind that has no protobuf.
 */
export function encode(value: unknown, mediaType: MediaType): string | Buffer {
  if (mediaType === 'application/json') return `${JSON.stringify(value)}\n`;
  if (mediaType === 'application/vnd.kubernetes.protobuf') return writeProtobuf(isRecord(value) ? value : {});
  return writeYaml(value);
}

/** Warnings longer than this altogether, in characters, are cut, and those behind it dropped (apiserver `endpoints/filters/warning.go`). */
const maxTotal = 4096;
const maxEachWhenCut = 256;

/**
 * The `Warning` header values of an answer: `299 - "…"` with Go's quoting (apimachinery `util/net/http.go`,
 * NewWarningHeader). Repeated texts are dropped, control characters too, since they could end the header.
 */
export function warningHeaders(texts: readonly string[]): string[] {
  return bounded([...new Set(texts)]).map((text) => {
    // no-control-regex: the control characters are intended here
    const clean = text.replaceAll(/\p{Cc}/gu, '').replaceAll(/["\\]/g, '\\$&');
    return latin1(`299 - "${clean}"`);
  });
}

/**
 * The first text that does not fit turns cutting on, for earlier ones as well; from then on texts are added until the
 * limit is reached.
 */
function bounded(texts: readonly string[]): readonly string[] {
  let total = 0;
  const overflow = texts.findIndex((text) => (total += lengthOf(text)) > maxTotal);
  if (overflow < 0) return texts;
  const kept: string[] = [];
  let written = 0;
  for (const [i, text] of texts.entries()) {
    if (i > overflow && written >= maxTotal) break;
    const short = Array.from(text.slice(0, 2 * maxEachWhenCut))
      .slice(0, maxEachWhenCut)
      .join('');
    kept.push(short);
    written += lengthOf(short);
  }
  return kept;
}

/** Go counts characters. */
function lengthOf(text: string): number {
  let length = 0;
  for (const _character of text) length++;
  return length;
}

/** UTF-8 bytes as a header value: Node writes headers one byte per character. */
function latin1(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** Smaller answers are not worth the work (apiserver `responsewriters/writers.go`). */
const compressFrom = 128 * 1024;

/** Headers of an answer; a proxied one may repeat them, and brings its own `cache-control` in lower case. */
export type ExtraHeaders = Readonly<Record<string, string | readonly string[]>>;

/** The parts of a request that its reply depends on. */
export interface ReplyContext {
  readonly auditId: string;
  readonly accept: string | undefined;
  readonly acceptEncoding: string | string[] | undefined;
  readonly userAgent: string | undefined;
  /** The raw query. */
  readonly query: string;
}

/** @param url the raw request target. */
export function replyContext({ headers, url = '/' }: Pick<IncomingRequest, 'headers' | 'url'>): ReplyContext {
  const question = url.indexOf('?');
  return {
    auditId: auditId(headers['audit-id']),
    accept: headers.accept,
    acceptEncoding: headers['accept-encoding'],
    userAgent: headers['user-agent'],
    query: question === -1 ? '' : url.slice(question + 1),
  };
}

/** A client may name its request for the audit log; anything but a plain identifier is replaced. */
function auditId(sent: string | string[] | undefined): string {
  return typeof sent === 'string' && /^[\w-]{1,64}$/.test(sent) ? sent : randomUUID();
}

/** Answers one request. A second answer is ignored: the first has been sent. */
export class HttpReply implements Reply {
  readonly #response: OutgoingAnswer;
  readonly #context: ReplyContext;
  #warnings: string[] | undefined;
  /** Names and values, one after the other. */
  readonly #added: string[] = [];
  #started = false;

  constructor(response: OutgoingAnswer, context: ReplyContext) {
    this.#response = response;
    this.#context = context;
  }

  /** Whether an answer was begun. */
  get begun(): boolean {
    return this.#started;
  }

  /** The answer begins in a way of its own. */
  protected begin(): void {
    this.#started = true;
  }

  warn(text: string): void {
    this.#warnings ??= [];
    this.#warnings.push(text);
  }

  addHeader(name: string, value: string): void {
    this.#added.push(name, value);
  }

  send(
    status: number,
    contentType: string,
    body: Buffer | string | LongBody,
    headers?: Readonly<Record<string, string>>,
  ): void {
    const { query, userAgent } = this.#context;
    const pretty = contentType === 'application/json' && wantsPretty(query, userAgent);
    if (!pretty) this.sendAsIs(status, contentType, body, headers);
    else if (byteLengthOf(body) <= compressFrom)
      this.sendAsIs(status, contentType, indentJson(textOf(body)), headers);
    else this.#sendIndented(status, isLong(body) ? body : [body.toString()], headers);
  }

  sendAsIs(
    status: number,
    contentType: string,
    payload: Buffer | string | LongBody,
    headers?: Readonly<Record<string, string>>,
  ): void {
    if (this.#started) return;
    this.#started = true;
    const length = byteLengthOf(payload);
    const head = this.#headers(headers);
    if (contentType !== '') head.push('Content-Type', contentType);
    if (length > compressFrom && acceptsGzip(this.#context.acceptEncoding)) {
      head.push('Content-Encoding', 'gzip', 'Vary', 'Accept-Encoding');
      this.#response.writeHead(status, head);
      endCompressed(this.#response, payload);
      return;
    }
    // 304 describes a document that is not sent.
    if (status !== 304) head.push('Content-Length', String(length));
    this.#response.writeHead(status, head);
    // all else here is ASCII
    if (this.#warnings !== undefined) sendHead(this.#response);
    if (isLong(payload)) endWith(this.#response, payload, length);
    else this.#response.end(payload);
  }

  /** Indents as fast as the client reads. */
  #sendIndented(status: number, body: LongBody, headers: Readonly<Record<string, string>> = {}): void {
    if (this.#started) return;
    this.#started = true;
    const head = this.#headers(headers);
    head.push('Content-Type', 'application/json');
    const compressed = acceptsGzip(this.#context.acceptEncoding);
    if (compressed) head.push('Content-Encoding', 'gzip', 'Vary', 'Accept-Encoding');
    this.#response.writeHead(status, head);
    if (compressed) endCompressed(this.#response, indented(body));
    else endWhileMade(this.#response, indented(body));
  }

  /**
   * Answers an error as a Status: in the form that the client accepts, or else as indented JSON (apiserver
   * `responsewriters/writers.go` ErrorNegotiated, WriteRawJSON).
   */
  sendError(error: StatusError): void {
    const mediaType = negotiateError(this.#context.accept);
    const status = error.toStatus();
    const { retryAfterSeconds = 0 } = error.details ?? {};
    this.send(
      error.code,
      mediaType ?? 'application/json',
      mediaType === undefined ? indentJson(JSON.stringify(status)) : encode(status, mediaType),
      { ...(retryAfterSeconds > 0 ? { 'Retry-After': String(retryAfterSeconds) } : {}), ...error.headers },
    );
  }

  stream(status: number, headers: ExtraHeaders, compress = false): ReplyStream {
    this.#started = true;
    const response = this.#response;
    const compressed = compress && acceptsGzip(this.#context.acceptEncoding);
    const head = this.#headers(headers);
    if (compressed) head.push('Content-Encoding', 'gzip', 'Vary', 'Accept-Encoding');
    response.writeHead(status, head);
    sendHead(response);
    return replyStream(response, compressed ? gzipPiece : (chunk) => chunk);
  }

  /** Ends a response that cannot be completed, so that the client sees that it is truncated. */
  abandon(): void {
    this.#response.destroy();
  }

  /** Flat name-value pairs, which Node writes without a detour. */
  #headers(extra: ExtraHeaders | undefined): string[] {
    const head = ['Audit-Id', this.#context.auditId];
    if (extra === undefined || !('cache-control' in extra)) head.push('Cache-Control', 'no-cache, private');
    if (this.#added.length > 0) pushAll(head, this.#added);
    if (this.#warnings !== undefined) {
      for (const warning of warningHeaders(this.#warnings)) head.push('Warning', warning);
    }
    if (extra === undefined) return head;
    for (const name of Object.keys(extra)) {
      const value = extra[name];
      if (typeof value === 'string') head.push(name, value);
      else for (const one of value ?? []) head.push(name, one);
    }
    return head;
  }
}

/** Watches share their pieces: each is compressed once. */
const gzipped = new WeakMap<Buffer, Buffer>();

function gzipPiece(chunk: Buffer | string): Buffer {
  if (typeof chunk === 'string') return gzipMember(chunk);
  let piece = gzipped.get(chunk);
  if (piece === undefined) gzipped.set(chunk, (piece = gzipMember(chunk)));
  return piece;
}

const emptyLastBlock = Buffer.from([3, 0]);

/**
 * A member of its own (RFC 1952), so that an idle stream keeps no compressor. Its data end before its last block: Go's
 * reader gives the data of a last block only once the next member has begun, and so, for a watch, too late.
 */
function gzipMember(chunk: Buffer | string): Buffer {
  const blocks = gzipSync(chunk, { level: 1, finishFlush: constants.Z_SYNC_FLUSH });
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(crc32(chunk), 0);
  trailer.writeUInt32LE(Buffer.byteLength(chunk), 4);
  return Buffer.concat([blocks, emptyLastBlock, trailer]);
}

function isLong(body: Buffer | string | LongBody): body is LongBody {
  return Array.isArray(body);
}

function byteLengthOf(body: Buffer | string | LongBody): number {
  return isLong(body) ? bodyLengthOf(body) : Buffer.byteLength(body);
}

function textOf(body: Buffer | string | LongBody): string {
  return isLong(body) ? body.join('') : body.toString();
}

function acceptsGzip(acceptEncoding: string | string[] | undefined): boolean {
  return acceptEncoding !== undefined && acceptEncoding.includes('gzip');
}

const nothing = Buffer.alloc(0);

/**
 * Sends the status and headers that were written, a byte for each character. With a text behind them (the empty one of
 * `flushHeaders` too) Node sends both in UTF-8, and what is not ASCII in a header is encoded a second time.
 */
function sendHead(response: OutgoingAnswer): void {
  response.write(nothing);
}

/** The body of an answer whose head is sent, in pieces. */
function replyStream(
  response: OutgoingAnswer,
  encoded: (chunk: Buffer | string) => Buffer | string,
): ReplyStream {
  return {
    write: (chunk, onSent) => response.write(encoded(chunk), onSent),
    drained: async () => drained(response),
    get unsent() {
      return response.writableLength;
    },
    end: () => void response.end(),
    destroy: () => void response.destroy(),
  };
}

/** Resolves when a client has read, or is gone. */
export async function drained(response: Writable): Promise<void> {
  if (!response.writableNeedDrain || response.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });
}
