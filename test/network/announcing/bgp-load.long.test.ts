import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AnnouncingCluster } from '../support/announcing.ts';
import { Bird, birdRoutes } from '../support/bird.ts';
import { missingFor, missingProgram } from '../support/gate.ts';
import { slowness } from '../../support/reference-time.ts';

const missing = [missingFor('user'), missingProgram('bird', 'bird2')]
  .filter((what) => what !== '')
  .join(', ');

const addresses = 10_000;

describe.skipIf(missing !== '')(`an agent with BGP${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let cluster: AnnouncingCluster;

  beforeAll(async () => {
    cluster = await AnnouncingCluster.start(1);
    const { outside } = cluster.cluster.network;
    await Bird.start(
      outside,
      `protocol bgp node1 { local as 64513; neighbor 192.0.2.11 as 64512; ipv4 { import all; export none; }; }`,
    );
    await cluster.pool('routed', { addresses: ['10.200.0.0/16'], announce: { bgp: {} } });
    await cluster.cluster.send('POST', '/apis/servicenet.dev/v1alpha1/bgppeers', {
      ...{ apiVersion: 'servicenet.dev/v1alpha1', kind: 'BGPPeer', metadata: { name: 'router' } },
      spec: { myASN: 64512, peerASN: 64513, peerAddress: outside.addresses.IPv4, holdTime: '3s' },
    });
    for (let n = 0; n < addresses; n++)
      await cluster.service(`s-${n}`, [`10.200.${Math.floor(n / 250)}.${(n % 250) + 1}`], {
        allocateLoadBalancerNodePorts: false,
      });
  });
  afterAll(() => cluster.close());

  it(`takes at most 1 % of a core and 0.3 % for each 100 of ${addresses} addresses`, async () => {
    const agent = cluster.startAgent('node-1');
    await expect.poll(async () => (await birdRoutes(cluster.cluster.network.outside)).size).toBe(addresses);
    // The start is over.
    await sleep(5000);
    const before = await agent.usage();
    const began = performance.now();
    await sleep(20_000);
    const { cpuMs } = await agent.usage();
    const share = (cpuMs - before.cpuMs) / slowness() / (performance.now() - began);
    expect(share).toBeLessThan(0.01 + (0.003 * addresses) / 100);
  });
});
