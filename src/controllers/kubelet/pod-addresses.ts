import { AddressAllocator } from '../../allocation/address-allocator.ts';
import { parseServiceCidr } from '../../allocation/address-range.ts';
import type { Random } from '../../client/clock.ts';
import type { Node, Pod } from '../../objects/types/core.generated.ts';

/**
 * Allocates the addresses of Pods from the pod CIDRs of their nodes. Addresses in use are read from the Pods and stored
 * nowhere else. The sixteen lowest addresses of a node are used last, as gateways often have them.
 */
export class PodAddresses {
  readonly #random: Random;
  readonly #allocators = new Map<string, AddressAllocator>();
  /** By uid of the Pod: the addresses that it has or is about to get. */
  readonly #held = new Map<string, readonly Holding[]>();

  constructor(random: Random) {
    this.#random = random;
  }

  /** Records the addresses that a Pod reports. */
  observe(pod: Pod, node: Node): void {
    const { uid = '' } = pod.metadata;
    if (this.#held.has(uid) || pod.spec.hostNetwork === true) return;
    const held: Holding[] = [];
    for (const { ip } of pod.status.podIPs ?? []) {
      for (const allocator of this.#allocatorsOf(node)) {
        if (!allocator.contains(ip) || allocator.has(ip)) continue;
        allocator.allocate(ip);
        held.push({ allocator, ip });
      }
    }
    if (held.length > 0) this.#held.set(uid, held);
  }

  /**
   * The addresses of a Pod: those it has, or new ones, one of each pod CIDR.
   *
   * @throws {RangeFullError} when the node has none left.
   */
  assign(pod: Pod, node: Node): string[] {
    const { uid = '' } = pod.metadata;
    const present = (pod.status.podIPs ?? []).map(({ ip }) => ip);
    if (present.length > 0 || pod.spec.hostNetwork === true) return present;
    const held = this.#held.get(uid);
    if (held !== undefined) return held.map(({ ip }) => ip);
    const taken: Holding[] = [];
    try {
      for (const allocator of this.#allocatorsOf(node)) {
        taken.push({ allocator, ip: allocator.allocateNext(this.#random) });
      }
    } catch (error) {
      release(taken);
      throw error;
    }
    this.#held.set(uid, taken);
    return taken.map(({ ip }) => ip);
  }

  /** Releases the addresses of a Pod that is gone or has finished. */
  release(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    release(this.#held.get(uid) ?? []);
    this.#held.delete(uid);
  }

  #allocatorsOf({ spec }: Node): AddressAllocator[] {
    return (spec.podCIDRs ?? []).flatMap((text) => {
      const known = this.#allocators.get(text);
      if (known !== undefined) return [known];
      const cidr = parseServiceCidr(text);
      if (cidr === undefined) return [];
      const made = new AddressAllocator(cidr);
      this.#allocators.set(text, made);
      return [made];
    });
  }
}

interface Holding {
  readonly allocator: AddressAllocator;
  readonly ip: string;
}

function release(holdings: readonly Holding[]): void {
  for (const { allocator, ip } of holdings) allocator.release(ip);
}
