import { describe, expect, test } from 'vitest';
import { addressRanges, freeRanges, rangesOfFamilies } from '../../../src/flags/addresses.ts';

describe('the default pool', () => {
  test.each<[readonly string[], readonly string[]]>([
    [
      ['127.0.0.1/8', '::1/128', '192.168.1.7/24'],
      ['192.0.2.0/24', '2001:db8::/64'],
    ],
    [['192.0.2.7/24'], ['198.51.100.0/24', '2001:db8::/64']],
    // A part of a range, and a network around one.
    [
      ['192.0.2.129/30', '198.51.0.1/16'],
      ['203.0.113.0/24', '2001:db8::/64'],
    ],
    [['192.0.2.1/32', '198.51.100.1/32', '203.0.113.1/32', '2001:db8::5/64'], ['2001:db8:1::/64']],
    [['10.0.0.1/8', '2001:db8::1/32'], ['192.0.2.0/24']],
  ])('on a machine with %j is %j', (networks, expected) => {
    expect(freeRanges(networks, ['IPv4', 'IPv6'])).toEqual(expected);
  });

  test('has only the families of the Services', () => {
    expect(freeRanges([], ['IPv6'])).toEqual(['2001:db8::/64']);
    expect(rangesOfFamilies(['192.0.2.0/24', '2001:db8::/64'], ['IPv4'])).toEqual(['192.0.2.0/24']);
  });

  test('is refused where it is no range', () => {
    expect(() => addressRanges(['300.1.1.1'])).toThrow('"300.1.1.1" is neither a CIDR nor a range');
  });
});
