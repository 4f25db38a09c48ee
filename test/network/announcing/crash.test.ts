import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { gapTimeout } from '../support/address-watch.ts';
import { AnnouncingCluster } from '../support/announcing.ts';
import { listAt, numberAt, textAt } from '../../../src/objects/json.ts';
import { missingFor, missingProgram } from '../support/gate.ts';
import { endpointSlice } from '../support/objects.ts';

const missing = [missingFor('user'), missingProgram('arping', 'iputils-arping')]
  .filter((what) => what !== '')
  .join(', ');
const address = '192.0.2.200';
/** Milliseconds: what the documents promise. */
const crashLimit = 3000;

/** What fails, and how it is whole again. */
interface Crash {
  readonly of: string;
  /** The agent lives, and has the API server. */
  readonly movesAway?: boolean;
  readonly crash: (cluster: AnnouncingCluster, owner: string) => Promise<void>;
  readonly mend: (cluster: AnnouncingCluster, owner: string) => Promise<void>;
}

const crashes: readonly Crash[] = [
  {
    of: 'an agent by SIGKILL',
    crash: (cluster, owner) => cluster.agent(owner).send('KILL'),
    mend: async (cluster, owner) => {
      cluster.startAgent(owner);
      return Promise.resolve();
    },
  },
  {
    of: 'an agent that hangs (SIGSTOP)',
    crash: (cluster, owner) => cluster.agent(owner).send('STOP'),
    mend: (cluster, owner) => cluster.agent(owner).send('CONT'),
  },
  {
    of: 'the link to the LAN',
    movesAway: true,
    crash: (cluster, owner) => cluster.plug(owner, false),
    mend: (cluster, owner) => cluster.plug(owner, true),
  },
  {
    of: 'the link to the API server',
    crash: async (cluster, owner) => {
      cluster.relay(owner).cut();
      return Promise.resolve();
    },
    mend: async (cluster, owner) => {
      cluster.relay(owner).mend();
      return Promise.resolve();
    },
  },
];

describe.skipIf(missing !== '')(`a crash${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let cluster: AnnouncingCluster;
  let owner: string;
  beforeAll(async () => {
    cluster = await AnnouncingCluster.start(3);
    await cluster.service('web', [address]);
    cluster.startAgents();
  });
  beforeEach(async () => {
    await cluster.settled();
    owner = await cluster.owner(address);
  });
  afterAll(() => cluster.close());

  it.each(crashes)(
    'of $of moves its address within 3 s, once, and never has two owners; what is mended gets it back by a planned move',
    async ({ crash, mend, movesAway = false }) => {
      expect(await cluster.holders(address)).toEqual([owner]);
      const before = (await cluster.history.holders(address)).length;
      const watch = cluster.watch(address, owner, gapTimeout);
      const macs = await cluster.watchMacs(address);
      await crash(cluster, owner);
      await expect.poll(() => watch.owners.length).toBe(2);
      const next = await cluster.owner(address);
      await expect.poll(() => cluster.holders(address)).toEqual([next]);
      const { gap, owners } = await watch.stop();
      expect(owners).toEqual([owner, next]);
      expect(gap).toBeLessThan(crashLimit);
      await expect.poll(() => macs.answerers()).toEqual([owner, next]);
      await macs.stop();
      // As the kernels had it. An agent that has lost the LAN alone moves its addresses, unheard by others.
      const had = (await cluster.history.holders(address)).slice(before);
      expect(had.at(-1)).toEqual([next]);
      if (!movesAway) expect(had).toEqual([[], [next]]);

      const back = cluster.watch(address, owner);
      await mend(cluster, owner);
      // The highest hash wins again.
      await expect.poll(() => back.owners.at(-1)).toBe(owner);
      await expect.poll(() => cluster.holders(address)).toEqual([owner]);
      expect((await back.stop()).failedTwice).toBe(0);
    },
  );

  it.each(crashes.slice(1).filter(({ movesAway }) => movesAway !== true))(
    'of $of leaves the address that no other node can have',
    async ({ crash, mend }) => {
      const alone = '192.0.2.201';
      const holder = 'node-2';
      await cluster.service('alone', [alone], { externalTrafficPolicy: 'Local' });
      await cluster.cluster.slice(
        endpointSlice('IPv4', [{ address: '10.244.2.2', node: holder }], 8080, 'alone'),
      );
      // Until it has its longer lifetime.
      const lifetime = async (): Promise<number> => {
        const { stdout } = await cluster.ip(holder, '-json', 'address', 'show', 'to', alone);
        const links: unknown = JSON.parse(stdout);
        const [link] = listAt({ links }, 'links').filter((each) => listAt(each, 'addr_info').length > 0);
        return numberAt(listAt(link, 'addr_info')[0], 'valid_life_time');
      };
      await expect.poll(lifetime, { timeout: 60_000 }).toBeGreaterThan(10);
      const before = (await cluster.history.holders(alone)).length;
      await crash(cluster, holder);
      // Others have given its Lease back, and so would have taken it.
      const isReleased = async (): Promise<boolean> =>
        (await cluster.leases()).some(
          (lease) =>
            textAt(lease, 'metadata', 'name') === `announcer.${holder}` &&
            textAt(lease, 'spec', 'holderIdentity') === '',
        );
      await expect.poll(isReleased, { timeout: 60_000 }).toBe(true);
      expect(await cluster.holders(alone)).toEqual([holder]);
      expect(await cluster.whoAnswers(alone)).toBe(holder);
      await mend(cluster, holder);
      await cluster.settled();
      expect((await cluster.history.holders(alone)).slice(before)).toEqual([]);
      await cluster.remove('alone', [alone]);
    },
  );
});
