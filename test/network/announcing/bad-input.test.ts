import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/client/clock.ts';
import { InformerFactory } from '../../../src/client/informers/informer-factory.ts';
import { ResourceClient } from '../../../src/client/resource-client.ts';
import { bgpPeers, leases } from '../../../src/client/resources.ts';
import { announceSelectors } from '../../../src/network/announcing/announcer-lease.ts';
import { AnnounceAgent } from '../../../src/node/announce/announce-agent.ts';
import { Metrics } from '../../../src/telemetry/metrics.ts';
import { AnnouncingCluster } from '../support/announcing.ts';
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
    const owner = await first.owner(address);
    const second = await first.other('node-3');
    closing.push(() => second.close());
    await second.service('web', [address]);
    await second.service('own', ['192.0.2.201']);
    second.startAgent('node-3');
    await expect.poll(() => second.refused()).toEqual([`${address} AddressConflict`]);
    await expect.poll(() => second.whoAnswers('192.0.2.201')).toBe('node-3');
    expect(await first.whoAnswers(address)).toBe(owner);
    expect((await first.history.holders(address)).flat()).not.toContain('node-3');
    expect(await first.refused()).toEqual([]);
  });

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
        ...{ leaseNamespace: 'kube-system', onAPILoss: 'hold', restartGrace: 0, heartbeatPort: 10_262 },
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
