import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LoadBalancerAllocator } from '../../../../src/controllers/load-balancer/allocator.ts';
import { readPool, type Pool } from '../../../../src/controllers/load-balancer/pool.ts';
import type { AddressRequest } from '../../../../src/controllers/load-balancer/request.ts';
import { parseStrictAddress } from '../../../../src/objects/address.ts';
import type { IPFamily } from '../../../../src/objects/service.ts';

/** What can happen to a cluster of eight Services and two pools. */
type Change =
  | { do: 'apply'; service: number; wish: Wish }
  | { do: 'delete'; service: number }
  | { do: 'pools'; pools: PoolChoice[] };
type Happening =
  | Change
  | { do: 'restart' }
  /** The process ends in the middle of its answer to a change: only its first few writes arrive. */
  | { do: 'crash'; during: Change; written: number }
  /** Another process leads already while the first few writes of the former leader arrive. */
  | { do: 'handover'; during: Change; written: number }
  | { do: 'later'; seconds: number };

interface Wish {
  families: 'four' | 'six' | 'both' | 'prefer';
  address: number | undefined;
  key: string;
  port: number;
}

interface PoolChoice {
  first: number;
  size: number;
  six: boolean;
  reassign: boolean;
  sharing: 'never' | 'by-key' | 'by-ports';
  delay: boolean;
}

const wish: fc.Arbitrary<Wish> = fc.record({
  families: fc.constantFrom('four', 'four', 'six', 'both', 'prefer'),
  address: fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined, freq: 4 }),
  key: fc.constantFrom('', '', 'k', 'l'),
  port: fc.integer({ min: 80, max: 82 }),
});

const poolChoice: fc.Arbitrary<PoolChoice> = fc.record({
  first: fc.integer({ min: 0, max: 6 }),
  size: fc.integer({ min: 1, max: 4 }),
  six: fc.boolean(),
  reassign: fc.boolean(),
  sharing: fc.constantFrom('never', 'by-key', 'by-ports'),
  delay: fc.boolean(),
});

const service = fc.integer({ min: 0, max: 7 });
const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('apply' as const), service, wish }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), service }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('pools' as const),
      pools: fc.array(poolChoice, { maxLength: 2 }),
    }),
  },
);
const written = fc.integer({ min: 0, max: 3 });
const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 11, arbitrary: change },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('crash' as const), during: change, written }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('handover' as const), during: change, written }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('later' as const), seconds: fc.integer({ min: 1, max: 90 }) }),
  },
);

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

function requestOf(index: number, { families, address, key, port }: Wish, createdAt: number): AddressRequest {
  const list: IPFamily[] = families === 'four' ? ['IPv4'] : families === 'six' ? ['IPv6'] : ['IPv4', 'IPv6'];
  return {
    service: `n/s${index}`,
    namespace: 'n',
    labels: {},
    namespaceLabels: {},
    createdAt,
    families: list,
    needsAll: families !== 'prefer',
    addresses: new Map(
      address === undefined || !list.includes('IPv4') ? [] : [['IPv4', `192.0.2.${address}`]],
    ),
    pools: [],
    sharingKey: key,
    sharingNamespaces: new Set(),
    ports: [`TCP/${port}`],
    backend: '',
    problems: [],
  };
}

/** The cluster as the API server has it, and the controller that serves it. */
class Cluster {
  allocator = new LoadBalancerAllocator();
  readonly services = new Map<string, { request: AddressRequest; status: string[]; unserved: Set<string> }>();
  pools: Pool[] = [];
  now = 0;
  #created = 0;
  /** Services that may be served differently after this step: their spec changed, or they are new. */
  readonly touched = new Set<string>();
  /** What the pool wanted that contained an address last, and its name. */
  readonly lastPolicy = new Map<string, string>();
  readonly lastPool = new Map<string, string>();

  /** Whether an address outside of all pools is to be taken back: its last pool decides, or decided last. */
  mayReassign(address: string): boolean {
    const pool = this.pools.find(({ name }) => name === this.lastPool.get(address));
    return (pool?.shrinkPolicy ?? this.lastPolicy.get(address)) === 'Reassign';
  }

