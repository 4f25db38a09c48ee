import { expect, test } from 'vitest';
import { planEdit, poolFits, poolSquares } from '../../../src/pools/plan.ts';
import type { AddressPool, AddressPoolSpec } from '../../../src/objects/types/servicenet.ts';
import { loadBalancerReady } from '../../../src/network/announcing/assigned-addresses.ts';
import type { Condition } from '../../../src/objects/meta.ts';
import type { Service } from '../../../src/objects/types/core.generated.ts';

const ready = (message: string): Condition => ({
  ...{ type: loadBalancerReady, status: 'True', reason: 'Assigned', message },
  lastTransitionTime: '2026-01-01T00:00:00Z',
});

const service = (name: string, ip?: string): Service => ({
  metadata: { namespace: 'n', name, creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { type: 'LoadBalancer', ipFamilies: ['IPv4'], ports: [{ port: 80 }] },
  status:
    ip === undefined ? {} : { loadBalancer: { ingress: [{ ip }] }, conditions: [ready(`${ip} from pool p`)] },
});

const pool = (spec: AddressPoolSpec): AddressPool => ({ metadata: { name: 'p' }, spec });

test.each<[string, AddressPoolSpec, AddressPoolSpec, string[]]>([
  ['nothing', { addresses: ['192.0.2.0/31'] }, { addresses: ['192.0.2.0/31'], priority: 3 }, []],
  [
    'a larger pool',
    { addresses: ['192.0.2.0/31'] },
    { addresses: ['192.0.2.0/30'] },
    ['n/c gains 192.0.2.2'],
  ],
  [
    'a smaller pool that retains',
    { addresses: ['192.0.2.0/31'] },
    { addresses: ['192.0.2.0/32'] },
    ['n/b stays 192.0.2.1'],
  ],
  [
    'another range that reassigns',
    { addresses: ['192.0.2.0/31'], shrinkPolicy: 'Reassign' },
    { addresses: ['192.0.2.0/32', '198.51.100.1/32'], shrinkPolicy: 'Reassign' },
    ['n/b moves 192.0.2.1 198.51.100.1'],
  ],
  [
    'another range that reassigns only now',
    { addresses: ['192.0.2.0/31'] },
    { addresses: ['192.0.2.0/32', '198.51.100.1/32'], shrinkPolicy: 'Reassign' },
    ['n/b moves 192.0.2.1 198.51.100.1'],
  ],
])('an edit to %s', (_what, before, after, expected) => {
  const effects = planEdit({
    services: [service('a', '192.0.2.0'), service('b', '192.0.2.1'), service('c')],
    namespaceLabels: () => ({}),
    settings: { loadBalancerClass: 'x', isDefaultClass: true, compat: true },
    forbidden: [],
    pools: [pool(before)],
    edited: [pool(after)],
    nowMs: 0,
  });
  const shown = effects.map(({ service: name, effect, from, to }) =>
    [name, effect, from, to].filter(Boolean).join(' '),
  );
  expect(shown).toEqual(expected);
});

/** What another load balancer wrote, for Services of our class: no condition of ours names the addresses. */
const foreign = (name: string, ip: string, annotations: Record<string, string> = {}): Service => ({
  ...service(name),
  metadata: { namespace: 'n', name, creationTimestamp: '2026-01-01T00:00:00Z', annotations },
  spec: { type: 'LoadBalancer', loadBalancerClass: 'x', ipFamilies: ['IPv4'], ports: [{ port: 80 }] },
  status: { loadBalancer: { ingress: [{ ip }] } },
});

test.each<[string, Service[], AddressPool[], string[]]>([
  [
    'adopts',
    [foreign('a', '192.0.2.2'), foreign('b', '192.0.2.3')],
    [],
    ['n/a adopts 192.0.2.2', 'n/b adopts 192.0.2.3'],
  ],
  [
    'gives nobody what they show',
    [service('a'), foreign('b', '192.0.2.0')],
    [],
    ['n/a gains 192.0.2.1', 'n/b adopts 192.0.2.0'],
  ],
  [
    'says that an address changes',
    [foreign('a', '192.0.2.2'), foreign('b', '192.0.2.2')],
    [],
    ['n/a adopts 192.0.2.2', 'n/b moves 192.0.2.2 192.0.2.0'],
  ],
  [
    'says the same once the pools are there',
    [foreign('a', '192.0.2.2'), foreign('b', '192.0.2.2')],
    [pool({ addresses: ['192.0.2.0/30'] })],
    ['n/a adopts 192.0.2.2', 'n/b moves 192.0.2.2 192.0.2.0'],
  ],
])(
  'of Services that another load balancer served with our class it %s',
  (_what, services, pools, expected) => {
    const effects = planEdit({
      ...{ services, namespaceLabels: () => ({}), forbidden: [], pools, nowMs: 0 },
      settings: { loadBalancerClass: 'x', isDefaultClass: true, compat: true },
      edited: [pool({ addresses: ['192.0.2.0/30'] })],
    });
    expect(
      effects.map(({ service: name, effect, from, to }) =>
        [name, effect, from, to].filter(Boolean).join(' '),
      ),
    ).toEqual(expected);
  },
);

const named = (name: string, spec: AddressPoolSpec): AddressPool => ({ metadata: { name }, spec });
const clusterOf = (services: readonly Service[], pools: readonly AddressPool[]) => ({
  ...{ services, pools, namespaceLabels: () => ({}), forbidden: [] },
  settings: { loadBalancerClass: 'x', isDefaultClass: true, compat: true },
});

test('each pool says whether it may serve a Service, and why not', () => {
  const pools = [
    named('p', { addresses: ['192.0.2.0/31'] }),
    named('six', { addresses: ['2001:db8::/120'] }),
    named('asked', { addresses: ['198.51.100.0/24'], autoAssign: false }),
    named('other', { addresses: ['203.0.113.0/24'], serviceSelector: { matchLabels: { a: 'b' } } }),
    named('free', { addresses: ['198.18.0.0/24'] }),
  ];
  const services = [service('a', '192.0.2.0'), service('b', '192.0.2.1'), service('c')];
  expect(poolFits(clusterOf(services, pools), 'n/c', 0)).toEqual([
    { pool: 'asked', isFit: false, message: 'pool asked serves only Services that name it (autoAssign)' },
    { pool: 'free', isFit: true, message: 'pool free has an address for it' },
    { pool: 'other', isFit: false, message: 'pool other does not select this Service' },
    { pool: 'p', isFit: false, message: 'no free IPv4 address in p (2 addresses)' },
    { pool: 'six', isFit: false, message: 'six: no IPv4 addresses' },
  ]);
  expect(poolFits(clusterOf(services, pools), 'n/none', 0)).toEqual([]);
});

test('the addresses of a pool in their order, and none of one that has too many', () => {
  const reservations = [{ address: '192.0.2.2', namespace: 'n', name: 'x' }];
  const resting = [{ address: '192.0.2.3', until: '2026-01-01T00:00:00Z', service: 'n/old' }];
  const small = {
    ...named('p', { addresses: ['192.0.2.0/29'], exclude: ['192.0.2.5/32'], reservations }),
    status: { resting },
  };
  const large = named('large', { addresses: ['198.18.0.0/20'] });
  const squares = poolSquares(clusterOf([service('a', '192.0.2.0')], [small, large]), 0, 1024);
  expect(squares('p', 'IPv4')?.map(({ address, state }) => `${address} ${state}`)).toEqual([
    '192.0.2.0 used',
    '192.0.2.1 free',
    '192.0.2.2 reserved',
    '192.0.2.3 quarantined',
    '192.0.2.4 free',
    '192.0.2.6 free',
    '192.0.2.7 free',
  ]);
  expect(squares('p', 'IPv6')).toEqual([]);
  expect(squares('large', 'IPv4')).toBeUndefined();
});
