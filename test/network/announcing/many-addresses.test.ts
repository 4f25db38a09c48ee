import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AnnouncingCluster } from '../support/announcing.ts';
import { missingFor } from '../support/gate.ts';

const missing = missingFor('user');
const count = 1000;
/** 192.0.16.0 and up: of named interfaces, pools need no subnet of the nodes. */
const addresses = Array.from(
  { length: count },
  (_, n) => `192.0.${16 + Math.floor(n / 250)}.${(n % 250) + 1}`,
);

describe.skipIf(missing !== '')(`1,000 addresses${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let cluster: AnnouncingCluster;
  beforeAll(async () => {
    cluster = await AnnouncingCluster.start(3);
    await cluster.pool('many', {
      addresses: ['192.0.16.0/22'],
      announce: { layer2: { interfaces: ['eth0'] } },
    });
    // A Service has one address of a family: all share one Service here, since only addresses count.
    await cluster.service('many', addresses);
    cluster.startAgents();
  });
  afterAll(() => cluster.close());

  it('are divided, a node that goes moves its share alone, and renewing them keeps the limits', async () => {
    await cluster.settled();
    const before = await cluster.announced();
    for (const own of before.values()) expect(own.length).toBeGreaterThan(count / 4);
    const [first = ''] = cluster.nodes;
    const versions = await cluster.versions();
    const begun = performance.now();
    await sleep(10_000);
    const seconds = (performance.now() - begun) / 1000;
    const writes = (await cluster.versions()) - versions;
    expect(writes / seconds / 3).toBeLessThanOrEqual(2);

    await cluster.label(first, { 'node.kubernetes.io/exclude-from-external-load-balancers': '' });
    await cluster.settled();
    const after = await cluster.announced();
    for (const [node, own] of before) {
      if (node !== first) expect(after.get(node)).toEqual(expect.arrayContaining([...own]));
    }
    expect(after.get(first)).toEqual([]);
    await cluster.label(first, { 'node.kubernetes.io/exclude-from-external-load-balancers': null });
  });

  it('never have two owners when an agent is killed, whose kernel ends some of them a second late', async () => {
    const [first = '', second = '', third = ''] = cluster.nodes;
    await cluster.label(third, { 'node.kubernetes.io/exclude-from-external-load-balancers': '' });
    const announced = async (node: string): Promise<readonly string[]> =>
      (await cluster.announced()).get(node) ?? [];
    await expect.poll(() => announced(third), { timeout: 60_000 }).toEqual([]);
    await cluster.settled();
    const own = await announced(first);
    expect(own.length).toBeGreaterThan(400);
    const some = own.filter((_, index) => index % 20 === 0);
    const before = await Promise.all(some.map((address) => cluster.history.holders(address)));
    await cluster.agent(first).signal('KILL');
    await expect.poll(() => announced(''), { timeout: 60_000 }).toEqual(own);
    const others = async (): Promise<number> =>
      [...(await cluster.announced())].reduce((sum, [node, had]) => sum + (node === '' ? 0 : had.length), 0);
    await expect.poll(others, { timeout: 60_000 }).toBe(count);
    for (const [index, address] of some.entries()) {
      const had = (await cluster.history.holders(address)).slice(before[index]?.length);
      expect(
        had.filter((holders) => holders.length > 1),
        address,
      ).toEqual([]);
      expect(had.at(-1), address).toEqual([second]);
    }
  });
});
