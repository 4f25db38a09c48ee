import { AddressAllocator } from '../../allocation/address-allocator.ts';
import { parseServiceCidr, RangeFullError, type ServiceCidr } from '../../allocation/address-range.ts';
import { PortAllocator, type PortRange } from '../../allocation/port-allocator.ts';
import { type ObjectKey, joinKey, splitKey } from '../../objects/meta.ts';
import type { IPFamily } from '../../objects/address.ts';
import { claimValues, type ServiceView, specValues, type AllocatedValue, familyOf } from './plan-view.ts';
import { textAt, conditionStatus, listAt } from '../../objects/json.ts';
import type { IPAddress, ServiceCIDR } from '../../objects/types/networking.generated.ts';
import type { KnownFamilies } from './plan-needs.ts';

/** Which addresses and node ports the Services of a cluster use, by the caches. Pure. */

/** A Service uses a value: it is in its spec, or claimed by its annotation. */
interface ValueUse {
  readonly key: ObjectKey;
  readonly how: 'spec' | 'claim';
  readonly age: string;
  /** Of the Service. Of two claims of a value, the one that was written last is withdrawn. */
  readonly resourceVersion: string;
}

/** A CIDR of Service addresses. */
interface CidrState {
  readonly text: string;
  /** False: no new addresses are allocated from it. */
  readonly ready: boolean;
}

/**
 * Filled by cache events in any order. A value is in use while a Service has it in its spec or claims it, an IPAddress
 * object has its name, or it is reserved for a Service whose claim the cache does not show yet.
 */
export class AllocationState {
  readonly nodePorts: PortAllocator;
  readonly #services = new Map<ObjectKey, ReadonlyMap<AllocatedValue, ValueUse>>();
  readonly #byValue = new Map<AllocatedValue, Map<ObjectKey, ValueUse>>();
  readonly #reserved = new Map<ObjectKey, readonly AllocatedValue[]>();
  /** How many Services, IPAddress objects and reservations use a value. */
  readonly #useCounts = new Map<AllocatedValue, number>();
  readonly #cidrs = new Map<string, { readonly addresses: AddressAllocator; ready: boolean }>();
  readonly #freed: (value: AllocatedValue) => void;

  /** @param freed is called when a value is no longer in use. */
  constructor(nodePorts: PortRange, freed: (value: AllocatedValue) => void = () => undefined) {
    this.nodePorts = new PortAllocator(nodePorts);
    this.#freed = freed;
  }

  /** Records a Service. Returns the other Services that use a value which this one gained or lost. */
  set(view: ServiceView, resourceVersion: string): Set<ObjectKey> {
    const { key, age } = view;
    const values = new Map<AllocatedValue, ValueUse>();
    for (const value of claimValues(view)) values.set(value, { key, how: 'claim', age, resourceVersion });
    for (const value of specValues(view)) values.set(value, { key, how: 'spec', age, resourceVersion });
    const touched = new Set<ObjectKey>();
    // New values first, so that values that stay in use are never free.
    for (const [value, use] of values) this.#add(value, use, touched);
    for (const value of this.#services.get(key)?.keys() ?? []) {
      if (!values.has(value)) this.#remove(value, key, touched);
    }
    this.#services.set(key, values);
    touched.delete(key);
    return touched;
  }

