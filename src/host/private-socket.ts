import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { type Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectSocket, listenWith } from './sockets.ts';

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
