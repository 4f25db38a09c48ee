import type { Service, ServiceSpec } from '../../../src/objects/types/core.generated.ts';
import type { Cluster } from '../cluster.ts';

/** What users of load balancers see and write. */

export const finalizer = 'service.kubernetes.io/load-balancer-cleanup';

/** Makes a Service of type LoadBalancer that names a pool. */
export function balanced(
  cluster: Cluster,
  namespace: string,
  name: string,
  pool: string,
  spec: Partial<ServiceSpec> = {},
  annotations: Record<string, string> = {},
): Promise<Service> {
  const all = { 'servicenet.dev/pool': pool, ...annotations };
  return cluster.service(namespace, name, { type: 'LoadBalancer', ...spec }, all);
}

export function addressesOf({ status }: Service): string[] {
  return (status.loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? []);
}

/** The word that says how the request stands; undefined before it was looked at. */
export function reasonOf({ status }: Service): string | undefined {
  return status.conditions?.find(({ type }) => type === 'servicenet.dev/LoadBalancerReady')?.reason;
}
