import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { createTransport } from '../../src/client/connect.ts';
import { services } from '../../src/client/resources.ts';
import type { ApiStream, Transport } from '../../src/client/transport.ts';
import { addressPools } from '../../src/client/resources.ts';
import type { LeaderElectionSettings } from '../../src/runtime/leadership.ts';
import type { Service } from '../../src/objects/types/core.generated.ts';
import { StatusError } from '../../src/objects/status.ts';
import { loadBalancerReadyCondition } from '../../src/network/announcing/assigned-addresses.ts';
import { addressesOf, BalancedServer, startLoadBalancer } from '../support/balanced-server.ts';

const election = (identity: string): LeaderElectionSettings => ({
  namespace: 'kube-system',
  name: 'load-balancer',
  identity,
  // A leader that stops releases the lease at once. One that a busy machine delays for seconds must not lose it.
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 100,
});

/** A transport that delays watch events of Services. */
function delayedEvents(inner: Transport, milliseconds: number): Transport {
  return {
    server: inner.server,
    request: (method, path, options) => inner.request(method, path, options),
    stream: async (path, options): Promise<ApiStream> => {
      const stream = await inner.stream(path, options);
      if (!path.endsWith('/services')) return stream;
      async function* late(): AsyncGenerator<Buffer> {
        for await (const chunk of stream.chunks) {
          await sleep(milliseconds);
          yield chunk;
        }
      }
      return { ...stream, chunks: late() };
    },
    close: () => Promise.resolve(),
  };
}

/**
 * A transport that delays the write by which the Service `first` releases its address for a second, or until `second` is
 * assigned it.
 *
 * @param order the writes in the order in which they were served.
 * @param releasing text in the body of the releasing write.
 * @param meanwhile called before the releasing write.
 */
function delayedRelease(
  client: Transport,
  order: string[],
  releasing = '"finalizers":null',
  meanwhile: () => Promise<unknown> = () => Promise.resolve(),
): Transport {
  const tooEarly = Promise.withResolvers<string>();
  return {
    ...delayedEvents(client, 0),
    request: async (method, path, options) => {
      const isWrite = method === 'PATCH' && path.endsWith('/status');
      const body = JSON.stringify(options?.body ?? '');
      if (isWrite && path.includes('/first/') && body.includes(releasing)) {
        await meanwhile();
        await Promise.race([tooEarly.promise, sleep(1000)]);
      }
      if (isWrite && path.includes('/second/') && body.includes('192.0.2.1')) {
        order.push('second has it');
        tooEarly.resolve('too early');
      }
      const answer = await client.request(method, path, options);
      if (isWrite && path.includes('/first/')) order.push('first is written');
      return answer;
    },
  };
}

/** A transport that delays the response to the first write of `second` until `first` is released, and fails the next one. */
function delayedResponses(client: Transport, release: () => Promise<unknown>): Transport {
  const released = Promise.withResolvers<undefined>();
  let writes = 0;
  return {
    ...delayedEvents(client, 0),
    request: async (method, path, options) => {
      const isWrite = method === 'PATCH' && path.endsWith('/status');
      const isSecond = isWrite && path.includes('/second/');
      if (isSecond && ++writes === 2) throw new StatusError(409, 'Conflict', 'once');
      const answer = await client.request(method, path, options);
      if (isSecond && writes === 1) {
        await release();
        await released.promise;
      }
      const body = JSON.stringify(options?.body ?? '');
      if (isWrite && path.includes('/first/') && body.includes('"finalizers":null')) {
        // After the caller has handled the response.
        setImmediate(() => released.resolve(undefined));
      }
      return answer;
    },
  };
}

const ending: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

async function listed(cluster: BalancedServer): Promise<Service[]> {
  const { items } = await cluster.clients.for(services).list({ namespace: 'default' });
  return items;
}

/** `first` gets the only address; `second` waits for it. */
async function makeFirstAndSecond(cluster: BalancedServer): Promise<void> {
  await cluster.service('first');
  await cluster.untilReason('first', 'Assigned');
  await cluster.service('second');
  await cluster.untilReason('second', 'PoolExhausted');
}

