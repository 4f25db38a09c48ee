import { describe, expect, test } from 'vitest';
import { LoadBalancerAllocator } from '../../../../src/controllers/load-balancer/allocator.ts';
import type { AddressRequest } from '../../../../src/controllers/load-balancer/request.ts';
import { allocatorWith, assign, pool, request, v4 } from './given.ts';

describe('order of choice', () => {
  const pools = [
    pool('open', ['192.0.2.0/30']),
    pool('better', ['192.0.2.16/30'], { priority: 5 }),
    pool('manual', ['192.0.2.32/30'], { autoAssign: false }),
    pool('team', ['192.0.2.48/30'], { namespaceSelector: { matchLabels: { team: 'x' } } }),
    pool('web', ['192.0.2.64/30'], { serviceSelector: { matchLabels: { app: 'web' } }, priority: 1 }),
  ];

  test.each<[string, Partial<AddressRequest>, string[], string]>([
    ['a valid present address is kept', {}, ['192.0.2.2'], '192.0.2.2 Assigned'],
    ['even when something better is free', { labels: { app: 'web' } }, ['192.0.2.2'], '192.0.2.2 Assigned'],
    ['a requested address', v4('192.0.2.33'), [], '192.0.2.33 Assigned'],
    ['wins over the present one', v4('192.0.2.33'), ['192.0.2.2'], '192.0.2.33 Assigned'],
    ['a requested pool', { pools: ['manual'] }, [], '192.0.2.32 Assigned'],
    ['the first requested pool that exists', { pools: ['none', 'open'] }, [], '192.0.2.0 Assigned'],
    ['a pool that selects the namespace', { namespaceLabels: { team: 'x' } }, [], '192.0.2.48 Assigned'],
    ['of two that select, the higher priority', { namespaceLabels: { team: 'x' }, labels: { app: 'web' } }, [], '192.0.2.64 Assigned'],
    ['else the open pool of the highest priority', {}, [], '192.0.2.16 Assigned'],
    ['a pool that does not select the Service is closed', { pools: ['team'] }, [], 'NoMatchingPool'],
    ['and so are its addresses', v4('192.0.2.48'), [], 'AddressNotInPool'],
    ['an address of no pool', v4('198.51.100.1'), [], 'AddressNotInPool'],
    ['an address of another pool than the named', { ...v4('192.0.2.0'), pools: ['manual'] }, [], 'AddressNotInPool'],
    ['a family that no pool has', { families: ['IPv6'] }, [], 'FamilyUnavailable'],
    ['nonsense', { problems: ['asks for x'] }, [], 'InvalidRequest'],
    ['nonsense takes nothing away', { problems: ['asks for x'] }, ['192.0.2.2'], '192.0.2.2 InvalidRequest'],
  ])('%s', (_what, wish, present, expected) => {
    expect(assign(allocatorWith(...pools), request('n/s', wish), present)).toBe(expected);
  }); // prettier-ignore

  test('without a pool there is nothing', () => {
    expect(assign(new LoadBalancerAllocator(), request('n/s'))).toBe('NoMatchingPool');
  });

  test('a full pool gives way to the next one', () => {
    const allocator = allocatorWith(
      pool('a', ['192.0.2.0/32'], { priority: 1 }),
      pool('b', ['192.0.2.8/32']),
    );
    expect(assign(allocator, request('n/1'))).toBe('192.0.2.0 Assigned');
    expect(assign(allocator, request('n/2'))).toBe('192.0.2.8 Assigned');
    expect(assign(allocator, request('n/3'))).toBe('PoolExhausted');
  });
});

