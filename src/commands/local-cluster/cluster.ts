import { createServer } from 'node:net';
import { MessageChannel } from 'node:worker_threads';
import type { Logger } from 'pino';
import { type Embedded, startEmbedded } from '../../apiserver/embedded.ts';
import type { RefuseRequest } from '../../apiserver/http/exchange.ts';
import type { LocalClusterConfig } from '../../flags/up.ts';
import type { Manifest } from '../apply.ts';
import type { LogConfig } from '../../flags/shared.ts';
import type { ClusterNetwork } from '../../emulation/cluster-network.ts';
import { controlPlaneAddresses, lanCidrs } from '../../emulation/lan.ts';
import { listenPrivately } from '../../host/sockets.ts';
import { type End, endInReverse } from '../signals.ts';
import { familiesOf, networkConfig } from './network.ts';
import { checkerName } from '../../platforms/catalog.ts';
import type { ClientsConfig, ClientsReport, RunningClients, ServerAccess } from './clients.ts';

/** An API server and what runs beside it. */
export interface LocalCluster {
  readonly server: Embedded;
  readonly report: ClientsReport;
  /** Rejects when the controllers die; otherwise never settles. */
  readonly failure: Promise<never>;
  /** Resolves true when the cluster network is ready, false when it ends before; undefined where there is none. */
  readonly networkReady: Promise<boolean> | undefined;
  /** Lets running work of the controllers finish, ends them, then ends open watches and the server. */
  stop(): Promise<void>;
}

/** The settings of a local cluster. */
export interface LocalClusterOptions {
  readonly config: LocalClusterConfig;
  /** To be applied when the controllers run. */
  readonly manifests?: readonly Manifest[];
  readonly log: Logger;
  /** Where Pods are; without, they are only simulated. Ends with the cluster. */
  readonly network?: { readonly open: ClusterNetwork; readonly log: LogConfig } | undefined;
  /** Refuses requests, for tests of clients. */
  readonly refuse?: RefuseRequest;
  /** Starts the clients of the server: `startClients`, in this thread or in another. */
  readonly startClients: (config: ClientsConfig, server: ServerAccess) => Promise<RunningClients>;
}

/**
 * Starts what `servicenet up` and `servicenet/testing` are: the API server, then its clients, which are controllers and
 * simulated nodes. They meet over HTTP alone, as messages where they are in one process.
 *
 * @throws {Error} when one of them cannot start; then nothing of them is left.
 */
export async function startLocalCluster(options: LocalClusterOptions): Promise<LocalCluster> {
  const { config, manifests = [], log, refuse, network } = options;
  const server = await startEmbedded({
    bindAddress: config.bindAddress,
    port: config.port,
    extraHosts: config.extraHosts,
    serviceCidrs: config.serviceCidrs,
    nodePorts: config.nodePorts,
    authorizationMode: config.authorizationMode,
    platform: config.platform,
    gatewayApi: config.gatewayApi,
    allocation: config.allocation,
    log,
    ...(refuse === undefined ? {} : { refuse }),
    ...(config.token === undefined ? {} : { adminToken: config.token }),
    ...(config.dataDir === undefined ? {} : { dataDirectory: config.dataDir }),
    ...(network === undefined ? {} : placeOnLan(config, network.open)),
    // Objects that only look like Pods read no token.
    admitServiceAccounts:
      network !== undefined && accountControllers.every((name) => config.controllers.includes(name)),
  });
  const started: End[] = [() => server.close()];
  try {
    const { url, ca, token } = server;
    // The clients are in this process: TLS to it would be a quarter of the CPU of a start, for ninety connections.
    const listener = createServer((connection) => server.acceptPlain(connection));
    const way = await listenPrivately(listener);
    started.push(() => {
      listener.close();
      way?.close();
      return Promise.resolve();
    });
    // Requests of the clients, which are most of all in a cluster at rest, come as messages.
    const thread = new MessageChannel();
    server.acceptThread(thread.port1);
    started.push(() => {
      thread.port1.close();
      return Promise.resolve();
    });
    const access = { url, ca, token, socketPath: way?.path, thread: thread.port2 };
    const kubelet = server.issueKubeletCertificate(['kubelet']);
    const networkReady = network?.open.start(
      networkConfig(config, server.port, access, kubelet, network.log, network.open),
      {
        tls: (connection) => server.accept(connection),
        plain: (connection) => server.acceptPlain(connection),
      },
    );
    // Its user may wait for it later.
    networkReady?.catch(() => undefined);
    const clients = await options.startClients(
      clientsConfig(config, manifests, network !== undefined),
      access,
    );
    started.push(() => clients.stop());
    if (network !== undefined) started.push(() => network.open.close());
    const { report, failure } = clients;
    return { server, report, failure, networkReady, stop: () => endInReverse(started) };
  } catch (error) {
    // The process inside is a client of the server, and would log that it is gone.
    await network?.open.close();
    await endInReverse(started);
    throw error;
  }
}

/** Tokens for the volumes of Pods. */
const accountControllers = ['serviceaccount-controller', 'root-ca-certificate-publisher-controller'];

/** The API server at the control plane's place of the cluster network. */
function placeOnLan(config: LocalClusterConfig, network: ClusterNetwork) {
  const families = familiesOf(config);
  const addresses = controlPlaneAddresses(families);
  const [advertiseAddress = ''] = addresses;
  return {
    extraHosts: [...config.extraHosts, ...addresses],
    advertiseAddress,
    ...{ dialPod: network.dial, lanCidrs: lanCidrs(families) },
  };
}

/** The part of a configuration that is for the clients. */
function clientsConfig(
  config: LocalClusterConfig,
  manifests: readonly Manifest[],
  hasNetwork: boolean,
): ClientsConfig {
  const { nodes, clusterCidrs, allocation, nodePorts, addressPool, metrics, platform } = config;
  // With a network, what goes into that of Pods runs inside.
  const isInside = (name: string): boolean => hasNetwork && (name === 'kubelet' || name === checkerName);
  const controllers = config.controllers.filter((name) => !isInside(name));
  const serviceClusterIpRange = config.serviceCidrs.map(({ range }) => range.text).join(',');
  return {
    ...{ nodes, clusterCidrs, controllers, allocation, nodePorts, addressPool, metrics, platform },
    attachments: config.attachments,
    missingImages: config.missingImages,
    serviceClusterIpRange,
    manifests,
  };
}
