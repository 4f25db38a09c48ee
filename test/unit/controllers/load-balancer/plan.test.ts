import { describe, expect, test } from 'vitest';
import {
  loadBalancerCleanupFinalizer,
  planReleased,
  planServed,
} from '../../../../src/controllers/load-balancer/plan.ts';
import { readQuarantined } from '../../../../src/controllers/load-balancer/allocations.ts';
import type { Outcome } from '../../../../src/controllers/load-balancer/reasons.ts';
import { loadBalancerReady } from '../../../../src/network/announcing/assigned-addresses.ts';
import { isForeign, statusAddresses } from '../../../../src/controllers/load-balancer/status.ts';
import type { Service, ServiceStatus } from '../../../../src/objects/types/core.generated.ts';
import type { Condition } from '../../../../src/objects/meta.ts';
import { inStatus } from './samples.ts';
import { planPoolStatus, type PoolState } from '../../../../src/controllers/load-balancer/plan.ts';

const now = Date.parse('2026-01-01T00:00:00Z');

function service(status: ServiceStatus = {}, metadata: Partial<Service['metadata']> = {}): Service {
  return {
    metadata: { namespace: 'n', name: 's', finalizers: [loadBalancerCleanupFinalizer], ...metadata },
    spec: {
      type: 'LoadBalancer',
      ports: [
        { port: 80, protocol: 'TCP' },
        { port: 53, protocol: 'UDP' },
      ],
    },
    status,
  };
}

function outcome(addresses: string[], reason: Outcome['reason'] = 'Assigned', message = ''): Outcome {
  return {
    addresses: addresses.map((address) => ({
      family: address.includes(':') ? 'IPv6' : 'IPv4',
      address,
      pool: 'p',
      origin: { pool: 'p', shrinkPolicy: 'Retain' },
      portsInUse: new Map(),
    })),
    sharingKey: '',
    reason,
    message,
    alsoTrue: [],
  };
}

const ready = (reason = 'Assigned', message = '192.0.2.1 from pool p'): Condition => ({
  type: loadBalancerReady,
  status: reason === 'Assigned' ? 'True' : 'False',
  lastTransitionTime: '2025-12-31T00:00:00Z',
  reason,
  message,
});

const ports = [
  { port: 80, protocol: 'TCP' },
  { port: 53, protocol: 'UDP' },
];
const assigned: ServiceStatus = {
  loadBalancer: { ingress: [{ ip: '192.0.2.1', ipMode: 'VIP', ports }] },
  conditions: [ready()],
};

