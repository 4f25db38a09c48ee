import { describe, expect, test } from 'vitest';
import { LoadBalancerAllocator } from '../../../../src/controllers/load-balancer/allocator.ts';
import type { AddressRequest } from '../../../../src/controllers/load-balancer/request.ts';
import { allocate, allocatorWith, pool, request, v4 } from './samples.ts';

describe('the order of preference', () => {
  const pools = [
    pool('open', ['192.0.2.0/30']),
    pool('better', ['192.0.2.16/30'], { priority: 5 }),
    pool('manual', ['192.0.2.32/30'], { autoAssign: false }),
    pool('team', ['192.0.2.48/30'], { namespaceSelector: { matchLabels: { team: 'x' } } }),
    pool('web', ['192.0.2.64/30'], { serviceSelector: { matchLabels: { app: 'web' } }, priority: 1 }),
  ];

  test.each<[string, Partial<AddressRequest>, string[], string]>([
    ['a valid current address is kept', {}, ['192.0.2.2'], '192.0.2.2 Assigned'],
    ['also if a preferred pool has a free one', { labels: { app: 'web' } }, ['192.0.2.2'], '192.0.2.2 Assigned'],
    ['a requested address', v4('192.0.2.33'), [], '192.0.2.33 Assigned'],
    ['is preferred to the current one', v4('192.0.2.33'), ['192.0.2.2'], '192.0.2.33 Assigned'],
    ['a requested pool', { pools: ['manual'] }, [], '192.0.2.32 Assigned'],
    ['the first requested pool that exists', { pools: ['none', 'open'] }, [], '192.0.2.0 Assigned'],
    ['a pool that selects the namespace', { namespaceLabels: { team: 'x' } }, [], '192.0.2.48 Assigned'],
    ['of two that select, the higher priority', { namespaceLabels: { team: 'x' }, labels: { app: 'web' } }, [], '192.0.2.64 Assigned'],
    ['else the open pool of the highest priority', {}, [], '192.0.2.16 Assigned'],
    ['a pool that does not select the Service is closed', { pools: ['team'] }, [], 'NoMatchingPool'],
    ['and so are its addresses', v4('192.0.2.48'), [], 'AddressNotInPool'],
    ['an address of no pool', v4('198.51.100.1'), [], 'AddressNotInPool'],
    ['an address of another pool than the requested one', { ...v4('192.0.2.0'), pools: ['manual'] }, [], 'AddressNotInPool'],
    ['a family that no pool has', { families: ['IPv6'] }, [], 'FamilyUnavailable'],
    ['an invalid request', { problems: ['requests x'] }, [], 'InvalidRequest'],
    ['an invalid request of a Service with an address', { problems: ['requests x'] }, ['192.0.2.2'], '192.0.2.2 InvalidRequest'],
  ])('%s', (_what, changes, current, expected) => {
    expect(allocate(allocatorWith(...pools), request('n/s', changes), current)).toBe(expected);
  }); // prettier-ignore

  test('without a pool no address is assigned', () => {
    expect(allocate(new LoadBalancerAllocator(), request('n/s'))).toBe('NoMatchingPool');
  });

  test('after a full pool the next one is used', () => {
    const allocator = allocatorWith(
      pool('a', ['192.0.2.0/32'], { priority: 1 }),
      pool('b', ['192.0.2.8/32']),
    );
    expect(allocate(allocator, request('n/1'))).toBe('192.0.2.0 Assigned');
    expect(allocate(allocator, request('n/2'))).toBe('192.0.2.8 Assigned');
    expect(allocate(allocator, request('n/3'))).toBe('PoolExhausted');
  });
});

