import { expect } from 'vitest';
import {
  type ServedService,
  sharingKeyText,
  statusAddresses,
  type StatusAddress,
} from '../../../../src/controllers/load-balancer/status.ts';
import { LoadBalancerAllocator } from '../../../../src/controllers/load-balancer/allocator.ts';
import {
  planReleased,
  planServed,
  type ServiceStatusPlan,
} from '../../../../src/controllers/load-balancer/plan.ts';
import { readPool, type Pool } from '../../../../src/controllers/load-balancer/pools.ts';
import type { QuarantinedAddress } from '../../../../src/controllers/load-balancer/allocations.ts';
import {
  isServed,
  readRequest,
  type AddressRequest,
} from '../../../../src/controllers/load-balancer/request.ts';
import { parseStrictAddress, type IPFamily } from '../../../../src/objects/address.ts';
import type { Service } from '../../../../src/objects/types/core.generated.ts';
import { formatTime } from '../../../../src/objects/formats/time.ts';

/** Changes that users make in a cluster of eight Services and two pools. */
export type Change =
  | { do: 'apply'; service: number; spec: ServiceSpec }
  | { do: 'delete'; service: number }
  | { do: 'pools'; pools: PoolSpec[] };

/** Steps of a history. `arrived`: one bit per write of the ending process, set if the write arrives. */
export type Step =
  | Change
  | { do: 'restart' }
  /** The process ends while it reconciles a change, and the next one starts. */
  | { do: 'crash'; during: Change; arrived: number }
  /** After a restart: the former leader reconciles one more change, and some of its writes arrive. */
  | { do: 'late writes'; during: Change; arrived: number }
  | { do: 'later'; seconds: number };

export interface ServiceSpec {
  /** Whether it is of type LoadBalancer. */
  isLoadBalancer: boolean;
  families: 'four' | 'six' | 'both' | 'prefer';
  /** Last byte of the IPv4 address that it requests. */
  address: number | undefined;
  key: string;
  ports: number[];
  /** Whether it consents to share with all namespaces. */
  consents: boolean;
}

export interface PoolSpec {
  first: number;
  size: number;
  six: boolean;
  reassign: boolean;
  sharing: 'never' | 'by-key' | 'by-ports';
  delay: boolean;
}

const settings = { loadBalancerClass: 'servicenet.dev/load-balancer', isDefaultClass: true, compat: true };
const allBits = -1;

/** The objects of an API server and the allocator of a controller, without a network. */
export class HistoryCluster {
  allocator = new LoadBalancerAllocator();
  readonly services = new Map<string, Service>();
  pools: Pool[] = [];
  /** Services whose spec changed in this step, or that are new. */
  readonly touched = new Set<string>();
  /** Addresses that two statuses showed at one time although their Services could not share them. */
  readonly duplicates: string[] = [];
  /** From the status of the pools. */
  #quarantined: QuarantinedAddress[] = [];
  /** The last pool that contained an address. */
  readonly #origins = new Map<string, Pool>();
  #now = 0;
  #created = 0;
  #arrived = allBits;
  #former = this.allocator;
  /** Two leaders may assign the same address. */
  #hasTwoLeaders = false;

  /** Whether an address that no pool contains is unassigned, by the shrinkPolicy of its last pool. */
  mayReassign(address: string): boolean {
    const last = this.#origins.get(address);
    return (this.pools.find(({ name }) => name === last?.name) ?? last)?.shrinkPolicy === 'Reassign';
  }

  requestOf(service: Service): AddressRequest {
    return readRequest(service, {}, settings);
  }

