import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addressAt,
  firstFree,
  offsetKey,
  poolName,
  readWhereaboutsRange,
  reservationName,
  type WrittenRange,
} from '../../../src/allocation/whereabouts.ts';
import { formatAddress, parseAddress } from '../../../src/objects/address.ts';
import '../../support/fast-check.ts';
import { cpuMs } from '../../support/reference-time.ts';

function valueOf(text: string): bigint {
  const parsed = parseAddress(text);
  if (parsed === undefined) throw new Error(text);
  return parsed.value;
}

function bounds(written: WrittenRange): string {
  const { usable, network } = readWhereaboutsRange(written);
  const text = (value: bigint): string => formatAddress(network.family, value);
  return `${text(usable.first)} ${text(usable.last)}`;
}

describe('the usable addresses of a range', () => {
  it.each<[WrittenRange, string]>([
    // Without bounds: neither the network's address nor the last one, in both families.
    [{ range: '192.168.21.100/30' }, '192.168.21.101 192.168.21.102'],
    [{ range: '10.0.0.0/8' }, '10.0.0.1 10.255.255.254'],
    [{ range: '0.0.0.0/0' }, '0.0.0.1 255.255.255.254'],
    [{ range: '172.16.5.77/29' }, '172.16.5.73 172.16.5.78'],
    [{ range: 'fd00::/126' }, 'fd00::1 fd00::2'],
    [{ range: '2001:db8::/64' }, '2001:db8::1 2001:db8::ffff:ffff:ffff:fffe'],
    [{ range: '::/0' }, '::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe'],
    [{ range: '2001:db8::5:0/112' }, '2001:db8::5:1 2001:db8::5:fffe'],
    // Bounds within.
    [{ range: '192.168.2.200/24', rangeStart: '192.168.2.23' }, '192.168.2.23 192.168.2.254'],
    [{ range: '192.168.2.200/24', rangeEnd: '192.168.2.23' }, '192.168.2.1 192.168.2.23'],
    [
      { range: '192.168.2.0/24', rangeStart: '192.168.2.23', rangeEnd: '192.168.2.50' },
      '192.168.2.23 192.168.2.50',
    ],
    [{ range: '10.1.0.0/16', rangeStart: '10.1.9.9', rangeEnd: '10.1.9.9' }, '10.1.9.9 10.1.9.9'],
    [{ range: 'fd00::/64', rangeStart: 'fd00::10', rangeEnd: 'fd00::20' }, 'fd00::10 fd00::20'],
    // Bounds that are passed over: the network's address, the last, outside, an end before the start.
    [{ range: '192.168.2.0/24', rangeStart: '192.168.2.0' }, '192.168.2.1 192.168.2.254'],
    [{ range: '192.168.2.0/24', rangeEnd: '192.168.2.255' }, '192.168.2.1 192.168.2.254'],
    [{ range: '192.168.2.0/24', rangeStart: '192.168.1.200' }, '192.168.2.1 192.168.2.254'],
    [{ range: '192.168.2.0/24', rangeEnd: '192.168.3.7' }, '192.168.2.1 192.168.2.254'],
    [{ range: '192.168.2.0/24', rangeStart: '192.168.2.255' }, '192.168.2.1 192.168.2.254'],
    [
      { range: '192.168.2.0/24', rangeStart: '192.168.2.50', rangeEnd: '192.168.2.20' },
      '192.168.2.50 192.168.2.254',
    ],
    [
      { range: '192.168.2.0/24', rangeStart: '192.168.1.1', rangeEnd: '192.168.2.20' },
      '192.168.2.1 192.168.2.20',
    ],
    [{ range: 'fd00::/64', rangeStart: 'fd00::' }, 'fd00::1 fd00::ffff:ffff:ffff:fffe'],
    [{ range: 'fd00::/64', rangeEnd: 'fd00::ffff:ffff:ffff:ffff' }, 'fd00::1 fd00::ffff:ffff:ffff:fffe'],
    [{ range: 'fd00::/64', rangeStart: '10.0.0.5' }, 'fd00::1 fd00::ffff:ffff:ffff:fffe'],
    // A-B/len: the range is the network of B.
    [{ range: '192.168.1.5-192.168.1.25/24' }, '192.168.1.5 192.168.1.25'],
    [{ range: '2001:db8::2-2001:db8::9/112' }, '2001:db8::2 2001:db8::9'],
    [{ range: '10.0.0.0-10.0.0.9/24' }, '10.0.0.1 10.0.0.9'],
    [{ range: '10.0.0.20-10.0.0.9/24' }, '10.0.0.20 10.0.0.254'],
    // Leading zeros are decimal.
    [{ range: '00192.00168.1.5-000000192.168.1.25/24' }, '192.168.1.5 192.168.1.25'],
    [{ range: '00192.00168.1.0/24', rangeStart: '00192.00168.1.44' }, '192.168.1.44 192.168.1.254'],
  ])('%o', (written, expected) => {
    expect(bounds(written)).toBe(expected);
  });

  it.each([
    ['10.0.0.0/31', 'net mask is too short, subnet 10.0.0.0/31 has no usable IP addresses, it is too small'],
    ['10.0.0.7/32', 'net mask is too short, subnet 10.0.0.7/32 has no usable IP addresses, it is too small'],
    ['fd00::/127', 'net mask is too short, subnet fd00::/127 has no usable IP addresses, it is too small'],
    ['fd00::1/128', 'net mask is too short, subnet fd00::1/128 has no usable IP addresses, it is too small'],
    ['10.0.0.0', 'invalid CIDR 10.0.0.0: invalid CIDR address: 10.0.0.0'],
    ['', 'invalid CIDR : invalid CIDR address: '],
    ['10.0.0.0/33', 'invalid CIDR 10.0.0.0/33: invalid CIDR address: 10.0.0.0/33'],
    ['x-10.0.0.9/24', 'invalid range start IP: x'],
    ['10.0.1.5-10.0.0.9/24', 'invalid range start for CIDR 10.0.0.0/24: 10.0.1.5'],
    ['fd00::1-10.0.0.9/24', 'invalid range start for CIDR 10.0.0.0/24: fd00::1'],
    [
      '10.0.0.1-10.0.0.9',
      "invalid CIDR (do you have the 'range' parameter set for Whereabouts?) '10.0.0.9': invalid CIDR address: 10.0.0.9",
    ],
  ])('refuses %s', (range, message) => {
    expect(() => readWhereaboutsRange({ range })).toThrow(message);
  });

  it('refuses an exclude that it cannot read', () => {
    for (const exclude of ['192.168.0.1/123', '100::2::1', 'x', '']) {
      expect(() => readWhereaboutsRange({ range: '192.168.0.0/29', exclude: [exclude] })).toThrow(
        /^could not parse exclude range/,
      );
    }
  });
});

