import type { ObjectKey } from '../../objects/key.ts';
import { parseStrictAddress } from '../../objects/address.ts';
import { pushAll } from '../../objects/lists.ts';
import type { IPFamily } from '../../objects/address.ts';
import { AddressBook } from './address-book.ts';
import { adoptionOrder, asShown, type Claim, withServedPorts } from './adoption.ts';
import { choose, Line, mayKeep, mayShow, type Granted, type Refused } from './choice.ts';
import { maySuitMore, type Holding } from './holding.ts';
import { grantedOf, hadBy, keep } from './granting.ts';
import { LeftAddresses } from './left-addresses.ts';
import { accountOf, outcomeOf, poolNameOf, type Outcome } from './outcome.ts';
import type { Pool } from './pool.ts';
import { layOut, type Forbidden, type PoolLayout } from './pool-layout.ts';
import type { PresentAddress } from './present.ts';
import { byAge, type AddressRequest } from './request.ts';
import { SharedAddresses } from './shared-addresses.ts';
import { Waiters } from './waiters.ts';

/**
 * The books of all pools and the rules by which Services get addresses. Every answer is computed when it is asked
 * for, from what changed: nothing is ever processed again as a whole, and no free address is searched for by walking.
 *
 * A Service that cannot be served waits in the lines of what could serve it; an address that becomes free goes to the
 * oldest Service in its line, at once. {@link takeChanged} says whose addresses changed without their asking.
 *
 * An address that a Service leaves is not free before {@link letGo} says that its status does not show it any more.
 *
 * Times are milliseconds since 1970 and given by the caller.
 */
export class LoadBalancerAllocator {
  readonly book = new AddressBook();
  readonly #shared = new SharedAddresses();
  readonly #waiters = new Waiters();
  readonly #changed = new Set<ObjectKey>();
  readonly #told = new Map<ObjectKey, string>(); // Service that waits -> why
  readonly #freed: string[] = []; // addresses that became free, or whose sharers changed
  readonly #left = new LeftAddresses();
  #draining = false;

  /** Number of Services that wait for an address. */
  get waiting(): number {
    return this.#waiters.size;
  }

  /** Whether some pool contains an address now. */
  readonly isPooled = (family: IPFamily, value: bigint): boolean =>
    this.book.poolOf(family, value) !== undefined;

  /** Services whose addresses changed, or their pools, or may have to, since the last call. */
  takeChanged(): ObjectKey[] {
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }

