import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Service, ServiceStatus } from '../../../../src/objects/types/core.generated.ts';
import {
  addressesOf,
  contains,
  familyOf,
  HistoryCluster,
  lacksPorts,
  type Change,
  type PoolSpec,
  type ServiceSpec,
  type Step,
} from './history-cluster.ts';
import { runs } from '../../../support/runs.ts';

const spec: fc.Arbitrary<ServiceSpec> = fc.record({
  isLoadBalancer: fc.constantFrom(true, true, true, true, false),
  families: fc.constantFrom('four', 'four', 'six', 'both', 'prefer'),
  address: fc.option(fc.integer({ min: 0, max: 9 }), { nil: undefined, freq: 4 }),
  key: fc.constantFrom('', '', 'k', 'l'),
  ports: fc.uniqueArray(fc.integer({ min: 80, max: 82 }), { minLength: 1, maxLength: 2 }),
  consents: fc.boolean(),
});

const poolSpec: fc.Arbitrary<PoolSpec> = fc.record({
  first: fc.integer({ min: 0, max: 6 }),
  size: fc.integer({ min: 1, max: 4 }),
  six: fc.boolean(),
  reassign: fc.boolean(),
  sharing: fc.constantFrom('never', 'by-key', 'by-ports'),
  delay: fc.boolean(),
});

const service = fc.integer({ min: 0, max: 7 });
const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('apply' as const), service, spec }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), service }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('pools' as const),
      pools: fc.array(poolSpec, { maxLength: 2 }),
    }),
  },
);
const arrived = fc.integer({ min: 0, max: 15 });
const restart: Step = { do: 'restart' };
const lateWrites = fc.record({ do: fc.constant('late writes' as const), during: change, arrived });
/** A handover is two steps. */
const steps: fc.Arbitrary<readonly Step[]> = fc.oneof(
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

/** Statuses and allocations have the same addresses. */
function statusesMatchAllocations({ allocator, services }: HistoryCluster): void {
  const shown = new Set<string>();
  for (const [key, one] of services) {
    expect([...allocator.allocations.addressesOf(key).values()].sort()).toEqual(addressesOf(one).sort());
    for (const address of addressesOf(one)) shown.add(address);
  }
  const allocations = [...allocator.allocations.values()];
  expect(allocations.map(({ address }) => address).sort()).toEqual([...shown].sort());
  for (const pool of allocator.allocations.pools.values()) {
    for (const family of ['IPv4', 'IPv6'] as const) {
      const inside = allocations.filter(
        (one) => one.family === family && pool.addresses[family].has(one.value),
      );
      expect(allocator.allocations.usage(pool, family).used).toBe(inside.length);
    }
  }
}

/** No address is assigned twice, unless all its Services share it. */
function sharersAgree(cluster: HistoryCluster, before: Before): void {
  const byAddress = Map.groupBy(
    [...cluster.services.values()].flatMap((one) => addressesOf(one).map((address) => ({ address, one }))),
    ({ address }) => address,
  );
  for (const [address, group] of byAddress) {
    if (group.length === 1) continue;
    const sharers = group.map(({ one }) => cluster.requestOf(one));
    expect(new Set(sharers.map(({ sharingKey }) => sharingKey)).size, `${address}: one key`).toBe(1);
    const namespaces = new Set(sharers.map(({ namespace }) => namespace));
    for (const { sharingKey, sharingNamespaces } of sharers) {
      if (namespaces.size > 1) expect([sharingKey === '', sharingNamespaces.has('*')]).toEqual([false, true]);
    }
    // A Service that joins has none of the ports in use.
    for (const { service: key, ports } of sharers) {
      const old = before.get(key);
      if (old !== undefined && addressesOf(old).includes(address)) continue;
      const others = sharers.filter((other) => other.service !== key).flatMap((other) => other.ports);
      const both = ports.filter((port) => others.includes(port));
      expect(both, `${key} joined ${address}`).toEqual([]);
    }
  }
}

/** A Service loses an address only by its own edit, or by a pool with shrinkPolicy Reassign. */
function nothingMoves(cluster: HistoryCluster, before: Before, event: Step): void {
  for (const [key, old] of before) {
    const now = cluster.services.get(key);
    if (now === undefined || cluster.touched.has(key)) continue;
    // It may get another address on which all its ports are served.
    if (lacksPorts(old)) continue;
    const has = addressesOf(now);
    const wanted = [...cluster.requestOf(now).addresses.values()];
    for (const address of addressesOf(old)) {
      if (has.includes(address)) continue;
      const gotRequested = wanted.some((one) => has.includes(one) && familyOf(one) === familyOf(address));
      const isPooled = cluster.pools.some((pool) => contains(pool, address));
      const reassigned = !isPooled && cluster.mayReassign(address);
      expect(gotRequested || reassigned, `${key} lost ${address} by ${JSON.stringify(event)}`).toBe(true);
    }
  }
}

function statusesOf(services: Before): Map<string, ServiceStatus> {
  return new Map([...services].map(([key, { status }]) => [key, status]));
}

/** No Service that takes any address waits while one is free. */
function waitsOnlyForFullPools(cluster: HistoryCluster): void {
  const { allocator, services } = cluster;
  for (const [key, one] of services) {
    if (!cluster.isServed(one)) continue;
    const request = cluster.requestOf(one);
    const missing = request.families.filter(
      (family) => !addressesOf(one).some((a) => familyOf(a) === family),
    );
    if (missing.length === 0 || request.addresses.size > 0) continue;
    const blocked = missing.filter((family) =>
      [...allocator.allocations.pools.values()].every(
        ({ addresses }) => addresses[family].lowestFree() === undefined,
      ),
    );
    const mayWait = request.needsAll ? blocked.length > 0 : blocked.length === missing.length;
    expect(mayWait, `${key} waits for ${missing.join()} although one is free`).toBe(true);
  }
}

// The seed and path of a failure are in its message.
test('in no history an address is assigned twice, moved without cause or leaked, or a Service waits for a free one', () => {
  fc.assert(
    fc.property(fc.array(steps, { minLength: 5, maxLength: 40 }), (history) => {
      const cluster = new HistoryCluster();
      cluster.apply({
        do: 'pools',
        pools: [{ first: 0, size: 3, six: true, reassign: false, sharing: 'by-key', delay: false }],
      });
      // After all quarantines have ended, a restart changes nothing.
      const end: Step[] = [{ do: 'later', seconds: 3600 }, { do: 'restart' }];
      for (const event of [...history.flat(), ...end]) {
        const before = new Map(cluster.services);
        cluster.apply(event);
        statusesMatchAllocations(cluster);
        sharersAgree(cluster, before);
        nothingMoves(cluster, before, event);
        waitsOnlyForFullPools(cluster);
        expect(cluster.duplicates).toEqual([]);
        if (event === end[1]) expect(statusesOf(cluster.services)).toEqual(statusesOf(before));
      }
    }),
    { numRuns: runs(100, 5000) },
  );
}, 600_000);
