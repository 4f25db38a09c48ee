import { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { maxInTurn, onMessages, send, sendOn } from './streams.ts';
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
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { WebSocket } from 'ws';

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

/**
 * The protocol of kubectl 1.31 and later: a SPDY connection inside a WebSocket (apimachinery `util/portforward`, kubelet
 * `cri/streaming/portforward`).
 */
export const tunnelProtocol = 'SPDY/3.1+portforward.k8s.io';
/** The protocol of channels: two for each port. */
export const channelProtocol = 'v4.channel.k8s.io';

/** The target of connections. */
export interface PortForwardTarget {
  /** For messages: `pod shop/cart`. */
  readonly name: string;
  /** Connects to a port of the Pod. @throws the system's error, or the reason of the signal. */
  connect(port: number, signal: AbortSignal): Promise<Socket>;
}

/** Serves {@link tunnelProtocol}: the client opens a pair of streams, of errors and of data, for each connection. */
export function forwardTunnel(socket: WebSocket, target: PortForwardTarget): void {
  const closed = new AbortController();
  /** Error streams that wait for their data stream, by request. */
  const errors = new Map<string, SpdyStream>();
  const session = new SpdySession(
    async (bytes) => send(socket, bytes),
    (stream) => {
      stream.on('error', () => undefined);
      const request = stream.headers.get('requestid') ?? stream.headers.get('port') ?? '';
      if (stream.headers.get('streamtype') === 'error') {
        errors.set(request, stream);
        stream.once('close', () => errors.delete(request));
        stream.resume();
        return;
      }
      const error = errors.get(request);
      errors.delete(request);
      const port = Number(stream.headers.get('port'));
      void forwardStream(stream, port, target, closed.signal).then(
        () => error?.end(),
        (failure: unknown) => {
          error?.end(failureText(failure, port, target));
          // The client waits for the end of the data before it looks at the error.
          stream.resume().end();
        },
      );
    },
  );
  onMessages(
    socket,
    async (message) => session.receive(message),
    () => session.close(),
  );
  socket.on('close', () => {
    closed.abort(new Error('the client is gone'));
    session.close();
  });
}

async function forwardStream(
  stream: SpdyStream,
  port: number,
  target: PortForwardTarget,
  signal: AbortSignal,
): Promise<void> {
  checkPort(port);
  const connection = await target.connect(port, signal);
  signal.addEventListener('abort', () => connection.destroy(), { once: true });
  try {
    // Each direction ends by itself: a client that has sent everything still reads the answer.
    await Promise.all([pipeline(stream, connection), pipeline(connection, stream)]);
  } finally {
    connection.destroy();
  }
}

/** The close code of RFC 6455, 7.4.1. */
const normalClosure = 1000;

/**
 * Serves {@link channelProtocol}: for the port of index i, data goes by channel 2i and an error by 2i + 1. It ends with
 * the last connection.
 */
export function forwardChannels(
  socket: WebSocket,
  ports: readonly number[],
  target: PortForwardTarget,
): void {
  const closed = new AbortController();
  const connections = new Map<number, Promise<Socket>>();
  socket.on('close', () => closed.abort(new Error('the client is gone')));
  const served = ports.map(async (port, index) => {
    const opened = target.connect(port, closed.signal);
    // A failure is reported below, maybe only after the port has been announced.
    opened.catch(() => undefined);
    connections.set(2 * index, opened);
    try {
      await serveChannel(socket, 2 * index, port, opened, closed.signal);
    } catch (error) {
      if (!closed.signal.aborted)
        await sendOn(socket, 2 * index + 1, Buffer.from(failureText(error, port, target)));
    }
  });
  Promise.all(served).then(
    // No connection is left: the client learns that the Pod has closed them.
    () => socket.close(normalClosure),
    // The client is gone.
    () => socket.terminate(),
  );
  onMessages(
    socket,
    async (message) => {
      const connection = await connections.get(message[0] ?? -1)?.catch(() => undefined);
      if (connection === undefined || message.length < 2 || connection.destroyed) return;
      if (!connection.write(message.subarray(1))) {
        await once(connection, 'drain', { signal: closed.signal }).catch(() => undefined);
      }
    },
    () => closed.abort(new Error('the client is gone')),
  );
}

async function serveChannel(
  socket: WebSocket,
  channel: number,
  port: number,
  opened: Promise<Socket>,
  signal: AbortSignal,
): Promise<void> {
  // The client learns which channel is whose: the port comes first on both.
  const number = Buffer.alloc(2);
  number.writeUInt16LE(port, 0);
  await sendOn(socket, channel, number);
  await sendOn(socket, channel + 1, number);
  const connection = await opened;
  signal.addEventListener('abort', () => connection.destroy(), { once: true });
  for await (const chunk of connection) if (Buffer.isBuffer(chunk)) await sendOn(socket, channel, chunk);
}

function checkPort(port: number): void {
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new Error(`unable to parse port ${JSON.stringify(String(port))}`);
}

/** As the kubelet reports it. */
function failureText(error: unknown, port: number, { name }: PortForwardTarget): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const why =
    code === 'ECONNREFUSED'
      ? `dial tcp4 127.0.0.1:${port}: connect: connection refused`
      : error instanceof Error
        ? error.message
        : String(error);
  return `error forwarding port ${port} to ${name}: ${why}`;
}
