import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ForwardingPlanner } from '../../../../src/network/forwarding/planner.ts';
import type { ForwardingPlan } from '../../../../src/network/forwarding/forwarding-plan.ts';
import { NftablesWriter } from '../../../../src/node/nftables/writer.ts';
import { halves, listTable, withoutSlots } from '../../../network/support/table-listing.ts';
import { service } from '../../../network/support/objects.ts';
import { FakeNft } from '../../../support/fake-nft.ts';
import { input, many, node, options, state } from './samples.ts';
import { runs } from '../../../support/runs.ts';

/** The elements of a table, and what of it is not whole. */
async function contents(nft: FakeNft): Promise<{ elements: unknown; halves: readonly string[] }> {
  const listed = await listTable(nft.host, 'ip');
  return { elements: withoutSlots(listed), halves: halves(listed) };
}

/** The elements of a table that is made for a plan. */
async function elementsOf(plan: ForwardingPlan): Promise<unknown> {
  const nft = new FakeNft();
  await new NftablesWriter({ host: nft.host }).sync(plan);
  return (await contents(nft)).elements;
}

function planOf(...inputs: Parameters<ForwardingPlanner['apply']>[0]): ForwardingPlan {
  const planner = new ForwardingPlanner(node, options);
  planner.apply(inputs);
  return planner.plan;
}

