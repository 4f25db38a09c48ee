import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { isIPv6, type Server, Socket } from 'node:net';
import type { Host, KernelParameters } from './host.ts';
import { run } from './run.ts';
import { bindSocket, connectSocket } from './sockets.ts';

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

/** The machine, and the network namespace, that this process runs in. */
export const localHost: Host = {
  exec: run,
  sysctl: sysctlIn('/proc/sys'),

  async listen(server: Server, address, port) {
    const listening = once(server, 'listening');
    server.listen({ host: address, port, ipv6Only: isIPv6(address) });
    await listening;
  },

  connect: (address, port, { signal, from } = {}) =>
    connectSocket(
      new Socket(),
      { host: address, port, ...(from === undefined ? {} : { localAddress: from }) },
      signal,
    ),

  datagram(address, port) {
    const isV6 = isIPv6(address);
    return bindSocket(createSocket({ type: isV6 ? 'udp6' : 'udp4', ipv6Only: isV6 }), { port, address });
  },
};
