/** Who holds what in the cluster, as the caches show it, and what is left. Pure. */
import { AddressAllocator } from '../../allocation/address-allocator.ts';
import { parseServiceCidr } from '../../allocation/address-range.ts';
import { RangeFullError } from '../../allocation/errors.ts';
import { PortAllocator, type PortRange } from '../../allocation/port-allocator.ts';
import type { ObjectKey } from '../../objects/key.ts';
import type { IPFamily } from '../../objects/address.ts';
import { claimValues, type ServiceView, specValues, type Value } from './plan-view.ts';

/** How a Service holds a value: written in its spec, or claimed. */
export interface Holder {
  readonly key: ObjectKey;
  readonly how: 'spec' | 'claim';
  readonly age: string;
  /** Of the Service, for claims that meet: the one that was written last gives way. */
  readonly resourceVersion: string;
}

interface Entry {
  readonly values: ReadonlyMap<Value, Holder>;
}

/** One CIDR that Services get addresses from. */
export interface CidrState {
  readonly text: string;
  /** False: it gives no new addresses. */
  readonly ready: boolean;
}

/**
 * The state of allocation. Filled by cache events in any order; a value is in use while any Service writes or claims
 * it, any IPAddress object is named so, or it was picked here and the claim has not shown yet.
 */
export class AllocationState {
  readonly nodePorts: PortAllocator;
  readonly #services = new Map<ObjectKey, Entry>();
  readonly #holders = new Map<Value, Map<ObjectKey, Holder>>();
  readonly #picked = new Map<ObjectKey, readonly Value[]>();
  /** How many reasons there are to leave a value alone. */
  readonly #uses = new Map<Value, number>();
  readonly #cidrs = new Map<string, { readonly addresses: AddressAllocator; ready: boolean }>();
  readonly #freed: (value: Value) => void;

  /** @param freed is called when nothing holds a value any more. */
  constructor(nodePorts: PortRange, freed: (value: Value) => void = () => undefined) {
    this.nodePorts = new PortAllocator(nodePorts);
    this.#freed = freed;
  }

  /** A Service as it is now. Returns the other Services that hold a value which this one gained or lost. */
  set(view: ServiceView, resourceVersion: string): Set<ObjectKey> {
    const { key, age } = view;
    const values = new Map<Value, Holder>();
    for (const value of claimValues(view)) values.set(value, { key, how: 'claim', age, resourceVersion });
    for (const value of specValues(view)) values.set(value, { key, how: 'spec', age, resourceVersion });
    const touched = new Set<ObjectKey>();
    // New ones first: what stays in use is not free in between.
    for (const [value, holder] of values) this.#enter(value, holder, touched);
    for (const value of this.#services.get(key)?.values.keys() ?? []) {
      if (!values.has(value)) this.#leave(value, key, touched);
    }
    this.#services.set(key, { values });
    touched.delete(key);
    return touched;
  }