describe('the first free address', () => {
  it.each<[WrittenRange, readonly string[], string | undefined]>([
    [{ range: '192.168.1.1/24' }, [], '192.168.1.1'],
    [{ range: 'caa5::0/112' }, [], 'caa5::1'],
    [{ range: '::1/126' }, [], '::1'],
    [{ range: 'fd::1/116' }, [], 'fd::1'],
    [{ range: '100::2:1/126' }, [], '100::2:1'],
    [{ range: '192.168.0.0/29', exclude: ['192.168.0.0/30'] }, [], '192.168.0.4'],
    [{ range: '192.168.0.0/29', exclude: ['192.168.0.1'] }, [], '192.168.0.2'],
    [{ range: '100::2:1/125', exclude: ['100::2:1/126'] }, [], '100::2:4'],
    [{ range: '100::2:1/125', exclude: ['100::2:1'] }, [], '100::2:2'],
    // 2^96 addresses at once.
    [{ range: '2001:db8::/30', exclude: ['2001:db8::0/32'] }, [], '2001:db9::'],
    // Unsorted, adjacent, one in another.
    [
      {
        range: '192.168.0.0/28',
        exclude: ['192.168.0.0/30', '192.168.0.6/31', '192.168.0.8/31', '192.168.0.4/30'],
      },
      [],
      '192.168.0.10',
    ],
    [
      {
        range: '192.168.0.0/28',
        exclude: ['192.168.0.0/30', '192.168.0.14/31', '192.168.0.4/30', '192.168.0.6/31', '192.168.0.8/31'],
      },
      [],
      '192.168.0.10',
    ],
    // Freed low ones come first.
    [{ range: '10.0.0.0/24' }, ['10.0.0.1', '10.0.0.2', '10.0.0.5'], '10.0.0.3'],
    [{ range: '10.0.0.0/24', rangeStart: '10.0.0.9' }, [], '10.0.0.9'],
    // Nothing is left: taken, excluded with the last one, excluded as a whole.
    [
      { range: '192.168.0.0/29', exclude: ['192.168.0.0/30'] },
      ['192.168.0.4', '192.168.0.5', '192.168.0.6'],
      undefined,
    ],
    [
      { range: '192.168.0.0/29', exclude: ['192.168.0.4/30'] },
      ['192.168.0.1', '192.168.0.2', '192.168.0.3'],
      undefined,
    ],
    [{ range: '100::2:1/125', exclude: ['100::2:4/126'] }, ['100::2:1', '100::2:2', '100::2:3'], undefined],
    [
      { range: '192.168.0.1-192.168.0.6/28', exclude: ['192.168.0.4/30'] },
      ['192.168.0.1', '192.168.0.2', '192.168.0.3'],
      undefined,
    ],
    [{ range: '10.0.0.0/24', exclude: ['0.0.0.0/0'] }, [], undefined],
    [{ range: 'fd00::/64', exclude: ['::/0'] }, [], undefined],
    // An exclude of the other family excludes nothing.
    [{ range: '10.0.0.0/24', exclude: ['::/0'] }, [], '10.0.0.1'],
  ])('of %o without %o is %s', (written, taken, expected) => {
    const range = readWhereaboutsRange(written);
    const values = new Set(taken.map(valueOf));
    const found = firstFree(range, (value) => values.has(value));
    expect(found === undefined ? undefined : formatAddress(range.network.family, found)).toBe(expected);
  });

  it('is the lowest that is neither excluded nor taken', () => {
    const prefix = fc.integer({ min: 26, max: 32 });
    const exclude = fc.tuple(fc.nat(63), prefix).map(([host, length]) => `10.9.8.${host}/${length}`);
    const property = fc.property(
      fc.array(exclude, { maxLength: 8 }),
      fc.uniqueArray(fc.nat(63), { maxLength: 64 }),
      (excludes, taken) => {
        const range = readWhereaboutsRange({ range: '10.9.8.0/26', exclude: excludes });
        const base = valueOf('10.9.8.0');
        const isExcluded = (value: bigint): boolean =>
          excludes.some((text) => {
            const [address = '', length] = text.split('/');
            const hostBits = BigInt(32 - Number(length));
            return valueOf(address) >> hostBits === value >> hostBits;
          });
        const hosts = Array.from({ length: 62 }, (_, index) => index + 1);
        const expected = hosts.find((host) => !taken.includes(host) && !isExcluded(base + BigInt(host)));
        const found = firstFree(range, (value) => taken.includes(Number(value - base)));
        expect(found).toBe(expected === undefined ? undefined : base + BigInt(expected));
      },
    );
    fc.assert(property);
  });
});

