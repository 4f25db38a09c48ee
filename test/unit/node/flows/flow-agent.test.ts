import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cidrContains } from '../../../../src/network/forwarding/node-plan.ts';
import { disjoint } from '../../../../src/node/flows/flow-agent.ts';
import { formatAddress, parseCidr } from '../../../../src/objects/address.ts';

test('ranges of other nodes are told once, without what another one holds', () => {
  const texts = ['10.244.2.0/24', '192.0.2.12', '10.244.2.9', '192.0.2.12', 'fd00::/64', 'fd00::7', 'none'];
  expect(disjoint(texts).toSorted()).toEqual(['10.244.2.0/24', '192.0.2.12/32', 'fd00::/64']);
});

test('they hold the same addresses, and none of them two', () => {
  const range = fc
    .tuple(fc.integer({ min: 0, max: 63 }), fc.integer({ min: 26, max: 32 }))
    .map(
      ([last, length]) =>
        parseCidr(`${formatAddress('IPv4', 0x0a000000n + BigInt(last))}/${length}`)?.canonical ?? '',
    );
  fc.assert(
    fc.property(fc.array(range, { maxLength: 12 }), (texts) => {
      const kept = disjoint(texts).flatMap((text) => parseCidr(text) ?? []);
      const given = texts.flatMap((text) => parseCidr(text) ?? []);
      for (let value = 0x0a000000n; value < 0x0a000040n; value++) {
        const holds = (ranges: typeof given) =>
          ranges.filter((each) => cidrContains(each, { family: 'IPv4', value }));
        expect(holds(kept)).toHaveLength(holds(given).length === 0 ? 0 : 1);
      }
    }),
  );
});
