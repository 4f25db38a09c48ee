import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ResourceClient } from '../../src/client/resource-client.ts';
import { services, type ResourceType, addressPools } from '../../src/client/resources.ts';
import {
  loadBalancerReady,
  loadBalancerReadyCondition,
} from '../../src/network/announcing/assigned-addresses.ts';
import type { Transport } from '../../src/client/transport.ts';
import type { AddressPool } from '../../src/objects/types/servicenet.ts';
import type { RunningControllers } from '../../src/controllers/run.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { addressesOf, BalancedServer, startLoadBalancer } from '../support/balanced-server.ts';

const events: ResourceType = {
  group: '',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  namespaced: true,
  isObject: (_object): _object is KubeObject => true,
};

/** Removes the rules from the CRD of AddressPools: objects stored before it had rules still exist. */
async function withoutRules(client: Transport): Promise<void> {
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/addresspools.servicenet.dev';
  const body: unknown = JSON.parse(
    JSON.stringify((await client.request('GET', path)).json(), (key, value: unknown) =>
      key === 'x-kubernetes-validations' ? undefined : value,
    ),
  );
  await client.request('PUT', path, { body });
}

/** An invalid request has a condition that says what to do, and all other Services are served. */
describe('load-balancer-controller and bad input', () => {
  let cluster: BalancedServer;
  let running: RunningControllers;
  const metrics = new Metrics();

  beforeAll(async () => {
    cluster = await BalancedServer.start();
    await withoutRules(cluster.server.client);
    running = startLoadBalancer(cluster.server.client, { metrics });
    await cluster.pool('good', { addresses: ['192.0.2.0/26'] });
  });

  afterAll(async () => {
    await running.stop();
    await cluster.server.stop();
  });

  /** Other Services are served as before. */
  const stillWorks = async (name: string): Promise<void> => {
    await cluster.service(name);
    await cluster.untilReason(name, 'Assigned');
  };

  const poolUntil = async (name: string, wanted: (pool: AddressPool) => boolean): Promise<AddressPool> => {
    let pool = await cluster.clients.for(addressPools).get('', name);
    await expect
      .poll(async () => {
        pool = await cluster.clients.for(addressPools).get('', name);
        return wanted(pool);
      })
      .toBe(true);
    return pool;
  };

  const condition = (pool: AddressPool, type: string): string | undefined => {
    const found = pool.status?.conditions?.find((one) => one.type === type);
    return found === undefined ? undefined : `${found.status} ${found.reason} ${found.message}`;
  };

  test.each([
    [
      'no-address',
      { 'servicenet.dev/addresses': 'banana' },
      'requests "banana" (not an IP address) in servicenet.dev/addresses',
    ],
    [
      'octal',
      { 'metallb.io/loadBalancerIPs': '192.0.2.010' },
      'requests "192.0.2.010" (not an IP address) in metallb.io/loadBalancerIPs',
    ],
    [
      'wrong-family',
      { 'servicenet.dev/addresses': '2001:db8::1' },
      'requests 2001:db8::1 (but it is not an IPv6 Service) in servicenet.dev/addresses',
    ],
    [
      'two',
      { 'lbipam.cilium.io/ips': '192.0.2.1,192.0.2.2' },
      'requests two IPv4 addresses (at most one per family) in lbipam.cilium.io/ips',
    ],
    [
      'twenty',
      { 'servicenet.dev/addresses': Array.from({ length: 20 }, (_, i) => `192.0.2.${i}`).join() },
      'requests 20 addresses (at most one per family) in servicenet.dev/addresses',
    ],
    [
      'dhcp',
      { 'kube-vip.io/loadbalancerIPs': '0.0.0.0' },
      'requests 0.0.0.0 (DHCP is not supported) in kube-vip.io/loadbalancerIPs',
    ],
    [
      'contradiction',
      { 'metallb.io/loadBalancerIPs': '192.0.2.1', 'purelb.io/addresses': '192.0.2.2' },
      'has annotations metallb.io/loadBalancerIPs and purelb.io/addresses, which contradict each other',
    ],
  ])('annotations: %s', async (name, annotations, message) => {
    await cluster.service(name, {}, annotations);
    const service = await cluster.untilReason(name, 'InvalidRequest');
    expect(loadBalancerReadyCondition(service)?.message).toBe(`the Service ${message}`);
    expect(addressesOf(service)).toEqual([]);
  });

  test('the same address twice is one address', async () => {
    await cluster.service('twice', {}, { 'servicenet.dev/addresses': '192.0.2.9, 192.0.2.9' });
    expect(addressesOf(await cluster.untilReason('twice', 'Assigned'))).toEqual(['192.0.2.9']);
  });

  test('pools: huge, reversed and invalid ranges are refused with a reason, and the others are used', async () => {
    await cluster.pool('hostile', {
      addresses: ['0.0.0.0/0', '::/0', '192.0.2.200-192.0.2.100', 'banana', '203.0.113.7/32'],
      autoAssign: false,
    });
    const pool = await poolUntil('hostile', ({ status }) => status?.ipv4 !== undefined);
    expect(pool.status?.ipv4?.total).toBe(1);
    const ready = condition(pool, 'Ready');
    expect(ready).toContain('True InvalidSpec the valid parts are used; ');
    for (const text of [
      '0.0.0.0/0 is too large',
      '::/0 is too large',
      '"192.0.2.200-192.0.2.100"',
      '"banana"',
    ])
      expect(ready).toContain(text);
    await cluster.service('from-hostile', {}, { 'servicenet.dev/pool': 'hostile' });
    expect(addressesOf(await cluster.untilReason('from-hostile', 'Assigned'))).toEqual(['203.0.113.7']);

    await cluster.pool('world', { addresses: ['::/0'] });
    expect(condition(await poolUntil('world', ({ status }) => status !== undefined), 'Ready')).toMatch(
      /^False InvalidSpec spec.addresses\[0\]: ::\/0 is too large/,
    );
    await stillWorks('after-hostile');
  });

  test('conditions stay readable and within the limits of the API server', async () => {
    await cluster.pool('all-wrong', {
      addresses: Array.from({ length: 256 }, (_, i) => `${i} ${'x'.repeat(90)}`),
      autoAssign: false,
    });
    const pool = await poolUntil('all-wrong', ({ status }) => status !== undefined);
    expect(condition(pool, 'Ready')).toMatch(/^False InvalidSpec .*; and 252 more$/);
    const names = Array.from({ length: 5000 }, (_, i) => `no-such-pool-${i}`);
    await cluster.service('all-wrong', {}, { 'servicenet.dev/pool': names.join() });
    const service = await cluster.untilReason('all-wrong', 'NoMatchingPool');
    expect(loadBalancerReadyCondition(service)?.message).toMatch(
      /^there is no pool no-such-pool-0, .*, and 4995 more$/,
    );
    await stillWorks('after-all-wrong');
  });

  test('pools: only the overlapping part of the younger one is taken out', async () => {
    await cluster.pool('overlapping', { addresses: ['192.0.2.60-192.0.2.67'], autoAssign: false });
    const pool = await poolUntil('overlapping', ({ status }) => status !== undefined);
    expect(pool.status?.ipv4?.total).toBe(4);
    expect(condition(pool, 'Conflict')).toBe(
      'True Overlap 192.0.2.60-192.0.2.63 belongs to the older pool good: these addresses are not given',
    );
    expect(condition(await poolUntil('good', ({ status }) => status !== undefined), 'Conflict')).toBe(
      'False NoOverlap ',
    );
  });

  test('pools: two that select a Service are tried by priority', async () => {
    const serviceSelector = { matchLabels: { tier: 'web' } };
    await cluster.pool('low', { addresses: ['198.51.100.1/32'], serviceSelector, priority: 1 });
    await cluster.pool('high', { addresses: ['198.51.100.2/32'], serviceSelector, priority: 2 });
    await poolUntil('low', ({ status }) => status !== undefined);
    await poolUntil('high', ({ status }) => status !== undefined);
    for (const [name, address] of [
      ['web-1', '198.51.100.2'],
      ['web-2', '198.51.100.1'],
    ] as const) {
      await cluster.clients.for(services).create({
        metadata: { namespace: 'default', name, labels: { tier: 'web' } },
        spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
      });
      expect(addressesOf(await cluster.untilReason(name, 'Assigned'))).toEqual([address]);
    }
  });

  test('pools: Services keep the addresses of a deleted pool, also when it is created again', async () => {
    await cluster.pool('brief', { addresses: ['203.0.113.40/31'], autoAssign: false });
    await cluster.service('keeper', {}, { 'servicenet.dev/pool': 'brief' });
    await cluster.untilReason('keeper', 'Assigned');
    await cluster.clients.for(addressPools).delete('', 'brief');
    const kept = await cluster.until(
      'keeper',
      (service) =>
        loadBalancerReadyCondition(service)?.message.includes('no pool contains it any more') === true,
    );
    expect(loadBalancerReadyCondition(kept)?.reason).toBe('Assigned');
    await cluster.service('late', {}, { 'servicenet.dev/pool': 'brief' });
    await cluster.untilReason('late', 'NoMatchingPool');
    const keeper = await cluster.read('keeper');
    expect(addressesOf(keeper)).toEqual(['203.0.113.40']);
    await cluster.pool('brief', { addresses: ['203.0.113.40/31'], autoAssign: false });
    expect(addressesOf(await cluster.untilReason('late', 'Assigned'))).toEqual(['203.0.113.41']);
    expect(addressesOf(await cluster.read('keeper'))).toEqual(['203.0.113.40']);
  });

  test('status: entries and conditions of other clients stay, own ones are written again', async () => {
    await cluster.service('shared-status');
    const served = await cluster.untilReason('shared-status', 'Assigned');
    const [own] = served.status.loadBalancer?.ingress ?? [];
    const theirs = { type: 'example.com/Announced', status: 'True', reason: 'Yes', message: '' } as const;
    await cluster.clients.for(services).replaceStatus({
      ...served,
      status: {
        loadBalancer: { ingress: [{ hostname: 'lb.example.com' }] },
        conditions: [{ ...theirs, lastTransitionTime: '2026-01-01T00:00:00Z' }],
      },
    });
    const mended = await cluster.until(
      'shared-status',
      (service) => loadBalancerReadyCondition(service) !== undefined,
    );
    expect(mended.status.loadBalancer?.ingress).toEqual([own, { hostname: 'lb.example.com' }]);
    expect(mended.status.conditions?.map(({ type }) => type)).toEqual([theirs.type, loadBalancerReady]);
  });

  test('status: a port that another Service serves has an error until that Service is deleted', async () => {
    const sharing = { 'servicenet.dev/sharing-key': 'k' };
    await cluster.service('sharer-1', { ports: [{ port: 80 }] }, sharing);
    await cluster.service('sharer-2', { ports: [{ port: 443 }] }, sharing);
    const first = await cluster.untilReason('sharer-1', 'Assigned');
    const second = await cluster.untilReason('sharer-2', 'Assigned');
    expect(addressesOf(second)).toEqual(addressesOf(first));
    await cluster.clients.for(services).mergePatch('default', 'sharer-2', {
      spec: {
        ports: [
          { name: 'a', port: 443 },
          { name: 'b', port: 80 },
        ],
      },
    });
    const refused = await cluster.untilReason('sharer-2', 'SharingRefused');
    expect(loadBalancerReadyCondition(refused)?.message).toContain('port TCP/80 of ');
    expect(loadBalancerReadyCondition(refused)?.message).toContain('is held by default/sharer-1');
    expect(refused.status.loadBalancer?.ingress?.[0]?.ports).toEqual([
      { port: 443, protocol: 'TCP' },
      { port: 80, protocol: 'TCP', error: 'servicenet.dev/PortInUse' },
    ]);
    await cluster.clients.for(services).delete('default', 'sharer-1');
    const free = await cluster.untilReason('sharer-2', 'Assigned');
    expect(addressesOf(free)).toEqual(addressesOf(first));
    expect(free.status.loadBalancer?.ingress?.[0]?.ports?.every(({ error }) => error === undefined)).toBe(
      true,
    );
  });

  test('condition, Event and metric have the same reason', async () => {
    await expect
      .poll(async () => {
        const { items } = await new ResourceClient(cluster.server.client, events).list({
          namespace: 'default',
        });
        return items.filter((event) => {
          const regarding: unknown = Reflect.get(event, 'involvedObject');
          return (
            JSON.stringify(regarding).includes('"no-address"') &&
            Reflect.get(event, 'reason') === 'InvalidRequest'
          );
        }).length;
      })
      .toBe(1);
    const text = await metrics.scrape();
    expect(text).toMatch(/^servicenet_load_balancer_transitions_total\{reason="InvalidRequest"\} 7$/m);
    expect(text).toMatch(/^servicenet_pool_addresses\{pool="good",family="IPv4",state="used"\} [1-9]/m);
  });
});
