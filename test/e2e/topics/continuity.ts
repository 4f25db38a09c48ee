import { describe, expect, test } from 'vitest';
import { services } from '../../../src/client/resources.ts';
import type { Service } from '../../../src/objects/types/core.generated.ts';
import type { Cluster } from '../cluster.ts';
import { addressesOf, balanced, finalizer, reasonOf } from './balanced.ts';

/** Milliseconds without a write after which a cluster counts as settled. */
const quietMs = 5000;

/** Nothing moves when controllers go and come. */
export function continuity(cluster: () => Cluster): void {
  const list = async (namespace: string): Promise<Service[]> =>
    (await cluster().for(services).list({ namespace })).items;

  const settled = (namespace: string): Promise<Service[]> =>
    cluster().until(
      () => list(namespace),
      // A Service may be seen before its pool is.
      (all) => all.every((service) => ['Assigned', 'PoolExhausted'].includes(reasonOf(service) ?? '')),
    );

  const booked = (all: readonly Service[]): Map<string, string> =>
    new Map(
      all.flatMap((service) => addressesOf(service).map((address) => [service.metadata.name ?? '', address])),
    );

  const make = async (namespace: string, pool: string, prefix: string, count: number): Promise<void> => {
    for (let i = 0; i < count; i++) await balanced(cluster(), namespace, `${prefix}-${i}`, pool);
  };

  describe('continuity', () => {
    test('a restart in the middle of the work moves nothing and gives nothing twice', async () => {
      const namespace = await cluster().namespace();
      const pool = await cluster().pool({ addresses: cluster().addresses(50, 12) });
      await make(namespace, pool, 'early', 6);
      await cluster().until(
        () => list(namespace),
        (all) => booked(all).size >= 2,
      );
      await cluster().controllers.killLeader();
      await cluster().controllers.stop();
      const before = booked(await list(namespace));
      await make(namespace, pool, 'late', 8);
      await cluster().controllers.start();
      const after = booked(await settled(namespace));
      for (const [name, address] of before) expect(after.get(name), name).toBe(address);
      expect(after.size).toBe(12);
      expect(new Set(after.values()).size).toBe(12);
    });

    test('another leader takes over, and goes on', async () => {
      const namespace = await cluster().namespace();
      const pool = await cluster().pool({ addresses: cluster().addresses(70, 8) });
      await make(namespace, pool, 'early', 2);
      const before = booked(await settled(namespace));
      const old = await cluster().controllers.killLeader();
      await make(namespace, pool, 'late', 2);
      const after = booked(await settled(namespace));
      expect(await cluster().controllers.leader()).not.toBe(old);
      for (const [name, address] of before) expect(after.get(name), name).toBe(address);
      expect(new Set(after.values()).size).toBe(4);
      await cluster().controllers.start();
    });

    test('an address that an earlier release wrote is kept, and its status completed', async () => {
      const namespace = await cluster().namespace();
      const pool = await cluster().pool({ addresses: cluster().addresses(80, 4) });
      await cluster().controllers.stop();
      const web = await balanced(cluster(), namespace, 'web', pool);
      const [held = ''] = cluster()
        .addresses(82, 1)
        .map((range) => range.split('-')[0] ?? '');
      const { spec } = web;
      const finalized = await cluster()
        .for(services)
        .mergePatch(namespace, 'web', { metadata: { finalizers: [finalizer] } });
      await cluster()
        .for(services)
        .replaceStatus({ ...finalized, spec, status: { loadBalancer: { ingress: [{ ip: held }] } } });
      await cluster().controllers.start();
      const after = await cluster().untilService(
        namespace,
        'web',
        (service) => reasonOf(service) === 'Assigned',
      );
      expect(addressesOf(after)).toEqual([held]);
      expect(after.status.loadBalancer?.ingress?.[0]?.ports).toEqual([{ port: 80, protocol: 'TCP' }]);
    });

    test('a Service deleted while no controller runs goes when one does, and the next one gets the address', async () => {
      const namespace = await cluster().namespace();
      const pool = await cluster().pool({ addresses: cluster().addresses(110, 1) });
      await make(namespace, pool, 'old', 1);
      const before = booked(await settled(namespace));
      await cluster().controllers.stop();
      await cluster().for(services).delete(namespace, 'old-0');
      await make(namespace, pool, 'new', 1);
      const { metadata } = await cluster().for(services).get(namespace, 'old-0');
      expect(metadata.deletionTimestamp).toBeTruthy();
      expect(metadata.finalizers).toEqual([finalizer]);
      await cluster().controllers.start();
      const after = await cluster().untilService(
        namespace,
        'new-0',
        (service) => reasonOf(service) === 'Assigned',
      );
      expect(addressesOf(after)).toEqual([...before.values()]);
      await cluster().until(
        () => list(namespace),
        (all) => all.length === 1,
      );
    });

    test('a restart into a settled cluster writes nothing', async () => {
      const namespace = await cluster().namespace();
      const pool = await cluster().pool({ addresses: cluster().addresses(90, 4) });
      await make(namespace, pool, 'web', 3);
      const versions = (all: readonly Service[]): string[] =>
        all.map(({ metadata }) => `${metadata.name ?? ''}@${metadata.resourceVersion ?? ''}`);
      await settled(namespace);
      // Conditions about announcing are written a second after the address, or later.
      let before: string[] = [];
      let since = performance.now();
      await cluster().until(
        async () => versions(await list(namespace)),
        (now) => {
          if (now.join() !== before.join()) since = performance.now();
          before = now;
          return performance.now() - since > quietMs;
        },
      );
      await cluster().controllers.stop();
      await cluster().controllers.start();
      await balanced(cluster(), namespace, 'marker', pool);
      const after = versions(await settled(namespace));
      expect(after.filter((line) => !line.startsWith('marker@'))).toEqual(before);
    });

    test('nothing that the controllers asked for in all this was refused', async () => {
      await cluster().until(
        () => Promise.resolve(cluster().controllers.refusals()),
        (found) => found.length === 0,
      );
    });
  });
}