describe('families', () => {
  const both = { families: ['IPv4', 'IPv6'] } satisfies Partial<AddressRequest>;

  test('may come from two pools', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/30']), pool('b', ['2001:db8::/126']));
    expect(assign(allocator, request('n/s', both))).toBe('192.0.2.0,2001:db8:: Assigned');
  });

  test('all or none where all are required, and the one that is free is left to others', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32', '2001:db8::/128']));
    expect(assign(allocator, request('n/six', { families: ['IPv6'] }))).toBe('2001:db8:: Assigned');
    expect(assign(allocator, request('n/both', both))).toBe('PoolExhausted');
    expect(assign(allocator, request('n/four'))).toBe('192.0.2.0 Assigned');
    allocator.release('n/six', 0);
    // It is the other family now that it waits for.
    expect(allocator.takeChanged()).toEqual(['n/both']);
    expect(allocator.book.addressesOf('n/both').size).toBe(0);
    allocator.release('n/four', 0);
    expect(allocator.takeChanged()).toEqual(['n/both']);
    expect(allocator.book.addressesOf('n/both').size).toBe(2);
    expect(allocator.waiting).toBe(0);
  });

  test('one that needs two families is told of both, or of the one that was full first', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32', '2001:db8::/128']));
    assign(allocator, request('n/six', { families: ['IPv6'] }));
    const six = { reason: 'PoolExhausted', message: 'no free IPv6 address in a (1 address)' };
    const four = { reason: 'PoolExhausted', message: 'no free IPv4 address in a (1 address)' };
    const wanted = request('n/both', both);
    expect(allocator.assign(wanted, [])).toMatchObject({ ...six, alsoTrue: [] });
    assign(allocator, request('n/four'));
    const message = `${four.message}; ${six.message}`;
    expect(allocator.assign(wanted, [])).toMatchObject({ ...four, message, alsoTrue: [four, six] });
  });

  test('one is better than none where dual stack is preferred, and the other is added later', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    const prefer = request('n/s', { ...both, needsAll: false });
    expect(assign(allocator, prefer)).toBe('192.0.2.0 Assigned');
    allocator.setPools([pool('a', ['192.0.2.0/32', '2001:db8::/128'])], []);
    expect(allocator.takeChanged()).toEqual(['n/s']);
    expect(assign(allocator, prefer)).toBe('192.0.2.0,2001:db8:: Assigned');
  });
});

describe('waiting', () => {
  test('a freed address goes to the Service that was created first', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    const older = request('n/older');
    const younger = request('n/younger');
    assign(allocator, request('n/holder'));
    expect(assign(allocator, younger)).toBe('PoolExhausted');
    expect(assign(allocator, older)).toBe('PoolExhausted');
    allocator.release('n/holder', 0);
    expect(allocator.takeChanged()).toEqual(['n/older']);
    expect(assign(allocator, older)).toBe('192.0.2.0 Assigned');
    expect(assign(allocator, younger)).toBe('PoolExhausted');
  });

  test('whoever waits for one address is served before those who take any', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    assign(allocator, request('n/1'));
    assign(allocator, request('n/2'));
    assign(allocator, request('n/any'));
    expect(assign(allocator, request('n/picky', v4('192.0.2.1')))).toBe('AddressInUse');
    allocator.release('n/2', 0);
    expect(allocator.takeChanged()).toEqual(['n/picky']);
    allocator.release('n/1', 0);
    expect(allocator.takeChanged()).toEqual(['n/any']);
  });

  test('a Service keeps what it has while it waits for what it asks for', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    assign(allocator, request('n/1'));
    const two = request('n/2');
    assign(allocator, two);
    const wish = { ...two, ...v4('192.0.2.0') };
    expect(assign(allocator, wish)).toBe('192.0.2.1 AddressInUse');
    assign(allocator, request('n/3'));
    allocator.release('n/1', 0);
    expect(allocator.takeChanged()).toEqual(['n/2']);
    expect(allocator.assign(wish, []).addresses.map(({ address }) => address)).toEqual(['192.0.2.0']);
    // Its old address is for the next one when its status shows it no more.
    expect(allocator.takeChanged()).toEqual([]);
    allocator.letGo('n/2', allocator.leftBy('n/2'), 0);
    expect(allocator.takeChanged()).toEqual(['n/3']);
  });

  test('those who left are not served', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    assign(allocator, request('n/1'));
    for (let i = 0; i < 500; i++) {
      assign(allocator, request(`n/gone-${i}`));
      allocator.release(`n/gone-${i}`, 0);
    }
    assign(allocator, request('n/2'));
    allocator.release('n/1', 0);
    expect(allocator.takeChanged()).toEqual(['n/2']);
  });
});

