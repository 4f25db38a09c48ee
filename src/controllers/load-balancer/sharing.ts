/** When Services may share an address, which addresses a Service may join, and which sharers keep theirs at a start. */
import type { IPFamily } from '../../objects/address.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import type { Allocation } from './allocations.ts';
import type { SharingPolicy } from './pools.ts';
import { byServiceAge, type AddressRequest } from './request.ts';
import { type ServedService, type StatusAddress, sharingKeyText } from './status.ts';

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

/** The oldest that matches: messages name the same Service after a restart, in any order of Services. */
function oldestOf(
  { services }: Allocation,
  matches: (request: AddressRequest) => boolean,
): AddressRequest | undefined {
  let oldest: AddressRequest | undefined;
  for (const request of services.values()) {
    if (matches(request) && (oldest === undefined || byServiceAge(request, oldest) < 0)) oldest = request;
  }
  return oldest;
}

function refused(message: string): SharingRefusal {
  return { reason: 'SharingRefused', message };
}

/** Whether a Service lets Services of another namespace share its addresses. */
function consents({ sharingNamespaces }: AddressRequest, namespace: string): boolean {
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

/** The Services that serve requested ports on an address, by port. */
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
 * group has an index of the addresses on which a port is in use.
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

/** After this number of addresses on which a requested port is in use, the Service gets a free address. */
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

/**
 * The order in which a starting process adopts the addresses of Services. If two have an address that they may not share,
 * the first keeps it. That is the older one, unless it changed while no process ran. So of the Services that have one
 * address, the last are
 * - those that changed: the key is not the one in the condition, or they withdrew their consent to a namespace that still
 *   consents to theirs;
 * - before them those that may have changed: they request another address, or are not in the largest group with one
 *   sharing key and traffic policy. Of groups of one size, one with a key is preferred, because most pools share by key
 *   only, and then that of the oldest Service.
 *
 * @param mayKeep whether a Service may keep an address if no other Service has it. Those that may not are not compared.
 */
export function adoptionOrder<S extends ServedService>(
  services: readonly S[],
  mayKeep: (service: S, address: StatusAddress) => boolean,
): S[] {
  const oldestFirst = [...services].sort((a, b) => byServiceAge(a.request, b.request));
  const byAddress = new Map<string, S[]>();
  for (const service of oldestFirst) {
    for (const one of service.inStatus) {
      if (!mayKeep(service, one)) continue;
      const others = byAddress.get(one.address);
      if (others === undefined) byAddress.set(one.address, [service]);
      else others.push(service);
    }
  }
  const ranks = new Map<S, number>();
  for (const [address, sharers] of byAddress) if (sharers.length > 1) rank(address, sharers, ranks);
  if (ranks.size === 0) return oldestFirst;
  return oldestFirst.sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0)); // stable
}

/** Ranks the Services that have an address, oldest first: 2 for those that changed, 1 for those that may have. */
function rank<S extends ServedService>(address: string, sharers: readonly S[], ranks: Map<S, number>): void {
  const sameKey = sharers.filter((service) => !hasOtherKey(address, service));
  const unchanged = sameKey.filter(
    ({ request }) => !sameKey.some((other) => withdrewConsent(request, other.request)),
  );
  const staying = unchanged.filter((service) => !requestsOther(address, service));
  let largest: readonly S[] = [];
  for (const group of Map.groupBy(staying, ({ request }) => agreementOf(request)).values()) {
    if (isPreferred(group, largest)) largest = group;
  }
  for (const service of sharers) {
    const own = unchanged.includes(service) ? (largest.includes(service) ? 0 : 1) : 2;
    ranks.set(service, Math.max(own, ranks.get(service) ?? 0));
  }
}

/** True when the condition names another key than the Service has now. */
function hasOtherKey(address: string, { request, inStatus }: ServedService): boolean {
  const key = inStatus.find((one) => one.address === address)?.key;
  return key !== undefined && key !== sharingKeyText(request.sharingKey);
}

function requestsOther(address: string, { request, inStatus }: ServedService): boolean {
  const own = inStatus.find((one) => one.address === address);
  const requested = own === undefined ? undefined : request.addresses.get(own.family);
  return requested !== undefined && requested !== address;
}

function withdrewConsent(request: AddressRequest, other: AddressRequest): boolean {
  if (request.namespace === other.namespace) return false;
  return consents(other, request.namespace) && !consents(request, other.namespace);
}

function agreementOf({ sharingKey, namespace, backend }: AddressRequest): string {
  return JSON.stringify([sharingKey, sharingKey === '' ? namespace : '', backend]);
}

/** Called with the group of the oldest Service first, so that it stays among equals. */
function isPreferred(group: readonly ServedService[], best: readonly ServedService[]): boolean {
  if (group.length !== best.length) return group.length > best.length;
  return group[0]?.request.sharingKey !== '' && best[0]?.request.sharingKey === '';
}
