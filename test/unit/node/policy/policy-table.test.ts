import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { policyRules } from '../../../../src/network/policy/network-policy.ts';
import { PolicyIndex } from '../../../../src/network/policy/policy-index.ts';
import type { PolicyPlan } from '../../../../src/network/policy/policy-plan.ts';
import { Nft } from '../../../../src/node/nftables/nft.ts';
import { PolicyTable } from '../../../../src/node/policy/policy-table.ts';
import { joinKey } from '../../../../src/objects/meta.ts';
import { podOf, pods, policy, randomPolicy } from '../../network/policy/samples.ts';
import { FakeNft } from '../../../support/fake-nft.ts';

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** The listing of a table that is made for a plan. */
async function anew(plan: PolicyPlan): Promise<string> {
  const nft = new FakeNft();
  await new PolicyTable(new Nft(nft.host)).sync(plan);
  return nft.listing();
}

/** Every Pod is isolated. */
function isolatingPlan(): PolicyPlan {
  const index = new PolicyIndex('n1', hash);
  for (const each of pods) {
    index.setPod(joinKey(each.namespace, each.name), { pod: podOf(each), addresses: [each.address] });
  }
  index.setPolicy('x/deny', policyRules(policy({ ingress: [] }, 'x', 'deny')));
  index.setPolicy('y/deny', policyRules(policy({ ingress: [{ from: [{ podSelector: {} }] }] }, 'y', 'deny')));
  return index.plan();
}

describe('the table of policies', () => {
  it('is after any change, and after any failure, what it would be if it were made anew', async () => {
    const change = fc.oneof(
      fc.record({
        pod: fc.constantFrom(...pods),
        isThere: fc.boolean(),
        label: fc.constantFrom('a', 'b', 'c'),
      }),
      fc.record({ slot: fc.nat(3), policy: fc.option(randomPolicy, { nil: undefined }) }),
    );
    const fault = fc.constantFrom(undefined, undefined, 'refused', 'killed', 'restart');
    const step = fc.record({ changes: fc.array(change, { minLength: 1, maxLength: 6 }), fault });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 5 }), async (steps) => {
        const index = new PolicyIndex('n1', hash);
        const nft = new FakeNft();
        let table = new PolicyTable(new Nft(nft.host));
        for (const { changes, fault } of steps) {
          for (const each of changes) {
            if ('slot' in each) {
              const given = each.policy === undefined ? undefined : policyRules(each.policy);
              index.setPolicy(`x/p${each.slot}`, given);
            } else {
              const { namespace, name, address } = each.pod;
              const pod = podOf({ ...each.pod, labels: { pod: each.label } });
              index.setPod(
                joinKey(namespace, name),
                each.isThere ? { pod, addresses: [address] } : undefined,
              );
            }
          }
          const plan = index.plan();
          if (fault === 'restart') table = new PolicyTable(new Nft(nft.host));
          if (fault === 'refused') nft.refuseNext('Error: Operation not permitted');
          if (fault === 'killed') nft.endAfter(1);
          await table.sync(plan).catch(() => undefined);
          nft.refuseNext(undefined);
          nft.endAfter(Number.POSITIVE_INFINITY);
          // The agent's next try.
          await table.sync(plan);
          if (plan.chains.size > 0) expect(nft.listing()).toBe(await anew(plan));
          const again = new PolicyTable(new Nft(nft.host));
          expect(await again.sync(plan)).toEqual({ transactions: 0, commands: 0 });
        }
      }),
      { numRuns: 30 },
    );
  });

  it.each([
    ['an address', 'delete element inet servicenet-policy ingress-4 { 10.0.1.0 }'],
    ['the rules of a hook', 'flush chain inet servicenet-policy forward-ingress'],
    ['all rules', 'flush table inet servicenet-policy'],
    ['the table', 'delete table inet servicenet-policy'],
  ] as const)('restores what another client has taken away: %s', async (_, change) => {
    const nft = new FakeNft();
    const table = new PolicyTable(new Nft(nft.host));
    const plan = isolatingPlan();
    await table.sync(plan);
    const before = nft.listing();
    nft.apply(change);
    expect(nft.listing()).not.toBe(before);
    table.invalidate();
    await table.sync(plan);
    expect(nft.listing()).toBe(before);
  });
});
