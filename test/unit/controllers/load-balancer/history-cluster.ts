import { expect } from 'vitest';
import type { Quarantine } from '../../../../src/controllers/load-balancer/address-book.ts';
import type { Claim } from '../../../../src/controllers/load-balancer/adoption.ts';
import { keyText } from '../../../../src/controllers/load-balancer/assigned-text.ts';
import { LoadBalancerAllocator } from '../../../../src/controllers/load-balancer/allocator.ts';
import {
  planReleased,
  planServed,
  type ServicePlan,
} from '../../../../src/controllers/load-balancer/plan.ts';
import { readPool, type Pool } from '../../../../src/controllers/load-balancer/pool.ts';
import { presentAddresses, type PresentAddress } from '../../../../src/controllers/load-balancer/present.ts';
import {
  isServed,
  readRequest,
  type AddressRequest,
} from '../../../../src/controllers/load-balancer/request.ts';
import { parseStrictAddress } from '../../../../src/objects/address.ts';
import type { IPFamily } from '../../../../src/objects/address.ts';
import type { Service } from '../../../../src/objects/core.generated.ts';
import { formatTime } from '../../../../src/objects/time.ts';

/** What a user can do to a cluster of eight Services and two pools. */
export type Change =
  | { do: 'apply'; service: number; wish: Wish }
  | { do: 'delete'; service: number }
  | { do: 'pools'; pools: PoolChoice[] };

/** What can happen to it. `arrived`: one bit for each write of the process that is ending, set if it arrives. */
export type Happening =
  | Change
  | { do: 'restart' }
  /** The process ends in the middle of its answer to a change, and its successor starts. */
  | { do: 'crash'; during: Change; arrived: number }
  /** After a restart: the former leader lives on for a change, and some of its writes arrive. */
  | { do: 'late writes'; during: Change; arrived: number }
  | { do: 'later'; seconds: number };

export interface Wish {
  /** Whether it asks for a load balancer at all. */
  ours: boolean;
  families: 'four' | 'six' | 'both' | 'prefer';
  /** Last byte of the IPv4 address that it asks for. */
  address: number | undefined;
  key: string;
  ports: number[];
  /** Whether it shares with the other namespace. */
  consents: boolean;
}

export interface PoolChoice {
  first: number;
  size: number;
  six: boolean;
  reassign: boolean;
  sharing: 'never' | 'by-key' | 'by-ports';
  delay: boolean;
}

const settings = { loadBalancerClass: 'servicenet.dev/load-balancer', isDefaultClass: true, compat: true };
const everything = -1; // all bits

/** The cluster as the API server has it, and the controller that serves it, without the network between them. */
export class HistoryCluster {
  allocator = new LoadBalancerAllocator();
  readonly services = new Map<string, Service>();
  pools: Pool[] = [];
  /** Services that may be served differently after this step: their spec changed, or they are new. */
  readonly touched = new Set<string>();
  /** What was shown, at whatever moment, that another one showed who could not share it. */
  readonly meetings: string[] = [];
  /** By the status of the pools. */
  #resting: Quarantine[] = [];
  /** The pool that contained an address last, as it was then. */
  readonly #origins = new Map<string, Pool>();
  #now = 0;
  #created = 0;
  #arrived = everything;
  #former = this.allocator;
  /** While two lead, both may give one address. */
  #hasRival = false;

  /** Whether an address outside of all pools is to be taken back: its last pool decides, or decided last. */
  mayReassign(address: string): boolean {
    const last = this.#origins.get(address);
    return (this.pools.find(({ name }) => name === last?.name) ?? last)?.shrinkPolicy === 'Reassign';
  }

  requestOf(service: Service): AddressRequest {
    return readRequest(service, {}, settings);
  }