  /** Writes of the present leader that arrive yet. */
  #writes = Number.POSITIVE_INFINITY;

  apply(happening: Happening): void {
    this.touched.clear();
    switch (happening.do) {
      case 'restart':
        this.#restart();
        break;
      case 'crash':
        this.#writes = happening.written;
        this.#change(happening.during);
        this.#settle();
        this.#writes = Number.POSITIVE_INFINITY;
        this.#restart();
        break;
      case 'handover':
        this.#handOver(happening.during, happening.written);
        break;
      case 'later':
        this.now += happening.seconds * 1000;
        this.allocator.tick(this.now);
        break;
      default:
        this.#change(happening);
    }
    this.#settle();
    for (const { address, pool, shrinkPolicy } of this.allocator.book.holdings()) {
      if (pool === undefined) continue;
      this.lastPool.set(address, pool);
      this.lastPolicy.set(address, shrinkPolicy);
    }
  }

  #change(change: Change): void {
    if (change.do === 'pools') {
      this.pools = change.pools.map(poolOf);
      this.allocator.setPools(this.pools, [], this.now);
      return;
    }
    const name = `n/s${change.service}`;
    if (change.do === 'delete') {
      this.services.delete(name);
      this.allocator.release(name, this.now);
      return;
    }
    const present = this.services.get(name);
    const createdAt = present?.request.createdAt ?? ++this.#created;
    const request = requestOf(change.service, change.wish, createdAt);
    const { status = [], unserved = new Set<string>() } = present ?? {};
    this.services.set(name, { request, status, unserved });
    this.touched.add(name);
    this.#reconcile(name);
  }

  #settle(): void {
    for (let i = 0; i < 100; i++) {
      const changed = this.allocator.takeChanged();
      if (changed.length === 0) break;
      expect(i, 'changes come to an end').toBeLessThan(99);
      for (const name of changed) this.#reconcile(name);
    }
  }

  #reconcile(name: string): void {
    const service = this.services.get(name);
    if (service === undefined) return;
    const { addresses } = this.allocator.assign(service.request, service.status, this.now);
    const status = addresses.map(({ address }) => address);
    const unserved = new Set(addresses.flatMap(({ portsInUse }) => [...portsInUse.keys()]));
    const same =
      status.join() === service.status.join() && [...unserved].join() === [...service.unserved].join();
    if (same || this.#writes <= 0) return;
    this.#writes--;
    service.status = status;
    service.unserved = unserved;
  }

  /** The new leader has read everything when a few writes of the former one arrive; what those are about may move. */
  #handOver(during: Change, written: number): void {
    const former = this.allocator;
    this.#restart();
    const next = this.allocator;
    const before = new Map([...this.services].map(([name, { status }]) => [name, status]));
    this.allocator = former;
    this.#writes = written;
    this.#change(during);
    this.#settle();
    this.#writes = Number.POSITIVE_INFINITY;
    for (const [name, { status }] of this.services) if (status !== before.get(name)) this.touched.add(name);
    this.allocator = next;
    next.setPools(this.pools, [], this.now);
    for (const name of before.keys()) if (!this.services.has(name)) next.release(name, this.now);
    for (const name of this.services.keys()) this.#reconcile(name);
  }

  /** A new process knows what the API server knows, and nothing else. */
  #restart(): void {
    this.allocator = new LoadBalancerAllocator();
    this.allocator.setPools(this.pools, [], this.now);
    const oldestFirst = [...this.services.values()].sort((a, b) => a.request.createdAt - b.request.createdAt);
    for (const { request, status, unserved } of oldestFirst) this.allocator.adopt(request, status, unserved);
    for (const name of [...this.services.keys()].reverse()) this.#reconcile(name);
  }
}

/** What a Service had before a step. */
interface Before {
  status: string[];
  unserved: Set<string>;
}

