import type { BindOptions, Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import type { Socket, TcpSocketConnectOpts } from 'node:net';

/**
 * Connects a socket.
 *
 * @throws the system's error, or the signal's reason; the socket is destroyed then.
 */
export async function connectSocket(
  socket: Socket,
  options: TcpSocketConnectOpts,
  signal?: AbortSignal,
): Promise<Socket> {
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