describe('offsets', () => {
  it('come back as the address that they were of, over more than 2^64 addresses', () => {
    const property = fc.property(fc.bigInt({ min: 0n, max: 2n ** 72n - 1n }), (offset) => {
      const { network } = readWhereaboutsRange({ range: 'fd00:1:2::/56' });
      const value = addressAt(network, offset);
      expect(value).toBeDefined();
      expect(offsetKey(network, value ?? 0n)).toBe(String(offset));
    });
    fc.assert(property);
    const { network } = readWhereaboutsRange({ range: '10.0.0.5/24', rangeStart: '10.0.0.9' });
    // From the base, not from the first usable address.
    expect(offsetKey(network, valueOf('10.0.0.1'))).toBe('1');
    expect(addressAt(network, 256n)).toBeUndefined();
    expect(addressAt(network, -1n)).toBeUndefined();
  });
});

describe('the offset of an address', () => {
  it.each<[string, string, string]>([
    // Counted from the network's address, whatever the start of the range is.
    ['10.0.0.0/24', '10.0.0.0', '0'],
    ['10.0.0.0/24', '10.0.0.1', '1'],
    ['10.0.0.77/24', '10.0.0.255', '255'],
    ['10.0.0.0/16', '10.0.1.0', '256'],
    ['10.0.0.0/16', '10.0.255.255', '65535'],
    ['10.0.0.0/8', '10.1.0.0', '65536'],
    ['10.0.0.0/8', '10.255.255.255', '16777215'],
    ['0.0.0.0/0', '255.255.255.255', '4294967295'],
    ['192.168.2.0/23', '192.168.3.0', '256'],
    ['172.16.5.72/29', '172.16.5.79', '7'],
    // Carries over each byte and group.
    ['fd00::/64', 'fd00::1', '1'],
    ['fd00::/64', 'fd00::ffff', '65535'],
    ['fd00::/64', 'fd00::1:0', '65536'],
    ['fd00::/64', 'fd00::1:0:0', '4294967296'],
    ['fd00::/64', 'fd00::1:0:0:0', '281474976710656'],
    ['fd00::/64', 'fd00::ffff:ffff:ffff:ffff', '18446744073709551615'],
    // Beyond 64 bits.
    ['fd00::/48', 'fd00:0:0:1::', '18446744073709551616'],
    ['fd00::/48', 'fd00:0:0:1::1', '18446744073709551617'],
    ['2001:db8::/30', '2001:dba::2', '158456325028528675187087900674'],
    ['2001:db8::/32', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', '79228162514264337593543950335'],
    ['::/0', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '340282366920938463463374607431768211455'],
    ['100::2:0/125', '100::2:7', '7'],
    // Above 2^53, where a JavaScript number would be another address.
    ['fd00::/64', 'fd00::20:0:0:1', '9007199254740993'],
  ])('of %s for %s is %s', (range, address, expected) => {
    const { network } = readWhereaboutsRange({ range });
    expect(offsetKey(network, valueOf(address))).toBe(expected);
    const back = addressAt(network, BigInt(expected));
    expect(back === undefined ? undefined : formatAddress(network.family, back)).toBe(address);
  });

  it.each<[string, bigint]>([
    ['10.0.0.0/24', 256n],
    ['10.0.0.0/8', 2n ** 24n],
    ['0.0.0.0/0', 2n ** 32n],
    ['fd00::/64', 2n ** 64n],
    ['::/0', 2n ** 128n],
    ['fd00::/64', -1n],
  ])('%s has none at %s', (range, offset) => {
    expect(addressAt(readWhereaboutsRange({ range }).network, offset)).toBeUndefined();
  });
});

describe('a walk', () => {
  it.each<[string, string, string | undefined]>([
    // Over the borders of bytes and groups, and not beyond the last usable address.
    ['10.0.0.0/16', '10.0.0.255', '10.0.1.0'],
    ['10.0.0.0/8', '10.0.255.255', '10.1.0.0'],
    ['10.0.0.0/24', '10.0.0.254', undefined],
    ['255.255.255.0/24', '255.255.255.254', undefined],
    ['fd00::/64', 'fd00::ffff', 'fd00::1:0'],
    ['fd00::/64', 'fd00::ffff:ffff', 'fd00::1:0:0'],
    ['fd00::/64', 'fd00::ffff:ffff:ffff', 'fd00::1:0:0:0'],
    ['fd00::/64', 'fd00::ffff:ffff:ffff:fffe', undefined],
    ['ffff::/16', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe', undefined],
  ])('in %s goes from %s to %s', (range, start, expected) => {
    const read = readWhereaboutsRange({ range, rangeStart: start });
    const found = firstFree(read, (value) => value === valueOf(start));
    expect(found === undefined ? undefined : formatAddress(read.network.family, found)).toBe(expected);
  });

  it('of many addresses that are taken, or of an exclude each, does not hold the event loop', () => {
    const taken = new Set(Array.from({ length: 20_000 }, (_, index) => BigInt(index)));
    const wide = readWhereaboutsRange({ range: '::/0' });
    const exclude = Array.from({ length: 20_000 }, (_, index) =>
      formatAddress('IPv6', BigInt(2 * index + 1)),
    );
    const holed = readWhereaboutsRange({ range: '::/0', exclude });
    const find = (): unknown[] => [
      firstFree(wide, (value) => taken.has(value)),
      firstFree(holed, (value) => value % 2n === 0n),
    ];
    expect(find()).toEqual([20_000n, 40_001n]);
    expect(cpuMs(find)).toBeLessThan(200);
  });
});

describe('names', () => {
  it.each([
    ['10.0.0.0/8', '', '10.0.0.0-8'],
    ['10.0.0.0/24', 'test', 'test-10.0.0.0-24'],
    ['fd00::/64', '', 'fd00---64'],
    ['2001:db8::1:0/112', 'storage', 'storage-2001-db8--1-0-112'],
  ])('of the pool of %s in network "%s" is %s', (cidr, network, expected) => {
    expect(poolName(cidr, network)).toBe(expected);
  });

  it.each([
    ['10.0.0.7', '', '10.0.0.7'],
    ['fd00::1', '', 'fd00--1'],
    ['2001:db9::', '', '2001-db9--0'],
    ['10.0.0.7', 'test', 'test-10.0.0.7'],
  ])('of the reservation of %s in network "%s" is %s', (address, network, expected) => {
    const family = address.includes(':') ? 'IPv6' : 'IPv4';
    expect(reservationName(family, valueOf(address), network)).toBe(expected);
  });
});
