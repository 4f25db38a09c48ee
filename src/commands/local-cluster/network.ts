import { resolve } from 'node:path';
import type { Logger } from 'pino';
import { parseAddressRange } from '../../allocation/address-range.ts';
import { kubeconfig } from '../../apiserver/pki/identity.ts';
import { kubeletClientName } from '../../apiserver/embedded.ts';
import type { CertificatePair } from '../../tls/certificates.ts';
import type { LogConfig } from '../../flags/shared.ts';
import type { LocalClusterConfig, PublishedPort } from '../../flags/up.ts';
import { attachmentsName, checkerName } from '../../platforms/catalog.ts';
import type { ClusterNetwork } from '../../emulation/cluster-network.ts';
import { programNamed } from '../../emulation/containers/images.ts';
import type { NetworkConfig } from '../../emulation/protocol.ts';
import { controlPlaneAddresses, overlappingLan } from '../../emulation/lan.ts';
import { localChoices } from '../choices.ts';
import { localHost } from '../../host/local-host.ts';
import type { IPFamily } from '../../objects/address.ts';
import { errorMessage } from '../../objects/status.ts';
import { entries } from '../../paths.ts';
import type { ServerAccess } from './clients.ts';
import { createServer, type Server, type Socket } from 'node:net';

/** A machine for more nodes than this takes more memory than one expects of a default: `--network=on` makes them too. */
const maxNodes = 50;

/**
 * Makes the cluster network by `--network`; with `auto`, one line is logged if there is none.
 *
 * @returns undefined if there is none.
 * @throws {NetworkUnavailableError} with `on`.
 */
export async function openNetwork(
  config: LocalClusterConfig,
  log: Logger,
): Promise<ClusterNetwork | undefined> {
  if (config.network === 'off' || (config.network === 'auto' && config.nodes === 0)) return undefined;
  const [network, { NetworkUnavailableError }] = await Promise.all([
    import('../../emulation/cluster-network.ts'),
    import('../../emulation/network-sandbox.ts'),
  ]);
  try {
    const obstacle = obstacleOf(config);
    if (obstacle !== undefined) throw new NetworkUnavailableError(obstacle);
    return await network.ClusterNetwork.open(
      { families: familiesOf(config), entry: entries.networkProcess },
      log,
    );
  } catch (error) {
    if (!(error instanceof NetworkUnavailableError) || config.network === 'on') throw error;
    log.warn(
      { reason: 'NoClusterNetwork' },
      `Pods are only simulated, there is no cluster network: ${error.message} (or choose --network=off)`,
    );
    return undefined;
  }
}

function obstacleOf({ clusterCidrs, serviceCidrs, addressPool = [], nodes, network }: LocalClusterConfig) {
  const ranges = [...clusterCidrs, ...serviceCidrs.map(({ range }) => range.text), ...addressPool];
  const taken = overlappingLan(ranges);
  const ofPods = clusterCidrs.flatMap((cidr) => parseAddressRange(cidr) ?? []);
  const both = ofPods.find((range) => serviceCidrs.some((services) => services.range.overlaps(range)));
  if (both !== undefined) return `${both.text} is for Pods and for Services: choose another --cluster-cidr`;
  if (taken !== undefined) return `${taken} has addresses of the simulated machines: choose another range`;
  if (network === 'auto' && nodes > maxNodes) {
    return `${nodes} nodes are more than ${maxNodes}: --network=on makes a machine for each of them`;
  }
  return undefined;
}

/** The families that the cluster has. */
export function familiesOf({ serviceCidrs }: LocalClusterConfig): readonly IPFamily[] {
  return serviceCidrs.map(({ range }) => range.family);
}

/** The settings of the process inside. */
export function networkConfig(
  config: LocalClusterConfig,
  port: number,
  { ca, token }: ServerAccess,
  kubelet: CertificatePair,
  { logLevel, logFormat }: LogConfig,
  { commandsObstacle }: Pick<ClusterNetwork, 'commandsObstacle'>,
): NetworkConfig {
  const { clusterCidrs, nodes } = config;
  const families = familiesOf(config);
  const [address = ''] = controlPlaneAddresses(families);
  const url = `https://${address.includes(':') ? `[${address}]` : address}:${port}`;
  return {
    server: { port, ca, token },
    kubeletTls: { ...kubelet, clientCa: ca, client: kubeletClientName },
    kubeconfig: kubeconfig({ url, ca, token }),
    families,
    serviceCidrs: config.serviceCidrs.map(({ range }) => range.text),
    hasRoutes: config.platform === 'openshift',
    hasGateways: config.gatewayApi === 'standard',
    containers: config.containers === 'auto' && commandsObstacle !== '' ? 'off' : config.containers,
    writableHostPaths: config.writableHostPaths,
    hostPathRoots: config.hostPathRoots,
    claimsFolder: config.dataDir === undefined ? undefined : resolve(config.dataDir, 'volumes'),
    images: config.images.flatMap(({ image, program }) => {
      const known = programNamed(program, localChoices.isFolder);
      return known === undefined ? [] : [[image, known] as const];
    }),
    kubelet: config.controllers.includes('kubelet'),
    awaitsNetworks: config.controllers.includes(attachmentsName),
    missingImages: config.missingImages,
    checksEndpoints: config.controllers.includes(checkerName),
    ...{ clusterCidrs, nodes, logLevel, logFormat },
  };
}

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
    network.dialService(namespace, service, servicePort).then(
      (inside) => join(client, inside),
      (error: unknown) => {
        log.warn({ port, error: errorMessage(error) }, 'a connection to a published port leads nowhere');
        client.destroy();
      },
    );
  });
  try {
    await localHost.listen(server, '127.0.0.1', port);
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