describe('the writer of a table', () => {
  it('makes the next sync a whole one after a transaction that was refused', async () => {
    const nft = new FakeNft();
    const writer = new NftablesWriter({ host: nft.host });
    const planner = new ForwardingPlanner(node, options);
    planner.apply([many(0, 2, 0)]);
    await writer.sync(planner.plan);
    const before = nft.listing();

    planner.apply([many(0, 3, 1), many(1, 1, 0)]);
    nft.refuseNext('Error: Could not process rule: No buffer space available');
    await expect(writer.sync(planner.plan, ['shop/web-0', 'shop/web-1'])).rejects.toThrow(
      'No buffer space available',
    );
    expect(nft.listing()).toBe(before);

    await writer.sync(planner.plan, []);
    expect(await contents(nft)).toEqual({ elements: await elementsOf(planner.plan), halves: [] });
  });

  it('leaves Services whole wherever nft is killed, and the next sync does the rest', async () => {
    const plan = planOf(...Array.from({ length: 25 }, (_, number) => many(number, 100, 0)));
    const whole = new FakeNft();
    const { transactions } = await new NftablesWriter({ host: whole.host }).sync(plan);
    expect(transactions).toBeGreaterThan(5);
    const elements = await elementsOf(plan);
    for (let done = 0; done < transactions; done++) {
      const nft = new FakeNft();
      const writer = new NftablesWriter({ host: nft.host });
      nft.endAfter(done);
      await expect(writer.sync(plan)).rejects.toThrow('nft');
      expect(nft.transactions).toHaveLength(done);
      // The first one takes away what was there.
      if (done > 1) expect((await contents(nft)).halves).toEqual([]);
      await writer.sync(plan, []);
      expect(await contents(nft)).toEqual({ elements, halves: [] });
    }
  });

  it.each([
    ['an element', 'delete element ip servicenet service-ips { 10.96.0.1 . tcp . 80 }'],
    ['an endpoint', 'delete element ip servicenet cluster-endpoints { 10.96.0.1 . tcp . 80 . 0x00000001 }'],
    ['the rules of a chain', 'flush chain ip servicenet pick-cluster-3-masquerade-all-but-pods'],
    ['the rules of a hook', 'flush chain ip servicenet nat-prerouting'],
    ['all rules', 'flush table ip servicenet'],
    ['the table', 'delete table ip servicenet'],
    ['everything', 'flush ruleset'],
  ] as const)('restores what another client has taken away: %s', async (_, change) => {
    const nft = new FakeNft();
    const writer = new NftablesWriter({ host: nft.host });
    const plan = planOf(many(0, 3, 0));
    await writer.sync(plan);
    const before = nft.listing();
    nft.apply(change);
    expect(nft.listing()).not.toBe(before);
    // It looks at the kernel once an hour.
    expect(await writer.sync(plan, [])).toMatchObject({ elements: 0 });
    writer.invalidate();
    await writer.sync(plan);
    expect(nft.listing()).toBe(before);
  });

  it('takes away what another client has added', async () => {
    const nft = new FakeNft();
    const plan = planOf(many(0, 3, 0));
    const writer = new NftablesWriter({ host: nft.host });
    await writer.sync(plan);
    const before = nft.listing();
    nft.apply('add element ip servicenet service-ips { 10.96.0.9 . tcp . 80 : goto reject }');
    nft.apply('add element ip servicenet cluster-ips { 10.96.0.9 }');
    writer.invalidate();
    await writer.sync(plan);
    expect(nft.listing()).toBe(before);
  });

  it('fails where a change meets what another client has changed, and restores it then', async () => {
    const nft = new FakeNft();
    const writer = new NftablesWriter({ host: nft.host });
    const planner = new ForwardingPlanner(node, options);
    planner.apply([many(0, 3, 0)]);
    await writer.sync(planner.plan);
    nft.apply('delete element ip servicenet service-ips { 10.96.0.1 . tcp . 80 }');
    planner.apply([many(0, 2, 0)]);
    await expect(writer.sync(planner.plan, ['shop/web-0'])).rejects.toThrow('No such file or directory');
    await writer.sync(planner.plan, []);
    expect(await contents(nft)).toEqual({ elements: await elementsOf(planner.plan), halves: [] });
  });

  it('takes over the table of the process before it, with the slots that endpoints have there', async () => {
    const nft = new FakeNft();
    const planner = new ForwardingPlanner(node, options);
    const before = new NftablesWriter({ host: nft.host });
    planner.apply([many(0, 4, 0)]);
    await before.sync(planner.plan);
    planner.apply([many(0, 3, 1)]);
    // The last endpoint takes the slot of the first, which has gone.
    await before.sync(planner.plan);
    const maps = nft.listing({ table: 'ip servicenet', sets: ['cluster-endpoints', 'service-ips'] });
    const done = nft.transactions.length;

    // What is taken away is the chain for four endpoints.
    const after = new NftablesWriter({ host: nft.host });
    expect(await after.sync(planner.plan)).toEqual({ transactions: 1, elements: 0, former: [] });
    expect(nft.listing({ table: 'ip servicenet', sets: ['cluster-endpoints', 'service-ips'] })).toBe(maps);
    expect(nft.transactions).toHaveLength(done + 1);
    expect(nft.listing()).not.toContain('pick-cluster-4');
    expect(await new NftablesWriter({ host: nft.host }).sync(planner.plan)).toMatchObject({
      transactions: 0,
    });
    planner.apply([many(1, 1, 0)]);
    expect(await after.sync(planner.plan, ['shop/web-1'])).toMatchObject({ transactions: 2 });
  });

  it('takes away marks of endpoints that were left behind, and misses no endpoint for them', async () => {
    const nft = new FakeNft();
    const writer = new NftablesWriter({ host: nft.host });
    const web = many(0, 1, 0);
    const sticky = {
      ...web,
      service: service({ ...web.service?.spec, sessionAffinity: 'ClientIP' }, 'web-0'),
    };
    await writer.sync(planOf(sticky));
    const [mark = ''] =
      /10\.96\.0\.1 \. tcp \. 80 \. 0x00000000 : 0x\w+/.exec(
        nft.listing({ table: 'ip servicenet', sets: ['cluster-endpoint-marks'] }),
      ) ?? [];
    const plan = planOf(web);
    await writer.sync(plan, ['shop/web-0']);
    const before = nft.listing();
    nft.apply(`add element ip servicenet cluster-endpoint-marks { ${mark} }`);
    nft.apply('delete element ip servicenet cluster-endpoints { 10.96.0.1 . tcp . 80 . 0x00000000 }');
    writer.invalidate();
    await writer.sync(plan);
    expect(nft.listing()).toBe(before);
  });

  it('comes to the table that the plan describes, whatever has failed on the way', async () => {
    const fault = fc.oneof(
      fc.constant(undefined),
      fc.constant('refused' as const),
      fc.nat({ max: 3 }),
      fc.constant('restart' as const),
    );
    const step = fc.record({ states: fc.array(state, { maxLength: 3 }), fault });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
        const nft = new FakeNft();
        const planner = new ForwardingPlanner(node, options);
        let writer = new NftablesWriter({ host: nft.host });
        for (const { states, fault } of steps) {
          const touched = planner.apply(states.map(input)).map(({ key }) => key);
          if (fault === 'restart') writer = new NftablesWriter({ host: nft.host });
          if (fault === 'refused') nft.refuseNext('Error: Operation not permitted');
          if (typeof fault === 'number') nft.endAfter(fault);
          await writer.sync(planner.plan, touched).catch(() => undefined);
          nft.refuseNext(undefined);
          nft.endAfter(Number.POSITIVE_INFINITY);
          // The agent's next try.
          await writer.sync(planner.plan, []);
          expect(await contents(nft)).toEqual({ elements: await elementsOf(planner.plan), halves: [] });
        }
      }),
      { numRuns: runs(15, 60) },
    );
  });
});
