import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** The socket of a running `up`, as commands and the page reach it (`emulation/control-socket.ts` answers). */

/** The socket of the `up` that has written a kubeconfig. */
export function controlSocketPath(kubeconfigPath: string): string {
  return `${kubeconfigPath}.sock`;
}

/** Error codes of the system for a missing socket. */
const noSocket: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EINVAL']);

/** A connection to the `up` at a path; or that it was killed and has left its socket; or that there is nothing. */
export async function connectToUp(path: string): Promise<Socket | 'killed' | 'none'> {
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

/** @throws {Error} where no `up` listens. */
export async function reachUp(path: string): Promise<Socket> {
  const socket = await connectToUp(path);
  const advice = 'start servicenet up, or name its kubeconfig with --kubeconfig';
  if (socket === 'none') {
    throw new Error(`no servicenet up with a cluster network listens at ${path}: ${advice}`);
  }
  if (socket === 'killed') {
    await rm(path, { force: true });
    throw new Error(`the servicenet up at ${path} was killed, and its cluster is gone: ${advice}`);
  }
  return socket;
}

/** The first line that comes. @throws {Error} where the connection ends before. */
export async function lineFrom(socket: Socket): Promise<string> {
  const lines = createInterface({ input: socket });
  const line = await Promise.race([once(lines, 'line'), once(lines, 'close')]);
  lines.close();
  // Without reading, Node.js would not report its end.
  socket.resume();
  if (line.length === 0) throw new Error('the connection ended');
  return String(line[0]);
}

/**
 * Asks the `up` at a socket for flows.
 *
 * @param request as `emulation/control-socket.ts` reads it.
 * @param signal ends it.
 * @returns the lines that come, as JSON.
 * @throws {Error} where no `up` listens.
 */
export async function* askFlows(path: string, request: object, signal: AbortSignal): AsyncGenerator {
  const socket = await reachUp(path);
  const lines = createInterface({ input: socket });
  const end = (): void => void socket.destroy();
  signal.addEventListener('abort', end, { once: true });
  // A connection that breaks has no end that is read.
  socket.on('error', () => undefined).on('close', () => lines.close());
  if (signal.aborted) end();
  try {
    socket.write(`${JSON.stringify({ flows: request })}\n`);
    for await (const line of lines) yield JSON.parse(line);
  } finally {
    signal.removeEventListener('abort', end);
    end();
  }
}
