import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EgressPlan } from '../../../../src/network/egress/egress-plan.ts';
import { EgressTable } from '../../../../src/node/egress/egress-table.ts';
import { defaultMarkMask } from '../../../../src/node/nftables/marks.ts';
import { Nft } from '../../../../src/node/nftables/nft.ts';
import { FakeNft } from '../../../support/fake-nft.ts';

const numbers = new Map([
  ['node-2', 1],
  ['node-3', 2],
  ['node-4', 3],
]);

function tableOf({ host }: FakeNft): EgressTable {
  return new EgressTable(new Nft(host), defaultMarkMask);
}

const pod = fc.constantFrom('10.244.1.2', '10.244.1.3', '10.244.1.4', 'fd00:244:1::2');
const nodes = fc.uniqueArray(fc.constantFrom('node-2', 'node-3', 'node-4'), { minLength: 1 });
const plan = fc
  .record({
    leave: fc.uniqueArray(fc.tuple(pod, nodes), { selector: ([address]) => address }),
    inside: fc.uniqueArray(
      fc.constantFrom('10.244.0.0/16', '10.244.1.0/24', 'fd00:244::/32', '192.0.2.1/32'),
    ),
    sources: fc.uniqueArray(fc.tuple(pod, fc.constantFrom(7, 8)), { selector: ([address]) => address }),
  })
  .map(({ leave, inside, sources }): EgressPlan => ({
    leave: new Map(leave.map(([address, by]) => [address, by.toSorted()])),
    sources: new Map(
      sources.map(([address, last]) => [
        address,
        address.includes(':') ? `2001:db8::${last}` : `192.0.2.${last}`,
      ]),
    ),
    inside: inside.toSorted(),
    marks: new Map(),
    standbys: new Map(),
  }));

describe('the table of egress', () => {
  it('is after any change, and after any failure, what it would be if it were made anew', async () => {
    const fault = fc.constantFrom(undefined, undefined, 'refused', 'killed', 'restart');
    const steps = fc.array(fc.record({ plan, fault }), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const nft = new FakeNft();
        let table = tableOf(nft);
        for (const { plan, fault } of all) {
          if (fault === 'restart') table = tableOf(nft);
          if (fault === 'refused') nft.refuseNext('Error: Operation not permitted');
          if (fault === 'killed') nft.endAfter(1);
          await table.sync(plan, numbers).catch(() => table.invalidate());
          nft.refuseNext(undefined);
          nft.endAfter(Number.POSITIVE_INFINITY);
          // The agent's next try.
          await table.sync(plan, numbers);
          const anew = new FakeNft();
          await tableOf(anew).sync(plan, numbers);
          expect(nft.listing()).toBe(anew.listing());
        }
      }),
      { numRuns: 30 },
    );
  });

  it('writes nothing for a plan that it has written, and takes the table away when there is nothing to do', async () => {
    const nft = new FakeNft();
    const table = tableOf(nft);
    const some: EgressPlan = {
      leave: new Map([['10.244.1.2', ['node-2']]]),
      sources: new Map(),
      inside: ['10.244.0.0/16'],
      marks: new Map(),
      standbys: new Map(),
    };
    await table.sync(some, numbers);
    const done = nft.transactions.length;
    await table.sync(some, numbers);
    expect(nft.transactions).toHaveLength(done);
    // Also one that a former process has left.
    await tableOf(nft).sync({ ...some, leave: new Map() }, numbers);
    expect(nft.listing()).toBe('');
  });
});
