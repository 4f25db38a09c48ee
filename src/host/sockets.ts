import type { BindOptions, RemoteInfo, Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import type { ListenOptions, Server, Socket, SocketConnectOpts } from 'node:net';
import { asError } from './host.ts';

/**
 * Sockets of a {@link Host}. An `error` without a listener ends a process, so each has one from the moment it is made or
 * accepted to the moment it is destroyed: what its user does about errors comes beside it.
 */
const heard = (): void => undefined;

/**
 * Makes a server listen, and hears the errors of all that it accepts.
 *
 * @param options or the descriptor of a socket that is bound, or a server that came from another process.
 * @throws the system's error.
 */
export async function listenWith(
  server: Server,
  options: ListenOptions | { readonly fd: number } | Server,
): Promise<void> {
  // TLS has a socket of its own above the accepted one, which HTTP leaves without a listener when it hands it over.
  for (const event of ['connection', 'secureConnection']) {
    server.on(event, (socket: Socket) => socket.on('error', heard));
  }
  const listening = once(server, 'listening');
  server.listen(options);
  await listening;
  // Of a connection that could not be accepted: too many files are open.
  server.on('error', heard);
}

/**
 * Connects a socket.
 *
 * @throws the system's error, or the signal's reason; the socket is destroyed then.
 */
export async function connectSocket(
  socket: Socket,
  options: SocketConnectOpts,
  signal?: AbortSignal,
): Promise<Socket> {
  socket.on('error', heard);
  const connected = once(socket, 'connect', signal === undefined ? {} : { signal });
  socket.connect(options);
  try {
    await connected;
  } catch (error) {
    socket.destroy();
    throw signal?.aborted === true ? signal.reason : error;
  }
  return socket;
}

/** Binds a datagram socket. @throws the system's error; the socket is closed then. */
export async function bindSocket(socket: DatagramSocket, options: BindOptions): Promise<DatagramSocket> {
  socket.on('error', heard);
  const bound = once(socket, 'listening');
  socket.bind(options);
  try {
    await bound;
  } catch (error) {
    socket.close();
    throw error;
  }
  return socket;
}

/**
 * Sends a datagram, or loses it: nothing can be sent to port 0, which a sender may name as its own, nor by a socket that
 * was closed meanwhile.
 *
 * @param to undefined: to the address that the socket is connected to.
 * @param failed hears the system's error.
 */
export function sendDatagram(
  socket: DatagramSocket,
  message: Buffer | string,
  to: Pick<RemoteInfo, 'address' | 'port'> | undefined,
  failed: (error: Error) => void = heard,
): void {
  if (to?.port === 0) return;
  const sent = (error: Error | null): void => {
    if (error !== null) failed(error);
  };
  try {
    if (to === undefined) socket.send(message, sent);
    else socket.send(message, to.port, to.address, sent);
  } catch (error) {
    failed(asError(error));
  }
}