describe('sharing', () => {
  const keyed = (service: string, wish: Partial<AddressRequest> = {}): AddressRequest =>
    request(service, { sharingKey: 'k', ...wish });

  test.each<[string, string, Partial<AddressRequest>, string]>([
    ['by key, disjoint ports', 'by-key', { ports: ['UDP/80'] }, '192.0.2.0 Assigned'],
    ['not with a taken port', 'by-key', { ports: ['TCP/80', 'TCP/81'] }, 'SharingRefused'],
    ['not with another key', 'by-key', { ports: ['TCP/81'], sharingKey: 'other' }, 'SharingRefused'],
    ['not without a key', 'by-key', { ports: ['TCP/81'], sharingKey: '' }, 'AddressInUse'],
    ['not Local with Cluster', 'by-key', { ports: ['TCP/81'], backend: 'Local:a=1' }, 'SharingRefused'],
    ['not between namespaces', 'by-key', { ports: ['TCP/81'], namespace: 'm' }, 'SharingRefused'],
    ['not where the pool never shares', 'never', { ports: ['TCP/81'] }, 'AddressInUse'],
  ])('%s', (_what, sharing, wish, expected) => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31'], { sharing }));
    expect(assign(allocator, keyed('n/1'))).toBe('192.0.2.0 Assigned');
    const second = allocator.assign(keyed('n/2', { ...wish, ...v4('192.0.2.0') }), []);
    expect(`${second.addresses.map(({ address }) => address).join()} ${second.reason}`.trim()).toBe(expected);
    if (expected !== '192.0.2.0 Assigned') expect(second.message).toContain('n/1');
  });

  test('between namespaces with the consent of both', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    assign(allocator, keyed('n/1', { sharingNamespaces: new Set(['m']) }));
    const other = keyed('m/2', { ports: ['TCP/81'], sharingNamespaces: new Set(['x']) });
    expect(assign(allocator, other)).toBe('192.0.2.1 Assigned');
    const agreed = keyed('m/3', { ports: ['TCP/82'], sharingNamespaces: new Set(['*']) });
    expect(assign(allocator, agreed)).toBe('192.0.2.0 Assigned');
  });

  test('by ports: Services of one namespace fill addresses up', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/30'], { sharing: 'by-ports' }));
    expect(assign(allocator, request('n/1'))).toBe('192.0.2.0 Assigned');
    expect(assign(allocator, request('n/2'))).toBe('192.0.2.1 Assigned');
    expect(assign(allocator, request('n/3', { ports: ['TCP/443'] }))).toBe('192.0.2.0 Assigned');
    expect(assign(allocator, request('m/4', { ports: ['TCP/443'] }))).toBe('192.0.2.2 Assigned');
  });

  test('a consent lets in who waited for it', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    const key = { sharingKey: 'k' };
    const holder = request('a/holder', { ...key, ports: ['TCP/80'] });
    const joiner = request('b/joiner', {
      ...key,
      ...v4('192.0.2.0'),
      ports: ['TCP/81'],
      sharingNamespaces: new Set(['a']),
    });
    assign(allocator, holder);
    expect(assign(allocator, joiner)).toBe('SharingRefused');
    assign(allocator, { ...holder, sharingNamespaces: new Set(['b']) });
    expect(allocator.takeChanged()).toContain('b/joiner');
    expect(assign(allocator, joiner)).toBe('192.0.2.0 Assigned');
  });

  test('two that have what the other one asks for wait for each other', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    const [one, two] = [request('n/1'), request('n/2')];
    assign(allocator, one);
    assign(allocator, two);
    expect(assign(allocator, { ...one, ...v4('192.0.2.1') })).toBe('192.0.2.0 AddressInUse');
    expect(assign(allocator, { ...two, ...v4('192.0.2.0') })).toBe('192.0.2.1 AddressInUse');
  });

  test('of several that share an address the oldest is named, in whatever order they came', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    const [older, younger] = [80, 81].map((port) =>
      request(`n/${port}`, { sharingKey: 'k', ports: [`TCP/${port}`] }),
    );
    const third = request('n/3', v4('192.0.2.0'));
    if (older === undefined || younger === undefined) throw new Error('two were made');
    assign(allocator, younger);
    expect(allocator.assign(third, []).message).toBe('192.0.2.0 is held by n/81');
    assign(allocator, older);
    expect(allocator.takeChanged()).toContain('n/3');
    expect(allocator.assign(third, []).message).toBe('192.0.2.0 is held by n/80');
  });

  test('who waits is told when somebody else is in the way', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    const third = request('n/3', { ...v4('192.0.2.0'), createdAt: 9e15 });
    const why = (one: AddressRequest): string => allocator.assign(one, []).message;
    const asking = [request('n/1', v4('192.0.2.0')), request('n/2', v4('192.0.2.0')), third];
    expect(asking.map(why)).toEqual(['', '192.0.2.0 is held by n/1', '192.0.2.0 is held by n/1']);
    allocator.takeChanged();
    allocator.release('n/1', 0);
    expect(allocator.takeChanged()).toEqual(['n/2', 'n/3']);
    expect(why(third)).toBe('192.0.2.0 is held by n/2');
  });

  test('a port that is given up lets the next one in', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    const first = keyed('n/1', { ports: ['TCP/80', 'TCP/81'] });
    assign(allocator, first);
    expect(assign(allocator, keyed('n/2', { ports: ['TCP/81'] }))).toBe('PoolExhausted');
    assign(allocator, { ...first, ports: ['TCP/80'] });
    expect(allocator.takeChanged()).toEqual(['n/2']);
  });

  test('a port that a sharer takes away is not served, but the address stays', () => {
    // Not even where another address is free: it asked for the shared one.
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31']));
    assign(allocator, keyed('n/1'));
    const second = keyed('n/2', { ports: ['TCP/81'] });
    assign(allocator, second);
    const greedy = allocator.assign({ ...second, ports: ['TCP/80', 'TCP/81'] }, []);
    expect(greedy.reason).toBe('SharingRefused');
    expect(greedy.message).toBe('port TCP/80 of 192.0.2.0 is held by n/1');
    expect(greedy.addresses.map(({ address }) => address)).toEqual(['192.0.2.0']);
    expect([...(greedy.addresses[0]?.portsInUse ?? [])]).toEqual([['TCP/80', 'n/1']]);
    allocator.release('n/1', 0);
    // The port is its own now, which its status must say.
    expect(allocator.takeChanged()).toEqual(['n/2']);
    expect(assign(allocator, { ...second, ports: ['TCP/80', 'TCP/81'] })).toBe('192.0.2.0 Assigned');
  });
});

