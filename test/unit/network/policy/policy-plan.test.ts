import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressRanges, portRanges } from '../../../../src/network/policy/policy-plan.ts';
import { parseCidr } from '../../../../src/objects/address.ts';

const cidr = (text: string) => parseCidr(text) ?? expect.unreachable();

describe('addressRanges', () => {
  it.each([
    ['10.0.0.0/24', [], ['10.0.0.0-10.0.0.255']],
    ['10.0.0.0/24', ['10.0.0.0/25'], ['10.0.0.128-10.0.0.255']],
    ['10.0.0.0/24', ['10.0.0.4/30', '10.0.0.6/31'], ['10.0.0.0-10.0.0.3', '10.0.0.8-10.0.0.255']],
    ['10.0.0.0/24', ['10.0.0.0/8'], []],
    ['10.0.0.0/24', ['fd00::/8'], ['10.0.0.0-10.0.0.255']],
    ['0.0.0.0/0', ['255.255.255.255/32'], ['0.0.0.0-255.255.255.254']],
    ['fd00::/126', ['fd00::1/128'], ['fd00::-fd00::', 'fd00::2-fd00::3']],
  ])('%s without %j', (given, except, expected) => {
    expect(addressRanges(cidr(given), except.map(cidr))).toEqual(expected);
  });
});

describe('portRanges', () => {
  it('has every port of the ranges and no other, in ranges that do not touch', () => {
    const range = fc
      .record({
        protocol: fc.constantFrom('TCP' as const, 'UDP' as const),
        first: fc.nat(20),
        length: fc.nat(5),
      })
      .map(({ protocol, first, length }) => ({ protocol, first, last: first + length }));
    fc.assert(
      fc.property(fc.array(range, { maxLength: 6 }), (ranges) => {
        const merged = portRanges(ranges).map((text) => {
          const [protocol = '', ports = ''] = text.split(' ');
          const [first = 0, last = 0] = ports.split('-').map(Number);
          return { protocol: protocol.toUpperCase(), first, last };
        });
        for (const protocol of ['TCP', 'UDP']) {
          const own = merged.filter((each) => each.protocol === protocol);
          for (let port = 0; port < 30; port++) {
            const has = (list: readonly { protocol: string; first: number; last: number }[]): boolean =>
              list.some((each) => each.protocol === protocol && each.first <= port && port <= each.last);
            expect(has(merged)).toBe(has(ranges));
          }
          own.slice(1).forEach(({ first }, i) => expect(first).toBeGreaterThan((own[i]?.last ?? 0) + 1));
        }
      }),
    );
  });
});
