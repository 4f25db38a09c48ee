import type { Socket } from 'node:net';
import type { Server } from 'node:tls';

/**
 * Answers plain HTTP on a port of TLS as Go's server does (net/http `conn.serve`), instead of closing the connection
 * without a word. To be called before other listeners of the server are added.
 */
export function refusePlainHttp(server: Server): void {
  /** Connections whose handshake is not over, by the address and port of the client. */
  const waiting = new Map<string, Socket>();
  server.on('connection', (socket: Socket) => {
    const client = clientOf(socket);
    waiting.set(client, socket);
    socket.once('close', () => waiting.delete(client));
  });
  server.on('secureConnection', (socket) => waiting.delete(clientOf(socket)));
  server.prependListener('tlsClientError', (error, socket) => {
    if (!('code' in error) || error.code !== 'ERR_SSL_HTTP_REQUEST') return;
    const plain = waiting.get(clientOf(socket));
    plain?.end(answer, () => plain.destroy());
  });
}

function clientOf({ remoteAddress = '', remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

const answer = 'HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n';
