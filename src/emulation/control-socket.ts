import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Logger } from 'pino';
import { isRecord } from '../objects/json.ts';
import type { Where } from './calls.ts';
import type { ClusterNetwork, Entered } from './cluster-network.ts';

/** The socket of the `up` that has written a kubeconfig. */
export function controlSocketPath(kubeconfigPath: string): string {
  return `${kubeconfigPath}.sock`;
}

/** Bytes of a path that Linux has room for (`struct sockaddr_un`). */
const longestPath = 107;

/**
 * Answers `servicenet run`: a line of JSON, `{"where":…}`, is answered with a line, `{"words":[…]}` or `{"error":…}`.
 * The place is kept for as long as the connection. Only the user of this process can connect.
 *
 * @returns undefined where the path is too long.
 * @throws the system's error.
 */
export async function serveControl(
  path: string,
  network: ClusterNetwork,
  log: Logger,
): Promise<Server | undefined> {
  if (Buffer.byteLength(path) > longestPath) {
    log.warn({ path }, 'no servicenet run: the path of the kubeconfig is too long for a socket beside it');
    return undefined;
  }
  await rm(path, { force: true });
  const server = createServer((socket) => {
    serve(socket, network).catch((error: unknown) => {
      const message = error instanceof Error ? error.message : String(error);
      socket.end(`${JSON.stringify({ error: message })}\n`);
    });
  });
  // The file is made in this call: there is no moment at which others could connect.
  const mask = process.umask(0o177);
  server.listen(path);
  process.umask(mask);
  await once(server, 'listening');
  return server;
}

async function serve(socket: Socket, network: ClusterNetwork): Promise<void> {
  socket.on('error', () => undefined);
  const closed = once(socket, 'close');
  const request: unknown = JSON.parse(await firstLine(socket));
  const where = isRecord(request) ? request['where'] : undefined;
  if (!isWhere(where)) throw new Error('a request has a member "where"');
  const entered: Entered = await network.enter(where);
  socket.write(`${JSON.stringify({ words: entered.words })}\n`);
  await closed;
  await entered.leave();
}

/** Both ends are ours, though perhaps of different versions. */
function isWhere(value: unknown): value is Where {
  return isRecord(value) && typeof value['kind'] === 'string';
}

async function firstLine(socket: Socket): Promise<string> {
  const lines = createInterface({ input: socket });
  const line = await Promise.race([once(lines, 'line'), once(lines, 'close')]);
  lines.close();
  // Otherwise its end would not be noticed.
  socket.resume();
  if (line.length === 0) throw new Error('the connection ended');
  return String(line[0]);
}

/** A place that the `up` at a socket has prepared. */
export interface Prepared {
  readonly words: readonly string[];
  /** Gives the place up. */
  end(): void;
}

/** Asks the `up` at a socket for a place. @throws {Error} where none listens, or there is no such place. */
export async function askControl(path: string, where: Where): Promise<Prepared> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
  } catch (error) {
    const advice = 'start servicenet up, or name its kubeconfig with --kubeconfig';
    throw new Error(`no servicenet up with a cluster network listens at ${path}: ${advice}`, {
      cause: error,
    });
  }
  socket.write(`${JSON.stringify({ where })}\n`);
  const answer: unknown = JSON.parse(await firstLine(socket));
  const words = isRecord(answer) ? answer['words'] : undefined;
  if (Array.isArray(words)) return { words: words.map(String), end: () => void socket.destroy() };
  socket.destroy();
  throw new Error(isRecord(answer) ? String(answer['error']) : 'no answer came');
}