describe('load-balancer-controller', () => {
  test('a new leader assigns no address of the last writes of the former one', async () => {
    const cluster = await BalancedServer.start();
    ending.push(() => cluster.server.stop());
    const { client } = cluster.server;
    await cluster.pool('p', { addresses: ['192.0.2.1/32'], autoAssign: false });
    const first = startLoadBalancer(client, { leaderElection: election('first') });
    ending.push(() => first.stop());
    await cluster.service('older');
    await cluster.untilReason('older', 'NoMatchingPool');
    const second = startLoadBalancer(delayedEvents(client, 1500), { leaderElection: election('second') });
    ending.push(() => second.stop());
    await expect.poll(() => second.healthChecks().every((check) => check.check() === undefined)).toBe(true);

    // The standby gets this event only after it became the leader.
    await cluster.service('newer', {}, { 'servicenet.dev/pool': 'p' });
    expect(addressesOf(await cluster.untilReason('newer', 'Assigned'))).toEqual(['192.0.2.1']);
    await first.stop();
    await cluster.clients.for(addressPools).mergePatch('', 'p', { spec: { autoAssign: true } });
    await cluster.untilReason('older', 'PoolExhausted');
    expect(addressesOf(await cluster.read('older'))).toEqual([]);
    expect(addressesOf(await cluster.read('newer'))).toEqual(['192.0.2.1']);
  });

  test('an address is assigned to another Service only after its removal is written', async () => {
    const cluster = await BalancedServer.start();
    ending.push(() => cluster.server.stop());
    await cluster.pool('p', { addresses: ['192.0.2.1/32'] });
    const order: string[] = [];
    const running = startLoadBalancer(delayedRelease(cluster.server.client, order));
    ending.push(() => running.stop());
    await makeFirstAndSecond(cluster);
    order.length = 0;
    await cluster.clients.for(services).delete('default', 'first');
    await cluster.untilReason('second', 'Assigned');
    expect(order).toEqual(['first is written', 'second has it']);
  });

  test('an address that its Service exchanged for another one is assigned only after that is written', async () => {
    const cluster = await BalancedServer.start();
    ending.push(() => cluster.server.stop());
    await cluster.pool('p', { addresses: ['192.0.2.1/32'], shrinkPolicy: 'Reassign' });
    const edit = (...addresses: string[]): Promise<unknown> =>
      cluster.clients.for(addressPools).mergePatch('', 'p', { spec: { addresses } });
    const order: string[] = [];
    const back = (): Promise<unknown> => edit('192.0.2.1/32', '192.0.2.2/32');
    const running = startLoadBalancer(delayedRelease(cluster.server.client, order, '192.0.2.2', back));
    ending.push(() => running.stop());
    await makeFirstAndSecond(cluster);
    order.length = 0;
    await edit('192.0.2.2/32');
    expect(addressesOf(await cluster.untilReason('second', 'Assigned'))).toEqual(['192.0.2.1']);
    expect(order).toEqual(['first is written', 'second has it']);
    expect(addressesOf(await cluster.read('first'))).toEqual(['192.0.2.2']);
  });

  test('a failed write is repeated, also when the event of the write before came before its response', async () => {
    const cluster = await BalancedServer.start();
    ending.push(() => cluster.server.stop());
    await cluster.pool('p', { addresses: ['192.0.2.1/32'] });
    const transport = delayedResponses(cluster.server.client, () =>
      cluster.clients.for(services).delete('default', 'first'),
    );
    const running = startLoadBalancer(transport);
    ending.push(() => running.stop());
    await cluster.service('first');
    await cluster.untilReason('first', 'Assigned');
    await cluster.service('second');
    expect(addressesOf(await cluster.untilReason('second', 'Assigned'))).toEqual(['192.0.2.1']);
  });

  test('so does a new leader for a Service that was deleted without a leader', async () => {
    const cluster = await BalancedServer.start();
    ending.push(() => cluster.server.stop());
    const { client } = cluster.server;
    await cluster.pool('p', { addresses: ['192.0.2.1/32'] });
    const former = startLoadBalancer(client);
    await cluster.service('first');
    await cluster.untilReason('first', 'Assigned');
    await former.stop();
    await cluster.service('second');
    await cluster.clients.for(services).delete('default', 'first');
    const order: string[] = [];
    const running = startLoadBalancer(delayedRelease(client, order));
    ending.push(() => running.stop());
    await cluster.untilReason('second', 'Assigned');
    expect(order).toEqual(['first is written', 'second has it']);
  });

  test('no address is moved or assigned twice while leaders change under load', async () => {
    const cluster = await BalancedServer.start();
    ending.push(() => cluster.server.stop());
    const { client } = cluster.server;
    await cluster.pool('p', { addresses: ['192.0.2.0/26'] });
    const given = new Map<string, string>(); // Service -> its address
    const look = async (): Promise<void> => {
      const holders = new Map<string, string>();
      for (const service of await listed(cluster)) {
        const name = service.metadata.name ?? '';
        const [address] = addressesOf(service);
        const before = given.get(name);
        if (before !== undefined) expect(address, name).toBe(before);
        if (address === undefined) continue;
        expect(holders.get(address), `${address} is also ${name}'s`).toBeUndefined();
        holders.set(address, name);
        given.set(name, address);
      }
    };
    let leader = startLoadBalancer(delayedEvents(client, 50), { leaderElection: election('leader-0') });
    ending.push(() => leader.stop());
    for (let round = 1; round <= 4; round++) {
      const standby = startLoadBalancer(delayedEvents(client, 50 * round), {
        leaderElection: election(`leader-${round}`),
      });
      const creating = Array.from({ length: 12 }, (_, i) => cluster.service(`s${round}-${i}`));
      await Promise.all(creating.slice(0, 3 * round));
      await leader.stop();
      leader = standby;
      await Promise.all(creating);
      await look();
    }
    await expect.poll(async () => (await look(), given.size)).toBe(48);
  });

  test('no address is moved and nothing is written when the API server and the controller restart', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'servicenet-lb-'));
    ending.push(() => rm(directory, { recursive: true, force: true }));
    let cluster = await BalancedServer.start({ dataDirectory: directory });
    ending.push(() => cluster.server.stop());
    const { url, token, ca } = cluster.server;
    const client = await createTransport({ kind: 'endpoint', url, token, ca });
    ending.push(() => client.close());
    let running = startLoadBalancer(client);
    ending.push(() => running.stop());
    await cluster.pool('p', { addresses: ['192.0.2.0/28'] });
    for (let i = 0; i < 20; i++) await cluster.service(`s${i}`);
    const having = async (reason: string): Promise<string[]> =>
      (await listed(cluster)).flatMap((service) =>
        loadBalancerReadyCondition(service)?.reason === reason ? [service.metadata.name ?? ''] : [],
      );
    await expect.poll(async () => (await having('Assigned')).length).toBe(16);
    await expect.poll(async () => (await having('PoolExhausted')).length).toBe(4);
    const [assigned = ''] = await having('Assigned');
    const versions = (list: Service[]): string[] =>
      list.map(({ metadata }) => `${metadata.name ?? ''}@${metadata.resourceVersion ?? ''}`);
    const before = versions(await listed(cluster));

    const again = async (): Promise<void> => {
      const port = Number(new URL(url).port);
      await cluster.server.stop();
      cluster = await BalancedServer.start({ dataDirectory: directory, port, token });
    };
    // First the server alone, then both.
    await again();
    await running.stop();
    await again();
    running = startLoadBalancer(client);
    await cluster.service('last', { loadBalancerIP: '198.51.100.1' });
    await cluster.untilReason('last', 'AddressNotInPool');
    await sleep(300); // the queue takes news first, and what it heard at the start after that
    expect(versions((await listed(cluster)).filter(({ metadata }) => metadata.name !== 'last'))).toEqual(
      before,
    );

    await cluster.clients.for(services).delete('default', assigned);
    await expect.poll(async () => (await having('PoolExhausted')).length).toBe(3);
  });
});
