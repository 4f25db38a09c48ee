import { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { maxInTurn } from './channels.ts';
import {
  dataFrame,
  HeaderBlocks,
  pingFrame,
  replyFrame,
  resetFrame,
  SpdyError,
  type SpdyFrame,
  SpdyReader,
} from './spdy-frames.ts';

/** A stream that the client has opened: bytes go both ways, and each side ends by itself. */
export class SpdyStream extends Duplex {
  /** Names are in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly id: number;
  readonly #send: (bytes: Buffer) => Promise<void>;
  #resume: (() => void) | undefined;

  constructor(id: number, headers: ReadonlyMap<string, string>, send: (bytes: Buffer) => Promise<void>) {
    super({ allowHalfOpen: true });
    this.id = id;
    this.headers = headers;
    this.#send = send;
  }

  /** Hands over what the client sent. Resolves when there is room for more. */
  async receive(payload: Buffer): Promise<void> {
    if (payload.length === 0 || this.destroyed || this.push(payload)) return;
    await new Promise<void>((resolve) => {
      const resume = (): void => {
        this.off('close', resume);
        resolve();
      };
      this.#resume = resume;
      this.once('close', resume);
    });
  }

  /** The client sends no more. */
  receiveEnd(): void {
    if (!this.destroyed) this.push(null);
  }

  override _read(): void {
    this.#resume?.();
    this.#resume = undefined;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send(dataFrame(this.id, chunk, false)).then(() => done(), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#send(dataFrame(this.id, Buffer.alloc(0), true)).then(() => done(), done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (error === null) {
      done(null);
      return;
    }
    // The peer learns that the stream is broken; the cause was reported before.
    this.#send(resetFrame(this.id, cancel)).then(
      () => done(error),
      () => done(error),
    );
  }
}

/** Status code of a reset: CANCEL. */
const cancel = 5;
/** Streams that a client has open at one time; kubectl opens two a connection. */
const maxStreams = 2000;

/** The server's side of a SPDY/3.1 connection in which the client opens streams, as Kubernetes' clients do. */
export class SpdySession {
  readonly #reader = new SpdyReader();
  readonly #headers = new HeaderBlocks();
  readonly #streams = new Map<number, SpdyStream>();
  readonly #send: (bytes: Buffer) => Promise<void>;
  readonly #accept: (stream: SpdyStream) => void;

  /**
   * @param send resolves when the bytes are on their way and there is room for more.
   * @param accept is called for each stream that the client opens.
   */
  constructor(send: (bytes: Buffer) => Promise<void>, accept: (stream: SpdyStream) => void) {
    this.#send = send;
    this.#accept = accept;
  }

  /** Takes bytes of the client. Resolves when there is room for more. @throws {SpdyError} the connection is to be closed. */
  async receive(bytes: Buffer): Promise<void> {
    let handled = 0;
    for (const frame of this.#reader.push(bytes)) {
      if (++handled % maxInTurn === 0) await setImmediate();
      await this.#frame(frame);
    }
  }

  /** Ends all streams. */
  close(): void {
    for (const stream of this.#streams.values()) stream.destroy();
    this.#streams.clear();
    this.#headers.close();
  }

  async #frame(frame: SpdyFrame): Promise<void> {
    switch (frame.kind) {
      case 'synStream': {
        const headers = await this.#headers.read(frame.block);
        if (this.#streams.size >= maxStreams) throw new SpdyError(`more than ${maxStreams} streams are open`);
        await this.#send(replyFrame(frame.stream, await this.#headers.write(new Map())));
        const stream = new SpdyStream(frame.stream, headers, this.#send);
        this.#streams.set(frame.stream, stream);
        stream.once('close', () => this.#streams.delete(frame.stream));
        this.#accept(stream);
        if (frame.isLast) stream.receiveEnd();
        break;
      }
      case 'data': {
        const stream = this.#streams.get(frame.stream);
        await stream?.receive(frame.payload);
        if (frame.isLast) stream?.receiveEnd();
        break;
      }
      case 'reset':
        this.#streams.get(frame.stream)?.destroy();
        break;
      case 'ping':
        await this.#send(pingFrame(frame.id));
        break;
      case 'other':
    }
  }
}
