import { setImmediate } from 'node:timers/promises';
import type { WebSocket } from 'ws';

/** Messages that wait for what comes before them; behind so many, no more are read. */
const maxWaiting = 16;
/** Messages, or frames in them, that are handled in one turn of the event loop: clients may send thousands at once. */
export const maxInTurn = 256;

/**
 * Passes the messages of a connection to `handle`, one after the other, and reads at its pace. A failure closes the
 * connection and is passed to `failed`.
 *
 * @returns what resolves when all that has come by then is handled.
 */
export function onMessages(
  socket: WebSocket,
  handle: (message: Buffer) => Promise<void>,
  failed: (error: unknown) => void,
): () => Promise<void> {
  let waiting = 0;
  let handled = 0;
  let last = Promise.resolve();
  socket.on('message', (data) => {
    const message = Buffer.isBuffer(data)
      ? data
      : Buffer.concat(Array.isArray(data) ? data : [Buffer.from(data)]);
    if (++waiting >= maxWaiting) socket.pause();
    last = last
      .then(async () => {
        if (++handled % maxInTurn === 0) await setImmediate();
        await handle(message);
      })
      .then(
        () => {
          if (--waiting < maxWaiting && socket.isPaused) socket.resume();
        },
        (error: unknown) => {
          failed(error);
          socket.close(protocolError);
        },
      );
  });
  return () => last;
}

/** The close code of RFC 6455, 7.4.1. */
const protocolError = 1002;

/** Sends a message. Resolves when it is on its way; rejects where the connection is closed. */
export async function send(socket: WebSocket, message: Buffer | string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    socket.send(message, (error) => {
      if (error instanceof Error) reject(error);
      else resolve();
    });
  });
}

/** What a subprotocol of channels settles (kubelet `cri/streaming/remotecommand/websocket.go`). */
export interface ChannelProtocol {
  /** In base64, messages are text. */
  readonly isBase64: boolean;
  /** Channel 3 says how a program ended: its failure in words, or a Status in any case. */
  readonly hasStatus: boolean;
}

/** Subprotocols of exec and attach; "" is that of a client that names none. v5 can end standard input. */
export const commandProtocols: ReadonlyMap<string, ChannelProtocol> = new Map([
  ['', { isBase64: false, hasStatus: false }],
  ['channel.k8s.io', { isBase64: false, hasStatus: false }],
  ['base64.channel.k8s.io', { isBase64: true, hasStatus: false }],
  ['v4.channel.k8s.io', { isBase64: false, hasStatus: true }],
  ['v4.base64.channel.k8s.io', { isBase64: true, hasStatus: true }],
  ['v5.channel.k8s.io', { isBase64: false, hasStatus: true }],
]);

/** Subprotocols of port-forward (`cri/streaming/portforward/websocket.go`). */
export const portProtocols: ReadonlyMap<string, ChannelProtocol> = new Map([
  ['', { isBase64: false, hasStatus: false }],
  ['v4.channel.k8s.io', { isBase64: false, hasStatus: false }],
  ['v4.base64.channel.k8s.io', { isBase64: true, hasStatus: false }],
]);

/**
 * The protocol that client and server both have, the first in the order of the client; but v5 before all others, since a
 * kube-apiserver answers it before a kubelet is asked. Undefined: there is none.
 */
export function selectProtocol(
  offered: string | undefined,
  spoken: ReadonlyMap<string, unknown>,
): string | undefined {
  const names = namesIn(offered);
  const latest = 'v5.channel.k8s.io';
  if (names.includes(latest) && spoken.has(latest)) return latest;
  return names.find((name) => spoken.has(name));
}

/** The names in a header with a list of protocols; "" without one. */
export function namesIn(header: string | string[] | undefined): string[] {
  return String(header ?? '')
    .split(',')
    .map((name) => name.trim());
}

const digitZero = 0x30;

/** A WebSocket whose messages begin with the number of a channel. */
export class ChannelSocket {
  readonly socket: WebSocket;
  readonly #isBase64: boolean;

  constructor(socket: WebSocket, { isBase64 }: ChannelProtocol) {
    this.socket = socket;
    this.#isBase64 = isBase64;
  }

  /** Sends bytes on a channel. Resolves when they are on their way; rejects where the connection is closed. */
  async send(channel: number, bytes: Buffer): Promise<void> {
    const message = this.#isBase64
      ? `${String.fromCharCode(digitZero + channel)}${bytes.toString('base64')}`
      : Buffer.concat([Buffer.from([channel]), bytes]);
    await send(this.socket, message);
  }

  /** {@link onMessages}, but for empty ones. */
  onMessages(
    handle: (channel: number, payload: Buffer) => Promise<void>,
    failed: (error: unknown) => void,
  ): () => Promise<void> {
    return onMessages(
      this.socket,
      async (message) => {
        const [first] = message;
        if (first === undefined) return;
        const payload = message.subarray(1);
        if (this.#isBase64)
          await handle(first - digitZero, Buffer.from(payload.toString('latin1'), 'base64'));
        else await handle(first, payload);
      },
      failed,
    );
  }
}
