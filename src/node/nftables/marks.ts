/**
 * Who uses which marks.
 *
 * The packet mark: only bits of a mask that is set by a flag (`--mark-mask`). The lowest bit of the mask asks for
 * masquerading (kube-proxy's `masqueradeBit`); postrouting takes it off again. The next one is for policies, the others
 * are for egress. All other bits stay as they are.
 *
 * The connection mark: the slot that was drawn, from the hook at priority -100 to the one at -99 of a Service
 * connection's first packet, and 0 afterwards. `numgen` overwrites a mark as a whole (nft before 1.1.2 and Linux
 * before 6.13 cannot combine two registers), and the packet mark belongs to the network plugin and to sockets too. Other
 * connections keep their marks.
 */

/** From bit 14, where kube-proxy has its masquerade bit, to bit 27. */
export const defaultMarkMask = 0x0fff_c000;

/** The bit that asks for masquerading. @param mask 1 to 2^32-1. */
export function masqueradeBit(mask: number): number {
  return (mask & -mask) >>> 0;
}

/**
 * The mark of a packet that leaves the cluster by another node: the number of that node in the bits of the mask
 * above the two lowest.
 *
 * @param mask 1 to 2^32-1.
 * @param number from 1 on.
 * @throws {RangeError} if the mask has too few bits for the number.
 */
export function egressMark(mask: number, number: number): number {
  let mark = 0;
  let rest = number;
  for (let bits = egressMask(mask); bits !== 0; bits = (bits & (bits - 1)) >>> 0) {
    if (rest % 2 === 1) mark |= bits & -bits;
    rest = Math.floor(rest / 2);
  }
  if (rest > 0) throw new RangeError(`--mark-mask has too few bits to tell ${number} nodes from each other`);
  return mark >>> 0;
}

/** The bits of a mask that are for egress. */
export function egressMask(mask: number): number {
  const withoutLowest = (mask & (mask - 1)) >>> 0;
  return (withoutLowest & (withoutLowest - 1)) >>> 0;
}
