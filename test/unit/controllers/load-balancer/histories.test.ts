import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Service, ServiceStatus } from '../../../../src/objects/core.generated.ts';
import {
  addressesOf,
  contains,
  familyOf,
  HistoryCluster,
  lacksPorts,
  type Change,
  type Happening,
  type PoolChoice,
  type Wish,
} from './history-cluster.ts';

const wish: fc.Arbitrary<Wish> = fc.record({
  ours: fc.constantFrom(true, true, true, true, false),
  families: fc.constantFrom('four', 'four', 'six', 'both', 'prefer'),
  address: fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined, freq: 4 }),
  key: fc.constantFrom('', '', 'k', 'l'),
  ports: fc.uniqueArray(fc.integer({ min: 80, max: 82 }), { minLength: 1, maxLength: 2 }),
  consents: fc.boolean(),
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
const arrived = fc.integer({ min: 0, max: 15 });
const restart: Happening = { do: 'restart' };
const lateWrites = fc.record({ do: fc.constant('late writes' as const), during: change, arrived });
/** Most are one happening; a handover is two. */
const happenings: fc.Arbitrary<readonly Happening[]> = fc.oneof(
  { weight: 11, arbitrary: change.map((one) => [one]) },
  { weight: 1, arbitrary: fc.constant([restart]) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('crash' as const), during: change, arrived }).map((one) => [one]),
  },
  { weight: 2, arbitrary: lateWrites.map((one) => [restart, one]) },
  {
    weight: 2,
    arbitrary: fc
      .record({ do: fc.constant('later' as const), seconds: fc.integer({ min: 1, max: 90 }) })
      .map((one) => [one]),
  },
);

type Before = ReadonlyMap<string, Service>;

/** The status says what the books say. */
function statusIsAsBooked({ allocator, services }: HistoryCluster): void {
  const held = new Set<string>();
  for (const [key, one] of services) {
    expect([...allocator.book.addressesOf(key).values()].sort()).toEqual(addressesOf(one).sort());
    for (const address of addressesOf(one)) held.add(address);
  }
  // None is leaked, and the counts of the pools are the number of addresses in use in them.
  const holdings = [...allocator.book.holdings()];
  expect(holdings.map(({ address }) => address).sort()).toEqual([...held].sort());
  for (const stocked of allocator.book.pools.values()) {
    for (const family of ['IPv4', 'IPv6'] as const) {
      const inside = holdings.filter((h) => h.family === family && stocked.spaces[family].has(h.value));
      expect(allocator.book.usage(stocked, family).used).toBe(inside.length);
    }
  }
}

/** No address is given twice, unless all who have it share it. */
function sharersAgree(cluster: HistoryCluster, before: Before): void {
  const holders = Map.groupBy(
    [...cluster.services.values()].flatMap((one) => addressesOf(one).map((address) => ({ address, one }))),
    ({ address }) => address,
  );
  for (const [address, group] of holders) {
    if (group.length === 1) continue;
    const sharers = group.map(({ one }) => cluster.requestOf(one));
    expect(new Set(sharers.map(({ sharingKey }) => sharingKey)).size, `${address}: one key`).toBe(1);
    const namespaces = new Set(sharers.map(({ namespace }) => namespace));
    for (const { sharingKey, sharingNamespaces } of sharers) {
      if (namespaces.size > 1) expect([sharingKey === '', sharingNamespaces.has('*')]).toEqual([false, true]);
    }
    // Whoever joins brings ports that nobody serves there.
    for (const { service: key, ports } of sharers) {
      const had = before.get(key);
      if (had !== undefined && addressesOf(had).includes(address)) continue;
      const others = sharers.filter((other) => other.service !== key).flatMap((other) => other.ports);
      const both = ports.filter((port) => others.includes(port));
      expect(both, `${key} joined ${address}`).toEqual([]);
    }
  }
}

/** Nothing moves without a cause: its own edit, or a pool with shrinkPolicy Reassign that lost the address. */
function nothingMoves(cluster: HistoryCluster, before: Before, event: Happening): void {
  for (const [key, old] of before) {
    const now = cluster.services.get(key);
    if (now === undefined || cluster.touched.has(key)) continue;
    // It waited for an address at which all of its ports are served.
    if (lacksPorts(old)) continue;
    const has = addressesOf(now);
    const wanted = [...cluster.requestOf(now).addresses.values()];
    for (const address of addressesOf(old)) {
      if (has.includes(address)) continue;
      // It got the address that it had asked for and waited for.
      const granted = wanted.some((one) => has.includes(one) && familyOf(one) === familyOf(address));
      const isPooled = cluster.pools.some((pool) => contains(pool, address));
      const reassigned = !isPooled && cluster.mayReassign(address);
      expect(granted || reassigned, `${key} lost ${address} by ${JSON.stringify(event)}`).toBe(true);
    }
  }
}

function statusesOf(services: Before): Map<string, ServiceStatus> {
  return new Map([...services].map(([key, { status }]) => [key, status]));
}

/** Nobody who takes any address waits while one is free. */
function nobodyWaitsInVain(cluster: HistoryCluster): void {
  const { allocator, services } = cluster;
  for (const [key, one] of services) {
    if (!cluster.isServed(one)) continue;
    const request = cluster.requestOf(one);
    const missing = request.families.filter(
      (family) => !addressesOf(one).some((a) => familyOf(a) === family),
    );
    if (missing.length === 0 || request.addresses.size > 0) continue;
    const blocked = missing.filter((family) =>
      [...allocator.book.pools.values()].every(({ spaces }) => spaces[family].lowestFree() === undefined),
    );
    const mayWait = request.needsAll ? blocked.length > 0 : blocked.length === missing.length;
    expect(mayWait, `${key} waits for ${missing.join()} although one is free`).toBe(true);
  }
}

// HISTORIES=20000 looks longer; the seed and path of a failure are in its message.
test('no history gives an address twice, at whatever moment, moves one without cause, leaks one or leaves somebody waiting', () => {
  fc.assert(
    fc.property(fc.array(happenings, { minLength: 5, maxLength: 40 }), (history) => {
      const cluster = new HistoryCluster();
      cluster.apply({
        do: 'pools',
        pools: [{ first: 0, size: 3, six: true, reassign: false, sharing: 'by-key', delay: false }],
      });
      // At last every rest is over, and a restart finds nothing to do.
      const end: Happening[] = [{ do: 'later', seconds: 3600 }, { do: 'restart' }];
      for (const event of [...history.flat(), ...end]) {
        const before = new Map(cluster.services);
        cluster.apply(event);
        statusIsAsBooked(cluster);
        sharersAgree(cluster, before);
        nothingMoves(cluster, before, event);
        nobodyWaitsInVain(cluster);
        expect(cluster.meetings).toEqual([]);
        if (event === end[1]) expect(statusesOf(cluster.services)).toEqual(statusesOf(before));
      }
    }),
    { numRuns: Number(process.env['HISTORIES'] ?? 1000) },
  );
}, 600_000);
