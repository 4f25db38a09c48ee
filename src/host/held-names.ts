import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/** Names that this process has, or one that another process has. */
export type Holding = { readonly release: () => void } | { readonly taken: string };

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
