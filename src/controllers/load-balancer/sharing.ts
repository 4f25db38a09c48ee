/** When Services may have one address together, and which addresses a Service may join. */
import type { IPFamily } from '../../objects/address.ts';
import type { ObjectKey } from '../../objects/key.ts';
import type { Allocation } from './allocations.ts';
import type { SharingPolicy } from './pool.ts';
import { byAge, type AddressRequest } from './request.ts';

/** Why a Service may not join an address. */
export interface SharingRefusal {
  readonly reason: 'AddressInUse' | 'SharingRefused';
  readonly message: string;
}

/**
 * Why a Service may not join the Services that have an address; undefined when it may. They must have
 * - one sharing key, or in a `by-ports` pool none;
 * - one namespace, or sharing-namespaces annotations that name each other;
 * - different ports;
 * - equal selectors if their externalTrafficPolicy is Local.
 */
export function sharingRefusal(
  allocation: Allocation,
  request: AddressRequest,
  sharing: SharingPolicy,
): SharingRefusal | undefined {
  const { address } = allocation;
  const other = oldestOf(allocation, ({ service }) => service !== request.service);
  if (other === undefined) return undefined;
  const inUse = `${address} is held by ${other.service}`;
  if (sharing === 'never')
    return { reason: 'AddressInUse', message: `${inUse}, and its pool does not share addresses` };
  if (other.sharingKey !== request.sharingKey) {
    return request.sharingKey === ''
      ? { reason: 'AddressInUse', message: inUse }
      : refused(`${inUse} with another sharing key`);
  }
  if (request.sharingKey === '' && sharing !== 'by-ports') return { reason: 'AddressInUse', message: inUse };
  const unconsenting = oldestOf(allocation, (sharer) => {
    if (sharer.service === request.service || sharer.namespace === request.namespace) return false;
    return (
      request.sharingKey === '' ||
      !consents(sharer, request.namespace) ||
      !consents(request, sharer.namespace)
    );
  });
  if (unconsenting !== undefined) {
    return refused(
      `${address} is held by ${unconsenting.service}: sharing between namespaces needs servicenet.dev/sharing-namespaces on both`,
    );
  }
  for (const port of request.ports) {
    const server = allocation.ports.get(port);
    if (server !== undefined && server !== request.service) {
      return refused(`port ${port} of ${address} is held by ${server}`);
    }
  }
  if (other.backend !== request.backend) {
    return refused(
      `${inUse}: with externalTrafficPolicy Local, only Services with equal selectors may share it`,
    );
  }
  return undefined;
}

/** The oldest that matches: messages name the same Service after a restart, in whatever order Services are read. */
function oldestOf(
  { services }: Allocation,
  matches: (request: AddressRequest) => boolean,
): AddressRequest | undefined {
  let oldest: AddressRequest | undefined;
  for (const request of services.values()) {
    if (matches(request) && (oldest === undefined || byAge(request, oldest) < 0)) oldest = request;
  }
  return oldest;
}

function refused(message: string): SharingRefusal {
  return { reason: 'SharingRefused', message };
}

/** Whether a Service lets Services of another namespace share its addresses. */
export function consents({ sharingNamespaces }: AddressRequest, namespace: string): boolean {
  return sharingNamespaces.has('*') || sharingNamespaces.has(namespace);
}

/** Whether a changed request may admit Services to an address that the request before refused. */
export function admitsMore(before: AddressRequest, after: AddressRequest): boolean {
  return (
    before.sharingKey !== after.sharingKey ||
    before.backend !== after.backend ||
    before.ports.some((port) => !after.ports.includes(port)) ||
    [...after.sharingNamespaces].some((namespace) => !before.sharingNamespaces.has(namespace))
  );
}

/** A Service that serves a port on an address where another Service wants it too, by that port. */
export function portsOfOthers(
  allocation: Allocation | undefined,
  { service, ports }: AddressRequest,
): Map<string, ObjectKey> {
  const others = new Map<string, ObjectKey>();
  for (const port of ports) {
    const server = allocation?.ports.get(port);
    if (server !== undefined && server !== service) others.set(port, server);
  }
  return others;
}

/**
 * Finds addresses that a Service may join. Addresses are grouped by what their Services must have in common, and each
 * group knows the addresses on which a port is in use.
 */
export class SharedAddressIndex {
  readonly #groups = new Map<string, SharingGroup>();
  readonly #entries = new Map<string, IndexEntry>(); // by address

  /** Updates an address after its Services changed; undefined removes it. */
  update(address: string, allocation: Allocation | undefined): void {
    const old = this.#entries.get(address);
    if (old !== undefined) this.#remove(address, old);
    this.#entries.delete(address);
    const [first] = allocation?.services.values() ?? [];
    if (allocation?.origin === undefined || first === undefined) return;
    const entry: IndexEntry = {
      group: groupOf(allocation.origin.pool, allocation.family, first),
      ports: [...allocation.ports.keys()],
    };
    this.#entries.set(address, entry);
    let group = this.#groups.get(entry.group);
    if (group === undefined)
      this.#groups.set(entry.group, (group = { addresses: new Set(), byPort: new Map() }));
    group.addresses.add(address);
    for (const port of entry.ports) {
      const addresses = group.byPort.get(port);
      if (addresses === undefined) group.byPort.set(port, new Set([address]));
      else addresses.add(address);
    }
  }

  /** Addresses from a pool on which the requested ports are free, at most {@link maxCandidates}. */
  candidates(pool: string, family: IPFamily, request: AddressRequest): string[] {
    const group = this.#groups.get(groupOf(pool, family, request));
    if (group === undefined) return [];
    const inUse = request.ports.flatMap((port) => group.byPort.get(port) ?? []);
    if (inUse.some((addresses) => addresses.size === group.addresses.size)) return [];
    const candidates: string[] = [];
    let tries = 0;
    for (const address of group.addresses) {
      if (!inUse.some((addresses) => addresses.has(address))) candidates.push(address);
      if (candidates.length >= maxCandidates || ++tries >= maxTries) break;
    }
    return candidates;
  }

  #remove(address: string, { group: name, ports }: IndexEntry): void {
    const group = this.#groups.get(name);
    if (group === undefined) return;
    group.addresses.delete(address);
    for (const port of ports) {
      const addresses = group.byPort.get(port);
      addresses?.delete(address);
      if (addresses?.size === 0) group.byPort.delete(port);
    }
    if (group.addresses.size === 0) this.#groups.delete(name);
  }
}

/** After so many addresses on which a requested port is in use, the Service gets a free address. */
const maxTries = 256;
/** More than one, because the Services of the first may not consent. */
const maxCandidates = 16;

interface SharingGroup {
  readonly addresses: Set<string>;
  readonly byPort: Map<string, Set<string>>;
}

interface IndexEntry {
  readonly group: string;
  readonly ports: readonly string[];
}

/** Without a key, Services of one namespace may share; with a key, all that have it and consent. */
function groupOf(pool: string, family: IPFamily, { sharingKey, namespace, backend }: AddressRequest): string {
  const common = sharingKey === '' ? `namespace ${namespace}` : `key ${sharingKey}`;
  return JSON.stringify([pool, family, common, backend]);
}
