import type { Metrics } from '../telemetry/metrics.ts';
import { systemClock } from './clock.ts';
import { HttpTransport } from './http-transport.ts';
import { endpointIdentity } from './identity.ts';
import type { ClusterSource, Transport } from './transport.ts';

/**
 * Makes the transport to a cluster; connects when the first request is sent. client-node is loaded only for a
 * kubeconfig.
 *
 * @throws {Error} when the kubeconfig cannot be read or has no usable cluster.
 */
export async function createTransport(source: ClusterSource, metrics?: Metrics): Promise<Transport> {
  if (source.kind === 'endpoint') return new HttpTransport(endpointIdentity(source, systemClock), metrics);
  const { kubeConfigIdentity } = await import('./kubeconfig.ts');
  return new HttpTransport(await kubeConfigIdentity(source, systemClock), metrics);
}