describe('planServed', () => {
  test('adds the finalizer, the address and the condition', () => {
    const plan = planServed(
      service({ loadBalancer: {} }, { finalizers: [] }),
      outcome(['192.0.2.1']),
      [],
      now,
    );
    expect(plan).toEqual({
      finalizer: 'add',
      status: { ...assigned, conditions: [{ ...ready(), lastTransitionTime: '2026-01-01T00:00:00Z' }] },
      transition: 'Assigned',
      events: [{ type: 'Normal', reason: 'Assigned', message: '192.0.2.1 from pool p' }],
    });
  });

  test('plans nothing when nothing has to change', () => {
    expect(planServed(service(assigned), outcome(['192.0.2.1']), inStatus('192.0.2.1'), now)).toEqual({
      events: [],
    });
  });

  test('explains once why there is no address', () => {
    const waiting = outcome([], 'PoolExhausted', 'no free IPv4 address in p (1 addresses)');
    const plan = planServed(service({ loadBalancer: {} }), waiting, [], now);
    expect(plan.events).toEqual([{ type: 'Warning', reason: 'PoolExhausted', message: waiting.message }]);
    const again = planServed(service(plan.status ?? {}), waiting, [], now + 60_000);
    expect(again).toEqual({ events: [] });
  });

  test('keeps a message that is still true', () => {
    const six = { reason: 'PoolExhausted', message: 'no free IPv6 address in p (1 address)' } as const;
    const four = { reason: 'AddressInUse', message: '192.0.2.9 is held by n/t' } as const;
    const waiting = { ...outcome([], four.reason, `${four.message}; ${six.message}`), alsoTrue: [four, six] };
    const withMessage = (reason: string, message: string): Service =>
      service({ loadBalancer: {}, conditions: [ready(reason, message)] });
    expect(planServed(withMessage(six.reason, six.message), waiting, [], now)).toEqual({ events: [] });
    const stale = 'no free IPv6 address in p (2 addresses)';
    const { status, transition } = planServed(withMessage(six.reason, stale), waiting, [], now);
    expect(status?.conditions).toMatchObject([{ reason: four.reason, message: waiting.message }]);
    expect(transition).toBe(four.reason);
  });

  test('keeps the time of the last transition while the status of the condition stays', () => {
    const before = service({ loadBalancer: {}, conditions: [ready('PoolExhausted', 'x')] });
    const plan = planServed(before, outcome([], 'NoMatchingPool', 'y'), [], now);
    expect(plan.status?.conditions?.[0]).toMatchObject({
      lastTransitionTime: '2025-12-31T00:00:00Z',
      reason: 'NoMatchingPool',
    });
  });

  test('has an Event for an address that was removed', () => {
    const plan = planServed(service(assigned), outcome(['192.0.2.9']), inStatus('192.0.2.1'), now);
    expect(plan.events.map(({ reason }) => reason)).toEqual(['Released', 'Assigned']);
    expect(plan.status?.loadBalancer?.ingress?.map(({ ip }) => ip)).toEqual(['192.0.2.9']);
  });

  test('leaves entries, host names and conditions of others as they are', () => {
    const other: Condition = { ...ready(), type: 'example.com/Announced' };
    const before = service({
      loadBalancer: {
        ingress: [
          { ip: '198.51.100.7', ipMode: 'Proxy' },
          { hostname: 'lb.example.com' },
          { ip: '192.0.2.1', hostname: 'web.example.com', ipMode: 'VIP', ports },
        ],
      },
      conditions: [other, ready()],
    });
    const { status } = planServed(before, outcome(['192.0.2.1', '2001:db8::1']), inStatus('192.0.2.1'), now);
    expect(status?.loadBalancer?.ingress).toEqual([
      { ip: '192.0.2.1', hostname: 'web.example.com', ipMode: 'VIP', ports },
      { ip: '2001:db8::1', ipMode: 'VIP', ports },
      { ip: '198.51.100.7', ipMode: 'Proxy' },
      { hostname: 'lb.example.com' },
    ]);
    expect(status?.conditions?.map(({ type }) => type)).toEqual(['example.com/Announced', loadBalancerReady]);
  });

  test('marks a port that another Service serves', () => {
    const shared: Outcome = {
      ...outcome([], 'PoolExhausted', 'no free IPv4 address'),
      addresses: [
        {
          family: 'IPv4',
          address: '192.0.2.1',
          pool: 'p',
          origin: { pool: 'p', shrinkPolicy: 'Retain' },
          portsInUse: new Map([['TCP/80', 'n/other']]),
        },
      ],
    };
    const { status } = planServed(service(assigned), shared, inStatus('192.0.2.1'), now);
    expect(status?.loadBalancer?.ingress?.[0]?.ports?.[0]).toEqual({
      port: 80,
      protocol: 'TCP',
      error: 'servicenet.dev/PortInUse',
    });
    const [current] = statusAddresses(service(status ?? {}), () => true);
    expect([...(current?.servedPorts ?? [])]).toEqual(['UDP/53']);
  });

  test('advises what to do about an address that no pool contains any more', () => {
    const kept: Outcome = {
      ...outcome([]),
      addresses: [
        {
          family: 'IPv4',
          address: '192.0.2.1',
          pool: undefined,
          origin: { pool: 'p', shrinkPolicy: 'Retain' },
          portsInUse: new Map(),
        },
      ],
    };
    expect(planServed(service({}), kept, [], now).status?.conditions?.[0]?.message).toContain(
      'extend a pool',
    );
  });
});

describe('planReleased', () => {
  test('removes own addresses, condition and finalizer', () => {
    const foreign = { hostname: 'lb.example.com' };
    const before = service({
      loadBalancer: { ingress: [...(assigned.loadBalancer?.ingress ?? []), foreign] },
      conditions: [ready()],
    });
    expect(planReleased(before, inStatus('192.0.2.1'), false)).toEqual({
      finalizer: 'remove',
      status: { loadBalancer: { ingress: [foreign] } },
      events: [],
    });
  });

  test('keeps the status of a deleted Service, and never changes one that was not served', () => {
    const deleted = service(assigned, { deletionTimestamp: '2026-01-01T00:00:00Z' });
    expect(planReleased(deleted, inStatus('192.0.2.1'), true)).toEqual({ finalizer: 'remove', events: [] });
    expect(planReleased(service({ loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } }), [], false)).toEqual({
      events: [],
    });
  });

  test('removes the finalizer of a deleted Service without a condition', () => {
    const halfway = service({ loadBalancer: {} }, { deletionTimestamp: '2026-01-01T00:00:00Z' });
    expect(planReleased(halfway, [], true)).toEqual({ finalizer: 'remove', events: [] });
  });

  // The status was overwritten, and then the type changed, before a process saw it.
  test('removes its own finalizer from a Service that is not served, and no other manager’s', () => {
    const finalizers = { 'f:metadata': { 'f:finalizers': { [`v:"${loadBalancerCleanupFinalizer}"`]: {} } } };
    const of = (manager: string): Service =>
      service({}, { managedFields: [{ manager, operation: 'Update', fieldsV1: finalizers }] });
    expect(planReleased(of('servicenet'), [], false)).toMatchObject({ finalizer: 'remove' });
    expect(planReleased(of('cloud-controller-manager'), [], false)).toEqual({ events: [] });
  });
});

