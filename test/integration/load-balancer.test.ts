import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { Clients } from '../../src/client/resource-client.ts';
import type { Transport } from '../../src/client/transport.ts';
import { services, addressPools } from '../../src/client/resources.ts';
import { loadBalancerController } from '../../src/controllers/load-balancer/controller.ts';
import { loadBalancerCleanupFinalizer } from '../../src/controllers/load-balancer/plan.ts';
import { loadBalancerReady } from '../../src/network/announcing/assigned-addresses.ts';
import { runControllers, type RunningControllers } from '../../src/controllers/run.ts';
import type { AddressPoolSpec } from '../../src/objects/types/servicenet.ts';
import type { Service, ServiceSpec } from '../../src/objects/types/core.generated.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { ForgetfulWatch } from '../support/forgetful-watch.ts';

/** The load balancer against the embedded API server, over HTTP. */
describe('load-balancer-controller', () => {
  let server: TestServer;
  let clients: Clients;
  let running: RunningControllers;

  const start = (transport: Transport = server.client): RunningControllers =>
    runControllers({
      transport,
      controllers: [loadBalancerController()],
      log: pino({ enabled: false }),
    });

  beforeAll(async () => {
    server = await startApiServer();
    clients = new Clients(server.client);
    const crd: unknown = parse(readFileSync('deploy/crds/servicenet.dev_addresspools.yaml', 'utf8'));
    await server.client.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      body: crd,
    });
    running = start();
  });

  afterAll(async () => {
    await running.stop();
    await server.stop();
  });

  const makePool = async (name: string, spec: AddressPoolSpec): Promise<void> => {
    const deadline = Date.now() + 60_000;
    for (;;) {
      try {
        await clients.for(addressPools).create({ metadata: { name }, spec });
        return;
      } catch (error) {
        // A new kind is served shortly after its CRD is created.
        if (Date.now() > deadline) throw error;
        await sleep(50);
      }
    }
  };

  const make = async (
    name: string,
    spec: Partial<ServiceSpec> = {},
    annotations: Record<string, string> = {},
  ): Promise<Service> =>
    clients.for(services).create({
      metadata: { namespace: 'default', name, annotations },
      spec: { type: 'LoadBalancer', ports: [{ port: 80 }], ...spec },
    });

  const read = (name: string): Promise<Service> => clients.for(services).get('default', name);

  /** Reads a Service until it matches. */
  const until = async (name: string, wanted: (service: Service) => boolean): Promise<Service> => {
    const deadline = Date.now() + 60_000;
    for (;;) {
      const service = await read(name);
      if (wanted(service)) return service;
      if (Date.now() > deadline) throw new Error(`${name} never came: ${JSON.stringify(service.status)}`);
      await sleep(20);
    }
  };

  const reasonOf = (service: Service): string | undefined =>
    service.status.conditions?.find(({ type }) => type === loadBalancerReady)?.reason;
  const addressesOf = (service: Service): (string | undefined)[] =>
    (service.status.loadBalancer?.ingress ?? []).map(({ ip }) => ip);

  test('serves a Service, explains why another one waits, and serves it when the first is deleted', async () => {
    await make('first');
    const unserved = await until('first', (service) => reasonOf(service) === 'NoMatchingPool');
    expect(unserved.metadata.finalizers).toEqual([loadBalancerCleanupFinalizer]);

    await makePool('default', { addresses: ['192.0.2.10/32'] });
    const first = await until('first', (service) => reasonOf(service) === 'Assigned');
    expect(first.status.loadBalancer?.ingress).toEqual([
      { ip: '192.0.2.10', ipMode: 'VIP', ports: [{ port: 80, protocol: 'TCP' }] },
    ]);

    await make('second');
    const second = await until('second', (service) => reasonOf(service) === 'PoolExhausted');
    expect(addressesOf(second)).toEqual([]);

    await clients.for(services).delete('default', 'first');
    expect(addressesOf(await until('second', (service) => reasonOf(service) === 'Assigned'))).toEqual([
      '192.0.2.10',
    ]);
    await expect(read('first')).rejects.toMatchObject({ code: 404 });
  });

  test('writes the usage to the status of the pool', async () => {
    const deadline = Date.now() + 60_000;
    for (;;) {
      const { status } = await clients.for(addressPools).get('', 'default');
      if (status?.ipv4?.used === 1) {
        expect(status.ipv4).toEqual({ total: 1, used: 1, free: 0, quarantined: 0 });
        expect(status.conditions?.map(({ type, status: is }) => `${type}=${is}`)).toEqual([
          'Ready=True',
          'Conflict=False',
        ]);
        break;
      }
      if (Date.now() > deadline) throw new Error(`no count: ${JSON.stringify(status)}`);
      await sleep(20);
    }
  });

  test('refuses only the part of a pool that belongs to the Service CIDR', async () => {
    await makePool('wide', { addresses: ['10.95.255.254-10.96.0.3'], autoAssign: false });
    await make('edge', {}, { 'servicenet.dev/pool': 'wide' });
    expect(addressesOf(await until('edge', (service) => reasonOf(service) === 'Assigned'))).toEqual([
      '10.95.255.254',
    ]);
    await make('inside', { loadBalancerIP: '10.96.0.2' });
    await until('inside', (service) => reasonOf(service) === 'AddressNotInPool');
  });

  test('removes address, condition and finalizer when the type of a Service changes', async () => {
    await clients.for(services).mergePatch('default', 'edge', { spec: { type: 'ClusterIP' } });
    const edge = await until('edge', (service) => (service.metadata.finalizers ?? []).length === 0);
    expect(edge.status).toEqual({ loadBalancer: {} });
  });

  test('does not write Services of other classes and load balancers', async () => {
    await make('theirs', { loadBalancerClass: 'example.com/other' });
    const foreign = await make('foreign', { loadBalancerClass: 'example.com/other' });
    await clients.for(services).replaceStatus({
      ...foreign,
      status: { loadBalancer: { ingress: [{ hostname: 'lb.example.com' }] } },
    });
    await make('after');
    await until('after', (service) => reasonOf(service) === 'PoolExhausted');
    expect((await read('theirs')).status).toEqual({ loadBalancer: {} });
    expect((await read('foreign')).status).toEqual({
      loadBalancer: { ingress: [{ hostname: 'lb.example.com' }] },
    });
  });

  test('a new leader continues a reuseDelay and shrinkPolicy Reassign', async () => {
    await makePool('slow', { addresses: ['203.0.113.1'], autoAssign: false, reuseDelay: '1h' });
    await makePool('moving', { addresses: ['203.0.113.2'], autoAssign: false, shrinkPolicy: 'Reassign' });
    await make('had', {}, { 'servicenet.dev/pool': 'slow' });
    await until('had', (service) => reasonOf(service) === 'Assigned');
    await make('moves', {}, { 'servicenet.dev/pool': 'moving' });
    await until('moves', (service) => reasonOf(service) === 'Assigned');
    await clients.for(services).delete('default', 'had');
    const resting = async (): Promise<unknown> =>
      (await clients.for(addressPools).get('', 'slow')).status?.resting?.map(({ address }) => address);
    await expect.poll(resting).toEqual(['203.0.113.1']);

    await running.stop();
    await clients.for(addressPools).mergePatch('', 'moving', { spec: { addresses: ['203.0.113.3'] } });
    running = start();
    expect(
      addressesOf(await until('moves', (service) => !addressesOf(service).includes('203.0.113.2'))),
    ).toEqual(['203.0.113.3']);
    await make('wants', { loadBalancerIP: '203.0.113.1' });
    await until('wants', (service) => reasonOf(service) === 'Quarantined');
    for (const name of ['moves', 'wants']) {
      await clients.for(services).delete('default', name);
      // The finalizer delays the deletion.
      await expect.poll(() => read(name).catch(() => undefined)).toBeUndefined();
    }
  });

  test('the status of a pool is corrected when another client changes it', async () => {
    await makePool('counted', { addresses: ['192.0.2.200'], autoAssign: false });
    const pools = clients.for(addressPools);
    const deadline = Date.now() + 60_000;
    let isSpoilt = false;
    for (;;) {
      const pool = await pools.get('', 'counted');
      const used = pool.status?.ipv4?.used;
      if (isSpoilt && used === 0) return;
      if (!isSpoilt && used === 0) {
        // Like a controller that writes older numbers and gets the response late.
        const status = { ipv4: { used: 1, free: 0 } };
        await pools.mergePatch('', 'counted', { status }, { subresource: 'status' });
        isSpoilt = true;
      }
      if (Date.now() > deadline) throw new Error(`never right: ${JSON.stringify(pool.status)}`);
      await sleep(20);
    }
  });

  const observed = async (name: string, generation: number): Promise<void> => {
    for (;;) {
      const { status } = await clients.for(addressPools).get('', name);
      if (status?.conditions?.every(({ observedGeneration }) => observedGeneration === generation) === true)
        return;
      await sleep(20);
    }
  };
  const editAndUndo = async (name: string, addresses: readonly string[]): Promise<void> => {
    for (const next of [['198.51.100.240/29'], addresses]) {
      await clients.for(addressPools).mergePatch('', name, { spec: { addresses: next } });
    }
  };

  // Both edits are within the time in which changes are collected, so that the spec looks unchanged.
  test('the status of a pool observes an edit that was reverted at once', async () => {
    const addresses = ['198.51.100.240/30'];
    await makePool('undone', { addresses, autoAssign: false });
    await observed('undone', 1);
    await editAndUndo('undone', addresses);
    await observed('undone', 3);
  });

  test('the status of a pool observes an edit that was reverted while there was no watch', async () => {
    await running.stop();
    const watch = new ForgetfulWatch(server.client, '/addresspools');
    running = start(watch);
    const addresses = ['198.51.100.240/30'];
    await makePool('unseen', { addresses, autoAssign: false });
    await observed('unseen', 1);
    // Its status is written: no event of this pool is pending.
    watch.hideEdits(2);
    await editAndUndo('unseen', addresses);
    await observed('unseen', 3);
  });
});