describe('families', () => {
  const both = { families: ['IPv4', 'IPv6'] } satisfies Partial<AddressRequest>;

  test('may be assigned from two pools', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/30']), pool('b', ['2001:db8::/126']));
    expect(allocate(allocator, request('n/s', both))).toBe('192.0.2.0,2001:db8:: Assigned');
  });

  test('are assigned together or not at all if both are required, and the free one stays free', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32', '2001:db8::/128']));
    expect(allocate(allocator, request('n/six', { families: ['IPv6'] }))).toBe('2001:db8:: Assigned');
    expect(allocate(allocator, request('n/both', both))).toBe('PoolExhausted');
    expect(allocate(allocator, request('n/four'))).toBe('192.0.2.0 Assigned');
    allocator.remove('n/six', 0);
    // Its message names the other family now.
    expect(allocator.takeChanged()).toEqual(['n/both']);
    expect(allocator.allocations.addressesOf('n/both').size).toBe(0);
    allocator.remove('n/four', 0);
    expect(allocator.takeChanged()).toEqual(['n/both']);
    expect(allocator.allocations.addressesOf('n/both').size).toBe(2);
    expect(allocator.waiting).toBe(0);
  });

  test('a Service that needs two families has a message about both, or about the one that was full first', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32', '2001:db8::/128']));
    allocate(allocator, request('n/six', { families: ['IPv6'] }));
    const six = { reason: 'PoolExhausted', message: 'no free IPv6 address in a (1 address)' };
    const four = { reason: 'PoolExhausted', message: 'no free IPv4 address in a (1 address)' };
    const wanted = request('n/both', both);
    expect(allocator.allocate(wanted, [])).toMatchObject({ ...six, alsoTrue: [] });
    allocate(allocator, request('n/four'));
    const message = `${four.message}; ${six.message}`;
    expect(allocator.allocate(wanted, [])).toMatchObject({ ...four, message, alsoTrue: [four, six] });
  });

  test('one is assigned if dual stack is preferred, and the other one later', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    const prefer = request('n/s', { ...both, needsAll: false });
    expect(allocate(allocator, prefer)).toBe('192.0.2.0 Assigned');
    allocator.setPools([pool('a', ['192.0.2.0/32', '2001:db8::/128'])], []);
    expect(allocator.takeChanged()).toEqual(['n/s']);
    expect(allocate(allocator, prefer)).toBe('192.0.2.0,2001:db8:: Assigned');
  });
});

describe('waiting', () => {
  test('a released address goes to the oldest Service', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    const older = request('n/older');
    const younger = request('n/younger');
    allocate(allocator, request('n/holder'));
    expect(allocate(allocator, younger)).toBe('PoolExhausted');
    expect(allocate(allocator, older)).toBe('PoolExhausted');
    allocator.remove('n/holder', 0);
    expect(allocator.takeChanged()).toEqual(['n/older']);
    expect(allocate(allocator, older)).toBe('192.0.2.0 Assigned');
    expect(allocate(allocator, younger)).toBe('PoolExhausted');
  });

  test('a Service that requests an address gets it before Services that take any', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    allocate(allocator, request('n/1'));
    allocate(allocator, request('n/2'));
    allocate(allocator, request('n/any'));
    expect(allocate(allocator, request('n/picky', v4('192.0.2.1')))).toBe('AddressInUse');
    allocator.remove('n/2', 0);
    expect(allocator.takeChanged()).toEqual(['n/picky']);
    allocator.remove('n/1', 0);
    expect(allocator.takeChanged()).toEqual(['n/any']);
  });

  test('a Service keeps its address while it waits for the requested one', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    allocate(allocator, request('n/1'));
    const two = request('n/2');
    allocate(allocator, two);
    const changed = { ...two, ...v4('192.0.2.0') };
    expect(allocate(allocator, changed)).toBe('192.0.2.1 AddressInUse');
    allocate(allocator, request('n/3'));
    allocator.remove('n/1', 0);
    expect(allocator.takeChanged()).toEqual(['n/2']);
    expect(allocator.allocate(changed, []).addresses.map(({ address }) => address)).toEqual(['192.0.2.0']);
    // Its old address is free only after its status has changed.
    expect(allocator.takeChanged()).toEqual([]);
    allocator.release('n/2', allocator.unreleased('n/2'), 0);
    expect(allocator.takeChanged()).toEqual(['n/3']);
  });

  test('deleted Services get no address', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    allocate(allocator, request('n/1'));
    for (let i = 0; i < 500; i++) {
      allocate(allocator, request(`n/gone-${i}`));
      allocator.remove(`n/gone-${i}`, 0);
    }
    allocate(allocator, request('n/2'));
    allocator.remove('n/1', 0);
    expect(allocator.takeChanged()).toEqual(['n/2']);
  });
});

