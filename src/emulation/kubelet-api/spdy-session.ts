import { Duplex } from 'node:stream';
import { finished } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { maxInTurn } from './channels.ts';
import {
  dataFrame,
  goAwayFrame,
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

  /** Writes bytes. Resolves when they are on their way, or nobody reads them; rejects where the connection is closed. */
  async send(bytes: Buffer): Promise<void> {
    if (!this.destroyed && !this.writableEnded) await this.#send(dataFrame(this.id, bytes, false));
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

/** Status codes of a reset. */
const [protocolError, cancel] = [1, 5];
/** Streams that a client has open at one time; kubectl opens two a connection. */
const maxStreams = 2000;

/**
 * The server's side of a SPDY/3.1 connection in which the client opens streams, as Kubernetes' clients do. Neither they
 * nor a kubelet send or heed WINDOW_UPDATE (moby/spdystream): a side that does not read holds up the connection.
 */
export class SpdySession {
  readonly #reader = new SpdyReader();
  readonly #headers = new HeaderBlocks();
  readonly #streams = new Map<number, SpdyStream>();
  readonly #send: (bytes: Buffer) => Promise<void>;
  readonly #accept: (stream: SpdyStream) => void;
  #lastStream = 0;
  #isGoingAway = false;

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

  /** Accepts no further streams, and tells the client. */
  async goAway(): Promise<void> {
    this.#isGoingAway = true;
    await this.#send(goAwayFrame(this.#lastStream));
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
        if (this.#isGoingAway) return;
        if (frame.stream <= this.#lastStream || frame.stream % 2 === 0) {
          await this.#send(resetFrame(frame.stream, protocolError));
          return;
        }
        if (this.#streams.size >= maxStreams) throw new SpdyError(`more than ${maxStreams} streams are open`);
        this.#lastStream = frame.stream;
        await this.#send(replyFrame(frame.stream, await this.#headers.write(new Map())));
        const stream = new SpdyStream(frame.stream, headers, this.#send);
        this.#streams.set(frame.stream, stream);
        stream.once('close', () => this.#streams.delete(frame.stream));
        this.#accept(stream);
        if (frame.isLast) stream.receiveEnd();
        break;
      }
      case 'headers':
        await this.#headers.read(frame.block);
        if (frame.isLast) this.#streams.get(frame.stream)?.receiveEnd();
        break;
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
        // Those of the client are odd; others would be answers.
        if (frame.id % 2 === 1) await this.#send(pingFrame(frame.id));
        break;
      case 'other':
    }
  }
}

/** Milliseconds that a client has to close the connection after everything was sent. */
const closeTimeoutMs = 10_000;

/** A connection that speaks SPDY: what it opens is handed over, until it is closed. */
export class SpdyConnection {
  readonly #connection: Duplex;
  readonly #session: SpdySession;
  readonly #gone = new AbortController();

  /**
   * @param head what the client has sent already.
   * @param accept is called for each stream that the client opens.
   */
  constructor(connection: Duplex, head: Buffer, accept: (stream: SpdyStream) => void) {
    this.#connection = connection;
    this.#session = new SpdySession(async (bytes) => this.#write(bytes), accept);
    connection.on('error', () => undefined);
    connection.once('close', () => this.#end());
    this.#read(head).then(
      () => this.#end(),
      () => connection.destroy(),
    );
  }

  /** Aborted when the client is gone. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  /** Closes the connection behind what was written to streams, which have ended. */
  async finish(streams: readonly SpdyStream[]): Promise<void> {
    for (const stream of streams) {
      // What the client still sends is not read.
      stream.resume();
      if (stream.writableEnded) await finished(stream, { readable: false }).catch(() => undefined);
    }
    await this.#session.goAway();
    this.#connection.end();
    setTimeout(() => this.#connection.destroy(), closeTimeoutMs).unref();
  }

  async #read(head: Buffer): Promise<void> {
    if (head.length > 0) await this.#session.receive(head);
    for await (const chunk of this.#connection)
      if (Buffer.isBuffer(chunk)) await this.#session.receive(chunk);
  }

  async #write(bytes: Buffer): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#connection.write(bytes, (error) => {
        if (error instanceof Error) reject(error);
        else resolve();
      });
    });
  }

  #end(): void {
    this.#gone.abort(new Error('the client is gone'));
    this.#session.close();
    this.#connection.destroy();
  }
}
