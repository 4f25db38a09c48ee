import type { PresentAddress } from './present.ts';
import { byAge, type AddressRequest } from './request.ts';
import { keyText, readKey } from './assigned-text.ts';
import { consents } from './holding.ts';

/** What a Service asks for now, and what it has by its status. */
export interface Claim {
  readonly request: AddressRequest;
  readonly present: readonly PresentAddress[];
}

/** A request with those ports that the Service serves at an address by its status. */
export function withServedPorts(request: AddressRequest, { served }: PresentAddress): AddressRequest {
  return served === undefined
    ? request
    : { ...request, ports: request.ports.filter((port) => served.has(port)) };
}

/** A request with the sharing key and the ports with which the Service's status shows an address, whatever it asks for. */
export function asShown(request: AddressRequest, { served, key }: PresentAddress): AddressRequest {
  return {
    ...request,
    ports: served === undefined ? request.ports : [...served],
    sharingKey: key === undefined ? request.sharingKey : readKey(key),
  };
}

/**
 * The order in which a process that starts books what Services have. Of two that cannot have one address together the
 * first keeps it, so this decides who stays: the oldest, unless it is the one that changed while nobody looked. Of
 * those that claim one address come last
 * - those that changed for certain: whose key is not the one that their condition names, or who give a namespace no
 *   consent (any more) that still consents to them;
 * - and before them those that may have: who ask for another address, or are not of the circle (key and traffic
 *   policy) of most; of circles of one size that with a key counts more, because without one most pools share nothing,
 *   and then that of the oldest.
 *
 * @param mayKeep whether a Service may keep an address as far as nobody else is concerned: who may not, stands in
 *   nobody's way.
 */
export function adoptionOrder<C extends Claim>(
  claims: readonly C[],
  mayKeep: (claim: C, present: PresentAddress) => boolean,
): C[] {
  const oldestFirst = [...claims].sort((a, b) => byAge(a.request, b.request));
  const sharers = new Map<string, C[]>(); // address -> who has it
  for (const claim of oldestFirst) {
    for (const one of claim.present) {
      if (!mayKeep(claim, one)) continue;
      const { address } = one;
      const others = sharers.get(address);
      if (others === undefined) sharers.set(address, [claim]);
      else others.push(claim);
    }
  }
  const ranks = new Map<C, number>();
  for (const [address, group] of sharers) if (group.length > 1) rank(address, group, ranks);
  if (ranks.size === 0) return oldestFirst;
  // A sort that is stable: those of one rank stay in the order of their age.
  return oldestFirst.sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0));
}

/** Those of the sharers of an address, oldest first, that gave up their right to it: 1 perhaps, 2 for certain. */
function rank<C extends Claim>(address: string, group: readonly C[], ranks: Map<C, number>): void {
  const named = group.filter((claim) => !hasOtherKey(address, claim));
  const steady = named.filter(({ request }) => !named.some((other) => leaves(request, other.request)));
  const content = steady.filter((claim) => !wantsAnother(address, claim));
  const circles = Map.groupBy(content, ({ request }) => circleOf(request));
  let best: readonly C[] = [];
  for (const circle of circles.values()) if (isBetter(circle, best)) best = circle;
  for (const claim of group) {
    const mine = steady.includes(claim) ? (best.includes(claim) ? 0 : 1) : 2;
    ranks.set(claim, Math.max(mine, ranks.get(claim) ?? 0));
  }
}

/** True when the condition names another key than the Service has now. */
function hasOtherKey(address: string, { request, present }: Claim): boolean {
  const key = present.find((one) => one.address === address)?.key;
  return key !== undefined && key !== keyText(request.sharingKey);
}

/** It may have done so for long, and got no other one. */
function wantsAnother(address: string, { request, present }: Claim): boolean {
  const mine = present.find((one) => one.address === address);
  const wanted = mine === undefined ? undefined : request.addresses.get(mine.family);
  return wanted !== undefined && wanted !== address;
}

function leaves(request: AddressRequest, other: AddressRequest): boolean {
  if (request.namespace === other.namespace) return false;
  return consents(other, request.namespace) && !consents(request, other.namespace);
}

function circleOf({ sharingKey, namespace, backend }: AddressRequest): string {
  return JSON.stringify([sharingKey, sharingKey === '' ? namespace : '', backend]);
}

/** Both in the order of age, so that of equals the first that was found has the oldest. */
function isBetter(circle: readonly Claim[], best: readonly Claim[]): boolean {
  if (circle.length !== best.length) return circle.length > best.length;
  return circle[0]?.request.sharingKey !== '' && best[0]?.request.sharingKey === '';
}
