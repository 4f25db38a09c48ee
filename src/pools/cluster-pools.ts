import { isNotFound } from '../client/errors.ts';
import { ResourceClient } from '../client/resource-client.ts';
import { namespaces, nodes, type ResourceType, serviceCIDRs, services } from '../client/resources.ts';
import type { Transport } from '../client/transport.ts';
import { keyOf } from '../objects/key.ts';
import { pushAll } from '../objects/lists.ts';
import type { KubeObject } from '../objects/meta.ts';
import { forbiddenRanges } from '../controllers/load-balancer/forbidden.ts';
import type { PooledCluster } from './plan-books.ts';
import type { RequestSettings } from '../controllers/load-balancer/request.ts';
import { addressPools } from '../controllers/load-balancer/resource.ts';

/**
 * Reads all that decides about addresses, once. Throws what a list throws.
 *
 * @returns `pools` undefined where AddressPools are not defined.
 */
export async function readPooledCluster(
  transport: Transport,
  settings: RequestSettings,
): Promise<Omit<PooledCluster, 'pools'> & { readonly pools: PooledCluster['pools'] | undefined }> {
  const pools = await listAll(transport, addressPools);
  const cidrs = await listAll(transport, serviceCIDRs);
  const nodeList = await listAll(transport, nodes);
  const labels = new Map(
    (await listAll(transport, namespaces))?.map((namespace) => [
      keyOf(namespace),
      namespace.metadata.labels ?? {},
    ]),
  );
  return {
    services: (await listAll(transport, services)) ?? [],
    namespaceLabels: (namespace) => labels.get(namespace) ?? {},
    settings,
    forbidden: forbiddenRanges(nodeList ?? [], cidrs ?? []),
    pools,
  };
}

/** All objects of a resource; undefined where the server does not have it. */
export async function listAll<T extends KubeObject>(
  transport: Transport,
  resource: ResourceType<T>,
): Promise<T[] | undefined> {
  const all: T[] = [];
  try {
    for await (const page of new ResourceClient(transport, resource).pages()) pushAll(all, page.items);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
  return all;
}
