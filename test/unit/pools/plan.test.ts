import { expect, test } from 'vitest';
import { planEdit } from '../../../src/pools/plan.ts';
import type { AddressPool, AddressPoolSpec } from '../../../src/objects/types/servicenet.ts';
import type { Service } from '../../../src/objects/types/core.generated.ts';

const service = (name: string, ip?: string): Service => ({
  metadata: { namespace: 'n', name, creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { type: 'LoadBalancer', ipFamilies: ['IPv4'], ports: [{ port: 80 }] },
  status: ip === undefined ? {} : { loadBalancer: { ingress: [{ ip }] } },
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
    now: 0,
  });
  const shown = effects.map(({ service: name, effect, from, to }) =>
    [name, effect, from, to].filter(Boolean).join(' '),
  );
  expect(shown).toEqual(expected);
});
