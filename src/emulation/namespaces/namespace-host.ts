import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6, type Server, Socket } from 'node:net';
import { type Host, ProgramMissingError, type KernelParameters } from '../../host/host.ts';
import { run } from '../../host/run.ts';
import { bindSocket, connectSocket } from '../../host/sockets.ts';
import type { NetworkNamespace } from './network-namespace.ts';

/** The messages of `nsenter` about a program that it does not find; it exits with 127 or 126 then. */
const programMissing = /^nsenter: failed to execute /;

/** A network namespace as a machine: programs are those of this machine, run by `nsenter` (package util-linux). */
export class NamespaceHost implements Host {
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
    const listening = once(server, 'listening');
    server.listen({ fd });
    await listening;
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
}

function readSysctl(namespace: NetworkNamespace, name: string): string | undefined {
  try {
    return namespace.readSysctl(name).trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