  /**
   * Replaces all pools. Addresses in use stay, but for those that a pool with shrinkPolicy Reassign no longer
   * contains: their Services move, and appear in {@link takeChanged}. Whoever waits is tried again, oldest first.
   */
  setPools(pools: readonly Pool[], forbidden: readonly Forbidden[]): Map<string, PoolLayout> {
    const layouts = layOut(pools, forbidden);
    const before = new Map([...this.book.holdings()].map((holding) => [holding, this.#accountOf(holding)]));
    this.book.setPools(pools, layouts);
    const evicted = new Map<ObjectKey, AddressRequest>();
    for (const holding of this.book.holdings()) {
      this.#file(holding.address);
      // Its status says so.
      if (before.get(holding) !== this.#accountOf(holding)) {
        for (const service of holding.claims.keys()) this.#changed.add(service);
      }
      for (const request of holding.claims.values()) {
        if (this.#left.of(request.service).has(holding.address)) continue;
        if (!mayKeep(this.#stock, request, holding)) evicted.set(request.service, request);
      }
    }
    // Who has to leave is served before those who never had an address.
    for (const request of [...evicted.values()].sort(byAge)) {
      this.#changed.add(request.service);
      this.#retry(request);
    }
    for (const request of this.#waiters.takeAll()) this.#retry(request);
    this.#drain();
    return layouts;
  }

  /**
   * AllocationState the addresses that Services have by their status, and gives them nothing new: for the start, when every
   * Service must be heard before the first address is given. Yields between Services, so that the caller may pause.
   *
   * @param leaving those that are to have none any more: what they show is not free before they are let go.
   */
  *adopt(claims: readonly Claim[], leaving: readonly Claim[] = []): Generator<Claim> {
    const more: Claim[] = [];
    const order = adoptionOrder(claims, ({ request }, had) => this.#mayAdopt({ ...request, ports: [] }, had));
    for (const claim of order) {
      if (this.#adopt(claim)) more.push(claim);
      yield claim;
    }
    // Ports that it asks for and nobody serves there: they come before those of Services that want to join.
    for (const claim of more) {
      for (const address of this.book.addressesOf(claim.request.service).values()) {
        this.#claim(claim.request, { address });
      }
      yield claim;
    }
    for (const claim of order) {
      this.#bookShown(claim);
      yield claim;
    }
    for (const claim of leaving) {
      this.#bookShown(claim);
      this.leave(claim.request.service);
      yield claim;
    }
  }

  /** AllocationState a Service with the ports that it serves; answers whether it wants more. */
  #adopt({ request, present }: Claim): boolean {
    let wantsMore = false;
    for (const had of present) {
      if (this.book.addressesOf(request.service).has(had.family)) continue;
      const claimed = withServedPorts(request, had);
      if (!this.#mayAdopt(claimed, had)) continue;
      this.#claim(claimed, had);
      wantsMore ||= claimed.ports.length < request.ports.length;
    }
    return wantsMore;
  }

  #mayAdopt(request: AddressRequest, had: PresentAddress): boolean {
    return request.families.includes(had.family) && mayKeep(this.#stock, request, had);
  }

  /**
   * AllocationState what a Service shows in its status although it may not keep it, so that it has it to leave. What another one
   * has, alone or until its rest is over, is that one's.
   */
  #bookShown({ request, present }: Claim): void {
    for (const had of present) {
      if (this.book.addressesOf(request.service).has(had.family)) continue;
      if (this.#left.of(request.service).has(had.address)) continue;
      const shown = asShown(request, had);
      if (mayShow(this.#stock, shown, had.address)) this.#claim(shown, had);
    }
  }

  /**
   * Gives a Service what it asks for as far as possible, and takes back what it should no longer have. Asking again
   * changes nothing: what it has and may keep, it keeps.
   *
   * @param present the addresses in its status: what these books have not heard of may be free only once it is gone.
   */
  assign(request: AddressRequest, present: readonly PresentAddress[]): Outcome {
    const outcome = this.#settle(request, present);
    if (outcome.message === '') this.#told.delete(request.service);
    else this.#told.set(request.service, outcome.message);
    // Its own change is what the caller gets; one that comes from serving others is news again.
    this.#changed.delete(request.service);
    this.#drain();
    return outcome;
  }

  /** Takes back what a Service has, and serves it no longer: it is going, or is not ours any more. */
  leave(service: ObjectKey): void {
    this.#waiters.leave(service);
    this.#told.delete(service);
    for (const address of [...this.book.addressesOf(service).values()]) this.#leave(address, service);
    this.#changed.delete(service);
  }

  /** Forgets a Service that is gone, and gives its addresses to whoever waits for them. */
  release(service: ObjectKey, now: number): void {
    this.leave(service);
    this.letGo(service, this.leftBy(service), now);
  }

  /** The addresses that a Service left, and that are not free yet. */
  leftBy(service: ObjectKey): readonly string[] {
    return [...this.#left.of(service)];
  }

  /** Gives addresses that a Service left, and that its status does not show any more, to whoever waits for them. */
  letGo(service: ObjectKey, addresses: readonly string[], now: number): void {
    for (const address of addresses) {
      // It may have come back to it.
      if (this.#left.remove(service, address)) this.#release(address, service, now);
    }
    this.#drain();
  }

  /** Ends the rests that are over. Call it when {@link AddressBook.nextRest} has come. */
  tick(now: number): void {
    pushAll(this.#freed, this.book.endRests(now));
    this.#drain();
  }

  get #stock(): { book: AddressBook; shared: SharedAddresses } {
    return { book: this.book, shared: this.#shared };
  }

  #settle(request: AddressRequest, present: readonly PresentAddress[]): Outcome {
    const { service } = request;
    this.#bookShown({ request, present });
    const had = hadBy(this.book, service, present);
    if (request.problems.length > 0) {
      // Nonsense takes nothing away: what the Service has, it keeps.
      const kept = request.families.flatMap((family) => keep(this.#stock, request, family, had.get(family)));
      this.#commit(request, kept);
      this.#waiters.leave(service);
      const message = `the Service ${request.problems.join('; ')}`;
      return outcomeOf(this.book, request, { reason: 'InvalidRequest', message });
    }
    const choices = request.families.map((family) => choose(this.#stock, request, family, had.get(family)));
    const refused = choices.filter((choice): choice is Refused => 'reason' in choice);
    const granted = grantedOf(this.#stock, request, choices, had);
    this.#commit(request, granted);
    if (refused.length === 0) this.#waiters.leave(service);
    else this.#waiters.wait(request, new Set(refused.flatMap(({ lines }) => lines)));
    const { account, alsoTrue } = accountOf(request, refused, granted);
    return outcomeOf(this.book, request, account, alsoTrue);
  }

  /** Makes the books say what was granted: new claims first, so that nothing is free in between. */
  #commit(request: AddressRequest, granted: readonly Granted[]): void {
    const { service } = request;
    const before = [...this.book.addressesOf(service).values()];
    const keep = new Set(granted.map(({ address }) => address));
    for (const grant of granted) this.#claim(request, grant);
    for (const address of before) if (!keep.has(address)) this.#leave(address, service);
    if (before.length !== keep.size || before.some((address) => !keep.has(address)))
      this.#changed.add(service);
  }

  #leave(address: string, service: ObjectKey): void {
    this.book.leave(address, service);
    this.#left.add(service, address);
  }

  #claim(request: AddressRequest, { address, origin }: Pick<Granted, 'address' | 'origin'>): void {
    const before = this.book.holding(address)?.claims.get(request.service);
    this.#left.remove(request.service, address);
    for (const service of this.book.claim(address, request, origin)) this.#changed.add(service);
    this.#file(address);
    // What it had already, by the same wish, is news to nobody.
    if (before === request) return;
    // What the Service gives up may be what another one waits for, and who waits for the address is told who has it.
    const suitsMore = before !== undefined && maySuitMore(before, request);
    if (suitsMore || this.#waiters.awaits(Line.address(address))) this.#freed.push(address);
  }

  #release(address: string, service: ObjectKey, now: number): void {
    for (const sharer of this.book.release(address, service, now)) this.#changed.add(sharer);
    this.#file(address);
    this.#freed.push(address);
  }

  /** Files an address where those find it that may join it. */
  #file(address: string): void {
    const holding = this.book.holding(address);
    const [holder] = holding?.claims.values() ?? [];
    const byPorts = this.book.pools.get(holding?.origin?.pool ?? '')?.pool.sharing === 'by-ports';
    this.#shared.update(address, byPorts || holder?.sharingKey !== '' ? holding : undefined);
  }

  /** Serves those who wait for addresses that became free, until nothing more becomes free by that. */
  #drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    try {
      for (let address = this.#freed.shift(); address !== undefined; address = this.#freed.shift()) {
        this.#serve(address);
      }
    } finally {
      this.#draining = false;
    }
  }

  #serve(address: string): void {
    const parsed = parseStrictAddress(address);
    if (parsed === undefined) return;
    this.#tryLine(Line.address(address));
    const stocked = this.book.poolOf(parsed.family, parsed.value);
    if (stocked === undefined) return;
    const line = Line.pool(stocked.pool.name, parsed.family);
    // Each turn either uses an address up or moves a Service to the line of another family.
    while (stocked.spaces[parsed.family].lowestFree() !== undefined) {
      const request = this.#waiters.take(line);
      if (request === undefined) break;
      this.#retry(request);
    }
    const [holder] = this.book.holding(address)?.claims.values() ?? [];
    if (holder === undefined) return;
    if (holder.sharingKey !== '') this.#tryLine(Line.key(holder.sharingKey));
    else this.#tryLine(Line.namespace(stocked.pool.name, holder.namespace));
  }

  /** Tries the first of a line, and puts those back that are still not served. */
  #tryLine(line: string): void {
    const tried: AddressRequest[] = [];
    while (tried.length < MAX_JOINERS) {
      const request = this.#waiters.take(line);
      if (request === undefined) break;
      tried.push(request);
    }
    for (const request of tried) this.#retry(request);
  }

  /** Tries a waiting Service again. Its status names who is in the way, so it changes when that is another one. */
  #retry(request: AddressRequest): void {
    const before = this.#told.get(request.service);
    const { message } = this.#settle(request, []);
    if (before !== message) this.#changed.add(request.service);
    this.#told.set(request.service, message);
  }

  /** What the status of its Services says of an address, apart from their own wishes. */
  #accountOf({ address, origin }: Holding): string {
    return `${poolNameOf(this.book, address) ?? ''} ${origin?.pool ?? ''} ${origin?.shrinkPolicy ?? ''}`;
  }
}

/** How many are tried when a shared address has room for somebody: those behind them are tried at the next change. */
const MAX_JOINERS = 16;
