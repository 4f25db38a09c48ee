import fc from 'fast-check';
import { isIP } from 'node:net';
import { describe, expect, test } from 'vitest';
import { formatAddress, parseAddress, parseCidr, parseStrictAddress } from '../../../src/objects/address.ts';

/** Text, canonical form, flags: z = leading zeros, m = IPv4-mapped. */
const addresses: [string, string, string][] = [
  ['10.96.0.1', '10.96.0.1', ''],
  ['255.255.255.255', '255.255.255.255', ''],
  ['0.0.0.0', '0.0.0.0', ''],
  ['010.96.001.034', '10.96.1.34', 'z'],
  ['010.001.000.007', '10.1.0.7', 'z'],
  ['10.1.0.0000000000000008', '10.1.0.8', 'z'],
  ['::', '::', ''],
  ['::1', '::1', ''],
  ['1::', '1::', ''],
  ['FD00:0::1', 'fd00::1', ''],
  ['fd00:0010:0096:0000:0000:0000:0000:0001', 'fd00:10:96::1', ''],
  ['fd00:00010::1', 'fd00:10::1', 'z'],
  ['00000::1', '::1', 'z'],
  ['fd00::000000001', 'fd00::1', 'z'],
  ['2001:db8:0:1:0:0:0:1', '2001:db8:0:1::1', ''],
  ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1', ''],
  ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1', ''],
  ['1:0:0:2:0:0:0:3', '1:0:0:2::3', ''],
  ['64:ff9b::192.0.2.33', '64:ff9b::c000:221', ''],
  ['64:ff9b::192.0.2.033', '64:ff9b::c000:221', 'z'],
  ['::ffff:10.96.1.35', '10.96.1.35', 'm'],
  ['::ffff:a60:123', '10.96.1.35', 'm'],
  ['0:0:0:0:0:ffff:010.0.0.1', '10.0.0.1', 'zm'],
];

const notAddresses = [
  '', 'any', 'none', 'myip', '10.96.1', '10.96.1.33/32', ' 10.96.1.33', '10.96.1.33 ', '10.1.0.256', '1.2.3.4.5',
  '0x7f.0.0.1', '1.2.3.-4', '1.2.3.', '.1.2.3', '1..2.3', '1.2.3.4\n', '１.2.3.4', 'fe80::1%eth0', '1::2::3', ':', ':::',
  '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7::8:9', '10000::', 'g::1', '::1.2.3', '::1.2.3.4.5', '1.2.3.4::',
  '::256.0.0.1', '[::1]', '::1/128', ':1:2:3:4:5:6:7', '1:2:3:4:5:6:7:', '0'.repeat(300) + '::1',
]; // prettier-ignore

describe('parseAddress', () => {
  test.each(addresses)('%s is %s', (text, canonical, flags) => {
    const parsed = parseAddress(text);
    expect(parsed?.canonical).toBe(canonical);
    expect(parsed?.family).toBe(canonical.includes(':') ? 'IPv6' : 'IPv4');
    expect(`${parsed?.leadingZeros === true ? 'z' : ''}${parsed?.ipv4Mapped === true ? 'm' : ''}`).toBe(
      flags,
    );
    expect(parseStrictAddress(text)?.canonical).toBe(flags === '' ? canonical : undefined);
  });

  test.each(notAddresses)('%j is refused', (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });

  test('what it formats it reads back as the same value', () => {
    fc.assert(
      fc.property(
        fc.bigInt(0n, (1n << 128n) - 1n),
        fc.array(fc.integer({ min: 0, max: 7 })),
        (random, zeroed) => {
          let value = random;
          for (const group of zeroed) value &= ~(0xffffn << BigInt(group * 16));
          const text = formatAddress('IPv6', value);
          const parsed = parseAddress(text);
          expect(isIP(text)).toBe(6);
          expect(parsed?.canonical).toBe(value >> 32n === 0xffffn ? text.slice(7) : text);
          if (parsed?.family === 'IPv6') expect(parsed.value).toBe(value);
          expect(new URL(`http://[${text}]/`).hostname.length).toBeGreaterThan(0);
        },
      ),
    );
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0xffffffff }), (value) => {
        const parsed = parseAddress(formatAddress('IPv4', BigInt(value)));
        expect(parsed).toMatchObject({ family: 'IPv4', value: BigInt(value), leadingZeros: false });
      }),
    );
  });

  test('shortens IPv6 as the URL standard does (the same rule of RFC 5952)', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(0n, 0n, 1n, 0xffffn, 0xabcn), { minLength: 8, maxLength: 8 }),
        (groups) => {
          const value = groups.reduce<bigint>((sum, group) => (sum << 16n) | group, 0n);
          if (value >> 32n === 0xffffn) return;
          const written = groups.map((group) => group.toString(16).padStart(4, '0')).join(':');
          expect(formatAddress('IPv6', value)).toBe(new URL(`http://[${written}]/`).hostname.slice(1, -1));
        },
      ),
    );
  });

  test('agrees with node on what strictly written addresses are', () => {
    const piece = fc.constantFrom(
      '0',
      '1',
      '9',
      'a',
      'F',
      ':',
      '::',
      '.',
      '10',
      '255',
      '256',
      '00',
      '/',
      '%',
      ' ',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
        const text = pieces.join('');
        const parsed = parseAddress(text);
        const strict = parsed !== undefined && !parsed.leadingZeros;
        expect(strict).toBe(isIP(text) !== 0 && !text.includes('%'));
      }),
      { numRuns: 2000 },
    );
  });
});

describe('parseCidr', () => {
  /** Text, canonical form, flags: z = leading zeros, m = mapped, h = host bits. */
  const cidrs: [string, string, string][] = [
    ['10.96.0.0/16', '10.96.0.0/16', ''],
    ['0.0.0.0/0', '0.0.0.0/0', ''],
    ['::/0', '::/0', ''],
    ['10.1.2.3/8', '10.0.0.0/8', 'h'],
    ['10.200.0.1/32', '10.200.0.1/32', ''],
    ['010.0.0.0/8', '10.0.0.0/8', 'z'],
    ['10.0.0.0/08', '10.0.0.0/8', 'z'],
    ['FD00:200::/120', 'fd00:200::/120', ''],
    ['fd00::1/64', 'fd00::/64', 'h'],
    ['::ffff:10.0.0.0/104', '10.0.0.0/8', 'm'],
    ['::ffff:10.0.0.0/64', '::/64', 'mh'],
  ];
  test.each(cidrs)('%s is %s', (text, canonical, flags) => {
    const cidr = parseCidr(text);
    expect(cidr?.canonical).toBe(canonical);
    const found = [
      cidr?.leadingZeros === true ? 'z' : '',
      cidr?.ipv4Mapped === true ? 'm' : '',
      cidr?.hostBitsSet === true ? 'h' : '',
    ];
    expect(found.join('')).toBe(flags);
  });

  test.each(['10.200.0.0', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/-1', '/8', 'x', '10.0.0.0/8/8', '10.0.0.0/ 8', '10.0.0.0/+8', 'fe80::%a/64'])(
    '%j is refused',
    (text) => {
      expect(parseCidr(text)).toBeUndefined();
    },
  ); // prettier-ignore
});