function contained(pools: readonly Pool[], address: string): boolean {
  const parsed = parseStrictAddress(address);
  return (
    parsed !== undefined && pools.some((p) => p.ranges.some((r) => r.contains(parsed.family, parsed.value)))
  );
}

function check(cluster: Cluster, before: ReadonlyMap<string, Before>, happening: Happening): void {
  const { allocator, services } = cluster;
  const holders = new Map<string, AddressRequest[]>();
  for (const { request, status } of services.values()) {
    // The status says what the books say.
    expect([...allocator.book.addressesOf(request.service).values()].sort()).toEqual([...status].sort());
    for (const address of status) holders.set(address, [...(holders.get(address) ?? []), request]);
  }
  // No address is given twice, unless all who have it share it; none is leaked.
  for (const [address, sharers] of holders) {
    const keys = new Set(sharers.map(({ sharingKey }) => sharingKey));
    if (sharers.length > 1) expect(keys.size, `${address}: one key`).toBe(1);
    // Whoever joins brings ports that nobody serves there.
    for (const { service, ports } of sharers) {
      if (before.get(service)?.status.includes(address) === true) continue;
      const others = sharers.filter((other) => other.service !== service).flatMap((other) => other.ports);
      expect(
        ports.filter((port) => others.includes(port)),
        `${service} joined ${address}`,
      ).toEqual([]);
    }
  }
  expect([...allocator.book.holdings()].map(({ address }) => address).sort()).toEqual(
    [...holders.keys()].sort(),
  );

  // Nothing moves without a cause: its own edit, or a pool with shrinkPolicy Reassign that lost the address.
  for (const [name, { status: had, unserved }] of before) {
    const service = services.get(name);
    if (service === undefined || cluster.touched.has(name)) continue;
    for (const address of had) {
      if (service.status.includes(address)) continue;
      const wanted = [...service.request.addresses.values()];
      const family = parseStrictAddress(address)?.family;
      // It waited for an address at which all of its ports are served.
      if (unserved.size > 0) continue;
      // It got the address that it had asked for and waited for.
      const granted = wanted.some(
        (w) => service.status.includes(w) && parseStrictAddress(w)?.family === family,
      );
      const reassigned = !contained(cluster.pools, address) && cluster.mayReassign(address);
      expect(granted || reassigned, `${name} lost ${address} by ${JSON.stringify(happening)}`).toBe(true);
    }
  }

  // Nobody who takes any address waits while one is free.
  for (const { request, status } of services.values()) {
    const missing = request.families.filter((f) => !status.some((a) => parseStrictAddress(a)?.family === f));
    if (missing.length === 0 || request.addresses.size > 0) continue;
    const blocked = missing.filter((family) =>
      [...allocator.book.pools.values()].every(({ spaces }) => spaces[family].lowestFree() === undefined),
    );
    const mayWait = request.needsAll ? blocked.length > 0 : blocked.length === missing.length;
    expect(mayWait, `${request.service} waits for ${missing.join()} although one is free`).toBe(true);
  }

  // The counts of the pools are the number of addresses in use in them.
  for (const stocked of allocator.book.pools.values()) {
    for (const family of ['IPv4', 'IPv6'] as const) {
      const inside = [...allocator.book.holdings()].filter(
        (h) => h.family === family && stocked.spaces[family].has(h.value),
      );
      expect(allocator.book.usage(stocked, family).used).toBe(inside.length);
    }
  }
}

test('no history gives an address twice, moves one without cause, leaks one or leaves somebody waiting', () => {
  fc.assert(
    fc.property(fc.array(happening, { minLength: 5, maxLength: 40 }), (history) => {
      const cluster = new Cluster();
      cluster.apply({
        do: 'pools',
        pools: [{ first: 0, size: 3, six: true, reassign: false, sharing: 'by-key', delay: false }],
      });
      for (const event of history) {
        const before = new Map<string, Before>();
        for (const [name, { status, unserved }] of cluster.services) before.set(name, { status, unserved });
        cluster.apply(event);
        check(cluster, before, event);
      }
    }),
    { numRuns: 1000 },
  );
}, 60_000);
