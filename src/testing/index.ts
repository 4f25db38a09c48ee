/** `servicenet/testing`: a Kubernetes API server in the process of a test. */
import { pino } from 'pino';
import { createTransport } from '../client/connect.ts';
import type { Transport } from '../client/transport.ts';
import { startClients } from '../commands/local-cluster/clients.ts';
import { startLocalCluster } from '../commands/local-cluster/cluster.ts';
import { createLog } from '../telemetry/log.ts';
import { testServerConfig, type TestServerOptions } from './options.ts';

export type { TestServerOptions } from './options.ts';

/** An API server in this process, for tests. */
export interface TestServer {
  readonly url: string;
  /** The administrator's bearer token. */
  readonly token: string;
  /** PEM of the server's authority. */
  readonly ca: string;
  /** A kubeconfig as text. */
  readonly kubeconfig: string;
  /** Sends requests as the administrator. */
  readonly client: Transport;
  /** Ends the controllers and open watches, closes the client and the server. */
  stop(): Promise<void>;
}

/**
 * Starts an API server, and the controllers that are asked for, in this process. Any number may run at once.
 *
 * @throws {Error} naming the option that is unknown or has a wrong value, with what it takes; when the server or a
 * controller cannot start. Then nothing of it is left.
 */
export async function startApiServer(options: TestServerOptions = {}): Promise<TestServer> {
  const config = testServerConfig(options);
  const { logLevel: level } = config;
  const log = level === 'silent' ? pino({ enabled: false }) : createLog({ level, format: 'pretty' });
  const cluster = await startLocalCluster({
    config,
    log,
    ...(config.refuse === undefined ? {} : { refuse: config.refuse }),
    startClients: (clients, server) => startClients(clients, server, log),
  });
  const { url, token, ca, kubeconfig } = cluster.server;
  const client = await createTransport({ kind: 'endpoint', url, ca, token }).catch(async (error: unknown) => {
    await cluster.stop();
    throw error;
  });
  return {
    url,
    token,
    ca,
    kubeconfig,
    client,
    stop: async () => {
      await client.close();
      await cluster.stop();
    },
  };
}
