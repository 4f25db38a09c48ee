import type { BindOptions, RemoteInfo, Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import { type ListenOptions, type Server, Socket, type SocketConnectOpts, createServer } from 'node:net';
import { asError } from './host.ts';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

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

/** `O_PATH` of open(2), on all architectures of Node.js: a descriptor of the file itself, which is not opened. */
const pathOnly = 0o10000000;

/** The way to a server that has no name in the file system. */
export interface PrivateSocket {
  /** For all threads of this process. */
  readonly path: string;
  /** Ends the way; a second call does nothing. The server goes on: its descriptor may be another process' by now. */
  close(): void;
}

/**
 * Listens at a Unix socket for this process alone. It has a name only for the moment in which it is made, in a folder that
 * other users cannot enter; then a descriptor leads to it, as /proc names it. Nothing is left of it, however the process
 * ends.
 *
 * @returns undefined where the system has no such thing.
 */
export async function listenPrivately(server: Server): Promise<PrivateSocket | undefined> {
  if (process.platform !== 'linux') return undefined;
  let folder: string | undefined;
  let descriptor: number | undefined;
  // The number may be another file's by the second time.
  const close = (): void => {
    if (descriptor !== undefined) closeSync(descriptor);
    descriptor = undefined;
  };
  try {
    folder = mkdtempSync(join(tmpdir(), 'servicenet-'));
    const name = join(folder, 's');
    await listenWith(server, { path: name });
    descriptor = openSync(name, pathOnly);
    const path = `/proc/self/fd/${descriptor}`;
    (await connectSocket(new Socket(), { path })).destroy();
    return { path, close };
  } catch {
    // No temporary folder, a path that is too long, no /proc: its users have another way.
    close();
    server.close();
    return undefined;
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

/** Names that this process has, or one that another process has. */
type Holding = { readonly release: () => void } | { readonly taken: string };

/**
 * Takes names that one process at a time has in the network of this process' machine, all or none of them. The kernel
 * gives them back when the process ends, however it ends: they are sockets of the abstract namespace (unix(7)).
 *
 * @throws the system's error where there are no such sockets.
 */
export async function holdNames(names: readonly string[]): Promise<Holding> {
  const servers: Server[] = [];
  const release = (): void => {
    for (const server of servers) server.close();
  };
  for (const name of names) {
    const server = createServer((socket) => socket.on('error', () => undefined).destroy());
    servers.push(server);
    try {
      server.unref().listen({ path: `\0${name}` });
      await once(server, 'listening');
    } catch (error) {
      release();
      if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') return { taken: name };
      throw error;
    }
    server.on('error', () => undefined);
  }
  return { release };
}
