/**
 * What becomes of an address that a node announces while another machine answers for it, too (RFC 5227 §2.4).
 *
 * Two clusters that take one address at the same moment have both asked for it, and heard nothing. Of the two nodes, the
 * one with the lower MAC address keeps it and the other one withdraws it, and neither needs to know of the other. A
 * machine that follows no such rule gets the address after {@link defendsForMs}, since two that answer are worse than one.
 */

/** Milliseconds between the first two looks at a conflict: the second one decides. */
export const lookAgainMs = 2000;

/** Milliseconds that an address is kept against a machine that ought to withdraw it: an agent looks each 30 s. */
const defendsForMs = 60_000;

/** The same against a node of the same cluster: longer than one has an address that has left it in disorder. */
const movesWithinMs = 10_000;

/**
 * How long a node keeps an address for which another machine answers, in milliseconds from the first look on.
 *
 * @param own the MAC address of the node's interface or of ours on it.
 * @param other that of the other machine.
 * @param isOfNode whether the other one is a node of the same cluster.
 */
export function keepsForMs(own: string, other: string, isOfNode: boolean): number {
  if (isOfNode) return movesWithinMs;
  return isLower(own, other) ? defendsForMs : lookAgainMs;
}

/**
 * The MAC address of our own interface on one of a node: locally administered, and but for the first octet the same, so
 * that whichever of the two answers, {@link keepsForMs} says the same of the node.
 *
 * @param mac six octets in lower case, with colons.
 */
export function announcerMac(mac: string): string {
  const first = (Number.parseInt(mac.slice(0, 2), 16) | 0x02) ^ 0x04;
  return `${first.toString(16).padStart(2, '0')}${mac.slice(2)}`;
}

/** Without the first octets, unless nothing else differs. */
function isLower(own: string, other: string): boolean {
  const [a, b] = [own.slice(2), other.slice(2)];
  return a === b ? own < other : a < b;
}
