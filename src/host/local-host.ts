import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { isIPv6, type Server, Socket } from 'node:net';
import type { Host, Sysctl } from './host.ts';
import { run } from './run.ts';

const sysctl: Sysctl = {
  async get(name) {
    try {
      return (await readFile(`/proc/sys/${name}`, 'utf8')).trim();
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    }
  },
  async set(name, value) {
    await writeFile(`/proc/sys/${name}`, value, { flag: 'r+' });
  },
};

/** The machine, and the network namespace, that this process runs in. */
export const localHost: Host = {
  exec: run,
  sysctl,

  async listen(server: Server, address, port) {
    const listening = once(server, 'listening');
    server.listen({ host: address, port, ipv6Only: isIPv6(address) });
    await listening;
  },

  async connect(address, port, signal) {
    const socket = new Socket();
    const connected = once(socket, 'connect', signal === undefined ? {} : { signal });
    socket.connect({ host: address, port });
    try {
      await connected;
    } catch (error) {
      socket.destroy();
      throw signal?.aborted === true ? signal.reason : error;
    }
    return socket;
  },

  async datagram(address, port): Promise<DatagramSocket> {
    const isV6 = isIPv6(address);
    const socket = createSocket({ type: isV6 ? 'udp6' : 'udp4', ipv6Only: isV6 });
    const bound = once(socket, 'listening');
    socket.bind(port, address);
    try {
      await bound;
    } catch (error) {
      socket.close();
      throw error;
    }
    return socket;
  },
};
