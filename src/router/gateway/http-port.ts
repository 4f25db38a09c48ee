import { createServer as createHttp2Server } from 'node:http2';
import type { Socket } from 'node:net';
import type { Clock } from '../../client/clock.ts';
import { createServer as createHttpServer } from '../../host/node-http.ts';
import { readIsHttp2 } from '../first-bytes.ts';
import {
  closed,
  http2Settings,
  openSessions,
  openSockets,
  type RouterListener,
  serveHttp,
  timeouts,
} from '../listeners.ts';
import type { RouterMetrics } from '../router-metrics.ts';
import type { RouterServing } from '../serving.ts';

export interface HttpPortOptions {
  readonly serving: RouterServing;
  readonly metrics: RouterMetrics;
  readonly clock: Clock;
  /** Milliseconds without a byte after which a client is cut. */
  readonly idleTimeoutMs: number;
}

/** A listener for HTTP/1.1, and HTTP/2 of clients that begin with it. */
export function httpPortListener(options: HttpPortOptions): RouterListener {
  const { serving, metrics, clock, idleTimeoutMs } = options;
  const server = createHttpServer({ ...timeouts, insecureHTTPParser: false });
  const http2 = createHttp2Server(http2Settings);
  for (const each of [server, http2]) each.setTimeout(idleTimeoutMs);
  serveHttp(server, serving, 'http');
  serveHttp(http2, serving, 'http');
  const sessions = openSessions(http2, serving, clock);
  const beginHttp1 = server.listeners('connection');
  server.removeAllListeners('connection');
  const sockets = openSockets(server, metrics, 'gateway');
  const waiting = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    waiting.add(socket);
    socket.on('close', () => waiting.delete(socket));
    readIsHttp2(socket, clock, (isHttp2, bytes) => {
      waiting.delete(socket);
      socket.unshift(bytes);
      if (isHttp2) {
        http2.emit('connection', socket);
        return;
      }
      for (const begin of beginHttp1) begin.call(server, socket);
      socket.resume();
    });
  });
  return {
    server,
    async drain() {
      const ended = closed(server);
      for (const socket of waiting) socket.destroy();
      for (const session of sessions) session.close();
      await ended;
    },
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}