describe('sharing', () => {
  const keyed = (service: string, changes: Partial<AddressRequest> = {}): AddressRequest =>
    request(service, { sharingKey: 'k', ...changes });

  test.each<[string, string, Partial<AddressRequest>, string]>([
    ['by key, disjoint ports', 'by-key', { ports: ['UDP/80'] }, '192.0.2.0 Assigned'],
    ['not with a port in use', 'by-key', { ports: ['TCP/80', 'TCP/81'] }, 'SharingRefused'],
    ['not with another key', 'by-key', { ports: ['TCP/81'], sharingKey: 'other' }, 'SharingRefused'],
    ['not without a key', 'by-key', { ports: ['TCP/81'], sharingKey: '' }, 'AddressInUse'],
    ['not Local with Cluster', 'by-key', { ports: ['TCP/81'], backend: 'Local:a=1' }, 'SharingRefused'],
    ['not between namespaces', 'by-key', { ports: ['TCP/81'], namespace: 'm' }, 'SharingRefused'],
    ['not in a pool that never shares', 'never', { ports: ['TCP/81'] }, 'AddressInUse'],
  ])('%s', (_what, sharing, changes, expected) => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31'], { sharing }));
    expect(allocate(allocator, keyed('n/1'))).toBe('192.0.2.0 Assigned');
    const second = allocator.allocate(keyed('n/2', { ...changes, ...v4('192.0.2.0') }), []);
    expect(`${second.addresses.map(({ address }) => address).join()} ${second.reason}`.trim()).toBe(expected);
    if (expected !== '192.0.2.0 Assigned') expect(second.message).toContain('n/1');
  });

  test('is allowed between namespaces that consent to each other', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    allocate(allocator, keyed('n/1', { sharingNamespaces: new Set(['m']) }));
    const other = keyed('m/2', { ports: ['TCP/81'], sharingNamespaces: new Set(['x']) });
    expect(allocate(allocator, other)).toBe('192.0.2.1 Assigned');
    const agreed = keyed('m/3', { ports: ['TCP/82'], sharingNamespaces: new Set(['*']) });
    expect(allocate(allocator, agreed)).toBe('192.0.2.0 Assigned');
  });

  test('by ports: Services of one namespace share addresses', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/30'], { sharing: 'by-ports' }));
    expect(allocate(allocator, request('n/1'))).toBe('192.0.2.0 Assigned');
    expect(allocate(allocator, request('n/2'))).toBe('192.0.2.1 Assigned');
    expect(allocate(allocator, request('n/3', { ports: ['TCP/443'] }))).toBe('192.0.2.0 Assigned');
    expect(allocate(allocator, request('m/4', { ports: ['TCP/443'] }))).toBe('192.0.2.2 Assigned');
  });

  test('a Service that waits for the consent of another one joins after it', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    const key = { sharingKey: 'k' };
    const holder = request('a/holder', { ...key, ports: ['TCP/80'] });
    const joiner = request('b/joiner', {
      ...key,
      ...v4('192.0.2.0'),
      ports: ['TCP/81'],
      sharingNamespaces: new Set(['a']),
    });
    allocate(allocator, holder);
    expect(allocate(allocator, joiner)).toBe('SharingRefused');
    allocate(allocator, { ...holder, sharingNamespaces: new Set(['b']) });
    expect(allocator.takeChanged()).toContain('b/joiner');
    expect(allocate(allocator, joiner)).toBe('192.0.2.0 Assigned');
  });

  test('two Services that request the address of the other keep their own', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    const [one, two] = [request('n/1'), request('n/2')];
    allocate(allocator, one);
    allocate(allocator, two);
    expect(allocate(allocator, { ...one, ...v4('192.0.2.1') })).toBe('192.0.2.0 AddressInUse');
    expect(allocate(allocator, { ...two, ...v4('192.0.2.0') })).toBe('192.0.2.1 AddressInUse');
  });

  test('a message names the oldest Service of an address, in whatever order they were allocated', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    const [older, younger] = [80, 81].map((port) =>
      request(`n/${port}`, { sharingKey: 'k', ports: [`TCP/${port}`] }),
    );
    const third = request('n/3', v4('192.0.2.0'));
    if (older === undefined || younger === undefined) throw new Error('unreachable');
    allocate(allocator, younger);
    expect(allocator.allocate(third, []).message).toBe('192.0.2.0 is held by n/81');
    allocate(allocator, older);
    expect(allocator.takeChanged()).toContain('n/3');
    expect(allocator.allocate(third, []).message).toBe('192.0.2.0 is held by n/80');
  });

  test('the message of a waiting Service changes when another Service gets the address', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    const third = request('n/3', { ...v4('192.0.2.0'), createdAtMs: 9e15 });
    const messageFor = (one: AddressRequest): string => allocator.allocate(one, []).message;
    const requests = [request('n/1', v4('192.0.2.0')), request('n/2', v4('192.0.2.0')), third];
    expect(requests.map(messageFor)).toEqual(['', '192.0.2.0 is held by n/1', '192.0.2.0 is held by n/1']);
    allocator.takeChanged();
    allocator.remove('n/1', 0);
    expect(allocator.takeChanged()).toEqual(['n/2', 'n/3']);
    expect(messageFor(third)).toBe('192.0.2.0 is held by n/2');
  });

  test('a port that a Service no longer uses lets a waiting one join', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    const first = keyed('n/1', { ports: ['TCP/80', 'TCP/81'] });
    allocate(allocator, first);
    expect(allocate(allocator, keyed('n/2', { ports: ['TCP/81'] }))).toBe('PoolExhausted');
    allocate(allocator, { ...first, ports: ['TCP/80'] });
    expect(allocator.takeChanged()).toEqual(['n/2']);
  });

  test('a port that another Service serves is not served, but the address is kept', () => {
    // Another address is free, but it would not be the shared one.
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    allocate(allocator, keyed('n/1'));
    const second = keyed('n/2', { ports: ['TCP/81'] });
    allocate(allocator, second);
    const refused = allocator.allocate({ ...second, ports: ['TCP/80', 'TCP/81'] }, []);
    expect(refused.reason).toBe('SharingRefused');
    expect(refused.message).toBe('port TCP/80 of 192.0.2.0 is held by n/1');
    expect(refused.addresses.map(({ address }) => address)).toEqual(['192.0.2.0']);
    expect([...(refused.addresses[0]?.portsInUse ?? [])]).toEqual([['TCP/80', 'n/1']]);
    allocator.remove('n/1', 0);
    // It serves the port now, which its status has to show.
    expect(allocator.takeChanged()).toEqual(['n/2']);
    expect(allocate(allocator, { ...second, ports: ['TCP/80', 'TCP/81'] })).toBe('192.0.2.0 Assigned');
  });
});

