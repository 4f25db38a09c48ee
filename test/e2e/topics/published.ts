import { isNotFound } from '../../../src/client/errors.ts';
import { endpoints, endpointSlices } from '../../../src/client/resources.ts';
import type { Endpoints } from '../../../src/objects/types/core.generated.ts';
import type { Endpoint, EndpointSlice } from '../../../src/objects/types/discovery.generated.ts';
import type { Cluster } from '../cluster.ts';

/** What is published of the Service `web` of a namespace. */

export const labels = { app: 'web' };

/** The slices, those of one controller where its name is given. */
export async function readSlices(
  cluster: Cluster,
  namespace: string,
  manager?: string,
): Promise<EndpointSlice[]> {
  const ofManager = manager === undefined ? '' : `,endpointslice.kubernetes.io/managed-by=${manager}`;
  const labelSelector = `kubernetes.io/service-name=web${ofManager}`;
  return (await cluster.for(endpointSlices).list({ namespace, labelSelector })).items;
}

/** The endpoints of all slices. */
export async function readSliceEndpoints(cluster: Cluster, namespace: string): Promise<Endpoint[]> {
  return (await readSlices(cluster, namespace)).flatMap((slice) => slice.endpoints ?? []);
}

/** Undefined when there are none, not even empty ones. */
export async function readEndpoints(cluster: Cluster, namespace: string): Promise<Endpoints | undefined> {
  try {
    return await cluster.for(endpoints).get(namespace, 'web');
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** The addresses of a list of {@link Endpoints}' subsets, sorted. */
export function addressesIn(
  found: Endpoints | undefined,
  list: 'addresses' | 'notReadyAddresses' = 'addresses',
): string[] {
  return (found?.subsets ?? []).flatMap((subset) => (subset[list] ?? []).map(({ ip }) => ip)).sort();
}
