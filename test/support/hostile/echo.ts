import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';

/** What an echo server sends back; empty where the connection fails. */
export async function echo(socket: Socket): Promise<string> {
  socket.on('error', () => undefined);
  socket.end('echo');
  return await text(socket);
}

/** The same by one datagram. @throws {Error} after two seconds without an answer. */
export async function echoOverUdp(port: number, address: string): Promise<string> {
  const socket = createSocket('udp4');
  const answered = once(socket, 'message', { signal: AbortSignal.timeout(2000) });
  socket.send('echo', port, address);
  try {
    return String((await answered)[0]);
  } finally {
    socket.close();
  }
}