  /** Removes a Service. Returns the other Services that use one of its values. */
  delete(key: ObjectKey): Set<ObjectKey> {
    const touched = new Set<ObjectKey>();
    for (const value of this.#services.get(key)?.keys() ?? []) this.#remove(value, key, touched);
    this.#services.delete(key);
    this.releaseReserved(key);
    return touched;
  }

  /** The uses of a value by other Services. */
  usesByOthers(value: AllocatedValue, key: ObjectKey): ValueUse[] {
    return [...(this.#byValue.get(value)?.values() ?? [])].filter((use) => use.key !== key);
  }

  /** Records an IPAddress object by its name, whatever its parent. Call once for each object. */
  addIPAddress(address: string): void {
    this.#countUse(address);
  }

  deleteIPAddress(address: string): void {
    this.#uncountUse(address);
  }

  /** Replaces the CIDRs. Text that is not a CIDR is left out. */
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
      for (const value of this.#useCounts.keys()) if (addresses.contains(value)) addresses.allocate(value);
      this.#cidrs.set(text, { addresses, ready });
    }
  }

  /** True when some range, ready or not, has the address (canonical text). */
  inRange(address: string): boolean {
    for (const { addresses } of this.#cidrs.values()) if (addresses.contains(address)) return true;
    return false;
  }

  /** True when {@link reserveAddress} or {@link reservePort} would succeed. */
  hasFree(range: IPFamily | 'port'): boolean {
    if (range === 'port') return this.nodePorts.free > 0;
    for (const { addresses, ready } of this.#cidrs.values()) {
      if (ready && addresses.family === range && addresses.free > 0) return true;
    }
    return false;
  }

  hasPort(port: number): boolean {
    return this.nodePorts.contains(port);
  }

  /**
   * Reserves a free address for a Service, until {@link releaseReserved} or the Service is deleted.
   *
   * @throws {RangeFullError}
   */
  reserveAddress(key: ObjectKey, family: IPFamily, random: () => number): string {
    const ready = [...this.#cidrs.values()].filter(
      (cidr) => cidr.ready && cidr.addresses.family === family && cidr.addresses.free > 0,
    );
    const cidr = ready[ready.length === 1 ? 0 : Math.floor(random() * ready.length)];
    if (cidr === undefined) throw new RangeFullError();
    const address = cidr.addresses.allocateNext(random);
    cidr.addresses.release(address);
    this.#reserve(key, address);
    return address;
  }

  /** Reserves a free node port, likewise. @throws {RangeFullError} */
  reservePort(key: ObjectKey, random: () => number): number {
    const port = this.nodePorts.allocateNext(random);
    this.nodePorts.release(port);
    this.#reserve(key, String(port));
    return port;
  }

  /** Ends the reservations of a Service: the cache shows its claim, or it was not written. */
  releaseReserved(key: ObjectKey): void {
    this.#dropReserved(key, this.#freed);
  }

  /** The same for reservations that were just made: no value became free that was not free before. */
  cancelReserved(key: ObjectKey): void {
    this.#dropReserved(key, () => undefined);
  }

  #dropReserved(key: ObjectKey, freed: (value: AllocatedValue) => void): void {
    const reserved = this.#reserved.get(key) ?? [];
    this.#reserved.delete(key);
    for (const value of reserved) this.#uncountUse(value, freed);
  }

  /** Numbers of used and free values of each range. */
  *ranges(): Generator<{ readonly range: string; readonly used: number; readonly free: number }> {
    for (const [range, { addresses }] of this.#cidrs)
      yield { range, used: addresses.used, free: addresses.free };
    yield { range: this.nodePorts.range, used: this.nodePorts.used, free: this.nodePorts.free };
  }

  #reserve(key: ObjectKey, value: AllocatedValue): void {
    this.#reserved.set(key, [...(this.#reserved.get(key) ?? []), value]);
    this.#countUse(value);
  }

  #add(value: AllocatedValue, use: ValueUse, touched: Set<ObjectKey>): void {
    const uses = this.#byValue.get(value);
    const before = uses?.get(use.key);
    if (uses === undefined) this.#byValue.set(value, new Map([[use.key, use]]));
    else uses.set(use.key, use);
    if (before === undefined) this.#countUse(value);
    if (before?.how === use.how) return;
    for (const other of uses?.keys() ?? []) touched.add(other);
  }

  #remove(value: AllocatedValue, key: ObjectKey, touched: Set<ObjectKey>): void {
    const uses = this.#byValue.get(value);
    uses?.delete(key);
    for (const other of uses?.keys() ?? []) touched.add(other);
    if (uses?.size === 0) this.#byValue.delete(value);
    this.#uncountUse(value);
  }

  #countUse(value: AllocatedValue): void {
    const uses = this.#useCounts.get(value) ?? 0;
    this.#useCounts.set(value, uses + 1);
    if (uses === 0) this.#mark(value, true);
  }

  #uncountUse(value: AllocatedValue, freed = this.#freed): void {
    const uses = this.#useCounts.get(value) ?? 0;
    if (uses > 1) {
      this.#useCounts.set(value, uses - 1);
      return;
    }
    if (uses === 0) return;
    this.#useCounts.delete(value);
    this.#mark(value, false);
    freed(value);
  }

  #mark(value: AllocatedValue, taken: boolean): void {
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

const managedByLabel = 'ipaddress.kubernetes.io/managed-by';
const allocator = 'ipallocator.k8s.io';

/** True for IPAddresses that the allocator of clusterIPs manages, in kube-apiserver or here. */
export function isManagedAddress({ metadata }: IPAddress): boolean {
  return metadata.labels?.[managedByLabel] === allocator;
}

/** The Service that is the parent of an IPAddress; "" for another parent. */
export function serviceOf(address: IPAddress): ObjectKey {
  const parent = (member: string): string => textAt(address.spec, 'parentRef', member);
  if (parent('group') !== '' || parent('resource') !== 'services') return '';
  return joinKey(parent('namespace'), parent('name'));
}

