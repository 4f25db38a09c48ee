import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { Logger } from 'pino';
import type { PublishedPort } from '../../config/up.ts';
import type { ClusterNetwork } from '../../emulation/cluster-network.ts';

/**
 * Listens on a port of 127.0.0.1 and leads its connections to a port of a Service. The Service may come later.
 *
 * @throws {Error} where the port is in use, or the system's error.
 */
export async function publish(
  { port, namespace, service, servicePort }: PublishedPort,
  network: ClusterNetwork,
  log: Logger,
): Promise<Server> {
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (client) => {
    client.on('error', () => undefined);
    network.dialService(namespace, service, servicePort).then(
      (inside) => join(client, inside),
      (error: unknown) => {
        log.warn({ port, err: error }, 'a connection to a published port leads nowhere');
        client.destroy();
      },
    );
  });
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    const isTaken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    if (!isTaken) throw error;
    const advice = 'choose another one, or end what listens there';
    throw new Error(`--publish: port ${port} of 127.0.0.1 is in use: ${advice}`, { cause: error });
  }
  return server;
}

/** Both directions, with the end of each; what breaks one side breaks the other. */
function join(client: Socket, inside: Socket): void {
  inside.on('error', () => undefined);
  inside.once('close', () => client.destroy());
  client.once('close', () => inside.destroy());
  client.pipe(inside);
  inside.pipe(client);
}
