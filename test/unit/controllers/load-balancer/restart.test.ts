import { describe, expect, test } from 'vitest';
import type { LoadBalancerAllocator } from '../../../../src/controllers/load-balancer/allocator.ts';
import type { AddressPoolSpec } from '../../../../src/objects/types/servicenet.ts';
import type { Pool } from '../../../../src/controllers/load-balancer/pools.ts';
import type { AddressRequest } from '../../../../src/controllers/load-balancer/request.ts';
import type { StatusAddress } from '../../../../src/controllers/load-balancer/status.ts';
import { allocate, allocatorWith, inStatus, pool, request, v4 } from './samples.ts';

function adopt(allocator: LoadBalancerAllocator, ...services: [AddressRequest, StatusAddress[]][]): void {
  Array.from(
    allocator.adopt(services.map(([wanted, addresses]) => ({ request: wanted, inStatus: addresses }))),
  );
}

describe('a starting process', () => {
  describe('decides about an address that no pool contains by', () => {
    const reassign: AddressPoolSpec = { shrinkPolicy: 'Reassign' };
    const assignedBy = (shrinkPolicy: 'Retain' | 'Reassign'): StatusAddress[] =>
      inStatus('198.51.100.1').map((one) => ({ ...one, origin: { pool: 'a', shrinkPolicy } }));

    test.each<[string, Pool, 'Retain' | 'Reassign', string]>([
      [
        'the pool that assigned it: Reassign',
        pool('a', ['192.0.2.0/31'], reassign),
        'Retain',
        '192.0.2.0 Assigned',
      ],
      ['the pool that assigned it: Retain', pool('a', ['192.0.2.0/31']), 'Reassign', '198.51.100.1 Assigned'],
      [
        'the last shrinkPolicy of a deleted pool: Reassign',
        pool('b', ['192.0.2.0/31']),
        'Reassign',
        '192.0.2.0 Assigned',
      ],
      [
        'the last shrinkPolicy of a deleted pool: Retain',
        pool('b', ['192.0.2.0/31'], reassign),
        'Retain',
        '198.51.100.1 Assigned',
      ],
    ])('%s', (_what, now, then, expected) => {
      const allocator = allocatorWith(now);
      const service = request('n/1');
      adopt(allocator, [service, assignedBy(then)]);
      const { addresses, reason } = allocator.allocate(service, assignedBy(then));
      expect(`${addresses.map(({ address }) => address).join()} ${reason}`).toBe(expected);
    });
  });

  test('adopts no port that another Service serves', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    const sharing = { sharingKey: 'k', ports: ['TCP/80'] };
    const older = { ...request('n/1', sharing), ports: ['TCP/80', 'TCP/443'] };
    const younger = request('n/2', { ...sharing, ports: ['TCP/443'] });
    const serving = (port: string): StatusAddress[] =>
      inStatus('192.0.2.1').map((one) => ({ ...one, servedPorts: new Set([port]) }));
    adopt(allocator, [older, serving('TCP/80')], [younger, serving('TCP/443')]);
    expect(allocate(allocator, older)).toBe('192.0.2.1 SharingRefused');
    expect(allocate(allocator, younger)).toBe('192.0.2.1 Assigned');
  });

  test.each<[string, Partial<AddressRequest>]>([
    ['requests another pool', { pools: ['b'] }],
    ['requests the other family', { families: ['IPv6'] }],
  ])(
    'an address in a status is free after the status has changed, also if its Service %s',
    (_what, changes) => {
      const allocator = allocatorWith(
        pool('a', ['192.0.2.0/32']),
        pool('b', ['203.0.113.0/32', '2001:db8::/128']),
      );
      const old = request('n/old', changes);
      adopt(allocator, [old, inStatus('192.0.2.0')]);
      const waiting = request('n/waiting', v4('192.0.2.0'));
      expect(allocate(allocator, waiting)).toBe('AddressInUse');
      allocator.allocate(old, inStatus('192.0.2.0'));
      expect(allocate(allocator, waiting)).toBe('AddressInUse');
      expect(allocator.unreleased('n/old')).toEqual(['192.0.2.0']);
      allocator.release('n/old', ['192.0.2.0'], 0);
      expect(allocate(allocator, waiting)).toBe('192.0.2.0 Assigned');
    },
  );

  test('the address of a deleted Service is free when it is released', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    const old = { request: request('n/old'), inStatus: inStatus('192.0.2.0') };
    Array.from(allocator.adopt([], [old]));
    const next = request('n/next');
    expect(allocate(allocator, next)).toBe('PoolExhausted');
    allocator.release('n/old', allocator.unreleased('n/old'), 0);
    expect(allocate(allocator, next)).toBe('192.0.2.0 Assigned');
  });

  test('an address in two statuses stays with the Service that is not deleted', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    const kept = request('n/kept');
    const old = { request: request('n/old'), inStatus: inStatus('192.0.2.0') };
    Array.from(allocator.adopt([{ request: kept, inStatus: inStatus('192.0.2.0') }], [old]));
    expect(allocator.unreleased('n/old')).toEqual([]);
    expect(allocate(allocator, kept, ['192.0.2.0'])).toBe('192.0.2.0 Assigned');
  });

  test('adopts all addresses before it assigns a new one', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    const first = request('n/1');
    const second = request('n/2');
    adopt(allocator, [first, inStatus('192.0.2.1')], [second, inStatus('192.0.2.1')]);
    expect(allocate(allocator, second, ['192.0.2.1'])).toBe('192.0.2.0 Assigned');
    expect(allocate(allocator, first, ['192.0.2.1'])).toBe('192.0.2.1 Assigned');
  });
});
