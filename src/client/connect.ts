import { join } from 'path/posix';
import { isIPv6 } from 'net';
import { readFile } from 'fs/promises';
import { existsSync } from 'fs';
import type { Metrics } from '../telemetry/metrics.ts';
import { type Clock, systemClock } from './clock.ts';
import { dispatchers, socketDispatchers, threadDispatchers } from './dispatchers.ts';
import { HttpTransport } from './http-transport.ts';
import { endpointIdentity, type ClientIdentity } from './credentials/identity.ts';
import type { ClusterSource, EndpointSource, Transport } from './transport.ts';

/**
 * Creates the transport to a cluster; connects when the first request is sent. client-node is loaded only for
 * kubeconfigs of several files and with unusual users.
 *
 * @param clock for the pauses of Retry-After.
 *
 * @throws {Error} when the kubeconfig cannot be read or has no usable cluster.
 */
export async function createTransport(
  source: ClusterSource,
  metrics?: Metrics,
  clock: Clock = systemClock,
): Promise<Transport> {
  const identity = await clientIdentity(source);
  const { connections, socketPath, thread } =
    source.kind === 'endpoint'
      ? source
      : { connections: undefined, socketPath: undefined, thread: undefined };
  const byConnections =
    socketPath === undefined
      ? dispatchers(identity.proxy, connections)
      : socketDispatchers(socketPath, connections);
  const dispatcher =
    thread === undefined
      ? byConnections
      : threadDispatchers(thread, new URL(identity.server).host, byConnections, connections);
  return new HttpTransport(identity, dispatcher, { metrics, clock });
}

/** Who a source says that the client is. @throws {Error} as {@link createTransport}. */
export async function clientIdentity(source: ClusterSource): Promise<ClientIdentity> {
  if (source.kind === 'endpoint') return endpointIdentity(source, systemClock);
  if (source.path === undefined && source.context === undefined) {
    const ofPod = await serviceAccountSource();
    if (ofPod !== undefined) {
      return { ...endpointIdentity(ofPod, systemClock), proxy: { kind: 'environment' } };
    }
  }
  const { kubeConfigIdentity } = await import('./credentials/kubeconfig.ts');
  return kubeConfigIdentity(source, systemClock);
}

/** What the kubelet mounts into the containers of a Pod. */
const mounted = '/var/run/secrets/kubernetes.io/serviceaccount';

/** The environment of a process in a Pod, or its replacement in tests. */
interface PodEnvironment {
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
}

/**
 * The API server and the service account of the Pod that this process runs in (client-go's `rest.InClusterConfig`),
 * without client-node. Undefined outside of Pods, and where there is a kubeconfig, which goes before.
 *
 * @throws {Error} where the authority cannot be read.
 */
export async function serviceAccountSource(
  { variables, folder }: PodEnvironment = { variables: process.env, folder: mounted },
): Promise<EndpointSource | undefined> {
  const {
    KUBECONFIG = '',
    HOME = '',
    KUBERNETES_SERVICE_HOST: host,
    KUBERNETES_SERVICE_PORT: port,
  } = variables;
  const tokenFile = join(folder, 'token');
  const hasKubeconfig = KUBECONFIG !== '' || (HOME !== '' && existsSync(join(HOME, '.kube', 'config')));
  if (hasKubeconfig || !host || !port || !existsSync(tokenFile)) return undefined;
  const ca = await readFile(join(folder, 'ca.crt'));
  return { kind: 'endpoint', url: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`, ca, tokenFile };
}
