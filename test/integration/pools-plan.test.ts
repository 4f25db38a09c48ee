import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addressPools, services } from '../../src/client/resources.ts';
import type { AddressPoolSpec } from '../../src/objects/types/servicenet.ts';
import type { Service } from '../../src/objects/types/core.generated.ts';
import { planEdit } from '../../src/pools/plan.ts';
import { forbiddenRanges } from '../../src/controllers/load-balancer/pools.ts';
import { loadBalancerReadyCondition } from '../../src/network/announcing/assigned-addresses.ts';
import { addressesOf, BalancedServer, startLoadBalancer } from '../support/balanced-server.ts';
import '../support/fast-check.ts';

/** `pools plan` says what a controller then does: a random cluster, the plan of a random edit, and a real controller. */
let cluster: BalancedServer;
beforeAll(async () => {
  cluster = await BalancedServer.start();
  // Until the kind is served.
  await cluster.pool('p9', { addresses: ['192.0.2.0/32'] });
});
afterAll(async () => cluster.server.stop());

const settings = { loadBalancerClass: 'servicenet.dev/load-balancer', isDefaultClass: true, compat: true };

interface RandomService {
  readonly class: 'none' | 'ours' | 'other';
  /** Last byte of the address that its status shows, and whether our condition names it. */
  readonly shown: number | undefined;
  readonly named: boolean;
  readonly wants: number | undefined;
  readonly key: string;
  readonly port: number;
}

interface RandomPool {
  readonly first: number;
  readonly size: number;
  readonly reassign: boolean;
  readonly sharing: 'never' | 'by-key' | 'by-ports';
}

const byte = fc.integer({ min: 1, max: 12 });
const serviceArbitrary: fc.Arbitrary<RandomService> = fc.record({
  class: fc.constantFrom('none', 'none', 'ours', 'other'),
  shown: fc.option(byte, { nil: undefined }),
  named: fc.boolean(),
  wants: fc.option(byte, { nil: undefined, freq: 3 }),
  key: fc.constantFrom('', '', 'k'),
  port: fc.constantFrom(80, 81),
});
const poolArbitrary: fc.Arbitrary<RandomPool> = fc.record({
  first: byte,
  size: fc.integer({ min: 1, max: 6 }),
  reassign: fc.boolean(),
  sharing: fc.constantFrom('never', 'by-key', 'by-ports'),
});
const clusterArbitrary = fc.record({
  services: fc.array(serviceArbitrary, { minLength: 1, maxLength: 8 }),
  pools: fc.array(poolArbitrary, { maxLength: 2 }),
  /** The last pool afterwards, or undefined for none; it is a new one where there was none. */
  last: fc.option(poolArbitrary, { nil: undefined }),
});
type RandomCluster = typeof clusterArbitrary extends fc.Arbitrary<infer T> ? T : never;

const address = (last: number): string => `192.0.2.${last}`;
const specOf = ({ first, size, reassign, sharing }: RandomPool): AddressPoolSpec => ({
  addresses: [`${address(first)}-${address(first + size - 1)}`],
  sharing,
  ...(reassign ? { shrinkPolicy: 'Reassign' } : {}),
});

async function make(random: RandomCluster): Promise<void> {
  for (const [index, one] of random.services.entries()) {
    const name = `s${index}`;
    const annotations = {
      ...(one.key === '' ? {} : { 'servicenet.dev/sharing-key': one.key }),
      ...(one.wants === undefined ? {} : { 'servicenet.dev/addresses': address(one.wants) }),
    };
    const classes = { none: undefined, ours: settings.loadBalancerClass, other: 'other.example/lb' };
    const loadBalancerClass = classes[one.class];
    await cluster.service(
      name,
      { ports: [{ port: one.port }], ...(loadBalancerClass === undefined ? {} : { loadBalancerClass }) },
      annotations,
    );
    if (one.shown === undefined) continue;
    const ip = address(one.shown);
    const condition = {
      ...{ type: 'servicenet.dev/LoadBalancerReady', status: 'True', reason: 'Assigned' },
      ...{ message: `${ip} from pool p0`, lastTransitionTime: '2026-01-01T00:00:00Z' },
    };
    const status = {
      loadBalancer: { ingress: [{ ip }] },
      ...(one.named && one.class !== 'other' ? { conditions: [condition] } : {}),
    };
    await cluster.clients.for(services).mergePatch('default', name, { status }, { subresource: 'status' });
  }
}

