import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { WebSocket } from 'ws';
import { ChannelSocket, onMessages, portProtocols, send } from './channels.ts';
import { SpdyConnection, SpdySession, type SpdyStream } from './spdy-session.ts';

/**
 * The protocol of kubectl 1.31 and later: a SPDY connection inside a WebSocket (apimachinery `util/portforward`, kubelet
 * `cri/streaming/portforward`).
 */
export const tunnelProtocol = 'SPDY/3.1+portforward.k8s.io';
/** The same without a WebSocket, of older clients. */
export const spdyPortProtocol = 'portforward.k8s.io';

/** The target of connections. */
export interface PortForwardTarget {
  /** For messages: `pod shop/cart`. */
  readonly name: string;
  /** Connects to a port of the Pod. @throws the system's error, or the reason of the signal. */
  connect(port: number, signal: AbortSignal): Promise<Socket>;
}

/** Serves {@link tunnelProtocol}. */
export function forwardTunnel(socket: WebSocket, target: PortForwardTarget): void {
  const closed = new AbortController();
  const session = new SpdySession(
    async (bytes) => send(socket, bytes),
    forwardPairs(target, () => closed.signal),
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

/** Serves {@link spdyPortProtocol} on a connection that speaks SPDY from here on. @param head what was read of it. */
export function forwardSpdy(connection: Duplex, head: Buffer, target: PortForwardTarget): void {
  const spdy: SpdyConnection = new SpdyConnection(
    connection,
    head,
    forwardPairs(target, () => spdy.signal),
  );
}

/** Forwards a pair of streams, of errors and of data, which the client opens for each connection. */
function forwardPairs(target: PortForwardTarget, signal: () => AbortSignal): (stream: SpdyStream) => void {
  /** The half of each pair that came first, by the request. */
  const waiting = new Map<string, SpdyStream>();
  return (stream) => {
    stream.on('error', () => undefined);
    const { headers } = stream;
    const type = headers.get('streamtype');
    const port = headers.get('port') ?? '';
    if (!isPort(port) || (type !== 'error' && type !== 'data')) {
      stream.destroy(new Error('the headers of a stream are none of port-forward'));
      return;
    }
    // Clients of Kubernetes 1.0 name no request: data follows error (`requestID`).
    const request = headers.get('requestid') ?? String(type === 'error' ? stream.id : stream.id - 2);
    if (type === 'error') stream.resume();
    const first = waiting.get(request);
    if (first === undefined || first.headers.get('streamtype') === type) {
      waiting.set(request, stream);
      stream.once('close', () => {
        if (waiting.get(request) === stream) waiting.delete(request);
      });
      return;
    }
    waiting.delete(request);
    const [data, error] = type === 'data' ? [stream, first] : [first, stream];
    void forwardStream(data, Number(port), target, signal()).then(
      () => error.end(),
      (failure: unknown) => {
        error.end(failureText(failure, Number(port), target));
        // The client waits for the end of the data before it looks at the error.
        data.resume().end();
      },
    );
  };
}

async function forwardStream(
  stream: SpdyStream,
  port: number,
  target: PortForwardTarget,
  signal: AbortSignal,
): Promise<void> {
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
 * Serves {@link portProtocols}: for the port of index i, data goes by channel 2i and an error by 2i + 1. It ends with
 * the last connection.
 */
export function forwardChannels(
  socket: WebSocket,
  ports: readonly number[],
  target: PortForwardTarget,
): void {
  const protocol = portProtocols.get(socket.protocol) ?? { isBase64: false, hasStatus: false };
  const channels = new ChannelSocket(socket, protocol);
  const closed = new AbortController();
  const connections = new Map<number, Promise<Socket>>();
  socket.on('close', () => closed.abort(new Error('the client is gone')));
  const served = ports.map(async (port, index) => {
    const opened = target.connect(port, closed.signal);
    // A failure is reported below, maybe only after the port has been announced.
    opened.catch(() => undefined);
    connections.set(2 * index, opened);
    try {
      await serveChannel(channels, 2 * index, port, opened, closed.signal);
    } catch (error) {
      if (!closed.signal.aborted)
        await channels.send(2 * index + 1, Buffer.from(failureText(error, port, target)));
    }
  });
  Promise.all(served).then(
    // No connection is left: the client learns that the Pod has closed them.
    () => socket.close(normalClosure),
    // The client is gone.
    () => socket.terminate(),
  );
  channels.onMessages(
    async (channel, payload) => {
      const connection = await connections.get(channel)?.catch(() => undefined);
      if (connection === undefined || payload.length === 0 || connection.destroyed) return;
      if (!connection.write(payload)) {
        await once(connection, 'drain', { signal: closed.signal }).catch(() => undefined);
      }
    },
    () => closed.abort(new Error('the client is gone')),
  );
}

async function serveChannel(
  channels: ChannelSocket,
  channel: number,
  port: number,
  opened: Promise<Socket>,
  signal: AbortSignal,
): Promise<void> {
  // The client learns which channel is whose: the port comes first on both.
  const number = Buffer.alloc(2);
  number.writeUInt16LE(port, 0);
  await channels.send(channel, number);
  await channels.send(channel + 1, number);
  const connection = await opened;
  signal.addEventListener('abort', () => connection.destroy(), { once: true });
  for await (const chunk of connection) if (Buffer.isBuffer(chunk)) await channels.send(channel, chunk);
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) > 0 && Number(text) <= 65_535;
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
