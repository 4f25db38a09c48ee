import { createServer, type Server, type Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Host } from '../../host/host.ts';
import type { PlannedEndpoint } from '../../network/forwarding/forwarding-plan.ts';
import type { Listener } from './listener.ts';

/** The target of a connection, by the client's address; undefined: it is refused. */
export type ChooseEndpoint = (client: string) => PlannedEndpoint | undefined;

/** Milliseconds after which an endpoint that does not answer is given up, as a client would. */
const connectTimeoutMs = 30_000;

/**
 * Accepts connections to one address and port, and connects each to an endpoint. Ends of one direction and resets pass
 * through. Connections that are open go on when the listener is closed: kube-proxy cuts none either.
 */
export class TcpListener implements Listener {
  readonly #server: Server;
  readonly #clients: ReadonlySet<Socket>;

  private constructor(server: Server, clients: ReadonlySet<Socket>) {
    this.#server = server;
    this.#clients = clients;
  }

  /** @throws the system's error where the address cannot be listened on. */
  static async open(
    host: Host,
    address: string,
    port: number,
    choose: ChooseEndpoint,
    log: Logger,
  ): Promise<TcpListener> {
    const clients = new Set<Socket>();
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (client) => {
      // An error event without a listener would end the process: the client may leave before the endpoint is connected.
      client.on('error', () => undefined);
      clients.add(client);
      client.on('close', () => clients.delete(client));
      forward(host, client, choose(client.remoteAddress ?? '')).catch((error: unknown) => {
        log.debug({ err: error, address, port }, 'a connection could not be forwarded');
        client.resetAndDestroy();
      });
    });
    await host.listen(server, address, port);
    return new TcpListener(server, clients);
  }

  get isInUse(): boolean {
    return this.#clients.size > 0;
  }

  close(): void {
    this.#server.close();
  }
}

async function forward(host: Host, client: Socket, endpoint: PlannedEndpoint | undefined): Promise<void> {
  if (endpoint === undefined) {
    client.resetAndDestroy();
    return;
  }
  const server = await host.connect(endpoint.address, endpoint.port, {
    signal: AbortSignal.timeout(connectTimeoutMs),
  });
  server.allowHalfOpen = true;
  server.setNoDelay(true);
  for (const [from, to] of [
    [client, server],
    [server, client],
  ] as const) {
    from.on('error', () => to.resetAndDestroy());
    from.pipe(to);
  }
  if (client.destroyed) server.resetAndDestroy();
}
