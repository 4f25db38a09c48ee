import type { Server } from 'node:https';
import { Socket } from 'node:net';
import type { Duplex, Writable } from 'node:stream';
import { TLSSocket } from 'node:tls';

/** Whether a connection has agreed on HTTP/2. */
export function isHttp2(socket: Socket): boolean {
  return socket instanceof TLSSocket && socket.alpnProtocol === 'h2';
}

type Answer = Writable & { readonly headersSent?: boolean };

/** Stops a server: long-running requests are notified, short ones are waited for. */
export interface Closer {
  readonly closing: boolean;
  /** A request is under way on a connection, until its answer is closed. */
  begun(socket: Socket, answer: Answer): void;
  /** Whether a part of an answer has gone to a connection. */
  isAnswering(socket: Duplex): boolean;
  /** Calls back when the server begins to close, at once when it has. Returns how to take it back. */
  onClosing(callback: () => void): () => void;
  /** Resolves when no connection is left. A second call closes all of them at once. */
  close(graceMs: number): Promise<void>;
}

/**
 * Tracks which connections are in the middle of a request: Node's own closeIdleConnections() takes a connection that
 * never sent one for busy.
 */
export function createCloser(server: Server): Closer {
  const callbacks = new Set<() => void>();
  /** TCP sockets, whose TLS handshake may not be over. */
  const sockets = new Set<Duplex>();
  const connections = new Set<Socket>();
  /** The answers that a connection waits for: a client may send the next request before it has one. */
  const busy = new Map<Duplex, Set<Answer>>();
  let closed: Promise<void> | undefined;

  const keepIn = <T extends Duplex>(set: Set<T>, socket: T): void => {
    set.add(socket);
    socket.once('close', () => set.delete(socket));
  };
  server.on('connection', (socket) => keepIn(sockets, socket));
  server.on('secureConnection', (socket) => keepIn(connections, socket));
  function destroyAll(): void {
    for (const socket of connections) socket.destroy();
    for (const socket of sockets) socket.destroy();
  }

  async function begin(graceMs: number): Promise<void> {
    const done = new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
    for (const callback of callbacks) callback();
    callbacks.clear();
    for (const socket of connections) if (!busy.has(socket)) socket.destroy();
    const past = new Set([...connections].map(peer));
    for (const socket of sockets) if (!past.has(peer(socket))) socket.destroy();
    const deadline = setTimeout(destroyAll, graceMs);
    await done;
    clearTimeout(deadline);
  }

  return {
    get closing() {
      return closed !== undefined;
    },
    begun(socket, answer) {
      const awaited = busy.get(socket) ?? new Set();
      busy.set(socket, awaited.add(answer));
      answer.on('close', () => {
        awaited.delete(answer);
        if (awaited.size > 0) return;
        busy.delete(socket);
        // HTTP/2 ends its connection itself.
        if (closed !== undefined && !isHttp2(socket)) socket.destroySoon();
      });
    },
    isAnswering: (socket) => [...(busy.get(socket) ?? [])].some(({ headersSent }) => headersSent === true),
    onClosing(callback) {
      if (closed !== undefined) {
        callback();
        return () => undefined;
      }
      callbacks.add(callback);
      return () => void callbacks.delete(callback);
    },
    async close(graceMs) {
      if (closed === undefined) closed = begin(graceMs);
      else destroyAll();
      await closed;
    },
  };
}

/** The remote address and port: the same for a TLS connection and the TCP socket below it. */
function peer(socket: Duplex): string {
  return socket instanceof Socket ? `${socket.remoteAddress ?? ''} ${socket.remotePort ?? 0}` : '';
}
