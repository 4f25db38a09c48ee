/** The pod CIDRs of nodes: equal parts of the cluster's CIDRs (pkg/controller/nodeipam/ipam/cidrset). */
import { type Bitmap } from '../../allocation/bitmap.ts';
import { createBitmap } from '../../allocation/create-bitmap.ts';
import { addressBits, formatAddress, parseCidr } from '../../objects/address.ts';
import type { IPFamily } from '../../objects/address.ts';

/** `--node-cidr-mask-size-ipv4` and `…-ipv6` of kube-controller-manager. */
const nodeMask = { IPv4: 24, IPv6: 64 } as const;
/** The most nodes in one CIDR. */
const maxNodes = 2 ** 16;

/** Allocates the node-sized parts of one cluster CIDR, lowest first. */
export class NodeCidrs {
  readonly family: IPFamily;
  readonly #network: bigint;
  readonly #hostBits: bigint;
  readonly #mask: number;
  readonly #taken: Bitmap;

  /** @throws {Error} for an invalid CIDR, or one that is smaller than a node's part. */
  constructor(clusterCidr: string) {
    const cidr = parseCidr(clusterCidr);
    if (cidr === undefined || cidr.hostBitsSet || cidr.leadingZeros || cidr.ipv4Mapped) {
      throw new Error(`"${clusterCidr}" is no CIDR`);
    }
    this.family = cidr.family;
    this.#mask = nodeMask[cidr.family];
    if (cidr.prefixLength > this.#mask) {
      throw new Error(`"${clusterCidr}" is too small: each node takes a /${this.#mask}`);
    }
    this.#network = cidr.network;
    this.#hostBits = BigInt(addressBits(cidr.family) - this.#mask);
    this.#taken = createBitmap(Math.min(2 ** (this.#mask - cidr.prefixLength), maxNodes));
  }

  /** Allocates the lowest free part; undefined when all are taken. */
  next(): string | undefined {
    const index = this.#taken.nextFree(0);
    if (index < 0) return undefined;
    this.#taken.set(index);
    const network = this.#network + (BigInt(index) << this.#hostBits);
    return `${formatAddress(this.family, network)}/${this.#mask}`;
  }

  /** Marks a part as taken; CIDRs outside of the cluster's are ignored. */
  occupy(nodeCidr: string): void {
    const index = this.#indexOf(nodeCidr);
    if (index !== undefined) this.#taken.set(index);
  }

  /** Releases a part. */
  release(nodeCidr: string): void {
    const index = this.#indexOf(nodeCidr);
    if (index !== undefined) this.#taken.clear(index);
  }

  #indexOf(nodeCidr: string): number | undefined {
    const cidr = parseCidr(nodeCidr);
    if (cidr?.family !== this.family || cidr.network < this.#network) return undefined;
    const index = (cidr.network - this.#network) >> this.#hostBits;
    return index < BigInt(this.#taken.size) ? Number(index) : undefined;
  }
}
