import type { Socket as DatagramSocket } from 'node:dgram';
import type { Socket } from 'node:net';

/** What both servers answer with the Pod's name instead of an echo, as agnhost's `netexec` does. */
const nameQuestion = 'hostname';

/** Sends back all that comes, until the client ends. */
export function echoStream(socket: Socket, first: Buffer, name: string): void {
  if (asksForName(first)) socket.write(`${name}\n`);
  else socket.write(first);
  socket.pipe(socket);
}

/** Sends every datagram back. */
export function echoDatagrams(socket: DatagramSocket, name: string): void {
  socket.on('message', (message, { port, address }) => {
    socket.send(asksForName(message) ? Buffer.from(name) : message, port, address);
  });
}

function asksForName(bytes: Buffer): boolean {
  return bytes.length <= nameQuestion.length + 2 && bytes.toString('latin1').trim() === nameQuestion;
}