  /** A Service is gone. */
  delete(key: ObjectKey): Set<ObjectKey> {
    const touched = new Set<ObjectKey>();
    for (const value of this.#services.get(key)?.values.keys() ?? []) this.#leave(value, key, touched);
    this.#services.delete(key);
    this.putBack(key);
    return touched;
  }

  /** The other Services that hold a value. */
  others(value: Value, key: ObjectKey): Holder[] {
    return [...(this.#holders.get(value)?.values() ?? [])].filter((holder) => holder.key !== key);
  }

  /** An IPAddress object of that name exists, whoever made it. Call once for each object. */
  block(address: string): void {
    this.#use(address);
  }

  /** The IPAddress object of that name is gone. */
  unblock(address: string): void {
    this.#unuse(address);
  }

  /** The ranges that addresses come from. Text that is no CIDR is left out. */
  setCidrs(cidrs: readonly CidrState[]): void {
    for (const text of this.#cidrs.keys())
      if (!cidrs.some((cidr) => cidr.text === text)) this.#cidrs.delete(text);
    for (const { text, ready } of cidrs) {
      const known = this.#cidrs.get(text);
      if (known !== undefined) {
        known.ready = ready;
        continue;
      }
      const parsed = parseServiceCidr(text);
      if (parsed === undefined) continue;
      const addresses = new AddressAllocator(parsed);
      for (const value of this.#uses.keys()) if (addresses.contains(value)) addresses.allocate(value);
      this.#cidrs.set(text, { addresses, ready });
    }
  }

  /** True when some range, ready or not, has the address (canonical text). */
  inRange(address: string): boolean {
    for (const { addresses } of this.#cidrs.values()) if (addresses.contains(address)) return true;
    return false;
  }

  /** True when {@link pickAddress} or {@link pickPort} would find something. */
  hasFree(pool: IPFamily | 'port'): boolean {
    if (pool === 'port') return this.nodePorts.free > 0;
    for (const { addresses, ready } of this.#cidrs.values()) {
      if (ready && addresses.family === pool && addresses.free > 0) return true;
    }
    return false;
  }

  hasPort(port: number): boolean {
    return this.nodePorts.contains(port);
  }

  /**
   * Picks a free address for a Service and keeps it until {@link putBack}, or until the Service is gone.
   *
   * @throws {RangeFullError}
   */
  pickAddress(key: ObjectKey, family: IPFamily, random: () => number): string {
    const ready = [...this.#cidrs.values()].filter(
      (cidr) => cidr.ready && cidr.addresses.family === family && cidr.addresses.free > 0,
    );
    const cidr = ready[ready.length === 1 ? 0 : Math.floor(random() * ready.length)];
    if (cidr === undefined) throw new RangeFullError();
    const address = cidr.addresses.allocateNext(random);
    cidr.addresses.release(address);
    this.#pick(key, address);
    return address;
  }

  /** The same for a node port. @throws {RangeFullError} */
  pickPort(key: ObjectKey, random: () => number): number {
    const port = this.nodePorts.allocateNext(random);
    this.nodePorts.release(port);
    this.#pick(key, String(port));
    return port;
  }

  /** Forgets what was picked for a Service: its claim shows by now, or will never. */
  putBack(key: ObjectKey): void {
    this.#forgetPicked(key, this.#freed);
  }

  /** The same right after a pick that did not find all: nothing became free that was not free before. */
  abandonPick(key: ObjectKey): void {
    this.#forgetPicked(key, () => undefined);
  }

  #forgetPicked(key: ObjectKey, freed: (value: Value) => void): void {
    const picked = this.#picked.get(key) ?? [];
    this.#picked.delete(key);
    for (const value of picked) this.#unuse(value, freed);
  }

  /** Taken and free addresses of each range. */
  *ranges(): Generator<{ readonly range: string; readonly used: number; readonly free: number }> {
    for (const [range, { addresses }] of this.#cidrs)
      yield { range, used: addresses.used, free: addresses.free };
    yield { range: this.nodePorts.range, used: this.nodePorts.used, free: this.nodePorts.free };
  }

  #pick(key: ObjectKey, value: Value): void {
    this.#picked.set(key, [...(this.#picked.get(key) ?? []), value]);
    this.#use(value);
  }

  #enter(value: Value, holder: Holder, touched: Set<ObjectKey>): void {
    const holders = this.#holders.get(value);
    const old = holders?.get(holder.key);
    if (holders === undefined) this.#holders.set(value, new Map([[holder.key, holder]]));
    else holders.set(holder.key, holder);
    if (old === undefined) this.#use(value);
    if (old?.how === holder.how) return;
    for (const other of holders?.keys() ?? []) touched.add(other);
  }

  #leave(value: Value, key: ObjectKey, touched: Set<ObjectKey>): void {
    const holders = this.#holders.get(value);
    holders?.delete(key);
    for (const other of holders?.keys() ?? []) touched.add(other);
    if (holders?.size === 0) this.#holders.delete(value);
    this.#unuse(value);
  }

  #use(value: Value): void {
    const uses = this.#uses.get(value) ?? 0;
    this.#uses.set(value, uses + 1);
    if (uses === 0) this.#mark(value, true);
  }

  #unuse(value: Value, freed = this.#freed): void {
    const uses = this.#uses.get(value) ?? 0;
    if (uses > 1) {
      this.#uses.set(value, uses - 1);
      return;
    }
    if (uses === 0) return;
    this.#uses.delete(value);
    this.#mark(value, false);
    freed(value);
  }

  #mark(value: Value, taken: boolean): void {
    if (/^\d+$/.test(value)) {
      const port = Number(value);
      if (!taken) this.nodePorts.release(port);
      else if (this.nodePorts.contains(port)) this.nodePorts.allocate(port);
      return;
    }
    for (const { addresses } of this.#cidrs.values()) {
      if (!taken) addresses.release(value);
      else if (addresses.contains(value)) addresses.allocate(value);
    }
  }
}
