import type { ObjectKey } from '../../objects/key.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { Origin } from './assigned-text.ts';
import type { SharingPolicy } from './pool.ts';
import { byAge, type AddressRequest } from './request.ts';

/** An address in use, by one Service or by several that share it. */
export interface Holding {
  readonly address: string;
  readonly family: IPFamily;
  readonly value: bigint;
  /** The pool that contained it last, and what that wants when it no longer does. */
  origin: Origin | undefined;
  /** Service -> what it claimed the address with. */
  readonly claims: Map<ObjectKey, AddressRequest>;
  /** `TCP/80` -> the Service that serves it here. */
  readonly ports: Map<string, ObjectKey>;
}

/** Why a Service may not join an address. */
export interface SharingRefusal {
  readonly reason: 'AddressInUse' | 'SharingRefused';
  readonly message: string;
}

/**
 * Whether a Service may join those that hold an address: same key (or, in a `by-ports` pool, none), same namespace or
 * the consent of both, disjoint ports, and externalTrafficPolicy Local only among equal selectors. Undefined when it
 * may; a Service's own claim is no obstacle.
 */
export function sharingRefusal(
  holding: Holding,
  request: AddressRequest,
  sharing: SharingPolicy,
): SharingRefusal | undefined {
  const other = oldestOf(holding, ({ service }) => service !== request.service);
  if (other === undefined) return undefined;
  const where = `${holding.address} is held by ${other.service}`;
  if (sharing === 'never')
    return { reason: 'AddressInUse', message: `${where}, and its pool does not share addresses` };
  if (other.sharingKey !== request.sharingKey) {
    return request.sharingKey === ''
      ? { reason: 'AddressInUse', message: where }
      : refused(`${where} with another sharing key`);
  }
  if (request.sharingKey === '' && sharing !== 'by-ports') return { reason: 'AddressInUse', message: where };
  const stranger = oldestOf(holding, (claim) => {
    if (claim.service === request.service || claim.namespace === request.namespace) return false;
    return (
      request.sharingKey === '' || !consents(claim, request.namespace) || !consents(request, claim.namespace)
    );
  });
  if (stranger !== undefined) {
    return refused(
      `${holding.address} is held by ${stranger.service}: sharing between namespaces needs servicenet.dev/sharing-namespaces on both`,
    );
  }
  for (const port of request.ports) {
    const holder = holding.ports.get(port);
    if (holder !== undefined && holder !== request.service) {
      return refused(`port ${port} of ${holding.address} is held by ${holder}`);
    }
  }
  if (other.backend !== request.backend) {
    return refused(
      `${where}: with externalTrafficPolicy Local, only Services with equal selectors may share it`,
    );
  }
  return undefined;
}

/** Of those that hold an address and are such: every process names the same one, in whatever order it heard of them. */
function oldestOf(
  { claims }: Holding,
  isSuch: (claim: AddressRequest) => boolean,
): AddressRequest | undefined {
  let oldest: AddressRequest | undefined;
  for (const claim of claims.values()) {
    if (isSuch(claim) && (oldest === undefined || byAge(claim, oldest) < 0)) oldest = claim;
  }
  return oldest;
}

function refused(message: string): SharingRefusal {
  return { reason: 'SharingRefused', message };
}

/** Whether a Service lets those of another namespace share its addresses. */
export function consents({ sharingNamespaces }: AddressRequest, namespace: string): boolean {
  return sharingNamespaces.has('*') || sharingNamespaces.has(namespace);
}

/** Whether a sharer's new claim may let somebody in that its old one kept out. */
export function maySuitMore(before: AddressRequest, after: AddressRequest): boolean {
  return (
    before.sharingKey !== after.sharingKey ||
    before.backend !== after.backend ||
    before.ports.some((port) => !after.ports.includes(port)) ||
    [...after.sharingNamespaces].some((namespace) => !before.sharingNamespaces.has(namespace))
  );
}
