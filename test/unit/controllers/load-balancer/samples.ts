import { LoadBalancerAllocator } from '../../../../src/controllers/load-balancer/allocator.ts';
import type { AddressPoolSpec } from '../../../../src/objects/types/servicenet.ts';
import { readPool, type Pool } from '../../../../src/controllers/load-balancer/pools.ts';
import type { StatusAddress } from '../../../../src/controllers/load-balancer/status.ts';
import type { AddressRequest } from '../../../../src/controllers/load-balancer/request.ts';

export function pool(name: string, addresses: string[], spec: AddressPoolSpec = {}): Pool {
  return readPool({
    metadata: { name, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { addresses, ...spec },
  }).pool;
}

let created = 0;

/** The request of a Service `namespace/name` that is younger than all before it. */
export function request(service: string, changes: Partial<AddressRequest> = {}): AddressRequest {
  return {
    service,
    namespace: service.split('/')[0] ?? '',
    labels: {},
    namespaceLabels: {},
    createdAtMs: ++created,
    families: ['IPv4'],
    needsAll: true,
    addresses: new Map(),
    pools: [],
    sharingKey: '',
    sharingNamespaces: new Set(),
    ports: ['TCP/80'],
    backend: '',
    problems: [],
    ...changes,
  };
}

/** Requests one address. */
export function v4(address: string): Partial<AddressRequest> {
  return { addresses: new Map([['IPv4', address]]) };
}

/** Addresses in a status without a condition. */
export function inStatus(...addresses: string[]): StatusAddress[] {
  return addresses.map((address) => ({
    family: address.includes(':') ? 'IPv6' : 'IPv4',
    address,
    origin: undefined,
    key: undefined,
    servedPorts: undefined,
  }));
}

export function allocatorWith(...pools: Pool[]): LoadBalancerAllocator {
  const allocator = new LoadBalancerAllocator();
  allocator.setPools(pools, []);
  return allocator;
}

/** Addresses and reason of a request whose result is written at once, as one text. */
export function allocate(
  allocator: LoadBalancerAllocator,
  wanted: AddressRequest,
  current: string[] = [],
  now = 0,
): string {
  const { addresses, reason } = allocator.allocate(wanted, inStatus(...current));
  allocator.release(wanted.service, allocator.unreleased(wanted.service), now);
  return `${addresses.map(({ address }) => address).join(',')} ${reason}`.trim();
}
