import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AnnouncingCluster } from '../support/announcing.ts';
import { missingFor } from '../support/gate.ts';
import { slowness } from '../../support/reference-time.ts';

const missing = missingFor('user');
/** 192.0.16.0 and up: of named interfaces, pools need no subnet of the nodes. */
const addresses = Array.from(
  { length: 1000 },
  (_, n) => `192.0.${16 + Math.floor(n / 250)}.${(n % 250) + 1}`,
);

describe.skipIf(missing !== '')(
  `agents of 1,000 addresses${missing === '' ? '' : ` (missing: ${missing})`}`,
  () => {
    let cluster: AnnouncingCluster;
    beforeAll(async () => {
      cluster = await AnnouncingCluster.start(3);
      await cluster.pool('many', {
        addresses: ['192.0.16.0/22'],
        announce: { layer2: { interfaces: ['eth0'] } },
      });
      await cluster.service('many', addresses);
      cluster.startAgents();
    });
    afterAll(() => cluster.close());

    it('take at most 1 % of a core, and 0.3 % for each 100 addresses of their own', async () => {
      await cluster.settled();
      const own = await cluster.announced();
      await sleep(10_000);
      const usage = (): Promise<readonly number[]> =>
        Promise.all(cluster.nodes.map(async (node) => (await cluster.agent(node).usage()).cpuMs));
      const before = await usage();
      const begun = performance.now();
      await sleep(30_000);
      const after = await usage();
      const elapsed = performance.now() - begun;
      for (const [index, node] of cluster.nodes.entries()) {
        const percent = (((after[index] ?? 0) - (before[index] ?? 0)) / slowness() / elapsed) * 100;
        expect(percent, node).toBeLessThanOrEqual(1 + (0.3 * (own.get(node)?.length ?? 0)) / 100);
      }
    });
  },
);
