import { AddressAllocator } from '../../../allocation/address-allocator.ts';
import { parseServiceCidr, type ServiceCidr } from '../../../allocation/address-range.ts';
import {
  AllocationError,
  AlreadyAllocatedError,
  NotInRangeError,
  RangeFullError,
} from '../../../allocation/address-range.ts';
import { PortAllocator, type PortRange } from '../../../allocation/port-allocator.ts';
import { parseAddress } from '../../../objects/address.ts';
import type { IPFamily } from '../../../objects/address.ts';
import type { Service } from '../../../objects/types/core.generated.ts';
import type { ClusterFamilies } from './families.ts';
import { mayHaveNodePorts, needsHealthCheck, nodePortsOf } from './type-rules.ts';

/** No ready ServiceCIDR has the address (`ipallocator.ErrMismatchedNetwork`). */
class MismatchedNetworkError extends AllocationError {
  constructor() {
    super('the provided network does not match the current range');
  }
}

/** No ServiceCIDR of the family is ready (`ipallocator.ErrNotReady`). */
class NotReadyError extends AllocationError {
  constructor() {
    super('allocator not ready');
  }
}

/** One CIDR, and the ServiceCIDR objects that list it, with their readiness. */
interface CidrAllocator {
  readonly cidr: ServiceCidr;
  readonly addresses: AddressAllocator;
  readonly owners: Map<string, boolean>;
}

/**
 * The allocators of one API server for Services: addresses of the ServiceCIDRs, and node ports. In memory; at start it
 * is filled from the stored ServiceCIDRs ({@link setServiceCIDR}), IPAddresses ({@link commit}) and Services ({@link
 * adopt}), in any order.
 *
 * An address is taken exactly as long as an IPAddress object of its name exists or is about to be stored, also one made
 * by a client. CIDRs may overlap: each has all taken addresses in it.
 */
export class ServiceAllocators {
  /** From the service-cidr flags, not from ServiceCIDR objects: Services are dual-stack if there are two. */
  readonly families: ClusterFamilies;
  readonly nodePorts: PortAllocator;
  readonly #byCidr = new Map<string, CidrAllocator>();
  // Canonical text. Two sets, because a failed request must not free an address that an IPAddress object took
  // meanwhile.
  readonly #stored = new Set<string>(); // by IPAddress objects
  readonly #reserved = new Set<string>(); // by requests that are under way

  constructor(options: { readonly families: ClusterFamilies; readonly nodePortRange: PortRange }) {
    this.families = options.families;
    this.nodePorts = new PortAllocator(options.nodePortRange);
  }

