import { afterEach, describe, expect, test } from 'vitest';
import { services } from '../../src/client/resources.ts';
import { loadBalancerReadyCondition } from '../../src/network/announcing/assigned-addresses.ts';
import { addressesOf, BalancedServer, startLoadBalancer } from '../support/balanced-server.ts';
import { ForgetfulWatch } from '../support/forgetful-watch.ts';

const ending: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

async function startServer(): Promise<BalancedServer> {
  const cluster = await BalancedServer.start();
  ending.push(() => cluster.server.stop());
  return cluster;
}

describe('load-balancer-controller, beside others who write Services', () => {
  test('writes over another client become less frequent', async () => {
    const cluster = await startServer();
    await cluster.pool('p', { addresses: ['192.0.2.1/32'] });
    const running = startLoadBalancer(cluster.server.client);
    ending.push(() => running.stop());
    await cluster.service('s');
    const status = { loadBalancer: { ingress: [{ ip: '198.51.100.1' }] } };
    let since = Infinity;
    for (let i = 0; i < 3; i++) {
      await cluster.until('s', (service) => addressesOf(service).includes('192.0.2.1'));
      since = Math.min(since, Date.now());
      await cluster.clients.for(services).mergePatch('default', 's', { status }, { subresource: 'status' });
    }
    const restored = await cluster.until('s', (service) => addressesOf(service).includes('192.0.2.1'));
    expect(addressesOf(restored)).toEqual(['192.0.2.1', '198.51.100.1']);
    // At once, after one second and after two.
    expect(Date.now() - since).toBeGreaterThanOrEqual(3000);
    const events = async (): Promise<unknown> =>
      (await cluster.server.client.request('GET', '/api/v1/namespaces/default/events')).json();
    const warning: unknown = expect.objectContaining({ type: 'Warning', reason: 'Overwritten' });
    await expect.poll(events).toMatchObject({ items: expect.arrayContaining([warning]) as unknown });
  });

  test('a change in one event with an own write is reconciled', async () => {
    const cluster = await startServer();
    const watch = new ForgetfulWatch(cluster.server.client, '/services');
    const running = startLoadBalancer(watch);
    ending.push(() => running.stop());
    await cluster.service('s');
    await cluster.untilReason('s', 'NoMatchingPool');
    await cluster.service('heard');
    await cluster.untilReason('heard', 'NoMatchingPool');
    // The event of `s` came before. A hidden event of this write would keep the controller waiting.
    await expect.poll(() => watch.hasDelivered('heard', 'NoMatchingPool')).toBe(true);

    watch.hideEdits(3);
    await cluster.pool('p', { addresses: ['192.0.2.0/30'] });
    await cluster.untilReason('s', 'Assigned');
    await cluster.untilReason('heard', 'Assigned');
    // The next list shows the own write and this change together.
    await cluster.clients.for(services).mergePatch('default', 's', { spec: { type: 'ClusterIP' } });
    const released = await cluster.until('s', (service) => loadBalancerReadyCondition(service) === undefined);
    expect(addressesOf(released)).toEqual([]);
  });
});
