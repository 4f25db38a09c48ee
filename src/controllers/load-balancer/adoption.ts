import { byAge, type AddressRequest } from './request.ts';
import { consents } from './sharing.ts';
import { keyText, readKey, type StatusAddress } from './status.ts';

/** A Service with the addresses in its status. */
export interface ServedService {
  readonly request: AddressRequest;
  readonly inStatus: readonly StatusAddress[];
}

/** A request with only those of its ports that the status shows as served on an address. */
export function withServedPorts(request: AddressRequest, { servedPorts }: StatusAddress): AddressRequest {
  return servedPorts === undefined
    ? request
    : { ...request, ports: request.ports.filter((port) => servedPorts.has(port)) };
}

/** A request with the ports and the sharing key that the status shows for an address. */
export function asInStatus(request: AddressRequest, { servedPorts, key }: StatusAddress): AddressRequest {
  return {
    ...request,
    ports: servedPorts === undefined ? request.ports : [...servedPorts],
    sharingKey: key === undefined ? request.sharingKey : readKey(key),
  };
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
  const oldestFirst = [...services].sort((a, b) => byAge(a.request, b.request));
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
  for (const group of Map.groupBy(staying, ({ request }) => groupOf(request)).values()) {
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
  return key !== undefined && key !== keyText(request.sharingKey);
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

function groupOf({ sharingKey, namespace, backend }: AddressRequest): string {
  return JSON.stringify([sharingKey, sharingKey === '' ? namespace : '', backend]);
}

/** Called with the group of the oldest Service first, so that it stays among equals. */
function isPreferred(group: readonly ServedService[], best: readonly ServedService[]): boolean {
  if (group.length !== best.length) return group.length > best.length;
  return group[0]?.request.sharingKey !== '' && best[0]?.request.sharingKey === '';
}