describe('reservations and quarantine', () => {
  test('a reserved address goes to its Service only', () => {
    const reservations = [{ address: '192.0.2.0', namespace: 'n', name: 'vip' }];
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31'], { reservations }));
    expect(allocate(allocator, request('n/1'))).toBe('192.0.2.1 Assigned');
    expect(allocate(allocator, request('n/2'))).toBe('PoolExhausted');
    expect(allocate(allocator, request('n/3', v4('192.0.2.0')))).toBe('ReservedForOther');
    expect(allocate(allocator, request('n/vip'))).toBe('192.0.2.0 Assigned');
    allocator.remove('n/vip', 0);
    expect(allocator.takeChanged()).toEqual([]);
    expect(allocate(allocator, request('n/vip'))).toBe('192.0.2.0 Assigned');
  });

  test('a released address is quarantined for the reuseDelay of its pool', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32'], { reuseDelay: '60s' }));
    allocate(allocator, request('n/1'), [], 0);
    allocator.remove('n/1', 1000);
    expect(allocate(allocator, request('n/2'), [], 2000)).toBe('PoolExhausted');
    expect(allocate(allocator, request('n/3', v4('192.0.2.0')), [], 2000)).toBe('Quarantined');
    expect(allocator.allocations.nextQuarantineEnd).toBe(61_000);
    allocator.endQuarantines(60_999);
    expect(allocator.takeChanged()).toEqual([]);
    allocator.endQuarantines(61_000);
    expect(allocator.takeChanged()).toEqual(['n/3']);
    expect(allocator.allocations.nextQuarantineEnd).toBeUndefined();
  });

  test('a quarantined address in the status of another Service is not kept', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31'], { reuseDelay: '60s' }));
    allocate(allocator, request('n/1'), [], 0);
    allocator.remove('n/1', 1000);
    expect(allocate(allocator, request('n/2'), ['192.0.2.0'], 2000)).toBe('192.0.2.1 Assigned');
  });

  test('a quarantined address may go back to its last Service at once', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32'], { reuseDelay: '60s' }));
    allocate(allocator, request('n/1'));
    allocator.remove('n/1', 0);
    expect(allocate(allocator, request('n/1', v4('192.0.2.0')), [], 1)).toBe('192.0.2.0 Assigned');
    expect(allocator.allocations.nextQuarantineEnd).toBeUndefined();
  });
});

