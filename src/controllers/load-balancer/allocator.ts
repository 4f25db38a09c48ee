import type { ObjectKey } from '../../objects/meta.ts';
import { parseStrictAddress, type IPFamily } from '../../objects/address.ts';
import { pushAll } from '../../objects/lists.ts';
import {
  chooseAddress,
  currentAddresses,
  grantedOf,
  isAddressAvailable,
  keepCurrent,
  mayKeep,
  type Choice,
  type GrantedAddress,
  type Inventory,
  type RefusedAddress,
} from './address-choice.ts';
import { adoptionOrder, admitsMore, SharedAddressIndex } from './sharing.ts';
import { asInStatus, type ServedService, withServedPorts, type StatusAddress } from './status.ts';
import { Allocations, type Allocation } from './allocations.ts';
import type { Pool } from './pools.ts';
import { layOut, type ForbiddenRange, type PoolLayout } from './pools.ts';
import { explain, outcomeOf, poolNameOf, type Outcome } from './reasons.ts';
import { byServiceAge, type AddressRequest } from './request.ts';
import { WaitingServices, waitKeys } from './waiting-services.ts';

/** Services that other load balancers serve. */
export interface ForeignServices {
  /** Those that are served from now on, since a pool contains their addresses. */
  readonly adopted: readonly ServedService[];
  /** Those that are left to the others. */
  readonly held: readonly ServedService[];
}

/**
 * Assigns addresses of pools to Services. The work of a call depends on what changed, not on the number of Services or
 * addresses.
 *
 * A Service that gets no address waits, and an address that becomes free goes to the oldest Service that waits for it, in
 * the same call. {@link takeChanged} returns the Services whose result changed by the requests of others.
 *
 * An unassigned address is free only after {@link release}: until then the status of its Service may show it.
 *
 * Times are milliseconds since 1970, given by the caller.
 */
export class LoadBalancerAllocator {
  readonly allocations = new Allocations();
  readonly #shared = new SharedAddressIndex();
  readonly #inventory: Inventory = { allocations: this.allocations, shared: this.#shared };
  readonly #waiting = new WaitingServices();
  readonly #changed = new Set<ObjectKey>();
  /** The last message of each Service that was refused something. */
  readonly #lastMessages = new Map<ObjectKey, string>();
  /** Addresses that became free, or whose Services changed, and that were not offered to waiting Services yet. */
  readonly #toOffer: string[] = [];
  /** Addresses of Services that other load balancers serve. */
  readonly #held = new Map<ObjectKey, readonly string[]>();
  #isOffering = false;

  /** Number of Services that wait for an address. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Whether a pool contains an address now. */
  readonly isPooled = (family: IPFamily, value: bigint): boolean =>
    this.allocations.poolOf(family, value) !== undefined;

  /** The Services to reconcile since the last call: their addresses, pools or messages may have changed. */
  takeChanged(): ObjectKey[] {
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }

