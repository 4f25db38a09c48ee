import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type BGPAddress, bgpRoutes } from '../../../../src/network/announcing/bgp.ts';
import { readAnnounce } from '../../../../src/network/announcing/announcement-plan.ts';
import { formatAddress, parseCidr, parseStrictAddress } from '../../../../src/objects/address.ts';
import type { AddressPoolBGP } from '../../../../src/objects/types/servicenet.ts';

function pool(bgp: AddressPoolBGP | undefined, ...addresses: string[]): BGPAddress[] {
  const { announcement } = readAnnounce(bgp === undefined ? { layer2: {} } : { bgp });
  return addresses.map((address) => ({ address, announcement }));
}

/** What a peer is told, as CIDRs. */
function told(addresses: readonly BGPAddress[], peer = 'a'): string[] {
  const routes = bgpRoutes(addresses, ['a', 'b']).get(peer);
  return [...(routes?.values() ?? [])].map(
    ({ prefix }) => `${formatAddress(prefix.family, prefix.network)}/${prefix.length}`,
  );
}

describe('routes', () => {
  test('are of single addresses, to all peers or to those that the pool names', () => {
    const addresses = [
      ...pool({}, '203.0.113.1', '2001:db8::1'),
      ...pool({ peers: ['b', 'c'] }, '203.0.113.2'),
      ...pool(undefined, '203.0.113.3'),
    ];
    expect(told(addresses, 'a')).toEqual(['203.0.113.1/32', '2001:db8::1/128']);
    expect(told(addresses, 'b')).toEqual(['203.0.113.1/32', '2001:db8::1/128', '203.0.113.2/32']);
  });

  test('have the communities and the preference of the pool', () => {
    const spec = { communities: ['64512:100', 'no-export', '64512:1:2'], localPreference: 0 };
    expect([...(bgpRoutes(pool(spec, '203.0.113.1'), ['a']).get('a')?.values() ?? [])]).toMatchObject([
      { communities: [0xfc000064, 0xffffff01], largeCommunities: [[64512, 1, 2]], localPref: 0 },
    ]);
  });

  test('of an aggregation length contain each address, and are there as long as one is', () => {
    const v4 = fc.nat({ max: 0xffff }).map((n) => formatAddress('IPv4', 0xc0000000n + BigInt(n)));
    const v6 = fc.nat({ max: 0xffff }).map((n) => formatAddress('IPv6', (0x2001n << 112n) + BigInt(n)));
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.oneof(v4, v6), { maxLength: 30 }),
        fc.integer({ min: 1, max: 32 }),
        fc.integer({ min: 1, max: 128 }),
        (addresses, aggregationLength, aggregationLengthV6) => {
          const cidrs = told(pool({ aggregationLength, aggregationLengthV6 }, ...addresses));
          const contains = (cidr: string, address: string): boolean => {
            const parsed = parseStrictAddress(address);
            const network = parseCidr(cidr);
            return (
              parsed?.family === network?.family &&
              parseCidr(`${address}/${network?.prefixLength}`)?.network === network?.network
            );
          };
          // Exactly the networks that some address is in.
          for (const address of addresses)
            expect(cidrs.filter((cidr) => contains(cidr, address))).toHaveLength(1);
          for (const cidr of cidrs) expect(addresses.some((address) => contains(cidr, address))).toBe(true);
        },
      ),
    );
  });

  test('that two pools share have the attributes of one of them, in whatever order they come', () => {
    const one = pool({ aggregationLength: 24, communities: ['64512:1'] }, '203.0.113.1');
    const other = pool({ aggregationLength: 24, communities: ['64512:2'] }, '203.0.113.2');
    const first = bgpRoutes([...one, ...other], ['a']);
    expect(first.get('a')?.size).toBe(1);
    expect(bgpRoutes([...other, ...one], ['a'])).toEqual(first);
  });
});
