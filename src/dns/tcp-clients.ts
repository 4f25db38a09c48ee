import { createServer, isIPv6, type Server, type Socket } from 'node:net';
import { framed, MessageFrames } from './message-frames.ts';
import type { DnsResponder } from './responder.ts';

/** Milliseconds without a byte after which a connection is closed (RFC 7766, 6.2.3; CoreDNS has 10 s too). */
const idleTimeout = 10_000;
/** Connections at one time: a client that keeps many open cannot take all file descriptors. */
const maxConnections = 1000;
/** Queries of one connection that wait for an upstream; more are not read meanwhile. */
const maxWaiting = 64;

/** A TCP server of DNS that does not listen yet, and what closes its connections. */
export interface TcpClients {
  readonly server: Server;
  readonly closeAll: () => void;
}

/** Answers queries of TCP connections, each as soon as its answer is there (RFC 7766, 6.2.1.1). */
export function tcpClients(responder: DnsResponder, signal: AbortSignal): TcpClients {
  const open = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    serve(socket, responder, signal);
  });
  server.maxConnections = maxConnections;
  return {
    server,
    closeAll: () => {
      for (const socket of open) socket.destroy();
    },
  };
}

function serve(socket: Socket, responder: DnsResponder, signal: AbortSignal): void {
  const frames = new MessageFrames();
  const family = isIPv6(socket.remoteAddress ?? '') ? 2 : 1;
  let waiting = 0;
  const send = (response: Buffer | undefined): void => {
    if (response === undefined) socket.destroy();
    else if (!socket.destroyed) socket.write(framed(response));
  };
  const readOn = (): void => {
    if (waiting < maxWaiting && !socket.writableNeedDrain) socket.resume();
  };
  socket.setTimeout(idleTimeout, () => socket.destroy());
  // Clients may close a connection at any time.
  socket.on('error', () => socket.destroy());
  socket.on('drain', readOn);
  socket.on('data', (chunk) => {
    for (const message of frames.push(chunk)) {
      const response = responder.respond(message, { protocol: 'tcp', family }, signal);
      if (!(response instanceof Promise)) {
        send(response);
        continue;
      }
      waiting++;
      void response.then((later) => {
        waiting--;
        send(later);
        readOn();
      });
    }
    // Clients that do not read their answers get no more.
    if (waiting >= maxWaiting || socket.writableNeedDrain) socket.pause();
  });
}