  apply(happening: Happening): void {
    this.touched.clear();
    switch (happening.do) {
      case 'restart':
        this.#restart();
        break;
      case 'crash':
        this.#lastly(happening.during, happening.arrived);
        this.#restart();
        break;
      case 'late writes':
        this.#lateWrites(happening.during, happening.arrived);
        break;
      case 'later':
        this.#now += happening.seconds * 1000;
        this.allocator.tick(this.#now);
        break;
      default:
        this.#change(happening);
    }
    this.#settle();
    const { book } = this.allocator;
    this.#resting = [...book.pools.values()].flatMap((stocked) => book.restingIn(stocked));
    for (const address of [...this.services.values()].flatMap(addressesOf)) {
      const pool = this.pools.find((one) => contains(one, address));
      if (pool !== undefined) this.#origins.set(address, pool);
    }
  }

  #change(change: Change): void {
    if (change.do === 'pools') {
      this.pools = change.pools.map(poolOf);
      this.allocator.setPools(this.pools, []);
      return;
    }
    const key = keyOf(change.service);
    if (change.do === 'delete') {
      this.services.delete(key);
      this.allocator.release(key, this.#now);
      return;
    }
    const present = this.services.get(key);
    const createdAt = present?.metadata.creationTimestamp ?? formatTime(++this.#created * 1000);
    this.services.set(key, {
      ...serviceOf(change.service, change.wish, createdAt),
      status: present?.status ?? {},
    });
    this.touched.add(key);
    this.#reconcile(key);
  }

  isServed(service: Service): boolean {
    return isServed(service, settings);
  }

  #settle(): void {
    for (let i = 0; i < 100; i++) {
      const changed = this.allocator.takeChanged();
      if (changed.length === 0) break;
      expect(i, 'changes come to an end').toBeLessThan(99);
      for (const key of changed) this.#reconcile(key);
    }
  }

  #reconcile(key: string): void {
    const service = this.services.get(key);
    if (service === undefined) return;
    const { status } = this.#plan(key, service);
    const left = this.allocator.leftBy(key);
    if (status !== undefined) {
      const arrives = (this.#arrived & 1) === 1;
      this.#arrived >>= 1;
      // Of what it cannot write a process knows nothing.
      if (!arrives) return;
      const written = { ...service, status };
      this.services.set(key, written);
      this.#note(written, service);
    }
    this.allocator.letGo(key, left, this.#now);
  }

  #plan(key: string, service: Service): ServicePlan {
    const present = this.#presentOf(service);
    if (!this.isServed(service)) {
      this.allocator.leave(key);
      return planReleased(service, present, false);
    }
    const outcome = this.allocator.assign(this.requestOf(service), present);
    return planServed(service, outcome, present, this.#now);
  }

  /**
   * Looks whether what a Service shows from now on is shown by others who do not share it: neither by the key in their
   * status nor by that of their spec, which it follows, or with a port that is served for them by both.
   */
  #note(service: Service, before: Service): void {
    if (this.#hasRival) return;
    const key = keyText(this.requestOf(service).sharingKey);
    const had = addressesOf(before);
    for (const { address, served } of shownBy(service).filter((one) => !had.includes(one.address))) {
      for (const other of this.services.values()) {
        const shown = other === service ? undefined : shownBy(other).find((one) => one.address === address);
        if (shown === undefined) continue;
        const { ports, sharingKey } = this.requestOf(other);
        const both = ports.filter((port) => shown.served?.has(port) === true && served?.has(port) === true);
        if ((shown.key !== key && keyText(sharingKey) !== key) || both.length > 0)
          this.meetings.push(
            `${address}: ${service.metadata.name ?? ''} beside ${other.metadata.name ?? ''}`,
          );
      }
    }
  }

  /** A change to which the process does not live to write the whole answer. */
  #lastly(change: Change, arrived: number): void {
    this.#arrived = arrived;
    this.#change(change);
    this.#settle();
    this.#arrived = everything;
  }

  /** The new leader has read everything when writes of the former one arrive; what those are about may move. */
  #lateWrites(during: Change, arrived: number): void {
    const next = this.allocator;
    const before = new Map(this.services);
    this.allocator = this.#former;
    this.#hasRival = true;
    this.#lastly(during, arrived);
    for (const [key, { status }] of this.services) {
      if (status !== before.get(key)?.status) this.touched.add(key);
    }
    this.allocator = next;
    next.setPools(this.pools, []);
    for (const key of before.keys()) if (!this.services.has(key)) next.release(key, this.#now);
    for (const key of this.services.keys()) this.#reconcile(key);
    this.#settle();
    this.#hasRival = false;
  }

  /** A new process knows what the API server knows, and nothing else. */
  #restart(): void {
    this.#former = this.allocator;
    this.allocator = new LoadBalancerAllocator();
    this.allocator.setPools(this.pools, []);
    const claims: Claim[] = [];
    const leaving: Claim[] = [];
    for (const service of this.services.values()) {
      const claim = { request: this.requestOf(service), present: this.#presentOf(service) };
      (this.isServed(service) ? claims : leaving).push(claim);
    }
    Array.from(this.allocator.adopt(claims, leaving));
    for (const rest of this.#resting) if (rest.until > this.#now) this.allocator.book.rest(rest);
    for (const key of [...this.services.keys()].reverse()) this.#reconcile(key);
  }

  #presentOf(service: Service): PresentAddress[] {
    return presentAddresses(service, this.allocator.isPooled);
  }
}

function shownBy(service: Service): PresentAddress[] {
  return presentAddresses(service, () => true);
}

export function addressesOf({ status }: Service): string[] {
  return (status.loadBalancer?.ingress ?? []).map(({ ip = '' }) => ip);
}

/** True when a port of the Service is not served at one of its addresses. */
export function lacksPorts({ status }: Service): boolean {
  return (status.loadBalancer?.ingress ?? []).some(
    ({ ports }) => ports?.some(({ error }) => error !== undefined) === true,
  );
}

export function familyOf(address: string): IPFamily | undefined {
  return parseStrictAddress(address)?.family;
}

export function contains(pool: Pool, address: string): boolean {
  const parsed = parseStrictAddress(address);
  return parsed !== undefined && pool.ranges.some((range) => range.contains(parsed.family, parsed.value));
}

/** Every third Service is in a namespace of its own. */
function keyOf(index: number): string {
  return `${index % 3 === 2 ? 'm' : 'n'}/s${index}`;
}

function poolOf({ first, size, six, reassign, sharing, delay }: PoolChoice, index: number): Pool {
  const addresses = [`192.0.2.${first}-192.0.2.${first + size - 1}`];
  if (six) addresses.push(`2001:db8::${first}-2001:db8::${first + size - 1}`);
  return readPool({
    metadata: { name: `p${index}`, creationTimestamp: `2026-01-01T00:00:0${index}Z` },
    spec: {
      addresses,
      sharing,
      shrinkPolicy: reassign ? 'Reassign' : 'Retain',
      ...(delay ? { reuseDelay: '30s' } : {}),
    },
  }).pool;
}

function serviceOf(index: number, wish: Wish, creationTimestamp: string): Service {
  const { ours, families, address, key, ports, consents } = wish;
  const ipFamilies: IPFamily[] =
    families === 'four' ? ['IPv4'] : families === 'six' ? ['IPv6'] : ['IPv4', 'IPv6'];
  const [namespace = '', name = ''] = keyOf(index).split('/');
  const asksFor = address !== undefined && ipFamilies.includes('IPv4');
  return {
    metadata: {
      namespace,
      name,
      creationTimestamp,
      annotations: {
        ...(asksFor ? { 'servicenet.dev/addresses': `192.0.2.${address}` } : {}),
        ...(key === '' ? {} : { 'servicenet.dev/sharing-key': key }),
        ...(consents ? { 'servicenet.dev/sharing-namespaces': '*' } : {}),
      },
    },
    spec: {
      type: ours ? 'LoadBalancer' : 'ClusterIP',
      ipFamilies,
      ipFamilyPolicy: families === 'prefer' ? 'PreferDualStack' : 'SingleStack',
      ports: ports.map((port) => ({ port, protocol: 'TCP' })),
    },
    status: {},
  };
}