  /**
   * A ServiceCIDR object was created or changed.
   *
   * @param cidrs canonical; those of families that the cluster does not have are ignored.
   * @param ready false while it is deleted or its condition Ready is not True: it gives no new addresses.
   */
  setServiceCIDR(name: string, cidrs: readonly string[], ready: boolean): void {
    for (const [text, { owners }] of this.#byCidr)
      if (!cidrs.includes(text)) this.#disown(text, owners, name);
    for (const text of cidrs) {
      const known = this.#byCidr.get(text) ?? this.#open(text);
      known?.owners.set(name, ready);
    }
  }

  /** A ServiceCIDR object was deleted. */
  removeServiceCIDR(name: string): void {
    for (const [text, { owners }] of this.#byCidr) this.#disown(text, owners, name);
  }

  /**
   * Call when an IPAddress object of that name is stored, by any client. Idempotent.
   *
   * @param address the object's name; texts that are not a canonical address are ignored.
   */
  commit(address: string): void {
    if (parseAddress(address)?.canonical !== address) return;
    const marked = this.#reserved.delete(address) || this.#stored.has(address);
    this.#stored.add(address);
    if (!marked) this.#mark(address);
  }

  /** The IPAddress object of that name is removed. Idempotent; canonical text. */
  release(address: string): void {
    if (this.#stored.delete(address) && !this.#reserved.has(address)) this.#unmark(address);
  }

  /** Releases what {@link allocate} or {@link allocateNext} took for a failed request. */
  rollback(address: string): void {
    if (this.#reserved.delete(address) && !this.#stored.has(address)) this.#unmark(address);
  }

  /** True when an IPAddress object of that name exists or is about to. */
  isHeld(address: string): boolean {
    return this.#stored.has(address) || this.#reserved.has(address);
  }

  /**
   * Allocates the node ports of a stored Service, at the start. Ports of two Services are no error; those of an
   * ExternalName are not allocated.
   */
  adopt({ spec }: Service): void {
    if (!mayHaveNodePorts(spec)) return;
    const ports = nodePortsOf(spec);
    if (needsHealthCheck(spec)) ports.push(spec.healthCheckNodePort ?? 0);
    this.nodePorts.restore(ports);
  }

  /**
   * Reserves one address, until its IPAddress object is stored ({@link commit}) or the request fails ({@link rollback}).
   * `create` is called before the check that the address is free, as kube-apiserver first tries to store the object: it
   * throws when the object is invalid.
   *
   * @param address canonical.
   * @throws {AllocationError} when no ready CIDR has it, or when it is taken.
   */
  allocate(address: string, create: () => void): void {
    if (this.#readyOwner(address) === undefined) throw new MismatchedNetworkError();
    create();
    if (this.isHeld(address)) throw new AlreadyAllocatedError('IP', address);
    this.#reserved.add(address);
    this.#mark(address);
  }

  /**
   * Reserves any address of a family, from the ready CIDRs in random order.
   *
   * @param random returns numbers in [0, 1).
   * @throws {RangeFullError} when none is left, or no CIDR is ready.
   */
  allocateNext(family: IPFamily, random: () => number): string {
    const ready = [...this.#byCidr.values()].filter(
      (item) => item.cidr.range.family === family && isReady(item),
    );
    while (ready.length > 0) {
      const at = ready.length === 1 ? 0 : Math.floor(random() * ready.length);
      const [item] = ready.splice(at, 1);
      if (item === undefined || item.addresses.free === 0) continue;
      const address = item.addresses.allocateNext(random);
      this.#reserved.add(address);
      this.#mark(address, item);
      return address;
    }
    throw new RangeFullError();
  }

  /**
   * The result of a dry run: the first CIDR of the family is used for all. A requested address is only checked
   * against its range (a taken one passes); without one the result is the network's own address.
   *
   * @throws {AllocationError} when the address is outside of the range, or the CIDR is not ready.
   */
  dryRun(family: IPFamily, wanted?: string): string {
    const item = [...this.#byCidr.values()].find(({ cidr }) => cidr.range.family === family);
    if (item === undefined || !isReady(item)) throw new NotReadyError();
    if (wanted === undefined) return item.cidr.base;
    if (!item.addresses.contains(wanted)) throw new NotInRangeError('IP', wanted, item.cidr.range.text);
    return wanted;
  }

  #open(text: string): CidrAllocator | undefined {
    const cidr = parseServiceCidr(text);
    if (cidr === undefined || !this.families.some((family) => family === cidr.range.family)) return undefined;
    const item: CidrAllocator = { cidr, addresses: new AddressAllocator(cidr), owners: new Map() };
    for (const taken of [this.#stored, this.#reserved]) {
      for (const address of taken) if (isFree(item, address)) item.addresses.allocate(address);
    }
    this.#byCidr.set(text, item);
    return item;
  }

  #disown(text: string, owners: Map<string, boolean>, name: string): void {
    if (owners.delete(name) && owners.size === 0) this.#byCidr.delete(text);
  }

  #readyOwner(address: string): CidrAllocator | undefined {
    for (const item of this.#byCidr.values()) {
      if (isReady(item) && item.addresses.contains(address)) return item;
    }
    return undefined;
  }

  /** @param except the CIDR that has it already. */
  #mark(address: string, except?: CidrAllocator): void {
    for (const item of this.#byCidr.values()) {
      if (item !== except && isFree(item, address)) item.addresses.allocate(address);
    }
  }

  #unmark(address: string): void {
    for (const { addresses } of this.#byCidr.values()) addresses.release(address);
  }
}

function isFree({ addresses }: CidrAllocator, address: string): boolean {
  return addresses.contains(address) && !addresses.has(address);
}

function isReady({ owners }: CidrAllocator): boolean {
  for (const ready of owners.values()) if (ready) return true;
  return false;
}