describe('reservations and rests', () => {
  test('a reserved address waits for its Service', () => {
    const reservations = [{ address: '192.0.2.0', namespace: 'n', name: 'vip' }];
    const allocator = allocatorWith(pool('a', ['192.0.2.0/31'], { reservations }));
    expect(assign(allocator, request('n/1'))).toBe('192.0.2.1 Assigned');
    expect(assign(allocator, request('n/2'))).toBe('PoolExhausted');
    expect(assign(allocator, request('n/3', v4('192.0.2.0')))).toBe('ReservedForOther');
    expect(assign(allocator, request('n/vip'))).toBe('192.0.2.0 Assigned');
    allocator.release('n/vip', 0);
    expect(allocator.takeChanged()).toEqual([]);
    expect(assign(allocator, request('n/vip'))).toBe('192.0.2.0 Assigned');
  });

  test('an address rests before another Service gets it', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32'], { reuseDelay: '60s' }));
    assign(allocator, request('n/1'), [], 0);
    allocator.release('n/1', 1000);
    expect(assign(allocator, request('n/2'), [], 2000)).toBe('PoolExhausted');
    expect(assign(allocator, request('n/3', v4('192.0.2.0')), [], 2000)).toBe('Quarantined');
    expect(allocator.book.nextRest).toBe(61_000);
    allocator.tick(60_999);
    expect(allocator.takeChanged()).toEqual([]);
    allocator.tick(61_000);
    expect(allocator.takeChanged()).toEqual(['n/3']);
    expect(allocator.book.nextRest).toBeUndefined();
  });

  test('but may have it back at once', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32'], { reuseDelay: '60s' }));
    assign(allocator, request('n/1'));
    allocator.release('n/1', 0);
    expect(assign(allocator, request('n/1', v4('192.0.2.0')), [], 1)).toBe('192.0.2.0 Assigned');
    expect(allocator.book.nextRest).toBeUndefined();
  });
});

describe('edits of pools', () => {
  test('move nothing that was given', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/30']));
    const one = request('n/1');
    assign(allocator, one);
    allocator.setPools([pool('a', ['198.51.100.0/30'])], []);
    // What its status says of the pool is no longer true.
    expect(allocator.takeChanged()).toEqual(['n/1']);
    expect(assign(allocator, one)).toBe('192.0.2.0 Assigned');
    allocator.setPools([], []);
    expect(assign(allocator, one)).toBe('192.0.2.0 Assigned');
  });

  test('move what is outside where the pool says so', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/30'], { shrinkPolicy: 'Reassign' }));
    const one = request('n/1');
    assign(allocator, one);
    allocator.setPools([pool('a', ['198.51.100.0/30'], { shrinkPolicy: 'Reassign' })], []);
    expect(allocator.takeChanged()).toEqual(['n/1']);
    expect(assign(allocator, one)).toBe('198.51.100.0 Assigned');
  });

  test('serve those who wait, oldest first', () => {
    const allocator = allocatorWith(pool('a', ['192.0.2.0/32']));
    assign(allocator, request('n/1'));
    assign(allocator, request('n/2'));
    assign(allocator, request('n/3'));
    allocator.setPools([pool('a', ['192.0.2.0/31'])], []);
    // The other one is told that the pool has two addresses now.
    expect(allocator.takeChanged()).toEqual(['n/2', 'n/3']);
    expect(allocator.book.addressesOf('n/2').get('IPv4')).toBe('192.0.2.1');
    expect(allocator.book.usage(allocator.book.pools.get('a') ?? never(), 'IPv4')).toEqual({
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
