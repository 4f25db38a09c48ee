import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { PlannedEndpoint } from '../../../../src/network/forwarding/forwarding-plan.ts';
import { assignSlots } from '../../../../src/node/nftables/programmed.ts';

const endpoints = fc
  .uniqueArray(fc.integer({ min: 0, max: 40 }), { maxLength: 30 })
  .map((numbers) => numbers.map((number): PlannedEndpoint => endpoint(number)));

function endpoint(number: number): PlannedEndpoint {
  return { address: `10.0.0.${number}`, port: 80, isLocal: false };
}

it('gives every endpoint one slot, and leaves those that stay where they are', () => {
  fc.assert(
    fc.property(endpoints, endpoints, (previous, next) => {
      const slots = assignSlots(previous, next);
      const addresses = (list: readonly PlannedEndpoint[]): string[] =>
        list.map(({ address }) => address).sort();
      expect(addresses(slots)).toEqual(addresses(next));
      const wanted = new Set(addresses(next));
      slots.forEach(({ address }, slot) => {
        const former = previous[slot]?.address;
        if (former !== undefined && wanted.has(former)) expect(address).toBe(former);
      });
    }),
  );
});

it('changes one slot when one of a thousand endpoints goes', () => {
  const previous = Array.from({ length: 1000 }, (_, number) => endpoint(number));
  const slots = assignSlots(
    previous,
    previous.filter((_, number) => number !== 3),
  );
  expect(slots.filter((held, slot) => held.address !== previous[slot]?.address)).toEqual([endpoint(999)]);
});
