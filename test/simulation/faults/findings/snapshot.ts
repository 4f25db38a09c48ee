import { Clients } from '../../../../src/client/resource-client.ts';
import {
  endpoints,
  endpointSlices,
  ipAddresses,
  pods,
  serviceCIDRs,
  services,
} from '../../../../src/client/resources.ts';
import type { Transport } from '../../../../src/client/transport.ts';
import { addressPools } from '../../../../src/client/resources.ts';
import type { AddressPool } from '../../../../src/objects/types/servicenet.ts';
import type { Endpoints, Pod, Service } from '../../../../src/objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../../src/objects/types/discovery.generated.ts';
import type { IPAddress, ServiceCIDR } from '../../../../src/objects/types/networking.generated.ts';
import type { KubeObject } from '../../../../src/objects/meta.ts';

/** A cluster as it is now, but for what the API server itself keeps. */
export interface Snapshot {
  readonly services: readonly Service[];
  readonly pods: readonly Pod[];
  readonly endpoints: readonly Endpoints[];
  readonly slices: readonly EndpointSlice[];
  readonly addresses: readonly IPAddress[];
  readonly cidrs: readonly ServiceCIDR[];
  readonly pools: readonly AddressPool[];
}

export async function takeSnapshot(client: Transport): Promise<Snapshot> {
  const clients = new Clients(client);
  return {
    services: (await clients.for(services).list()).items.filter(isNotServers),
    pods: (await clients.for(pods).list()).items,
    endpoints: (await clients.for(endpoints).list()).items.filter(isNotServers),
    slices: (await clients.for(endpointSlices).list()).items.filter(isNotServers),
    addresses: (await clients.for(ipAddresses).list()).items,
    cidrs: (await clients.for(serviceCIDRs).list()).items,
    pools: (await clients.for(addressPools).list()).items,
  };
}

/** `namespace/name` */
export function keyOf({ metadata: { namespace = '', name = '' } }: KubeObject): string {
  return `${namespace}/${name}`;
}

function isNotServers(object: KubeObject): boolean {
  return keyOf(object) !== 'default/kubernetes';
}