describe('statusAddresses', () => {
  const pooled = (_family: string, value: bigint): boolean => value === 0xc0000201n;
  const entries = [
    { ip: '198.51.100.1' },
    { ip: '192.0.2.1' },
    { ip: '2001:db8::1' },
    { ip: 'x' },
    { hostname: 'x' },
  ];

  const of = (status: ServiceStatus): string[] =>
    statusAddresses(service(status), pooled).map(({ address }) => address);

  test('are those that the condition names, else those that pools contain', () => {
    const loadBalancer = { ingress: entries };
    expect(of({ loadBalancer })).toEqual(['192.0.2.1']);
    const named = ready('Assigned', '198.51.100.1 from pool q, 2001:db8::1 from pool q');
    expect(of({ loadBalancer, conditions: [named] })).toEqual(['198.51.100.1', '2001:db8::1']);
  });

  test('are not addresses that another client wrote to the status of a waiting Service', () => {
    const loadBalancer = { ingress: [{ ip: '203.0.113.9' }] };
    const waiting = ready('PoolExhausted', 'no free IPv4 address in p (1 addresses)');
    expect(of({ loadBalancer, conditions: [waiting] })).toEqual([]);
  });

  test('a Service without a class may be foreign, a Service with a class is not', () => {
    const foreign = service({ loadBalancer: { ingress: [{ ip: '198.51.100.1' }] } });
    expect(isForeign(foreign, [])).toBe(true);
    expect(isForeign(foreign, inStatus('198.51.100.1'))).toBe(false);
    expect(isForeign(service({ loadBalancer: {} }), [])).toBe(false);
    expect(
      isForeign({ ...foreign, spec: { ...foreign.spec, loadBalancerClass: 'servicenet.dev/lb' } }, []),
    ).toBe(false);
  });
});

describe('quarantined addresses', () => {
  test('are written to the status of a pool, and read until their quarantine ends', () => {
    const usage = {
      IPv4: { total: 4, used: 1, free: 2, quarantined: 1 },
      IPv6: { total: 0, used: 0, free: 0, quarantined: 0 },
    };
    const quarantined = [{ address: '192.0.2.1', service: 'n/s', untilMs: now + 1500 }];
    const pool = { metadata: { name: 'p' }, spec: {} };
    const status = planPoolStatus(
      pool,
      { usage, problems: [], conflicts: [], quarantined, announced: undefined, generation: 1 },
      now,
    );
    const written = { ...pool, ...(status ? { status } : {}) };
    expect(status?.resting).toEqual([
      { address: '192.0.2.1', service: 'n/s', until: '2026-01-01T00:00:02Z' },
    ]);
    expect(readQuarantined(written, now)).toEqual([
      { address: '192.0.2.1', service: 'n/s', untilMs: now + 2000 },
    ]);
    expect(readQuarantined(written, now + 2000)).toEqual([]);
    const broken = [{ address: 'x', service: 'n/s', until: '2026-01-01T00:00:02Z' }];
    expect(readQuarantined({ ...pool, status: { resting: broken } }, now)).toEqual([]);
  });
});

describe('planPoolStatus', () => {
  const none = { total: 0, used: 0, free: 0, quarantined: 0 };
  const state = (changes: Partial<PoolState> = {}): PoolState => ({
    usage: { IPv4: { total: 4, used: 1, free: 3, quarantined: 0 }, IPv6: none },
    problems: [],
    conflicts: [],
    quarantined: [],
    announced: undefined,
    generation: 1,
    ...changes,
  });
  const pool = { metadata: { name: 'p' }, spec: {} };
  const refusal = { address: '192.0.2.1', node: 'a', reason: 'AddressConflict', holder: 'm' } as const;

  test.each<[string, PoolState, string[]]>([
    ['usable', state(), ['True Usable', 'False NoOverlap']],
    ['partly invalid', state({ problems: ['x'] }), ['True InvalidSpec', 'False NoOverlap']],
    ['overlapping', state({ conflicts: ['y'] }), ['True Usable', 'True Overlap']],
    [
      'refused by nodes',
      state({ announced: { reasons: new Map([['AddressConflict', 1]]), refused: [refusal] } }),
      ['True Usable', 'False NoOverlap', 'False AddressConflict'],
    ],
    ['empty', state({ usage: { IPv4: none, IPv6: none } }), ['False NoAddresses', 'False NoOverlap']],
  ])('%s', (_what, known, expected) => {
    const status = planPoolStatus(pool, known, now);
    expect(status?.conditions?.map((c) => `${c.status} ${c.reason}`)).toEqual(expected);
    expect(planPoolStatus({ ...pool, ...(status ? { status } : {}) }, known, now + 1000)).toBeUndefined();
  });
});