/** Index of managed IPAddresses by their Service. */
export const byService = 'service';

export function indexByService(address: IPAddress): readonly string[] {
  const key = isManagedAddress(address) ? serviceOf(address) : '';
  return key === '' ? [] : [key];
}

/** The IPAddress of a Service, as kube-apiserver's allocator creates it. */
export function newIPAddress(address: string, service: ObjectKey): IPAddress {
  const { namespace, name } = splitKey(service);
  return {
    metadata: {
      name: address,
      labels: {
        'ipaddress.kubernetes.io/ip-family': familyOf(address) ?? 'IPv4',
        [managedByLabel]: allocator,
      },
    },
    spec: { parentRef: { group: '', resource: 'services', namespace, name } },
  };
}

/** Which kinds the API server has. */
export interface ServedKinds {
  readonly addresses: boolean;
  readonly cidrs: boolean;
}

/** The CIDRs of Service addresses. */
export interface KnownRanges {
  readonly cidrs: readonly CidrState[];
  readonly families: KnownFamilies;
}

/**
 * The ranges of ServiceCIDR objects. A deleted one, or one whose condition Ready is not True, is not ready; one without a
 * condition is. The families are those of the flags, or of the ServiceCIDR `kubernetes`, which an API server creates from
 * its flags.
 */
export function rangesOf(
  objects: Iterable<ServiceCIDR>,
  flags: readonly ServiceCidr[] | undefined,
): KnownRanges {
  const cidrs: CidrState[] = [];
  let families = flags?.map(({ range }) => range.family);
  for (const { metadata, spec, status } of objects) {
    const texts = listAt(spec, 'cidrs').filter((text) => typeof text === 'string');
    const condition = conditionStatus(listAt(status, 'conditions'), 'Ready') ?? 'True';
    const ready = metadata.deletionTimestamp === undefined && condition === 'True';
    for (const text of texts) {
      const known = cidrs.findIndex((cidr) => cidr.text === text);
      if (known < 0) cidrs.push({ text, ready });
      else if (ready) cidrs[known] = { text, ready };
    }
    if (metadata.name === 'kubernetes') families ??= texts.flatMap(familyOfCidr);
  }
  return { cidrs, families: families ?? [...new Set(cidrs.flatMap(({ text }) => familyOfCidr(text)))] };
}

/** The ranges of the flags, for a server without ServiceCIDRs. */
export function rangesOfFlags(flags: readonly ServiceCidr[] | undefined): KnownRanges {
  const cidrs = (flags ?? []).map(({ range }) => ({ text: range.text, ready: true }));
  return { cidrs, families: (flags ?? []).map(({ range }) => range.family) };
}

function familyOfCidr(text: string): IPFamily[] {
  const family = familyOf(text.split('/')[0] ?? '');
  return family === undefined ? [] : [family];
}

/** The ranges that can be full. */
export type RangeKind = IPFamily | 'port';

interface Queue {
  /** Incremented when a value becomes free. */
  generation: number;
  /** Service -> the generation in which it was last retried. */
  readonly keys: Map<ObjectKey, number>;
}

/** Services that wait for a value of a full range, first come, first served. */
export class RangeQueues {
  readonly #queues = new Map<RangeKind, Queue>();

  /** Puts a Service into the queue of a range, and removes it from all others. */
  add(range: RangeKind, key: ObjectKey): void {
    for (const [other, { keys }] of this.#queues) if (other !== range) keys.delete(key);
    const queue = this.#queueOf(range);
    queue.keys.set(key, queue.generation);
  }

  delete(key: ObjectKey): void {
    for (const { keys } of this.#queues.values()) keys.delete(key);
  }

  /** A value became free: every Service in the queue may be retried once. */
  freed(range: RangeKind): void {
    this.#queueOf(range).generation++;
  }

  /** The next Service to retry. Each is returned once per generation, so that those that fail again do not loop. */
  next(range: RangeKind): ObjectKey | undefined {
    const queue = this.#queues.get(range);
    if (queue === undefined) return undefined;
    for (const [key, tried] of queue.keys) {
      if (tried === queue.generation) continue;
      queue.keys.set(key, queue.generation);
      return key;
    }
    return undefined;
  }

  /** The ranges that a Service waits for. */
  *ranges(): Generator<RangeKind> {
    for (const [range, { keys }] of this.#queues) if (keys.size > 0) yield range;
  }

  #queueOf(range: RangeKind): Queue {
    const known = this.#queues.get(range);
    if (known !== undefined) return known;
    const queue: Queue = { generation: 0, keys: new Map() };
    this.#queues.set(range, queue);
    return queue;
  }
}
