import { ownerOf } from './owner.ts';

/** An agent that has not given its Lease back. */
export interface Member {
  /** `spec.acquireTime` of its Lease, only compared: it differs when the agent has given the Lease back in between. */
  readonly acquired: string;
  /** The agents without whose consent it does not keep addresses when it loses the API server, with their `acquired`. */
  readonly voters: ReadonlyMap<string, string>;
}

/**
 * Whether an agent may take addresses. Every other one that has not given its Lease back must name it, and so needs its
 * consent: one that does not may have lost the API server, and keep addresses without asking.
 */
export function isAdmitted(node: string, members: ReadonlyMap<string, Member>): boolean {
  const own = members.get(node);
  if (own === undefined) return false;
  for (const [other, { voters }] of members) {
    if (other !== node && voters.get(node) !== own.acquired) return false;
  }
  return true;
}

/** The agents that a Lease must name: all others. */
export function votersOf(node: string, members: ReadonlyMap<string, Member>): ReadonlyMap<string, string> {
  return new Map([...members].flatMap(([name, { acquired }]) => (name === node ? [] : [[name, acquired]])));
}

/**
 * The agents that have died, and whose Leases this one may give back for them: they name it, so that none of them can
 * keep addresses without its consent. The Lease is to be given back only as it was read.
 */
export function expiredMembers(
  node: string,
  members: ReadonlyMap<string, Member>,
  isAlive: (node: string) => boolean,
): readonly string[] {
  return [...members].flatMap(([name, { voters }]) =>
    name !== node && voters.has(node) && !isAlive(name) ? [name] : [],
  );
}

/**
 * Whether an agent keeps an address that another one is to have: until that one announces it. Of two that both wait for
 * a third, one does.
 *
 * @param announcing the other agents that announce the address, and renew their Leases.
 */
export function keepsInMove(
  address: string,
  node: string,
  next: string,
  announcing: readonly string[],
): boolean {
  return !announcing.includes(next) && ownerOf(address, [node, ...announcing]) === node;
}
