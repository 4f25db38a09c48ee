import { once } from 'node:events';
import { rename, rm, stat } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Logger } from 'pino';
import { isRecord } from '../objects/json.ts';
import type { Target } from './protocol.ts';
import type { ClusterNetwork, Entered } from './cluster-network.ts';
import { errorMessage } from '../objects/status.ts';

/** The socket of the `up` that has written a kubeconfig. */
export function controlSocketPath(kubeconfigPath: string): string {
  return `${kubeconfigPath}.sock`;
}

/** Bytes of a path that Linux has room for (`struct sockaddr_un`). */
const maxPathBytes = 107;

/**
 * Removes the socket of an `up` that was killed.
 *
 * @returns whether one was there, or an `up` runs that listens; false: neither.
 * @throws the system's error where it cannot be looked at.
 */
export async function clearControl(path: string): Promise<'killed' | 'running' | false> {
  const found = await connectTo(path);
  if (found === 'none') return false;
  if (found === 'killed') {
    await rm(path, { force: true });
    return found;
  }
  found.destroy();
  return 'running';
}

/** Error codes of the system for a missing socket. */
const noSocket: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EINVAL']);

/** A connection to the `up` at a path; or that it was killed and has left its socket; or that there is nothing. */
async function connectTo(path: string): Promise<Socket | 'killed' | 'none'> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return socket;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ECONNREFUSED') return 'killed';
    // Also for a path that no socket can have: writing the kubeconfig there reports it.
    if (code !== undefined && noSocket.has(code)) return 'none';
    throw error;
  }
}

/** What an `up` has for the commands beside it. */
export interface Controlled {
  /** Undefined: there is none. */
  readonly network: ClusterNetwork | undefined;
  /** The link to its page; undefined: it has none. */
  readonly pageLink: string | undefined;
}

/** The answering of `servicenet run` and `servicenet page`. */
export interface ControlServer {
  /** Ends it, and removes its socket unless another `up` has put its own there. */
  close(): Promise<void>;
}

/**
 * Answers `servicenet run`: a line of JSON, `{"where":…,"folder":…}`, is answered with a line, `{"words":[…]}` or
 * `{"error":…}`; and `servicenet page`: `{"page":{}}` with `{"link":…}`. The names stay: they and `up` may be of different
 * versions. The location is kept for as long as the connection. Only the user of this process can connect. A socket that is there is
 * replaced.
 *
 * @returns undefined where the path is too long.
 * @throws the system's error.
 */
export async function serveControl(
  path: string,
  controlled: Controlled,
  log: Logger,
): Promise<ControlServer | undefined> {
  // Node.js removes the path that it listened at, even if another process has it by then: the socket is made beside it.
  const made = `${path}.${process.pid}`;
  if (Buffer.byteLength(made) > maxPathBytes) {
    log.warn({ path }, 'no servicenet run: the path of the kubeconfig is too long for a socket beside it');
    return undefined;
  }
  await rm(made, { force: true });
  const server = createServer((socket) => {
    serve(socket, controlled).catch((error: unknown) => {
      const message = errorMessage(error);
      // A client may go away before it has asked, and the network while its program runs.
      if (socket.writable) socket.end(`${JSON.stringify({ error: message })}\n`);
      else log.debug({ err: error }, 'a servicenet run has gone away');
    });
  });
  // The file is made in this call: there is no moment at which others could connect.
  const mask = process.umask(0o177);
  server.listen(made);
  process.umask(mask);
  await once(server, 'listening');
  server.on('error', (error) => log.warn({ err: error }, 'a servicenet run could not be accepted'));
  const { ino } = await stat(made);
  await rename(made, path);
  return {
    close: async () => {
      server.close();
      const present = await stat(path).catch(() => undefined);
      if (present?.ino === ino) await rm(path, { force: true });
    },
  };
}

async function serve(socket: Socket, { network, pageLink }: Controlled): Promise<void> {
  socket.on('error', () => undefined);
  // `once` would reject for a connection that is reset before the promise is awaited.
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const request: unknown = JSON.parse(await firstLine(socket));
  if (isRecord(request) && isRecord(request['page'])) {
    const link = pageLink === undefined ? { error: 'it has no page (--page=off)' } : { link: pageLink };
    socket.end(`${JSON.stringify(link)}\n`);
    return;
  }
  const target = isRecord(request) ? request['where'] : undefined;
  if (!isTarget(target)) throw new Error('a request has a member "where"');
  if (network === undefined) throw new Error('this servicenet up has no cluster network');
  const folder = isRecord(request) ? request['folder'] : undefined;
  const entered: Entered = await network.enter(target, typeof folder === 'string' ? folder : undefined);
  socket.write(`${JSON.stringify({ words: entered.argv })}\n`);
  await closed;
  await entered.release();
}

/** Both ends are ours, though perhaps of different versions. */
function isTarget(value: unknown): value is Target {
  return isRecord(value) && typeof value['kind'] === 'string';
}

async function firstLine(socket: Socket): Promise<string> {
  const lines = createInterface({ input: socket });
  const line = await Promise.race([once(lines, 'line'), once(lines, 'close')]);
  lines.close();
  // Without reading, Node.js would not report its end.
  socket.resume();
  if (line.length === 0) throw new Error('the connection ended');
  return String(line[0]);
}

/** A location that the `up` at a socket has prepared. */
export interface Prepared {
  /** The command line before the program. */
  readonly argv: readonly string[];
  /** Gives the location up. */
  end(): void;
}

/**
 * Asks the `up` at a socket for a location, for a program that begins in the folder of this process. Removes the socket
 * of one that was killed.
 *
 * @throws {Error} where none listens, or there is no such target.
 */
export async function askControl(path: string, target: Target): Promise<Prepared> {
  const socket = await connectTo(path);
  const advice = 'start servicenet up, or name its kubeconfig with --kubeconfig';
  if (socket === 'none') {
    throw new Error(`no servicenet up with a cluster network listens at ${path}: ${advice}`);
  }
  if (socket === 'killed') {
    await rm(path, { force: true });
    throw new Error(`the servicenet up at ${path} was killed, and its cluster is gone: ${advice}`);
  }
  socket.write(`${JSON.stringify({ where: target, folder: process.cwd() })}\n`);
  const answer: unknown = JSON.parse(await firstLine(socket));
  const argv = isRecord(answer) ? answer['words'] : undefined;
  if (Array.isArray(argv)) return { argv: argv.map(String), end: () => void socket.destroy() };
  socket.destroy();
  throw new Error(isRecord(answer) ? String(answer['error']) : 'no answer came');
}

/** Asks the `up` at a socket for the link to its page; undefined where none listens, or it has none. */
export async function askPageLink(path: string): Promise<string | undefined> {
  const socket = await connectTo(path);
  if (socket === 'none' || socket === 'killed') return undefined;
  socket.on('error', () => undefined);
  socket.write(`${JSON.stringify({ page: {} })}\n`);
  const answer: unknown = JSON.parse(await firstLine(socket));
  socket.destroy();
  const link = isRecord(answer) ? answer['link'] : undefined;
  return typeof link === 'string' ? link : undefined;
}
