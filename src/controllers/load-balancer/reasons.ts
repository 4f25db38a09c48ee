/** Why a Service has the addresses that it has. */
import type { LoadBalancerReason } from '../../objects/reasons.ts';
import { parseStrictAddress, type IPFamily } from '../../objects/address.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import type { Allocations } from './allocations.ts';
import type { AddressRequest } from './request.ts';
import { portsOfOthers } from './sharing.ts';
import type { Origin } from './pools.ts';

interface Explanation {
  readonly reason: LoadBalancerReason;
  readonly message: string;
}

/** The result of a request. */
export interface Outcome extends Explanation {
  /** The addresses that the Service has now, in the order of its families. */
  readonly addresses: readonly OutcomeAddress[];
  /** "" for none. */
  readonly sharingKey: string;
  /**
   * Other true explanations. If the condition has one of them, it stays: a Service that needs two families, of which one
   * was full, is not written again when the other one fills up.
   */
  readonly alsoTrue: readonly Explanation[];
}

export interface OutcomeAddress {
  readonly family: IPFamily;
  readonly address: string;
  /** Undefined when no pool contains the address. */
  readonly pool: string | undefined;
  /** The pool that assigned it; the one that contains it, if there is one. Undefined when none ever did. */
  readonly origin: Origin | undefined;
  /** Ports of the Service that another one serves on this address: `TCP/80` -> that Service. */
  readonly portsInUse: ReadonlyMap<string, ObjectKey>;
}

/** The addresses of a Service, with the explanation. */
export function outcomeOf(
  allocations: Allocations,
  request: AddressRequest,
  { reason, message }: Explanation,
  alsoTrue: readonly Explanation[] = [],
): Outcome {
  const own = allocations.addressesOf(request.service);
  const addresses = request.families.flatMap((family): OutcomeAddress[] => {
    const address = own.get(family);
    if (address === undefined) return [];
    const allocation = allocations.get(address);
    const pool = poolNameOf(allocations, address);
    const portsInUse = portsOfOthers(allocation, request);
    return [{ family, address, pool, origin: allocation?.origin, portsInUse }];
  });
  return { addresses, sharingKey: request.sharingKey, reason, message, alsoTrue };
}

/**
 * Explains the result of a request, see {@link Outcome}.
 *
 * @param refused the families for which the request was refused; empty when all were granted.
 * @param granted the families for which the Service has an address, also if the requested one was refused.
 */
export function explain(
  request: AddressRequest,
  refused: readonly (Explanation & { readonly family: IPFamily })[],
  granted: readonly { readonly family: IPFamily }[],
): { explanation: Explanation; alsoTrue: readonly Explanation[] } {
  // Two families may be refused for the same.
  const message = [...new Set(refused.map((refusal) => refusal.message))].join('; ');
  const [first] = refused;
  if (first === undefined) return { explanation: { reason: 'Assigned', message: '' }, alsoTrue: [] };
  const lacksFamily = refused.every(({ family }) => !granted.some((grant) => grant.family === family));
  if (!request.needsAll && granted.length > 0 && lacksFamily) {
    const missing = `${first.family} is missing: ${message}`;
    return { explanation: { reason: 'Assigned', message: missing }, alsoTrue: [] };
  }
  const alsoTrue = request.needsAll && refused.length > 1 ? refused : [];
  return { explanation: { reason: first.reason, message }, alsoTrue };
}

/** The name of the pool that contains an address now. */
export function poolNameOf(allocations: Allocations, address: string): string | undefined {
  const parsed = parseStrictAddress(address);
  return parsed === undefined ? undefined : allocations.poolOf(parsed.family, parsed.value)?.pool.name;
}
