import type { ObjectKey } from '../../objects/key.ts';
import { parseStrictAddress } from '../../objects/address.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { AddressBook } from './address-book.ts';
import type { Origin } from './assigned-text.ts';
import type { Granted, Refused } from './choice.ts';
import type { Reason } from './reasons.ts';
import type { AddressRequest } from './request.ts';

/** Why a Service has what it has. */
interface Account {
  readonly reason: Reason;
  readonly message: string;
}

/** How a request stands. */
export interface Outcome extends Account {
  /** The addresses that the Service has now, in the order of its families. */
  readonly addresses: readonly AssignedAddress[];
  /** By which it may share them; "" for none. */
  readonly sharingKey: string;
  /**
   * What is true as well and may stay where it was said before. A Service that needs two families and gets neither was
   * told of the one that was full then, and nobody looks at it again when the other one fills up too.
   */
  readonly alsoTrue: readonly Account[];
}

export interface AssignedAddress {
  readonly family: IPFamily;
  readonly address: string;
  /** Absent for an address that is kept although no pool contains it any more. */
  readonly pool: string | undefined;
  /** The pool that gave it; that which contains it, where one does. Absent when none ever did. */
  readonly origin: Origin | undefined;
  /** Ports of the Service that another one serves at this address: `TCP/80` -> that Service. */
  readonly portsInUse: ReadonlyMap<string, ObjectKey>;
}

/** What a Service has by the books, and why it has no more. */
export function outcomeOf(
  book: AddressBook,
  request: AddressRequest,
  { reason, message }: Account,
  alsoTrue: readonly Account[] = [],
): Outcome {
  const own = book.addressesOf(request.service);
  const addresses = request.families.flatMap((family): AssignedAddress[] => {
    const address = own.get(family);
    if (address === undefined) return [];
    const holding = book.holding(address);
    const portsInUse = new Map<string, ObjectKey>();
    for (const port of request.ports) {
      const holder = holding?.ports.get(port);
      if (holder !== undefined && holder !== request.service) portsInUse.set(port, holder);
    }
    return [{ family, address, pool: poolNameOf(book, address), origin: holding?.origin, portsInUse }];
  });
  return { addresses, sharingKey: request.sharingKey, reason, message, alsoTrue };
}

/**
 * Why a Service has what it has, and what is true as well (see {@link Outcome.alsoTrue}).
 *
 * @param refused the families that it was refused; none where it has what it asks for.
 * @param granted those that it has all the same.
 */
export function accountOf(
  request: AddressRequest,
  refused: readonly Refused[],
  granted: readonly Granted[],
): { account: Account; alsoTrue: readonly Account[] } {
  const message = refused.map((refusal) => refusal.message).join('; ');
  const [first] = refused;
  if (first === undefined) return { account: { reason: 'Assigned', message: '' }, alsoTrue: [] };
  const onlyMissing = refused.every(({ family }) => !granted.some((grant) => grant.family === family));
  if (!request.needsAll && granted.length > 0 && onlyMissing) {
    return {
      account: { reason: 'Assigned', message: `${first.family} is missing: ${message}` },
      alsoTrue: [],
    };
  }
  const alsoTrue = request.needsAll && refused.length > 1 ? refused : [];
  return { account: { reason: first.reason, message }, alsoTrue };
}

/** The pool that contains an address now. */
export function poolNameOf(book: AddressBook, address: string): string | undefined {
  const parsed = parseStrictAddress(address);
  return parsed === undefined ? undefined : book.poolOf(parsed.family, parsed.value)?.pool.name;
}
