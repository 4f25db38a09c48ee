import { describe, expect, test } from 'vitest';
import { isNotFound } from '../../../src/client/errors.ts';
import { services } from '../../../src/client/resources.ts';
import type { Service } from '../../../src/objects/types/core.generated.ts';
import { at } from '../../../src/objects/json.ts';
import { addressPools, type Cluster } from '../cluster.ts';
import type { Need } from '../need.ts';
import { addressesOf, balanced, finalizer, reasonOf } from './balanced.ts';

/** Addresses of Services of type LoadBalancer, from pools. */
export function loadBalancers(cluster: () => Cluster, need: Need): void {
  const assigned = (namespace: string, name: string): Promise<Service> =>
    cluster().untilService(namespace, name, (service) => reasonOf(service) === 'Assigned');

  describe('load balancers', () => {
    test('an address of the pool comes, with a finalizer, and goes with the Service', async () => {
      const namespace = await cluster().namespace();
      const pool = await cluster().pool({ addresses: cluster().addresses(1, 4) });
      await balanced(cluster(), namespace, 'web', pool);
      const web = await assigned(namespace, 'web');
      expect(addressesOf(web)).toHaveLength(1);
      expect(web.metadata.finalizers).toContain(finalizer);
      await cluster().for(services).delete(namespace, 'web');
      const gone = (): Promise<boolean> =>
        cluster()
          .for(services)
          .get(namespace, 'web')
          .then(() => false, isNotFound);
      await cluster().until(gone, (is) => is);
    });

    test('both families get an address', async (context) => {
      need(context, 'dual-stack');
      const namespace = await cluster().namespace();
      const pool = await cluster().pool({ addresses: cluster().addresses(5, 4) });
      await balanced(cluster(), namespace, 'web', pool, { ipFamilyPolicy: 'RequireDualStack' });
      const found = addressesOf(await assigned(namespace, 'web'));
      expect(found.map((address) => (address.includes(':') ? 'IPv6' : 'IPv4'))).toEqual(cluster().families);
    });

    test('a requested address is given, and refused to the next', async () => {
      const namespace = await cluster().namespace();
      const pool = await cluster().pool({ addresses: cluster().addresses(10, 4) });
      const [wanted = ''] = cluster()
        .addresses(12, 1)
        .map((range) => range.split('-')[0] ?? '');
      const request = { 'servicenet.dev/addresses': wanted };
      await balanced(cluster(), namespace, 'first', pool, {}, request);
      expect(addressesOf(await assigned(namespace, 'first'))).toEqual([wanted]);
      await balanced(cluster(), namespace, 'second', pool, {}, request);
      const second = await cluster().untilService(
        namespace,
        'second',
        (service) => reasonOf(service) === 'AddressInUse',
      );
      expect(addressesOf(second)).toEqual([]);
    });

    test('Services with one key share an address while their ports are disjoint', async () => {
      const namespace = await cluster().namespace();
      const pool = await cluster().pool({ addresses: cluster().addresses(20, 1), sharing: 'by-key' });
      const key = { 'servicenet.dev/sharing-key': 'edge' };
      await balanced(cluster(), namespace, 'http', pool, { ports: [{ port: 80 }] }, key);
      await balanced(cluster(), namespace, 'https', pool, { ports: [{ port: 443 }] }, key);
      const http = addressesOf(await assigned(namespace, 'http'));
      expect(addressesOf(await assigned(namespace, 'https'))).toEqual(http);
      await balanced(cluster(), namespace, 'again', pool, { ports: [{ port: 80 }] }, key);
      const again = await cluster().untilService(
        namespace,
        'again',
        (service) => reasonOf(service) !== undefined,
      );
      expect(reasonOf(again)).not.toBe('Assigned');
      expect(addressesOf(again)).toEqual([]);
    });

    test('who finds the pool full gets the next address that becomes free', async () => {
      const namespace = await cluster().namespace();
      const pool = await cluster().pool({ addresses: cluster().addresses(30, 1) });
      await balanced(cluster(), namespace, 'first', pool);
      const held = addressesOf(await assigned(namespace, 'first'));
      await balanced(cluster(), namespace, 'second', pool);
      await cluster().untilService(namespace, 'second', (service) => reasonOf(service) === 'PoolExhausted');
      await cluster().for(services).delete(namespace, 'first');
      expect(addressesOf(await assigned(namespace, 'second'))).toEqual(held);
    });

    test('who finds the pool full gets an address when the pool grows, and the pool counts them', async () => {
      const namespace = await cluster().namespace();
      const pool = await cluster().pool({ addresses: cluster().addresses(100, 1) });
      await balanced(cluster(), namespace, 'first', pool);
      const [held] = addressesOf(await assigned(namespace, 'first'));
      await balanced(cluster(), namespace, 'second', pool);
      await cluster().untilService(namespace, 'second', (service) => reasonOf(service) === 'PoolExhausted');
      const client = cluster().for(addressPools);
      await client.mergePatch('', pool, { spec: { addresses: cluster().addresses(100, 2) } });
      const [given] = addressesOf(await assigned(namespace, 'second'));
      expect(given).not.toBe(held);
      const family = cluster().families[0] === 'IPv4' ? 'ipv4' : 'ipv6';
      await cluster().until(
        async () => at(await client.get('', pool), 'status', family),
        (usage) => at(usage, 'used') === 2 && at(usage, 'free') === 0,
      );
    });

    test('a Service without node ports gets an address all the same', async () => {
      const namespace = await cluster().namespace();
      const pool = await cluster().pool({ addresses: cluster().addresses(105, 1) });
      const spec = { allocateLoadBalancerNodePorts: false, externalTrafficPolicy: 'Local' };
      const { spec: made } = await balanced(cluster(), namespace, 'web', pool, spec);
      expect(made.ports?.[0]).not.toHaveProperty('nodePort');
      expect(made.healthCheckNodePort).toBeGreaterThan(0);
      const web = await assigned(namespace, 'web');
      expect(addressesOf(web)).toHaveLength(1);
      expect(web.status.loadBalancer?.ingress?.[0]?.ports).toEqual([{ port: 80, protocol: 'TCP' }]);
    });

    test('a Service that is no load balancer any more gives its address back', async () => {
      const namespace = await cluster().namespace();
      const pool = await cluster().pool({ addresses: cluster().addresses(40, 1) });
      await balanced(cluster(), namespace, 'web', pool);
      await assigned(namespace, 'web');
      await cluster()
        .for(services)
        .mergePatch(namespace, 'web', { spec: { type: 'ClusterIP' } });
      const web = await cluster().untilService(
        namespace,
        'web',
        ({ metadata }) => !(metadata.finalizers ?? []).includes(finalizer),
      );
      expect(addressesOf(web)).toEqual([]);
    });

    test('Services of another class are left alone', async () => {
      const namespace = await cluster().namespace();
      const pool = await cluster().pool({ addresses: cluster().addresses(45, 2) });
      await balanced(cluster(), namespace, 'theirs', pool, { loadBalancerClass: 'example.com/other' });
      await balanced(cluster(), namespace, 'ours', pool);
      await assigned(namespace, 'ours');
      const theirs = await cluster().for(services).get(namespace, 'theirs');
      expect(theirs.status).toEqual({ loadBalancer: {} });
      expect(theirs.metadata.finalizers).toBeUndefined();
    });
  });
}
