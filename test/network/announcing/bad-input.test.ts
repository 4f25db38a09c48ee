import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/client/clock.ts';
import { InformerFactory } from '../../../src/client/informers/shared-informer.ts';
import { ResourceClient } from '../../../src/client/resource-client.ts';
import { bgpPeers, leases } from '../../../src/client/resources.ts';
import { announceSelectors } from '../../../src/network/announcing/agent-report.ts';
import { AnnounceAgent } from '../../../src/node/announce/agent.ts';
import { Metrics } from '../../../src/telemetry/metrics.ts';
import { AnnouncingCluster } from '../support/announcing.ts';
import { defaultLeaseTimes } from '../../../src/network/announcing/fence.ts';
import { missingFor } from '../support/gate.ts';

const missing = missingFor('user');
const address = '192.0.2.200';
const day = 86_400_000;

describe.skipIf(missing !== '')(`announcing${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  it('leaves an address to another cluster that announces it first, and says so; nothing else stops', async () => {
    const first = await AnnouncingCluster.start(3);
    closing.push(() => first.close());
    await first.service('web', [address]);
    for (const node of ['node-1', 'node-2']) first.startAgent(node);
    await first.owner(address);
    const second = await first.other('node-3');
    closing.push(() => second.close());
    await second.service('web', [address]);
    await second.service('own', ['192.0.2.201']);
    second.startAgent('node-3');
    await expect.poll(() => second.refused()).toEqual([`${address} AddressConflict`]);
    await expect.poll(() => second.whoAnswers('192.0.2.201')).toBe('node-3');
    // It may have moved since, to the agent that began later.
    expect(['node-1', 'node-2']).toContain(await first.owner(address));
    expect((await first.history.holders(address)).flat()).not.toContain('node-3');
    expect(await first.refused()).toEqual([]);
  });

  it('leaves an address that two clusters take at once to the node with the lower MAC address; the other one says so', async () => {
    const first = await AnnouncingCluster.start(2);
    closing.push(() => first.close());
    const second = await first.other('node-2');
    closing.push(() => second.close());
    await first.separate(['node-1', 'node-2'], true);
    const addresses = [address, '2001:db8::f200'];
    for (const [cluster, node] of [[first, 'node-1'] as const, [second, 'node-2'] as const]) {
      await cluster.service('web', addresses);
      cluster.startAgent(node);
    }
    for (const one of addresses) await expect.poll(() => first.holders(one)).toEqual(['node-1', 'node-2']);
    await first.separate(['node-1', 'node-2'], false);

    const order = async (node: string): Promise<string> => (await first.mac(node)).slice(3);
    const isFirst = (await order('node-1')) < (await order('node-2'));
    const winner = isFirst ? 'node-1' : 'node-2';
    for (const one of addresses) await expect.poll(() => first.holders(one)).toEqual([winner]);
    const [keeping, leaving] = isFirst ? [first, second] : [second, first];
    await expect
      .poll(() => leaving.refused())
      .toEqual(addresses.map((one) => `${one} AddressConflict`).toSorted());
    // It has announced them again.
    for (const one of addresses) await expect.poll(() => first.whoAnswers(one)).toBe(winner);
    // Longer than the next look at both.
    await sleep(5000);
    for (const one of addresses) {
      expect(await first.holders(one)).toEqual([winner]);
      expect((await first.history.holders(one)).at(-1)).toEqual([winner]);
    }
    expect(await keeping.refused()).toEqual([]);
  });

  it('says which addresses of pools are the node’s own or its router’s before a Service has one', async () => {
    const cluster = await AnnouncingCluster.start(1);
    closing.push(() => cluster.close());
    cluster.startAgent('node-1');
    await expect.poll(() => cluster.announced()).toEqual(new Map([['node-1', []]]));
    expect(await cluster.refused()).toEqual([]);
    await cluster.pool('overlapping', {
      addresses: ['192.0.2.1-192.0.2.20', '2001:db8::/120'],
      exclude: ['2001:db8::b-2001:db8::ff'],
    });
    await expect
      .poll(() => cluster.refused())
      .toEqual(['192.0.2.11 NodeAddress', '192.0.2.2 GatewayAddress', '2001:db8::2 GatewayAddress']);
  });

  it('lets an announced address go that another machine takes, says so, and takes it again when it is free', async () => {
    const cluster = await AnnouncingCluster.start(2);
    closing.push(() => cluster.close());
    await cluster.service('web', [address]);
    await cluster.service('beside', ['192.0.2.201']);
    // The other machine runs no agent.
    cluster.startAgent('node-1');
    await expect.poll(() => cluster.holders(address)).toEqual(['node-1']);
    await cluster.ip('node-2', 'link', 'set', 'eth0', 'address', '02:00:00:00:00:01');
    await cluster.ip('node-2', 'address', 'add', `${address}/32`, 'dev', 'eth0');
    await expect.poll(() => cluster.holders(address)).toEqual(['node-2']);
    await expect.poll(() => cluster.refused()).toEqual([`${address} AddressConflict`]);
    expect(await cluster.holders('192.0.2.201')).toEqual(['node-1']);
    await cluster.ip('node-2', 'address', 'del', `${address}/32`, 'dev', 'eth0');
    await expect.poll(() => cluster.holders(address)).toEqual(['node-1']);
    await expect.poll(() => cluster.refused()).toEqual([]);
  }, 240_000);

  it('goes on while clocks of nodes jump by a day, forth and back', async () => {
    const cluster = await AnnouncingCluster.start(2);
    closing.push(() => cluster.close());
    await cluster.service('web', [address]);
    const jumps = new Map(cluster.nodes.map((node) => [node, 0]));
    const stopping = new AbortController();
    const running = cluster.nodes.map(async (nodeName) => {
      const clock: Clock = { ...systemClock, now: () => systemClock.now() + (jumps.get(nodeName) ?? 0) };
      const log = pino({ enabled: false });
      const metrics = new Metrics();
      const transport = cluster.cluster.server.client;
      const common = { clock, random: Math.random, log, metrics };
      const informers = new InformerFactory({ ...common, transport, labelSelectors: announceSelectors });
      const agent = new AnnounceAgent({
        ...{ context: { ...common, informers }, nodeName, host: cluster.machine(nodeName).host },
        ...{
          leases: new ResourceClient(transport, leases),
          bgpPeers: new ResourceClient(transport, bgpPeers),
        },
        ...{
          leaseNamespace: 'kube-system',
          onAPILoss: 'hold',
          ...{ restartGraceSeconds: 0, lease: defaultLeaseTimes },
          heartbeatPort: 10_262,
        },
      });
      const following = new AbortController();
      informers.start(following.signal);
      await agent.run(stopping.signal);
      following.abort();
      await informers.finished();
    });
    closing.push(async () => {
      stopping.abort();
      await Promise.all(running);
    });
    await cluster.settled();
    const owner = await cluster.owner(address);
    const before = await cluster.history.holders(address);
    const watch = cluster.watch(address, owner);
    for (const jump of [day, -day]) {
      for (const node of cluster.nodes) {
        jumps.set(node, jump);
        // Longer than a Lease lasts.
        await sleep(3000);
      }
    }
    expect((await watch.stop()).owners).toEqual([owner]);
    expect(await cluster.history.holders(address)).toEqual(before);
  });
});
