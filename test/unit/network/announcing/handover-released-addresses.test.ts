import { expect, test } from 'vitest';
import { ReleasedAddresses } from '../../../../src/network/announcing/handover.ts';

const held = { acquired: 'then' };
const givenBack = { acquired: undefined };

test('what an agent announced is released when its Lease is given back or gone, and for some seconds', () => {
  for (const lease of [givenBack, undefined]) {
    const released = new ReleasedAddresses();
    released.observe('a', held, ['192.0.2.1'], 0);
    expect(released.has('192.0.2.1', 10)).toBe(false);
    released.observe('a', lease, ['192.0.2.1'], 10);
    expect(['192.0.2.1', '192.0.2.2'].map((address) => released.has(address, 20))).toEqual([true, false]);
    // The same Lease again, as a watch that begins anew reports it, prolongs nothing.
    released.observe('a', lease, ['192.0.2.1'], 4000);
    expect([5000, 5011, 5020].map((now) => released.has('192.0.2.1', now))).toEqual([true, false, false]);
  }
});

test('a Lease that was given back before it was seen releases nothing: how long ago that was is unknown', () => {
  const released = new ReleasedAddresses();
  released.observe('a', givenBack, ['192.0.2.1'], 0);
  expect(released.has('192.0.2.1', 1)).toBe(false);
});
