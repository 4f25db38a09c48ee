/**
 * Which of several nodes has an address, by rendezvous hashing: the one with the highest hash of both. Every node
 * finds the same without asking, and a node that comes or goes moves only the addresses that it gets or had: 1/N of
 * them.
 *
 * @param nodes in any order.
 * @returns undefined without nodes.
 */
export function ownerOf(address: string, nodes: Iterable<string>): string | undefined {
  let owner: string | undefined;
  let highest = -1;
  for (const node of nodes) {
    const weight = weightOf(`${node} ${address}`);
    // The name decides between equal ones, so that the order of nodes does not matter.
    if (weight > highest || (weight === highest && owner !== undefined && node < owner)) {
      owner = node;
      highest = weight;
    }
  }
  return owner;
}

/** FNV-1a of 32 bits, with the finalizer of MurmurHash3: the last characters must change all bits. */
function weightOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
