import type { Metrics } from '../telemetry/metrics.ts';
import { systemClock } from './clock.ts';
import { dispatchers } from './dispatchers.ts';
import { HttpTransport } from './http-transport.ts';
import { endpointIdentity, type Identity } from './identity.ts';
import type { ClusterSource, Transport } from './transport.ts';

/**
 * Makes the transport to a cluster; connects when the first request is sent. client-node is loaded only for a
 * kubeconfig.
 *
 * @throws {Error} when the kubeconfig cannot be read or has no usable cluster.
 */
export async function createTransport(source: ClusterSource, metrics?: Metrics): Promise<Transport> {
  const identity = await identityOf(source);
  return new HttpTransport(identity, dispatchers(identity.proxy), metrics);
}

async function identityOf(source: ClusterSource): Promise<Identity> {
  if (source.kind === 'endpoint') return endpointIdentity(source, systemClock);
  const { kubeConfigIdentity } = await import('./kubeconfig.ts');
  return kubeConfigIdentity(source, systemClock);
}
