import {
  ProgramMissingError,
  type Host,
  type KernelParameters,
  type NetlinkGroups,
  type NetlinkHost,
} from '../host/host.ts';
import { call, linux, setOption } from '../host/libc.ts';
import { run } from '../host/local-host.ts';
import { openNetlink } from '../host/netlink-socket.ts';
import { bindSocket, connectSocket, listenWith } from '../host/sockets.ts';
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { isIPv6, type Server, Socket } from 'node:net';
import { parseStrictAddress } from '../objects/address.ts';
import { createSocket } from 'node:dgram';
import { namespaceFolder } from './namespace-folder.ts';

/**
 * Runs lines of `ip -batch` (package iproute2), in the namespace of this process or in a named one.
 *
 * @throws {Error} with the message of `ip` about the line that failed; lines before it were done.
 */
export async function ip(lines: readonly string[], namespace?: string): Promise<void> {
  const inside = namespace === undefined ? [] : ['-n', namespace];
  const input = `${lines.join('\n')}\n`;
  const { exitCode, stderr } = await run('ip', [...inside, '-batch', '-'], { input }).catch(
    (error: unknown) => {
      if (!(error instanceof ProgramMissingError)) throw error;
      throw new Error('there is no ip: install the package iproute2', { cause: error });
    },
  );
  if (exitCode === 0) return;
  const [said = ''] = stderr.split('\n');
  const [, line = ''] = /-:(\d+)/.exec(stderr) ?? [];
  throw new Error(`ip ${lines[Number(line) - 1] ?? ''}: ${said}`);
}

/**
 * Network namespaces, entered by libc: Node.js has no call for it. Only the main thread enters, and synchronously; the
 * threads of libuv stay where they began, which is enough for files.
 */

/** The namespace that this process began in. */
const home = openSync('/proc/self/ns/net', 'r');

/** A network namespace that `ip netns add` has made. */
export class NetworkNamespace {
  readonly name: string;
  readonly path: string;
  readonly #descriptor: number;

  /** @throws the system's error where there is none of this name. */
  constructor(name: string) {
    this.name = name;
    this.path = `${namespaceFolder}/${name}`;
    this.#descriptor = openSync(this.path, 'r');
  }

  /**
   * An unbound socket of this namespace, for `server.listen({ fd })` and its like: sockets stay where they are made.
   *
   * @throws the system's error.
   */
  socket(type: 'stream' | 'datagram', family: 'IPv4' | 'IPv6'): number {
    const domain = family === 'IPv6' ? linux.afInet6 : linux.afInet;
    const kind = type === 'stream' ? linux.sockStream : linux.sockDgram;
    return this.#inside(() => call('socket', domain, kind | linux.sockNonBlockAndCloseOnExec, 0));
  }

  /** A socket bound to an address; `::` is every IPv6 address and no IPv4 one. @throws the system's error. */
  boundSocket(type: 'stream' | 'datagram', address: string, port: number): number {
    const descriptor = this.socket(type, isIPv6(address) ? 'IPv6' : 'IPv4');
    try {
      // As libuv does it: a server listens again although connections of the last one linger. For UDP it would share the port.
      if (type === 'stream') setOption(descriptor, linux.solSocket, linux.soReuseAddr, 1);
      if (isIPv6(address)) setOption(descriptor, linux.ipprotoIpv6, linux.ipv6Only, 1);
      const bytes = socketAddress(address, port);
      call('bind', descriptor, bytes, bytes.length);
      return descriptor;
    } catch (error) {
      closeSync(descriptor);
      throw error;
    }
  }

  /** {@link NetlinkHost.netlink} of this namespace. */
  netlink(groups: NetlinkGroups): number {
    return this.#inside(() => openNetlink(groups));
  }

  /** Whether its kernel has a parameter. */
  hasSysctl(name: string): boolean {
    return this.#inside(() => existsSync(`/proc/sys/${name}`));
  }

  /** Reads a file of /proc/sys/net as this namespace has it. @throws the system's error. */
  readSysctl(name: string): string {
    return this.#inside(() => readFileSync(`/proc/sys/${name}`, 'utf8'));
  }

  /** @throws the system's error. */
  writeSysctl(name: string, value: string): void {
    this.#inside(() => writeFileSync(`/proc/sys/${name}`, value, { flag: 'r+' }));
  }

  /** Forgets it. The kernel keeps a namespace for as long as sockets of it are open. */
  close(): void {
    closeSync(this.#descriptor);
  }

  /** @param work is synchronous, starts no process and no thread. */
  #inside<T>(work: () => T): T {
    call('setns', this.#descriptor, linux.cloneNewNet);
    try {
      return work();
    } finally {
      call('setns', home, linux.cloneNewNet);
    }
  }
}

/** `struct sockaddr_in` and `sockaddr_in6`; the family is in the byte order of the machine, which is little-endian. */
function socketAddress(address: string, port: number): Buffer {
  const parsed = parseStrictAddress(address);
  if (parsed === undefined) throw new Error(`"${address}" is no address`);
  const { family, value } = parsed;
  const bytes = Buffer.alloc(family === 'IPv6' ? 28 : 16);
  bytes.writeUInt16LE(family === 'IPv6' ? linux.afInet6 : linux.afInet, 0);
  bytes.writeUInt16BE(port, 2);
  if (family === 'IPv4') bytes.writeUInt32BE(Number(value), 4);
  else bytes.write(value.toString(16).padStart(32, '0'), 8, 'hex');
  return bytes;
}

/** The messages of `nsenter` about a program that it does not find; it exits with 127 or 126 then. */
const programMissing = /^nsenter: failed to execute /;

/** A network namespace as a machine: programs are those of this machine, run by `nsenter` (package util-linux). */
export class NamespaceHost implements NetlinkHost {
  readonly sysctl: KernelParameters;
  readonly #namespace: NetworkNamespace;

  constructor(namespace: NetworkNamespace) {
    this.#namespace = namespace;
    this.sysctl = {
      // Synchronous behind promises: nothing else may run while the thread is in another namespace.
      get: (name) => new Promise((resolve) => resolve(readSysctl(namespace, name))),
      set: (name, value) =>
        new Promise((resolve) => {
          namespace.writeSysctl(name, value);
          resolve();
        }),
    };
  }

  exec: Host['exec'] = async (program, args, options) => {
    const result = await run('nsenter', [`--net=${this.#namespace.path}`, '--', program, ...args], options);
    if (result.exitCode >= 126 && programMissing.test(result.stderr)) throw new ProgramMissingError(program);
    return result;
  };

  listen: Host['listen'] = async (server: Server, address, port) => {
    const fd = this.#namespace.boundSocket('stream', address, port);
    await listenWith(server, { fd });
  };

  connect: Host['connect'] = async (address, port, { signal, from } = {}) => {
    signal?.throwIfAborted();
    const fd =
      from === undefined
        ? this.#namespace.socket('stream', isIPv6(address) ? 'IPv6' : 'IPv4')
        : this.#namespace.boundSocket('stream', from, 0);
    return await connectSocket(new Socket({ fd }), { host: address, port }, signal);
  };

  datagram: Host['datagram'] = async (address, port) => {
    const fd = this.#namespace.boundSocket('datagram', address, port);
    return await bindSocket(createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4' }), { fd });
  };

  netlink: NetlinkHost['netlink'] = (groups) =>
    new Promise((resolve) => resolve(this.#namespace.netlink(groups)));
}

function readSysctl(namespace: NetworkNamespace, name: string): string | undefined {
  try {
    return namespace.readSysctl(name).trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
