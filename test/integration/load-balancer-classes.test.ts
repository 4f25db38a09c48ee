import { afterEach, describe, expect, test } from 'vitest';
import { addressPools, services } from '../../src/client/resources.ts';
import type { LoadBalancerOptions } from '../../src/controllers/load-balancer/controller.ts';
import { addressesOf, BalancedServer, startLoadBalancer } from '../support/balanced-server.ts';

const ending: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

const finalizer = 'service.kubernetes.io/load-balancer-cleanup';

/** Two instances of the load balancer in one cluster. */
async function twoInstances(
  first: LoadBalancerOptions,
  second: LoadBalancerOptions,
): Promise<BalancedServer> {
  const cluster = await BalancedServer.start();
  ending.push(() => cluster.server.stop());
  await cluster.pool('p', { addresses: ['192.0.2.0/28'] });
  for (const options of [first, second]) {
    const running = startLoadBalancer(cluster.server.client, {}, options);
    ending.push(() => running.stop());
  }
  return cluster;
}

/** Until both instances have surely seen all that is there: each assigns an address to one more Service. */
async function untilBothHaveSeen(
  cluster: BalancedServer,
  classes: readonly (string | undefined)[],
  name = 'seen',
): Promise<void> {
  for (const [index, loadBalancerClass] of classes.entries()) {
    await cluster.service(`${name}-${index}`, loadBalancerClass === undefined ? {} : { loadBalancerClass });
    await cluster.untilReason(`${name}-${index}`, 'Assigned');
  }
}

describe('two load balancers of ours with different classes', () => {
  test.each<[string, LoadBalancerOptions, LoadBalancerOptions, readonly (string | undefined)[]]>([
    [
      'both named',
      { loadBalancerClass: 'a.example/lb', isDefaultClass: false },
      { loadBalancerClass: 'b.example/lb', isDefaultClass: false },
      ['a.example/lb', 'b.example/lb'],
    ],
    [
      'the default one and another',
      {},
      { loadBalancerClass: 'b.example/lb', isDefaultClass: false },
      [undefined, 'b.example/lb'],
    ],
    [
      'another one for Services without a class',
      { isDefaultClass: false },
      { loadBalancerClass: 'b.example/lb' },
      ['servicenet.dev/load-balancer', undefined],
    ],
  ])('leave the Services of each other alone: %s', async (_what, first, second, classes) => {
    const cluster = await twoInstances(first, second);
    for (const [index, loadBalancerClass] of classes.entries()) {
      await cluster.service(`s${index}`, loadBalancerClass === undefined ? {} : { loadBalancerClass });
      await cluster.untilReason(`s${index}`, 'Assigned');
    }
    await untilBothHaveSeen(cluster, classes);
    const before = await Promise.all(classes.map((_, index) => cluster.read(`s${index}`)));
    // Both see each other's Services changed, and one more of their own.
    for (const index of classes.keys()) {
      const patch = { metadata: { labels: { changed: 'yes' } } };
      await cluster.clients.for(services).mergePatch('default', `s${index}`, patch);
    }
    await untilBothHaveSeen(cluster, classes, 'later');
    const after = await Promise.all(classes.map((_, index) => cluster.read(`s${index}`)));
    expect(after.map(({ status }) => status)).toEqual(before.map(({ status }) => status));
    expect(after.map(({ metadata }) => metadata.finalizers)).toEqual(classes.map(() => [finalizer]));
    const all = (await cluster.clients.for(services).list({})).items.flatMap(addressesOf);
    expect(new Set(all).size).toBe(all.length);
    expect(all).toHaveLength(classes.length * 3);
  });

  test('clean up after their own Services alone', async () => {
    const cluster = await twoInstances({}, { loadBalancerClass: 'b.example/lb', isDefaultClass: false });
    await cluster.service('s', { loadBalancerClass: 'b.example/lb' });
    await cluster.untilReason('s', 'Assigned');
    const spec = { type: 'ClusterIP', loadBalancerClass: null, allocateLoadBalancerNodePorts: null };
    await cluster.clients.for(services).mergePatch('default', 's', { spec });
    const cleaned = await cluster.until('s', ({ metadata }) => metadata.finalizers === undefined);
    expect(addressesOf(cleaned)).toEqual([]);
    expect(cleaned.metadata.annotations ?? {}).toEqual({});
  });

  test.each([
    ['older', 'younger'],
    ['younger', 'older'],
  ])('leave an address that both gave at once to the older Service: %s first', async (...order) => {
    const classes: Readonly<Record<string, string>> = { older: 'a.example/lb', younger: 'b.example/lb' };
    const cluster = await BalancedServer.start();
    ending.push(() => cluster.server.stop());
    await cluster.pool('p', { addresses: ['192.0.2.0/28'] });
    // Of one second, the name tells.
    for (const name of ['older', 'younger'])
      await cluster.service(name, { loadBalancerClass: classes[name] ?? '' });
    const start = (name: string): ReturnType<typeof startLoadBalancer> =>
      startLoadBalancer(
        cluster.server.client,
        {},
        { loadBalancerClass: classes[name] ?? '', isDefaultClass: false },
      );
    for (const name of order) {
      const running = start(name);
      await cluster.untilReason(name, 'Assigned');
      await running.stop();
    }
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.0', ipMode: 'VIP' }] } };
    for (const name of order) {
      await cluster.clients.for(services).mergePatch('default', name, { status }, { subresource: 'status' });
    }
    for (const name of order) {
      const running = start(name);
      ending.push(() => running.stop());
    }
    const shown = async (): Promise<readonly string[][]> =>
      Promise.all(['older', 'younger'].map(async (name) => [...addressesOf(await cluster.read(name))]));
    const apart = [['192.0.2.0'], [expect.not.stringMatching(/^192\.0\.2\.0$/)]];
    await expect.poll(shown, { timeout: 15_000 }).toEqual(apart);
    await untilBothHaveSeen(cluster, ['a.example/lb', 'b.example/lb']);
    expect(await shown()).toEqual(apart);
  });

  test('write the same status of a pool, once', async () => {
    const cluster = await twoInstances({}, { loadBalancerClass: 'b.example/lb', isDefaultClass: false });
    await untilBothHaveSeen(cluster, [undefined, 'b.example/lb']);
    const used = async (): Promise<number | undefined> =>
      (await cluster.clients.for(addressPools).get('', 'p', {})).status?.ipv4?.used;
    await expect.poll(used, { timeout: 60_000 }).toBe(2);
  });
});