/** Makes the pools those of a list. */
async function setPools(pools: readonly RandomPool[]): Promise<void> {
  const client = cluster.clients.for(addressPools);
  for (const [index, pool] of pools.entries()) {
    const name = `p${index}`;
    const spec = specOf(pool);
    const before = await client.get('', name).catch(() => undefined);
    if (before === undefined) await cluster.pool(name, spec);
    else await client.mergePatch('', name, { spec: { shrinkPolicy: null, ...spec } });
  }
  for (const { metadata } of (await client.list({})).items) {
    const { name = '' } = metadata;
    if (Number(name.slice(1)) >= pools.length) await client.delete('', name);
  }
}

async function all(): Promise<Service[]> {
  const { items } = await cluster.clients.for(services).list({});
  return items.filter(({ spec }) => spec.type === 'LoadBalancer');
}

test.each(
  fc.sample(clusterArbitrary, {
    numRuns: Number(process.env['PLANNED_CLUSTERS'] ?? 12),
    seed: Number(process.env['FAST_CHECK_SEED'] ?? 20260101),
  }),
)('the plan of a random edit of pools is what a controller does: %#', async (random) => {
  await setPools(random.pools);
  await make(random);
  const before = await all();
  const pools = (await cluster.clients.for(addressPools).list({})).items;
  const now = new Date().getTime();
  // One object is edited: between two edits others could get an address.
  const after = [...random.pools.slice(0, -1), ...(random.last === undefined ? [] : [random.last])];
  const edited = after.map((pool, index) => ({
    metadata: {
      name: `p${index}`,
      creationTimestamp: pools[index]?.metadata.creationTimestamp ?? new Date(now).toISOString(),
    },
    spec: specOf(pool),
  }));
  const effects = planEdit({
    ...{ services: before, namespaceLabels: () => ({}), settings, pools, edited, nowMs: now },
    forbidden: forbiddenRanges([], [], []),
  });
  const planned = new Map(
    before.map((service) => {
      const name = service.metadata.name ?? '';
      const effect = effects.find((one) => one.service === `default/${name}`);
      const changes = effect !== undefined && effect.effect !== 'stays' && effect.effect !== 'adopts';
      const others = addressesOf(service).filter((ip) => !changes || ip !== effect.from);
      return [name, changes && effect.to !== undefined ? [effect.to, ...others] : others];
    }),
  );

  const running = startLoadBalancer(cluster.server.client);
  try {
    // It has started with the first pools, and then sees the edit.
    await cluster.service(
      'last-of-all',
      { ports: [{ port: 9 }], loadBalancerClass: settings.loadBalancerClass },
      { 'servicenet.dev/addresses': '198.51.100.1' },
    );
    await cluster.until('last-of-all', (one) => loadBalancerReadyCondition(one) !== undefined);
    await setPools(after);
    const shown = async (): Promise<Record<string, string[]>> =>
      Object.fromEntries(
        (await all()).flatMap((one) =>
          one.metadata.name === 'last-of-all' ? [] : [[one.metadata.name ?? '', addressesOf(one)]],
        ),
      );
    await expect.poll(shown, { timeout: 60_000 }).toEqual(Object.fromEntries(planned));
    for (const { metadata } of await all())
      await cluster.clients.for(services).delete('default', metadata.name ?? '');
    await expect.poll(async () => (await all()).length, { timeout: 20_000 }).toBe(0);
  } finally {
    await running.stop();
    for (const { metadata } of await all()) {
      const name = metadata.name ?? '';
      await cluster.clients
        .for(services)
        .mergePatch('default', name, { metadata: { finalizers: null } }, { subresource: 'status' });
      await cluster.clients
        .for(services)
        .delete('default', name)
        .catch(() => undefined);
    }
  }
});