  /**
   * Replaces all pools. Services keep their addresses, except those that a pool with shrinkPolicy Reassign no longer
   * contains. Waiting Services are retried, oldest first.
   *
   * @param foreign the Services of other load balancers, asked for when {@link isPooled} knows the new pools: their
   *   addresses are recorded before any is given.
   */
  setPools(
    pools: readonly Pool[],
    forbidden: readonly ForbiddenRange[],
    foreign: () => ForeignServices = () => ({ adopted: [], held: [] }),
  ): Map<string, PoolLayout> {
    const layouts = layOut(pools, forbidden);
    const { allocations } = this;
    const before = new Map([...allocations.values()].map((one) => [one, this.#poolTextOf(one)]));
    allocations.setPools(pools, layouts);
    const { adopted, held } = foreign();
    for (const { request } of this.adopt(adopted)) this.#changed.add(request.service);
    for (const one of held) this.hold(one);
    const evicted = new Map<ObjectKey, AddressRequest>();
    for (const allocation of allocations.values()) {
      this.#updateShared(allocation.address);
      if (before.get(allocation) !== this.#poolTextOf(allocation)) {
        for (const service of allocation.services.keys()) this.#changed.add(service);
      }
      for (const request of allocation.services.values()) {
        if (allocations.unreleased(request.service).has(allocation.address)) continue;
        if (!mayKeep(this.#inventory, request, allocation)) evicted.set(request.service, request);
      }
    }
    // Before the Services that never had an address.
    for (const request of [...evicted.values()].sort(byServiceAge)) {
      this.#changed.add(request.service);
      this.#retry(request);
    }
    for (const request of this.#waiting.takeAll()) this.#retry(request);
    this.#offerAll();
    return layouts;
  }

  /**
   * Records the addresses in the status of all Services, before the first address is assigned. Yields between Services,
   * so that the caller may pause.
   *
   * @param released Services that are deleted or no longer served: their addresses are unassigned.
   */
  *adopt(
    services: readonly ServedService[],
    released: readonly ServedService[] = [],
  ): Generator<ServedService> {
    const order = adoptionOrder(services, ({ request }, one) =>
      this.#mayAdopt({ ...request, ports: [] }, one),
    );
    const withMorePorts: ServedService[] = [];
    for (const service of order) {
      if (this.#adopt(service)) withMorePorts.push(service);
      yield service;
    }
    // Ports that the status does not show as served: before other Services can join these addresses.
    for (const service of withMorePorts) {
      for (const address of this.allocations.addressesOf(service.request.service).values()) {
        this.#assign(service.request, { address });
      }
      yield service;
    }
    for (const service of order) {
      this.#recordStatus(service);
      yield service;
    }
    for (const service of released) {
      this.#recordStatus(service);
      this.unassign(service.request.service);
      yield service;
    }
  }

  /**
   * The order in which a starting process allocates for adopted Services: first those that cannot keep an address of
   * their status, as {@link setPools} would evict them, each group oldest first.
   */
  startOrder(services: readonly ServedService[]): ServedService[] {
    const keeps = ({ request, inStatus }: ServedService): boolean => {
      const own = this.allocations.addressesOf(request.service);
      return inStatus.every(({ family, address }) => own.get(family) === address);
    };
    return [...services].sort(
      (a, b) => Number(keeps(a)) - Number(keeps(b)) || byServiceAge(a.request, b.request),
    );
  }

  /** Assigns the addresses that a Service may keep, with the ports that it serves. True if it requests more ports. */
  #adopt({ request, inStatus }: ServedService): boolean {
    let requestsMore = false;
    for (const one of inStatus) {
      if (this.allocations.addressesOf(request.service).has(one.family)) continue;
      const served = withServedPorts(request, one);
      if (!this.#mayAdopt(served, one)) continue;
      this.#assign(served, one);
      requestsMore ||= served.ports.length < request.ports.length;
    }
    return requestsMore;
  }

  #mayAdopt(request: AddressRequest, one: StatusAddress): boolean {
    return request.families.includes(one.family) && mayKeep(this.#inventory, request, one);
  }

  /**
   * Assigns the available addresses in a Service's status, also those that it may not keep: they are free only after the
   * status has changed.
   */
  #recordStatus({ request, inStatus }: ServedService): void {
    const { allocations } = this;
    for (const one of inStatus) {
      if (allocations.addressesOf(request.service).has(one.family)) continue;
      if (allocations.unreleased(request.service).has(one.address)) continue;
      const shown = asInStatus(request, one);
      if (isAddressAvailable(allocations, shown, one.address)) this.#assign(shown, one);
    }
  }

  /**
   * Assigns what a Service requests, as far as possible, and unassigns what it may not keep. The same request again
   * changes nothing.
   *
   * @param inStatus the addresses in its status; unknown ones are recorded first.
   */
  allocate(request: AddressRequest, inStatus: readonly StatusAddress[]): Outcome {
    const outcome = this.#allocate(request, inStatus);
    if (outcome.message === '') this.#lastMessages.delete(request.service);
    else this.#lastMessages.set(request.service, outcome.message);
    // The caller has the result. Offering addresses to other Services may change it again.
    this.#changed.delete(request.service);
    this.#offerAll();
    return outcome;
  }

  /** What a request would get, or why not, by family. Nothing is assigned. */
  choices(request: AddressRequest): readonly Choice[] {
    return request.families.map((family) => chooseAddress(this.#inventory, request, family, undefined));
  }

  /** Unassigns all addresses of a Service that is deleted or no longer served. */
  unassign(service: ObjectKey): void {
    this.#waiting.delete(service);
    this.#lastMessages.delete(service);
    for (const address of [...this.allocations.addressesOf(service).values()])
      this.allocations.unassign(address, service);
    this.#changed.delete(service);
  }

  /**
   * Keeps the addresses in the status of a Service that another load balancer serves from all others. Where both have given one
   * address at the same moment, the older Service keeps it: younger ones of ours get another one, as the other load
   * balancer does with its own.
   */
  hold(service: ServedService): void {
    const { service: key } = service.request;
    this.unassign(key);
    for (const one of service.inStatus) this.#yieldToOlder(service.request, one);
    this.#recordStatus(service);
    this.unassign(key);
    const shown = service.inStatus.map(({ address }) => address);
    if (shown.length > 0) this.#held.set(key, shown);
    else this.#held.delete(key);
  }

  #yieldToOlder(request: AddressRequest, one: StatusAddress): void {
    const { allocations } = this;
    const shown = asInStatus(request, one);
    if (isAddressAvailable(allocations, shown, one.address)) return;
    const ours = [...(allocations.get(one.address)?.services.values() ?? [])].filter(
      ({ service }) => allocations.addressesOf(service).get(one.family) === one.address,
    );
    if (ours.length === 0 || ours.some((other) => byServiceAge(other, request) < 0)) return;
    this.#assign(shown, one);
    for (const { service } of ours) {
      allocations.unassign(one.address, service);
      // At once, so that its ports are the older one's. It is not free, so that no quarantine begins.
      allocations.release(one.address, service, 0);
      this.#changed.add(service);
    }
  }

  /** The addresses that {@link hold} keeps: they are not to be released. */
  held(service: ObjectKey): readonly string[] {
    return this.#held.get(service) ?? [];
  }

  /** Unassigns and releases all addresses of a Service that is gone. */
  remove(service: ObjectKey, now: number): void {
    this.#held.delete(service);
    this.unassign(service);
    this.release(service, this.unreleased(service), now);
  }

  /** The addresses that were unassigned from a Service and not released yet. */
  unreleased(service: ObjectKey): readonly string[] {
    return [...this.allocations.unreleased(service)];
  }

  /** Releases unassigned addresses that the status of the Service no longer shows. */
  release(service: ObjectKey, addresses: readonly string[], now: number): void {
    const { allocations } = this;
    for (const address of addresses) {
      // It may have been assigned again in the meantime.
      if (!allocations.unreleased(service).has(address)) continue;
      for (const sharer of allocations.release(address, service, now)) this.#changed.add(sharer);
      this.#updateShared(address);
      this.#toOffer.push(address);
    }
    this.#offerAll();
  }

  /** Ends the quarantines that are over. Call it at {@link Allocations.nextQuarantineEnd}. */
  endQuarantines(now: number): void {
    pushAll(this.#toOffer, this.allocations.endQuarantines(now));
    this.#offerAll();
  }

  #allocate(request: AddressRequest, inStatus: readonly StatusAddress[]): Outcome {
    const { service, families } = request;
    this.#held.delete(service);
    const { allocations } = this;
    const inventory = this.#inventory;
    this.#recordStatus({ request, inStatus });
    const current = currentAddresses(allocations, service, inStatus);
    if (request.problems.length > 0) {
      this.#apply(
        request,
        families.flatMap((family) => keepCurrent(inventory, request, family, current.get(family))),
      );
      this.#waiting.delete(service);
      const message = `the Service ${request.problems.join('; ')}`;
      return outcomeOf(allocations, request, { reason: 'InvalidRequest', message });
    }
    const choices = families.map((family) => chooseAddress(inventory, request, family, current.get(family)));
    const refused = choices.filter((choice): choice is RefusedAddress => 'reason' in choice);
    const granted = grantedOf(inventory, request, choices, current);
    this.#apply(request, granted);
    if (refused.length === 0) this.#waiting.delete(service);
    else this.#waiting.add(request, new Set(refused.flatMap((refusal) => refusal.waitKeys)));
    const { explanation, alsoTrue } = explain(request, refused, granted);
    return outcomeOf(allocations, request, explanation, alsoTrue);
  }

  /** Makes the granted addresses the ones that a Service has. */
  #apply(request: AddressRequest, granted: readonly GrantedAddress[]): void {
    const { service } = request;
    const before = [...this.allocations.addressesOf(service).values()];
    const after = new Set(granted.map(({ address }) => address));
    for (const grant of granted) this.#assign(request, grant);
    const removed = before.filter((address) => !after.has(address));
    for (const address of removed) this.allocations.unassign(address, service);
    if (before.length !== after.size || removed.length > 0) this.#changed.add(service);
  }

  #assign(request: AddressRequest, { address, origin }: Pick<GrantedAddress, 'address' | 'origin'>): void {
    const before = this.allocations.get(address)?.services.get(request.service);
    for (const service of this.allocations.assign(address, request, origin)) this.#changed.add(service);
    this.#updateShared(address);
    if (before === request) return;
    // Services that wait for this address may join it now, or get another message, which names the Services that have it.
    const mayAdmitMore = before !== undefined && admitsMore(before, request);
    if (mayAdmitMore || this.#waiting.hasQueue(waitKeys.address(address))) this.#toOffer.push(address);
  }

  #updateShared(address: string): void {
    const allocation = this.allocations.get(address);
    const [first] = allocation?.services.values() ?? [];
    const byPorts = this.allocations.pools.get(allocation?.origin?.pool ?? '')?.pool.sharing === 'by-ports';
    this.#shared.update(address, byPorts || first?.sharingKey !== '' ? allocation : undefined);
  }

  /** Offers addresses to waiting Services, including those that become free by doing so. */
  #offerAll(): void {
    if (this.#isOffering) return;
    this.#isOffering = true;
    try {
      for (let address = this.#toOffer.shift(); address !== undefined; address = this.#toOffer.shift()) {
        this.#offer(address);
      }
    } finally {
      this.#isOffering = false;
    }
  }

  #offer(address: string): void {
    const parsed = parseStrictAddress(address);
    if (parsed === undefined) return;
    this.#retryFirst(waitKeys.address(address));
    const owner = this.allocations.poolOf(parsed.family, parsed.value);
    if (owner === undefined) return;
    const key = waitKeys.pool(owner.pool.name, parsed.family);
    // Each turn assigns a free address, or makes a Service wait for the other family.
    while (owner.addresses[parsed.family].lowestFree() !== undefined) {
      const request = this.#waiting.take(key);
      if (request === undefined) break;
      this.#retry(request);
    }
    const [first] = this.allocations.get(address)?.services.values() ?? [];
    if (first === undefined) return;
    if (first.sharingKey !== '') this.#retryFirst(waitKeys.sharingKey(first.sharingKey));
    else this.#retryFirst(waitKeys.namespace(owner.pool.name, first.namespace));
  }

  /** Retries the oldest Services that wait for a key. Those that are refused wait again. */
  #retryFirst(key: string): void {
    const requests: AddressRequest[] = [];
    while (requests.length < maxRetried) {
      const request = this.#waiting.take(key);
      if (request === undefined) break;
      requests.push(request);
    }
    for (const request of requests) this.#retry(request);
  }

  /** Retries a waiting Service. Its status changes also with the message, which names the Service that is in the way. */
  #retry(request: AddressRequest): void {
    const { message } = this.#allocate(request, []);
    if (this.#lastMessages.get(request.service) !== message) this.#changed.add(request.service);
    this.#lastMessages.set(request.service, message);
  }

  /** The pool of an address in the conditions of its Services. */
  #poolTextOf({ address, origin }: Allocation): string {
    return `${poolNameOf(this.allocations, address) ?? ''} ${origin?.pool ?? ''} ${origin?.shrinkPolicy ?? ''}`;
  }
}

/** Services retried at one change of a shared address; the others are retried at the next one. */
const maxRetried = 16;
