import { LoadBalancerAllocator } from '../../../../src/controllers/load-balancer/allocator.ts';
import { readPool, type AddressPoolSpec, type Pool } from '../../../../src/controllers/load-balancer/pool.ts';
import type { PresentAddress } from '../../../../src/controllers/load-balancer/present.ts';
import type { AddressRequest } from '../../../../src/controllers/load-balancer/request.ts';

export function pool(name: string, addresses: string[], spec: AddressPoolSpec = {}): Pool {
  return readPool({
    metadata: { name, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { addresses, ...spec },
  }).pool;
}

let created = 0;

/** What a Service `namespace/name` asks for that is younger than all before it. */
export function request(service: string, wish: Partial<AddressRequest> = {}): AddressRequest {
  return {
    service,
    namespace: service.split('/')[0] ?? '',
    labels: {},
    namespaceLabels: {},
    createdAt: ++created,
    families: ['IPv4'],
    needsAll: true,
    addresses: new Map(),
    pools: [],
    sharingKey: '',
    sharingNamespaces: new Set(),
    ports: ['TCP/80'],
    backend: '',
    problems: [],
    ...wish,
  };
}

/** The wish for one address. */
export function v4(address: string): Partial<AddressRequest> {
  return { addresses: new Map([['IPv4', address]]) };
}

/** Addresses in a status of which nothing else is known. */
export function had(...addresses: string[]): PresentAddress[] {
  return addresses.map((address) => ({
    family: address.includes(':') ? 'IPv6' : 'IPv4',
    address,
    origin: undefined,
    key: undefined,
    served: undefined,
  }));
}

export function allocatorWith(...pools: Pool[]): LoadBalancerAllocator {
  const allocator = new LoadBalancerAllocator();
  allocator.setPools(pools, []);
  return allocator;
}

/** Addresses and reason of an assignment that is written at once, as one text. */
export function assign(
  allocator: LoadBalancerAllocator,
  wanted: AddressRequest,
  present: string[] = [],
  now = 0,
): string {
  const { addresses, reason } = allocator.assign(wanted, had(...present));
  allocator.letGo(wanted.service, allocator.leftBy(wanted.service), now);
  return `${addresses.map(({ address }) => address).join(',')} ${reason}`.trim();
}
