import { listIfServed } from '../client/resource-client.ts';
import { namespaces, nodes, serviceCIDRs, services } from '../client/resources.ts';
import type { Transport } from '../client/transport.ts';
import { keyOf } from '../objects/key.ts';
import { addressPools } from '../client/resources.ts';
import { forbiddenRanges } from '../controllers/load-balancer/pool-addresses.ts';
import type { RequestSettings } from '../controllers/load-balancer/request.ts';
import type { PooledCluster } from './plan-cluster.ts';

/**
 * Reads the objects that decide which Service gets which address. Throws what a list throws.
 *
 * @returns `pools` undefined if the server has no AddressPools.
 */
export async function readPooledCluster(
  transport: Transport,
  settings: RequestSettings,
): Promise<Omit<PooledCluster, 'pools'> & { readonly pools: PooledCluster['pools'] | undefined }> {
  const pools = await listIfServed(transport, addressPools);
  const cidrs = await listIfServed(transport, serviceCIDRs);
  const nodeList = await listIfServed(transport, nodes);
  const labels = new Map(
    (await listIfServed(transport, namespaces))?.map((namespace) => [
      keyOf(namespace),
      namespace.metadata.labels ?? {},
    ]),
  );
  return {
    services: (await listIfServed(transport, services)) ?? [],
    namespaceLabels: (namespace) => labels.get(namespace) ?? {},
    settings,
    forbidden: forbiddenRanges(nodeList ?? [], cidrs ?? []),
    pools,
  };
}
