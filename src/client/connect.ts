import type { Metrics } from '../telemetry/metrics.ts';
import { type Clock, systemClock } from './clock.ts';
import { dispatchers } from './dispatchers.ts';
import { HttpTransport } from './http-transport.ts';
import { endpointIdentity, type Identity } from './identity.ts';
import { serviceAccountSource } from './service-account.ts';
import type { ClusterSource, Transport } from './transport.ts';

/**
 * Creates the transport to a cluster; connects when the first request is sent. client-node is loaded only for a
 * kubeconfig in a file.
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
  const identity = await identityOf(source);
  const connections = source.kind === 'endpoint' ? source.connections : undefined;
  return new HttpTransport(identity, dispatchers(identity.proxy, connections), { metrics, clock });
}

async function identityOf(source: ClusterSource): Promise<Identity> {
  if (source.kind === 'endpoint') return endpointIdentity(source, systemClock);
  if (source.path === undefined && source.context === undefined) {
    const ofPod = await serviceAccountSource();
    if (ofPod !== undefined) {
      return { ...endpointIdentity(ofPod, systemClock), proxy: { kind: 'environment' } };
    }
  }
  const { kubeConfigIdentity } = await import('./kubeconfig.ts');
  return kubeConfigIdentity(source, systemClock);
}
