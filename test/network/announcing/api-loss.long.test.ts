import { afterEach, describe, expect, it } from 'vitest';
import { AnnouncingCluster } from '../support/announcing.ts';
import { missingFor } from '../support/gate.ts';

const missing = missingFor('user');
const address = '192.0.2.200';

describe.skipIf(missing !== '')(
  `30 s without the API server${missing === '' ? '' : ` (missing: ${missing})`}`,
  () => {
    let cluster: AnnouncingCluster;
    afterEach(() => cluster.close());

    it.each([1, 3])('lose nothing with %i agents', async (count) => {
      cluster = await AnnouncingCluster.start(count);
      await cluster.service('web', [address]);
      cluster.startAgents();
      await cluster.settled();
      const owner = await cluster.owner(address);
      const away = cluster.watch(address, owner);
      for (const node of cluster.nodes) cluster.relay(node).cut();
      await expect.poll(() => away.seconds, { timeout: 90_000 }).toBeGreaterThan(30);
      for (const node of cluster.nodes) cluster.relay(node).mend();
      await cluster.settled();
      const { gap, owners } = await away.stop();
      expect(owners).toEqual([owner]);
      expect(gap).toBeLessThan(1000);
    });
  },
);
