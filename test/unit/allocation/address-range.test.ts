import { describe, expect, test } from 'vitest';
import { parseAddressRange, parseServiceCidr } from '../../../src/allocation/address-range.ts';
import { formatAddress } from '../../../src/objects/address.ts';

describe('parseAddressRange', () => {
  test.each([
    ['192.0.2.0/24', '192.0.2.0/24', 256n],
    ['192.0.2.10-192.0.2.19', '192.0.2.10-192.0.2.19', 10n],
    ['192.0.2.10 - 192.0.2.10', '192.0.2.10-192.0.2.10', 1n],
    ['2001:DB8::/64', '2001:db8::/64', 1n << 64n],
    ['2001:db8::-2001:db8::ff', '2001:db8::-2001:db8::ff', 256n],
    ['::/0', '::/0', 1n << 128n],
    ['10.0.0.1/32', '10.0.0.1/32', 1n],
  ])('%s', (text, canonical, size) => {
    const range = parseAddressRange(text);
    expect(range?.text).toBe(canonical);
    expect(range?.size).toBe(size);
  });

  test.each([
    '', '-', '10.0.0.1', '10.0.0.2-10.0.0.1', '10.0.0.1-::1', '10.0.0.1/8', '010.0.0.0/8', '10.0.0.01-10.0.0.9',
    '::ffff:10.0.0.0/104', '10.0.0.0/33', '10.0.0.1-10.0.0.2-10.0.0.3', '10.0.0.0/24-10.0.1.0/24', 'a-b',
  ])('refuses %j', (text) => {
    expect(parseAddressRange(text)).toBeUndefined();
  }); // prettier-ignore

  test('knows what overlaps', () => {
    const overlap = (a: string, b: string): boolean | undefined => {
      const other = parseAddressRange(b);
      return other === undefined ? undefined : parseAddressRange(a)?.overlaps(other);
    };
    expect(overlap('10.0.0.0/24', '10.0.0.255-10.0.1.3')).toBe(true);
    expect(overlap('10.0.0.0/24', '10.0.1.0/24')).toBe(false);
    expect(overlap('0.0.0.0/0', '::/0')).toBe(false);
  });
});

describe('parseServiceCidr', () => {
  // ipallocator (calculateRangeOffset): CIDR, band, first and last usable address.
  test.each([
    ['10.0.0.0/16', 256, '10.0.0.1', '10.0.255.254'],
    ['10.0.0.0/20', 256, '10.0.0.1', '10.0.15.254'],
    ['10.0.0.0/24', 16, '10.0.0.1', '10.0.0.254'],
    ['10.0.0.0/27', 16, '10.0.0.1', '10.0.0.30'],
    ['10.0.0.0/28', 0, '10.0.0.1', '10.0.0.14'],
    ['fd00::/120', 16, 'fd00::1', 'fd00::ff'],
    ['fd00::/112', 256, 'fd00::1', 'fd00::ffff'],
    ['fd00::/64', 256, 'fd00::1', 'fd00::ffff:ffff:ffff:ffff'],
  ])('%s keeps %d for explicit requests', (text, band, first, last) => {
    const cidr = parseServiceCidr(text);
    expect(cidr?.staticBand).toBe(band);
    const family = cidr?.usable.family ?? 'IPv4';
    expect(formatAddress(family, cidr?.usable.first ?? 0n)).toBe(first);
    expect(formatAddress(family, cidr?.usable.last ?? 0n)).toBe(last);
  });

  test('refuses what has no usable address', () => {
    for (const text of ['10.0.0.0/31', '10.0.0.0/32', 'fd00::1/128', '10.0.0.1-10.0.0.9', 'x']) {
      expect(parseServiceCidr(text)).toBeUndefined();
    }
    expect(parseServiceCidr('fd00::/127')?.usable.size).toBe(1n);
  });
});

test.each([
  ['192.0.2.0-192.0.2.255', ['192.0.2.0/24']],
  ['192.0.2.10-192.0.2.20', ['192.0.2.10/31', '192.0.2.12/30', '192.0.2.16/30', '192.0.2.20/32']],
  ['0.0.0.0-255.255.255.255', ['0.0.0.0/0']],
  ['2001:db8::-2001:db8::2', ['2001:db8::/127', '2001:db8::2/128']],
])('%s has the CIDRs %j', (text, cidrs) => {
  expect(parseAddressRange(text)?.cidrs()).toEqual(cidrs);
});
