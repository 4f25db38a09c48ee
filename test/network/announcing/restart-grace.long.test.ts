import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AnnouncingCluster } from '../support/announcing.ts';
import { missingFor } from '../support/gate.ts';

const missing = missingFor('user');
const address = '192.0.2.200';
/** Milliseconds: less than any address that was let go is away, more than a busy machine takes to answer. */
const noticeable = 1000;

describe.skipIf(missing !== '')(
  `an address that outlives the only agent${missing === '' ? '' : ` (missing: ${missing})`}`,
  () => {
    let cluster: AnnouncingCluster;
    beforeEach(async () => {
      cluster = await AnnouncingCluster.start(2);
      await cluster.service('web', [address]);
    });
    afterEach(() => cluster.close());

    /** Ends the agent of node-1 in order, which has the address, and starts that of node-2. */
    async function replace(grace: string): Promise<void> {
      cluster.startAgent('node-1', '--restart-grace', grace);
      await expect.poll(() => cluster.holders(address), { timeout: 60_000 }).toEqual(['node-1']);
      await expect.poll(() => cluster.owner(address)).toBe('node-1');
      const { exitCode, stderr } = await cluster.agent('node-1').signal('TERM');
      expect(exitCode, stderr).toBe(0);
      cluster.startAgent('node-2');
      const isThere = async (): Promise<boolean> => (await cluster.announced()).has('node-2');
      await expect.poll(isThere).toBe(true);
    }

    it('stays where it is while another node has an agent, until its own comes back', async () => {
      await replace('60s');
      const watch = cluster.watch(address, 'node-1');
      await sleep(6000);
      expect(await cluster.holders(address)).toEqual(['node-1']);
      cluster.startAgent('node-1');
      await cluster.settled();
      const { gap, failedTwice } = await watch.stop();
      expect(failedTwice).toBe(0);
      expect(gap).toBeLessThan(noticeable);
    }, 300_000);

    /** Waits until node-2 has the address: until then node-1 has it, or none does. */
    async function takenOver(): Promise<void> {
      const seen: (readonly string[])[] = [];
      await expect
        .poll(
          async () => {
            const holders = await cluster.holders(address);
            seen.push(holders);
            return holders;
          },
          { timeout: 120_000, interval: 50 },
        )
        .toEqual(['node-2']);
      expect(seen.filter((holders) => holders.length > 1)).toEqual([]);
      expect(seen).toContainEqual(['node-1']);
      expect(await cluster.owner(address)).toBe('node-2');
    }

    it('is taken over when the time is over, and never has two owners', async () => {
      await replace('30s');
      await takenOver();
    }, 300_000);

    it('neither has two where the other node had an agent all the time, and becomes eligible then', async () => {
      const excluded = 'node.kubernetes.io/exclude-from-external-load-balancers';
      await cluster.label('node-2', { [excluded]: '' });
      cluster.startAgent('node-1', '--restart-grace', '30s');
      cluster.startAgent('node-2');
      await expect.poll(() => cluster.holders(address), { timeout: 60_000 }).toEqual(['node-1']);
      const isThere = async (): Promise<boolean> => (await cluster.announced()).has('node-2');
      await expect.poll(isThere).toBe(true);
      const ended = cluster.agent('node-1').signal('TERM');
      // The Lease is given back, and says what stays.
      const isLeaving = async (): Promise<boolean> => (await cluster.announced()).has('');
      await expect.poll(isLeaving).toBe(true);
      await cluster.label('node-2', { [excluded]: null });
      const { exitCode, stderr } = await ended;
      expect(exitCode, stderr).toBe(0);
      await takenOver();
    }, 300_000);
  },
);
