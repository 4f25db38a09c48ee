import { describe, expect, test } from 'vitest';
import type { LoadBalancerAllocator } from '../../../../src/controllers/load-balancer/allocator.ts';
import type { AddressPoolSpec, Pool } from '../../../../src/controllers/load-balancer/pool.ts';
import type { PresentAddress } from '../../../../src/controllers/load-balancer/present.ts';
import type { AddressRequest } from '../../../../src/controllers/load-balancer/request.ts';
import { allocatorWith, assign, had, pool, request, v4 } from './given.ts';

function adopt(allocator: LoadBalancerAllocator, ...claims: [AddressRequest, PresentAddress[]][]): void {
  Array.from(allocator.adopt(claims.map(([wanted, present]) => ({ request: wanted, present }))));
}

describe('a process that starts', () => {
  describe('after a restart, of an address that no pool contains any more, decides', () => {
    const reassign: AddressPoolSpec = { shrinkPolicy: 'Reassign' };
    const gave = (shrinkPolicy: 'Retain' | 'Reassign'): PresentAddress[] =>
      had('198.51.100.1').map((one) => ({ ...one, origin: { pool: 'a', shrinkPolicy } }));

    test.each<[string, Pool, 'Retain' | 'Reassign', string]>([
      [
        'the pool that gave it: Reassign',
        pool('a', ['192.0.2.0/31'], reassign),
        'Retain',
        '192.0.2.0 Assigned',
      ],
      ['the pool that gave it: Retain', pool('a', ['192.0.2.0/31']), 'Reassign', '198.51.100.1 Assigned'],
      [
        'the last word of a pool that is gone: Reassign',
        pool('b', ['192.0.2.0/31']),
        'Reassign',
        '192.0.2.0 Assigned',
      ],
      [
        'the last word of a pool that is gone: Retain',
        pool('b', ['192.0.2.0/31'], reassign),
        'Retain',
        '198.51.100.1 Assigned',
      ],
    ])('%s', (_what, now, then, expected) => {
      const allocator = allocatorWith(now);
      const service = request('n/1');
      adopt(allocator, [service, gave(then)]);
      const { addresses, reason } = allocator.assign(service, gave(then));
      expect(`${addresses.map(({ address }) => address).join()} ${reason}`).toBe(expected);
    });
  });

  test('a start books no port that another sharer serves', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    const sharing = { sharingKey: 'k', ports: ['TCP/80'] };
    const older = { ...request('n/1', sharing), ports: ['TCP/80', 'TCP/443'] };
    const younger = request('n/2', { ...sharing, ports: ['TCP/443'] });
    const present = (port: string): PresentAddress[] =>
      had('192.0.2.1').map((one) => ({ ...one, served: new Set([port]) }));
    adopt(allocator, [older, present('TCP/80')], [younger, present('TCP/443')]);
    expect(assign(allocator, older)).toBe('192.0.2.1 SharingRefused');
    expect(assign(allocator, younger)).toBe('192.0.2.1 Assigned');
  });

  test.each<[string, Partial<AddressRequest>]>([
    ['names another pool', { pools: ['b'] }],
    ['asks for the other family', { families: ['IPv6'] }],
  ])('what a status shows is free when it shows it no more, though its Service %s', (_what, wish) => {
    const allocator = allocatorWith(
      pool('a', ['192.0.2.0/32']),
      pool('b', ['203.0.113.0/32', '2001:db8::/128']),
    );
    const leaver = request('n/leaver', wish);
    adopt(allocator, [leaver, had('192.0.2.0')]);
    const waiter = request('n/waiter', v4('192.0.2.0'));
    expect(assign(allocator, waiter)).toBe('AddressInUse');
    allocator.assign(leaver, had('192.0.2.0'));
    expect(assign(allocator, waiter)).toBe('AddressInUse');
    expect(allocator.leftBy('n/leaver')).toEqual(['192.0.2.0']);
    allocator.letGo('n/leaver', ['192.0.2.0'], 0);
    expect(assign(allocator, waiter)).toBe('192.0.2.0 Assigned');
  });

  test('what a Service shows that is going is free when it is let go', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    const leaver = { request: request('n/leaver'), present: had('192.0.2.0') };
    Array.from(allocator.adopt([], [leaver]));
    const next = request('n/next');
    expect(assign(allocator, next)).toBe('PoolExhausted');
    allocator.letGo('n/leaver', allocator.leftBy('n/leaver'), 0);
    expect(assign(allocator, next)).toBe('192.0.2.0 Assigned');
  });

  test('what two show is of the one that may keep it, whoever leaves', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    const keeper = request('n/keeper');
    const leaver = { request: request('n/leaver'), present: had('192.0.2.0') };
    Array.from(allocator.adopt([{ request: keeper, present: had('192.0.2.0') }], [leaver]));
    expect(allocator.leftBy('n/leaver')).toEqual([]);
    expect(assign(allocator, keeper, ['192.0.2.0'])).toBe('192.0.2.0 Assigned');
  });

  test('a start books what is there before anything is given', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    const first = request('n/1');
    const second = request('n/2');
    adopt(allocator, [first, had('192.0.2.1')], [second, had('192.0.2.1')]);
    expect(assign(allocator, second, ['192.0.2.1'])).toBe('192.0.2.0 Assigned');
    expect(assign(allocator, first, ['192.0.2.1'])).toBe('192.0.2.1 Assigned');
  });
});
