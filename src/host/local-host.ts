import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { Readable } from 'node:stream';
import {
  asError,
  type ExecOptions,
  type ExecResult,
  ProgramMissingError,
  type Host,
  type KernelParameters,
  type NetlinkHost,
} from './host.ts';
import { createSocket } from 'node:dgram';
import { Socket, isIPv6, type Server } from 'node:net';
import { readFile, writeFile } from 'node:fs/promises';
import { bindSocket, connectSocket, listenWith } from './sockets.ts';

/**
 * Where no descriptor is left for its streams, Node.js makes a child without any, whose error comes later: without a
 * listener it would end this process. Called right behind `spawn` and `fork`.
 *
 * @throws {Error} with the code EMFILE; also where the system has none left.
 */
export function checkStreams(
  child: Pick<ChildProcess, 'on' | 'spawnfile'> & { readonly stdio?: readonly unknown[] },
): void {
  if (child.stdio !== undefined) return;
  child.on('error', () => undefined);
  const message = `spawn ${child.spawnfile}: no file descriptor is left`;
  throw Object.assign(new Error(message), { code: 'EMFILE' });
}

/**
 * Runs a program of this process's own machine to its end: {@link Host.exec} there. Also what implementations of Host
 * for namespaces begin with.
 */
export function run(
  program: string,
  args: readonly string[],
  { input = '', output, signal }: ExecOptions = {},
): Promise<ExecResult> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    checkStreams(child);
    let failure: Error | undefined;
    const end = (reason: unknown): void => {
      failure ??= asError(reason);
      child.kill('SIGKILL');
    };
    const abort = (): void => end(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    feed(child, input, end);
    const printed = { stdout: '', stderr: '' };
    const keep = (name: keyof typeof printed, take: (text: string) => void): void => {
      child[name].setEncoding('utf8');
      child[name].on('data', (text: string) => {
        try {
          if (failure === undefined) take(text);
        } catch (error) {
          end(error);
        }
      });
    };
    keep('stdout', output ?? ((text) => (printed.stdout += text)));
    keep('stderr', (text) => (printed.stderr += text));
    child.on('error', (error: NodeJS.ErrnoException) => {
      signal?.removeEventListener('abort', abort);
      // EACCES is what a folder of PATH that may not be read makes of a program that is nowhere.
      const isMissing = error.code === 'ENOENT' || error.code === 'EACCES';
      reject(isMissing ? new ProgramMissingError(program) : error);
    });
    child.on('close', (code, endedBy) => {
      signal?.removeEventListener('abort', abort);
      if (failure !== undefined) {
        reject(failure);
        return;
      }
      resolve({ exitCode: code ?? (endedBy === null ? 1 : 128 + constants.signals[endedBy]), ...printed });
    });
  });
}

/** @param failed gets what the input threw. */
function feed(
  { stdin }: ChildProcessWithoutNullStreams,
  input: NonNullable<ExecOptions['input']>,
  failed: (error: unknown) => void,
): void {
  // A program that ends before it has read all of its input reports why by its exit code.
  stdin.on('error', () => undefined);
  if (typeof input === 'string') {
    stdin.end(input);
    return;
  }
  const pieces = Readable.from(input, { highWaterMark: 1 });
  pieces.on('error', failed);
  stdin.on('close', () => pieces.destroy());
  pieces.pipe(stdin);
}

/** Kernel parameters in a folder; in a container, that of the machine may be mounted elsewhere than at /proc/sys. */
export function sysctlIn(folder: string): KernelParameters {
  return {
    async get(name) {
      try {
        return (await readFile(`${folder}/${name}`, 'utf8')).trim();
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
        throw error;
      }
    },
    async set(name, value) {
      await writeFile(`${folder}/${name}`, value, { flag: 'r+' });
    },
  };
}

/** @param sharing whether ports are shared with other processes of this user (SO_REUSEPORT). */
function machine(sharing: boolean): NetlinkHost {
  // Of two that ask for any free port, and share, the kernel may give both the same.
  const reusePort = (port: number): { readonly reusePort?: true } =>
    sharing && port !== 0 ? { reusePort: true } : {};
  return {
    exec: run,
    sysctl: sysctlIn('/proc/sys'),

    listen(server: Server, address, port) {
      return listenWith(server, { host: address, port, ipv6Only: isIPv6(address), ...reusePort(port) });
    },

    connect: (address, port, { signal, from } = {}) =>
      connectSocket(
        new Socket(),
        { host: address, port, ...(from === undefined ? {} : { localAddress: from }) },
        signal,
      ),

    datagram(address, port) {
      const isV6 = isIPv6(address);
      const socket = createSocket({ type: isV6 ? 'udp6' : 'udp4', ipv6Only: isV6, ...reusePort(port) });
      return bindSocket(socket, { port, address });
    },

    async netlink(groups) {
      const { openNetlink } = await import('./netlink-socket.ts');
      return openNetlink(groups);
    },
  };
}

/** The machine, and the network namespace, that this process runs in. */
export const localHost: NetlinkHost = machine(false);

/**
 * The same for processes that do one work: each port that they all ask for is bound by each, and the kernel gives every
 * connection to one of them, and all datagrams of one sender too.
 */
export const portSharingHost: Host = machine(true);
