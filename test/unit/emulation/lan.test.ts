import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  controlPlaneAddresses,
  lanLines,
  nodeLines,
  nodeSideLines,
  outsideLines,
  overlappingLan,
  podLines,
  podRouteLines,
  portLines,
  wayIn,
} from '../../../src/emulation/lan.ts';
import { formatV4 } from '../../../src/objects/address.ts';

const node = ['172.18.0.1', 'fd00:172:18::1'];
const pod = ['10.244.0.5', 'fd00:10:244::5'];

describe('a range has addresses of the LAN', () => {
  test.each([
    ['172.18.0.0/24', true],
    ['172.19.255.255/32', true],
    ['172.16.0.0/12', true],
    ['0.0.0.0/0', true],
    ['172.17.0.0/16', false],
    ['172.20.0.0/16', false],
    ['10.244.0.0/16', false],
    ['fd00:172:18::/112', true],
    ['fd00::/8', true],
    ['fd00:172:19::/64', false],
    ['198.51.100.7-198.51.100.9', false],
  ])('%s: %s', (range, overlaps) => {
    expect(overlappingLan([range]) === range).toBe(overlaps);
  });

  test('as the numbers of its ends say, for every IPv4 range', () => {
    const first = 0xac12_0000;
    const last = 0xac13_ffff;
    const nearLan = fc.integer({ min: first - 0x4_0000, max: last + 0x4_0000 });
    fc.assert(
      fc.property(nearLan, fc.integer({ min: 0, max: 32 }), (address, prefixLength) => {
        const size = 2 ** (32 - prefixLength);
        const start = Math.floor(address / size) * size;
        const overlaps = start <= last && start + size - 1 >= first;
        expect(overlappingLan([`${formatV4(start)}/${prefixLength}`]) !== undefined).toBe(overlaps);
      }),
    );
  });

  test('the first of them is named', () => {
    expect(overlappingLan(['10.0.0.0/8', '172.18.4.0/24', '172.19.0.0/16'])).toBe('172.18.4.0/24');
    expect(overlappingLan([])).toBeUndefined();
  });
});

describe('machines', () => {
  test.each([
    [['172.18.0.3'], '02:42:ac:12:00:03'],
    [['fd00:172:18::a03', '172.18.0.3'], '02:42:00:00:0a:03'],
  ])('a machine with %s has a hardware address of its own', (addresses, expected) => {
    expect(portLines('node1', 'port1', addresses)).toEqual([
      `link add port1 type veth peer name eth0 netns node1 address ${expected}`,
      'link set port1 master lan up',
    ]);
  });

  test('the control plane and `outside` have an address of each family, in the order of the cluster', () => {
    expect(controlPlaneAddresses(['IPv6', 'IPv4'])).toEqual(['fd00:172:18::ffff:1', '172.19.255.1']);
    expect(lanLines(['IPv4']).filter((line) => line.startsWith('address'))).toEqual([
      'address add 172.19.255.1/15 dev lan',
    ]);
    expect(outsideLines(['IPv4', 'IPv6'])).toEqual([
      'link set lo up',
      'link set eth0 up',
      'address add 172.19.255.2/15 dev eth0',
      'address add fd00:172:18::ffff:2/64 dev eth0 nodad',
    ]);
  });

  test('a node sends what it has no route for to the control plane, and refuses what is for a Pod that has gone', () => {
    const ranges = ['10.244.0.0/24', 'fd00:10:244::/64'];
    expect(nodeLines(node, ranges).filter((line) => line.startsWith('route'))).toEqual([
      'route replace default via 172.19.255.1',
      'route replace default via fd00:172:18::ffff:1',
      'route replace unreachable 10.244.0.0/24',
      'route replace unreachable fd00:10:244::/64',
    ]);
  });

  test('a range of Pods is behind the address of its family, and nowhere without one', () => {
    const ranges = ['10.244.0.0/24', 'fd00:10:244::/64'];
    expect(podRouteLines(ranges, node)).toEqual([
      'route replace 10.244.0.0/24 via 172.18.0.1',
      'route replace fd00:10:244::/64 via fd00:172:18::1',
    ]);
    expect(podRouteLines(ranges, ['172.18.0.1'])).toEqual(['route replace 10.244.0.0/24 via 172.18.0.1']);
  });

  test('`outside` comes in by a node, and knows no Pod and no cluster IP', () => {
    expect(wayIn(['172.18.0.1'], ['10.244.0.0/16', '10.96.0.0/16'])).toEqual([
      'route replace default via 172.18.0.1',
      'route replace unreachable 10.244.0.0/16',
      'route replace unreachable 10.96.0.0/16',
    ]);
  });
});

describe('Pods', () => {
  test('reach their router, which is on no subnet of theirs, by the link', () => {
    expect(podLines(pod)).toEqual([
      'link set lo up',
      'link set eth0 up',
      'address add 10.244.0.5/32 dev eth0',
      'route add 169.254.1.1 dev eth0 scope link',
      'route add default via 169.254.1.1 dev eth0',
      'address add fd00:10:244::5/128 dev eth0 nodad',
      'route add default via fe80::1 dev eth0',
    ]);
  });

  test('see the node by its own address of their family', () => {
    const routes = nodeSideLines('pod7', pod, node).filter((line) => line.startsWith('route'));
    expect(routes).toEqual([
      'route replace 10.244.0.5 dev pod7 src 172.18.0.1',
      'route replace fd00:10:244::5 dev pod7 src fd00:172:18::1',
    ]);
    expect(nodeSideLines('pod7', ['fd00:10:244::5'], ['172.18.0.1'])).toContain(
      'route replace fd00:10:244::5 dev pod7',
    );
  });
});
