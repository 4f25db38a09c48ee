/** What a Service really gets of what was chosen for it, and what it keeps. Pure. */
import type { ObjectKey } from '../../objects/key.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { AddressBook } from './address-book.ts';
import { mayKeep, mayKeepPortless, type Choice, type Granted, type Had, type Stock } from './choice.ts';
import type { PresentAddress } from './present.ts';
import type { AddressRequest } from './request.ts';

const noAddresses: ReadonlyMap<IPFamily, string> = new Map();

/** What a Service has by the books, else by its status. */
export function hadBy(
  book: AddressBook,
  service: ObjectKey,
  present: readonly PresentAddress[],
): Map<IPFamily, Had> {
  const had = new Map<IPFamily, Had>(present.map((one) => [one.family, one]));
  for (const [family, address] of book.addressesOf(service)) {
    had.set(family, { address, origin: book.holding(address)?.origin });
  }
  return had;
}

/**
 * What each family really gets: its choice, or else what it has. Where all families are needed and one would end up
 * without an address, nothing new is given: what is free is left to others until the whole can be served.
 */
export function grantedOf(
  stock: Stock,
  request: AddressRequest,
  choices: readonly Choice[],
  had: ReadonlyMap<IPFamily, Had>,
): Granted[] {
  const kept = (family: IPFamily): Granted[] => keep(stock, request, family, had.get(family));
  const best = choices.flatMap((choice) => ('address' in choice ? [choice] : kept(choice.family)));
  if (!request.needsAll || best.length === choices.length) return best;
  return choices.flatMap(({ family }) => kept(family));
}

/** What a Service keeps of a family, whatever it asks for. */
export function keep(
  stock: Stock,
  request: AddressRequest,
  family: IPFamily,
  had: Had | undefined,
): Granted[] {
  if (had === undefined) return [];
  // Requested pools and addresses do not count here: it could not have them.
  const asItIs = { ...request, pools: [], addresses: noAddresses };
  if (mayKeep(stock, asItIs, had)) return [{ family, ...had }];
  // A port that another sharer serves is no reason to lose the address: that port alone is not served.
  return mayKeepPortless(stock, asItIs, had) ? [{ family, ...had }] : [];
}
