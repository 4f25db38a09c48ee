import type { Logger } from 'pino';
import { type Embedded, startEmbedded } from '../../apiserver/embedded.ts';
import type { RefuseRequest } from '../../apiserver/http/refusal.ts';
import type { LocalClusterConfig } from '../../config/local-cluster.ts';
import type { Manifest } from '../apply.ts';
import { endInReverse } from '../ending.ts';
import type { ClientsConfig, ClientsReport, RunningClients, ServerAccess } from './clients.ts';

/** An API server and what runs beside it. */
export interface LocalCluster {
  readonly server: Embedded;
  readonly report: ClientsReport;
  /** Rejects when the controllers die; otherwise never settles. */
  readonly failure: Promise<never>;
  /** Lets running work of the controllers finish, ends them, then ends open watches and the server. */
  stop(): Promise<void>;
}

/** What a local cluster is started with. */
export interface LocalClusterOptions {
  readonly config: LocalClusterConfig;
  /** To be applied when the controllers run. */
  readonly manifests?: readonly Manifest[];
  readonly log: Logger;
  /** Refuses requests, for tests of clients. */
  readonly refuse?: RefuseRequest;
  /** Starts the clients of the server: `startClients`, in this thread or in another. */
  readonly startClients: (config: ClientsConfig, server: ServerAccess) => Promise<RunningClients>;
}

/**
 * Starts what `servicenet up` and `servicenet/testing` are: the API server, then its clients, which are controllers and
 * simulated nodes. They meet over HTTP alone.
 *
 * @throws {Error} when one of them cannot start; then nothing of them is left.
 */
export async function startLocalCluster(options: LocalClusterOptions): Promise<LocalCluster> {
  const { config, manifests = [], log, refuse } = options;
  const server = await startEmbedded({
    bindAddress: config.bindAddress,
    port: config.port,
    serviceCidrs: config.serviceCidrs,
    nodePorts: config.nodePorts,
    authorizationMode: config.authorizationMode,
    allocation: config.allocation,
    log,
    ...(refuse === undefined ? {} : { refuse }),
    ...(config.token === undefined ? {} : { adminToken: config.token }),
    ...(config.dataDir === undefined ? {} : { dataDirectory: config.dataDir }),
  });
  try {
    const { url, ca, token } = server;
    const clients = await options.startClients(clientsConfig(config, manifests), { url, ca, token });
    return {
      server,
      report: clients.report,
      failure: clients.failure,
      stop: () => endInReverse([() => server.close(), () => clients.stop()]),
    };
  } catch (error) {
    await server.close();
    throw error;
  }
}

/** The part of a configuration that is for the clients. */
function clientsConfig(config: LocalClusterConfig, manifests: readonly Manifest[]): ClientsConfig {
  const { nodes, clusterCidrs, controllers, allocation, nodePorts, addressPool, metricsBindAddress } = config;
  const serviceClusterIpRange = config.serviceCidrs.map(({ range }) => range.text).join(',');
  return {
    ...{ nodes, clusterCidrs, controllers, allocation, nodePorts, addressPool, metricsBindAddress },
    serviceClusterIpRange,
    manifests,
  };
}
