import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../../../src/controllers/load-balancer/outcome.ts';
import {
  planPoolStatus,
  readResting,
  type PoolFacts,
} from '../../../../src/controllers/load-balancer/plan-pool.ts';
import {
  cleanupFinalizer,
  planReleased,
  planServed,
} from '../../../../src/controllers/load-balancer/plan.ts';
import {
  conditionType,
  isForeign,
  presentAddresses,
} from '../../../../src/controllers/load-balancer/present.ts';
import type { Condition } from '../../../../src/objects/meta.ts';
import type { Service, ServiceStatus } from '../../../../src/objects/core.generated.ts';
import { had } from './given.ts';

const now = Date.parse('2026-01-01T00:00:00Z');

function service(status: ServiceStatus = {}, metadata: Partial<Service['metadata']> = {}): Service {
  return {
    metadata: { namespace: 'n', name: 's', finalizers: [cleanupFinalizer], ...metadata },
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
  type: conditionType,
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

  test('plans nothing when all is as it should be', () => {
    expect(planServed(service(assigned), outcome(['192.0.2.1']), had('192.0.2.1'), now)).toEqual({
      events: [],
    });
  });

  test('says why there is nothing, once', () => {
    const waiting = outcome([], 'PoolExhausted', 'no free IPv4 address in p (1 addresses)');
    const plan = planServed(service({ loadBalancer: {} }), waiting, [], now);
    expect(plan.events).toEqual([{ type: 'Warning', reason: 'PoolExhausted', message: waiting.message }]);
    const again = planServed(service(plan.status ?? {}), waiting, [], now + 60_000);
    expect(again).toEqual({ events: [] });
  });

  test('lets stand what was said before and is still true', () => {
    const six = { reason: 'PoolExhausted', message: 'no free IPv6 address in p (1 address)' } as const;
    const four = { reason: 'AddressInUse', message: '192.0.2.9 is held by n/t' } as const;
    const waiting = { ...outcome([], four.reason, `${four.message}; ${six.message}`), alsoTrue: [four, six] };
    const told = (reason: string, message: string): Service =>
      service({ loadBalancer: {}, conditions: [ready(reason, message)] });
    expect(planServed(told(six.reason, six.message), waiting, [], now)).toEqual({ events: [] });
    const stale = 'no free IPv6 address in p (2 addresses)';
    const { status, transition } = planServed(told(six.reason, stale), waiting, [], now);
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

  test('tells of an address that was taken back', () => {
    const plan = planServed(service(assigned), outcome(['192.0.2.9']), had('192.0.2.1'), now);
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
    const { status } = planServed(before, outcome(['192.0.2.1', '2001:db8::1']), had('192.0.2.1'), now);
    expect(status?.loadBalancer?.ingress).toEqual([
      { ip: '192.0.2.1', hostname: 'web.example.com', ipMode: 'VIP', ports },
      { ip: '2001:db8::1', ipMode: 'VIP', ports },
      { ip: '198.51.100.7', ipMode: 'Proxy' },
      { hostname: 'lb.example.com' },
    ]);
    expect(status?.conditions?.map(({ type }) => type)).toEqual(['example.com/Announced', conditionType]);
  });

  test('names the port that another sharer serves', () => {
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
    const { status } = planServed(service(assigned), shared, had('192.0.2.1'), now);
    expect(status?.loadBalancer?.ingress?.[0]?.ports?.[0]).toEqual({
      port: 80,
      protocol: 'TCP',
      error: 'servicenet.dev/PortInUse',
    });
    const [present] = presentAddresses(service(status ?? {}), () => true);
    expect([...(present?.served ?? [])]).toEqual(['UDP/53']);
  });

  test('says what to do about an address that no pool contains any more', () => {
    const stray: Outcome = {
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
    expect(planServed(service({}), stray, [], now).status?.conditions?.[0]?.message).toContain(
      'extend a pool',
    );
  });
});

describe('planReleased', () => {
  test('takes away what is ours', () => {
    const foreign = { hostname: 'lb.example.com' };
    const before = service({
      loadBalancer: { ingress: [...(assigned.loadBalancer?.ingress ?? []), foreign] },
      conditions: [ready()],
    });
    expect(planReleased(before, had('192.0.2.1'), false)).toEqual({
      finalizer: 'remove',
      status: { loadBalancer: { ingress: [foreign] } },
      events: [],
    });
  });

  test('leaves the status of a Service that is going, and never touches what was not ours', () => {
    const going = service(assigned, { deletionTimestamp: '2026-01-01T00:00:00Z' });
    expect(planReleased(going, had('192.0.2.1'), true)).toEqual({ finalizer: 'remove', events: [] });
    expect(planReleased(service({ loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } }), [], false)).toEqual({
      events: [],
    });
  });

  test('frees a Service that was deleted between its finalizer and its condition', () => {
    const halfway = service({ loadBalancer: {} }, { deletionTimestamp: '2026-01-01T00:00:00Z' });
    expect(planReleased(halfway, [], true)).toEqual({ finalizer: 'remove', events: [] });
  });

  // The condition is gone, and the type changed before a process looked: seed 16 of the faults.
  test("takes its own finalizer from a Service that it never came to serve, and nobody else's", () => {
    const finalizers = { 'f:metadata': { 'f:finalizers': { [`v:"${cleanupFinalizer}"`]: {} } } };
    const of = (manager: string): Service =>
      service({}, { managedFields: [{ manager, operation: 'Update', fieldsV1: finalizers }] });
    expect(planReleased(of('servicenet'), [], false)).toMatchObject({ finalizer: 'remove' });
    expect(planReleased(of('cloud-controller-manager'), [], false)).toEqual({ events: [] });
  });
});

describe('presentAddresses', () => {
  const pooled = (_family: string, value: bigint): boolean => value === 0xc0000201n;
  const entries = [
    { ip: '198.51.100.1' },
    { ip: '192.0.2.1' },
    { ip: '2001:db8::1' },
    { ip: 'nonsense' },
    { hostname: 'x' },
  ];

  const of = (status: ServiceStatus): string[] =>
    presentAddresses(service(status), pooled).map(({ address }) => address);

  test('are those that our condition names, else those that our pools contain', () => {
    const loadBalancer = { ingress: entries };
    expect(of({ loadBalancer })).toEqual(['192.0.2.1']);
    const named = ready('Assigned', '198.51.100.1 from pool q, 2001:db8::1 from pool q');
    expect(of({ loadBalancer, conditions: [named] })).toEqual(['198.51.100.1', '2001:db8::1']);
  });

  test('are not what somebody else wrote into the status of a Service that waits', () => {
    const loadBalancer = { ingress: [{ ip: '203.0.113.9' }] };
    const waiting = ready('PoolExhausted', 'no free IPv4 address in p (1 addresses)');
    expect(of({ loadBalancer, conditions: [waiting] })).toEqual([]);
  });

  test('a class-less Service of another provider is foreign, one of our class never is', () => {
    const theirs = service({ loadBalancer: { ingress: [{ ip: '198.51.100.1' }] } });
    expect(isForeign(theirs, [])).toBe(true);
    expect(isForeign(theirs, had('198.51.100.1'))).toBe(false);
    expect(isForeign(service({ loadBalancer: {} }), [])).toBe(false);
    expect(
      isForeign({ ...theirs, spec: { ...theirs.spec, loadBalancerClass: 'servicenet.dev/lb' } }, []),
    ).toBe(false);
  });
});

describe('what rests', () => {
  test('is written to the status of a pool, and read back until its time is over', () => {
    const usage = {
      IPv4: { total: 4, used: 1, free: 2, quarantined: 1 },
      IPv6: { total: 0, used: 0, free: 0, quarantined: 0 },
    };
    const resting = [{ address: '192.0.2.1', service: 'n/s', until: now + 1500 }];
    const pool = { metadata: { name: 'p' }, spec: {} };
    const status = planPoolStatus(pool, { usage, problems: [], conflicts: [], resting, generation: 1 }, now);
    const written = { ...pool, ...(status ? { status } : {}) };
    expect(status?.resting).toEqual([
      { address: '192.0.2.1', service: 'n/s', until: '2026-01-01T00:00:02Z' },
    ]);
    expect(readResting(written, now)).toEqual([{ address: '192.0.2.1', service: 'n/s', until: now + 2000 }]);
    expect(readResting(written, now + 2000)).toEqual([]);
    const broken = [{ address: 'x', service: 'n/s', until: '2026-01-01T00:00:02Z' }];
    expect(readResting({ ...pool, status: { resting: broken } }, now)).toEqual([]);
  });
});

describe('planPoolStatus', () => {
  const none = { total: 0, used: 0, free: 0, quarantined: 0 };
  const facts = (changes: Partial<PoolFacts> = {}): PoolFacts => ({
    usage: { IPv4: { total: 4, used: 1, free: 3, quarantined: 0 }, IPv6: none },
    problems: [],
    conflicts: [],
    resting: [],
    generation: 1,
    ...changes,
  });
  const pool = { metadata: { name: 'p' }, spec: {} };

  test.each<[string, PoolFacts, string[]]>([
    ['usable', facts(), ['True Usable', 'False NoOverlap']],
    ['partly invalid', facts({ problems: ['x'] }), ['True InvalidSpec', 'False NoOverlap']],
    ['overlapping', facts({ conflicts: ['y'] }), ['True Usable', 'True Overlap']],
    ['empty', facts({ usage: { IPv4: none, IPv6: none } }), ['False NoAddresses', 'False NoOverlap']],
  ])('%s', (_what, known, expected) => {
    const status = planPoolStatus(pool, known, now);
    expect(status?.conditions?.map((c) => `${c.status} ${c.reason}`)).toEqual(expected);
    expect(planPoolStatus({ ...pool, ...(status ? { status } : {}) }, known, now + 1000)).toBeUndefined();
  });
});