  apply(step: Step): void {
    this.touched.clear();
    switch (step.do) {
      case 'restart':
        this.#restart();
        break;
      case 'crash':
        this.#changeBeforeEnd(step.during, step.arrived);
        this.#restart();
        break;
      case 'late writes':
        this.#lateWrites(step.during, step.arrived);
        break;
      case 'later':
        this.#now += step.seconds * 1000;
        this.allocator.endQuarantines(this.#now);
        break;
      default:
        this.#change(step);
    }
    this.#reconcileChanged();
    const { allocations } = this.allocator;
    this.#quarantined = [...allocations.pools.values()].flatMap((pool) => allocations.quarantinedIn(pool));
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
      this.allocator.remove(key, this.#now);
      return;
    }
    const before = this.services.get(key);
    const createdAt = before?.metadata.creationTimestamp ?? formatTime(++this.#created * 1000);
    this.services.set(key, {
      ...serviceOf(change.service, change.spec, createdAt),
      status: before?.status ?? {},
    });
    this.touched.add(key);
    this.#reconcile(key);
  }

  isServed(service: Service): boolean {
    return isServed(service, settings);
  }

  #reconcileChanged(): void {
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
    const unreleased = this.allocator.unreleased(key);
    if (status !== undefined) {
      const arrives = (this.#arrived & 1) === 1;
      this.#arrived >>= 1;
      if (!arrives) return;
      const written = { ...service, status };
      this.services.set(key, written);
      this.#checkDuplicates(written, service);
    }
    this.allocator.release(key, unreleased, this.#now);
  }

  #plan(key: string, service: Service): ServiceStatusPlan {
    const own = this.#statusAddresses(service);
    if (!this.isServed(service)) {
      this.allocator.unassign(key);
      return planReleased(service, own, false);
    }
    const outcome = this.allocator.allocate(this.requestOf(service), own);
    return planServed(service, outcome, own, this.#now);
  }

  /**
   * Records the new addresses of a Service that other Services show and do not share: with another key in both status and
   * spec, or with a port that both serve.
   */
  #checkDuplicates(service: Service, before: Service): void {
    if (this.#hasTwoLeaders) return;
    const key = sharingKeyText(this.requestOf(service).sharingKey);
    const old = addressesOf(before);
    for (const { address, servedPorts } of allAddressesOf(service).filter(
      (one) => !old.includes(one.address),
    )) {
      for (const other of this.services.values()) {
        const shown =
          other === service ? undefined : allAddressesOf(other).find((one) => one.address === address);
        if (shown === undefined) continue;
        const { ports, sharingKey } = this.requestOf(other);
        const both = ports.filter(
          (port) => shown.servedPorts?.has(port) === true && servedPorts?.has(port) === true,
        );
        if ((shown.key !== key && sharingKeyText(sharingKey) !== key) || both.length > 0)
          this.duplicates.push(
            `${address}: ${service.metadata.name ?? ''} beside ${other.metadata.name ?? ''}`,
          );
      }
    }
  }

  /** A change of which the ending process writes only a part. */
  #changeBeforeEnd(change: Change, arrived: number): void {
    this.#arrived = arrived;
    this.#change(change);
    this.#reconcileChanged();
    this.#arrived = allBits;
  }

  /** Writes of the former leader arrive after the new one has read everything; their Services may move. */
  #lateWrites(during: Change, arrived: number): void {
    const next = this.allocator;
    const before = new Map(this.services);
    this.allocator = this.#former;
    this.#hasTwoLeaders = true;
    this.#changeBeforeEnd(during, arrived);
    for (const [key, { status }] of this.services) {
      if (status !== before.get(key)?.status) this.touched.add(key);
    }
    this.allocator = next;
    next.setPools(this.pools, []);
    for (const key of before.keys()) if (!this.services.has(key)) next.remove(key, this.#now);
    for (const key of this.services.keys()) this.#reconcile(key);
    this.#reconcileChanged();
    this.#hasTwoLeaders = false;
  }

  /** Starts a process that has only the objects of the API server. */
  #restart(): void {
    this.#former = this.allocator;
    this.allocator = new LoadBalancerAllocator();
    this.allocator.setPools(this.pools, []);
    const served: ServedService[] = [];
    const released: ServedService[] = [];
    for (const service of this.services.values()) {
      const known = { request: this.requestOf(service), inStatus: this.#statusAddresses(service) };
      (this.isServed(service) ? served : released).push(known);
    }
    Array.from(this.allocator.adopt(served, released));
    for (const entry of this.#quarantined) {
      if (entry.untilMs > this.#now) this.allocator.allocations.quarantine(entry);
    }
    for (const key of [...this.services.keys()].reverse()) this.#reconcile(key);
  }

  #statusAddresses(service: Service): StatusAddress[] {
    return statusAddresses(service, this.allocator.isPooled);
  }
}

function allAddressesOf(service: Service): StatusAddress[] {
  return statusAddresses(service, () => true);
}

export function addressesOf({ status }: Service): string[] {
  return (status.loadBalancer?.ingress ?? []).map(({ ip = '' }) => ip);
}

/** True when a port of the Service is not served on one of its addresses. */
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

/** Every third Service is in another namespace. */
function keyOf(index: number): string {
  return `${index % 3 === 2 ? 'm' : 'n'}/s${index}`;
}

function poolOf({ first, size, six, reassign, sharing, delay }: PoolSpec, index: number): Pool {
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

function serviceOf(index: number, spec: ServiceSpec, creationTimestamp: string): Service {
  const { isLoadBalancer, families, address, key, ports, consents } = spec;
  const ipFamilies: IPFamily[] =
    families === 'four' ? ['IPv4'] : families === 'six' ? ['IPv6'] : ['IPv4', 'IPv6'];
  const [namespace = '', name = ''] = keyOf(index).split('/');
  const hasRequest = address !== undefined && ipFamilies.includes('IPv4');
  return {
    metadata: {
      namespace,
      name,
      creationTimestamp,
      annotations: {
        ...(hasRequest ? { 'servicenet.dev/addresses': `192.0.2.${address}` } : {}),
        ...(key === '' ? {} : { 'servicenet.dev/sharing-key': key }),
        ...(consents ? { 'servicenet.dev/sharing-namespaces': '*' } : {}),
      },
    },
    spec: {
      type: isLoadBalancer ? 'LoadBalancer' : 'ClusterIP',
      ipFamilies,
      ipFamilyPolicy: families === 'prefer' ? 'PreferDualStack' : 'SingleStack',
      ports: ports.map((port) => ({ port, protocol: 'TCP' })),
    },
    status: {},
  };
}
