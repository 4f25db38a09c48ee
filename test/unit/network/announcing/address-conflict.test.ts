import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { announcerMac, keepsForMs } from '../../../../src/network/announcing/address-conflict.ts';

const octet = fc.integer({ min: 0, max: 255 }).map((one) => one.toString(16).padStart(2, '0'));
/** Of interfaces: the group bit is not set. */
const mac = fc
  .tuple(fc.integer({ min: 0, max: 127 }), fc.array(octet, { minLength: 5, maxLength: 5 }))
  .map(([first, rest]) => [(first * 2).toString(16).padStart(2, '0'), ...rest].join(':'));

describe('keepsForMs', () => {
  it('says of two agents that one lets go at the second look and the other one long after, whichever MAC addresses they see', () => {
    fc.assert(
      fc.property(mac, mac, (a, b) => {
        fc.pre(a.slice(3) !== b.slice(3));
        const both = (one: string): readonly string[] => [one, announcerMac(one)];
        const times = both(a).flatMap((ofA) =>
          both(b).map((ofB) => [keepsForMs(a, ofB, false), keepsForMs(b, ofA, false)]),
        );
        const winner = a.slice(3) < b.slice(3);
        expect(times).toEqual(times.map(() => (winner ? [60_000, 2000] : [2000, 60_000])));
      }),
    );
  });

  it('waits for a node of the same cluster as long as one may have an address that it has left', () => {
    expect(keepsForMs('02:00:00:00:00:01', '02:00:00:00:00:02', true)).toBe(10_000);
    expect(keepsForMs('02:00:00:00:00:02', '02:00:00:00:00:01', true)).toBe(10_000);
  });
});

describe('announcerMac', () => {
  it.each([
    ['00:11:22:33:44:55', '06:11:22:33:44:55'],
    ['02:42:ac:11:00:02', '06:42:ac:11:00:02'],
    ['06:42:ac:11:00:02', '02:42:ac:11:00:02'],
    ['fc:00:00:00:00:01', 'fa:00:00:00:00:01'],
  ])('of %s is %s: locally administered, and of one machine', (of, expected) => {
    expect(announcerMac(of)).toBe(expected);
  });
});
