import { expect, test } from 'vitest';
import { chooseNextHops } from '../../../../src/node/announce/bgp-session.ts';

const address = (local: string, changed: Record<string, unknown> = {}): unknown => ({
  ...{ local, scope: 'global' },
  ...changed,
});
/** As `ip -json address show` prints it. */
const links = [
  { ifname: 'lo', addr_info: [address('127.0.0.1', { scope: 'host' }), address('::1', { scope: 'host' })] },
  {
    ifname: 'eth0',
    addr_info: [
      address('192.0.2.11'),
      address('203.0.113.1', { deprecated: true }),
      address('fe80::1', { scope: 'link' }),
      address('2001:db8::7', { temporary: true }),
      address('2001:db8::b'),
    ],
  },
  { ifname: 'eth1', addr_info: [address('198.51.100.11')] },
];

test.each([
  ['192.0.2.11', { IPv4: '192.0.2.11', IPv6: '2001:db8::b' }],
  ['2001:db8::b', { IPv4: '192.0.2.11', IPv6: '2001:db8::b' }],
  // A next hop on another link is one that the router does not reach.
  ['198.51.100.11', { IPv4: '198.51.100.11' }],
  ['127.0.0.1', { IPv4: '127.0.0.1' }],
])('routes of a session from %s lead to addresses of the same interface that stay', (local, hops) => {
  expect(chooseNextHops(links, local)).toEqual(hops);
});