describe('edits of pools', () => {
  test('do not move assigned addresses', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/30']));
    const one = request('n/1');
    allocate(allocator, one);
    allocator.setPools([pool('a', ['198.51.100.0/30'])], []);
    // Its condition names the pool.
    expect(allocator.takeChanged()).toEqual(['n/1']);
    expect(allocate(allocator, one)).toBe('192.0.2.0 Assigned');
    allocator.setPools([], []);
    expect(allocate(allocator, one)).toBe('192.0.2.0 Assigned');
  });

  test('move addresses outside of a pool with shrinkPolicy Reassign', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/30'], { shrinkPolicy: 'Reassign' }));
    const one = request('n/1');
    allocate(allocator, one);
    allocator.setPools([pool('a', ['198.51.100.0/30'], { shrinkPolicy: 'Reassign' })], []);
    expect(allocator.takeChanged()).toEqual(['n/1']);
    expect(allocate(allocator, one)).toBe('198.51.100.0 Assigned');
  });

  test.each([
    ['Retain', '192.0.2.0 Assigned'],
    ['Reassign', 'NoMatchingPool'],
  ] as const)('that leave a Service out keep its address, or not: shrinkPolicy %s', (shrinkPolicy, kept) => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/30'], { shrinkPolicy }));
    const one = request('n/1');
    allocate(allocator, one);
    const serviceSelector = { matchLabels: { tier: 'other' } };
    allocator.setPools([pool('a', ['192.0.2.0/30'], { shrinkPolicy, serviceSelector })], []);
    expect(allocate(allocator, one)).toBe(kept);
  });

  test('serve waiting Services, oldest first', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    allocate(allocator, request('n/1'));
    allocate(allocator, request('n/2'));
    allocate(allocator, request('n/3'));
    allocator.setPools([pool('a', ['192.0.2.0/31'])], []);
    // The message of the other one names the size of the pool.
    expect(allocator.takeChanged()).toEqual(['n/2', 'n/3']);
    expect(allocator.allocations.addressesOf('n/2').get('IPv4')).toBe('192.0.2.1');
    expect(allocator.allocations.usage(allocator.allocations.pools.get('a') ?? never(), 'IPv4')).toEqual({
      total: 2,
      used: 2,
      free: 0,
      quarantined: 0,
    });
  });
});

function never(): never {
  throw new Error('no such pool');
}
