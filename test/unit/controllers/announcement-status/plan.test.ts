import { describe, expect, test } from 'vitest';
import {
  announcedBy,
  announcedCondition,
  planAnnounced,
  type PlannedAddress,
  poolCondition,
  refusedAddresses,
} from '../../../../src/controllers/announcement-status/plan.ts';
import type { AgentReport } from '../../../../src/network/announcing/agent-report.ts';
import type { AnnouncementPlan } from '../../../../src/network/announcing/announcement-plan.ts';
import type { Service } from '../../../../src/objects/types/core.generated.ts';

const begin = Date.parse('2026-01-01T00:00:00Z');
const later = begin + 60_000;

function service(before?: ReturnType<typeof planAnnounced>): Service {
  const conditions = before?.condition === undefined ? {} : { conditions: [before.condition] };
  return { metadata: { namespace: 'n', name: 's' }, spec: { type: 'LoadBalancer' }, status: conditions };
}

function report(part: Partial<AgentReport> = {}): AgentReport {
  return { interfaces: [], sessions: [], refused: [], announced: [], voters: new Map(), ...part };
}

const has = (address: string): AgentReport => report({ announced: [address] });

function one(
  address: string,
  plan: Partial<AnnouncementPlan>,
  reports: Readonly<Record<string, AgentReport>> = {},
): PlannedAddress {
  const whole = { layer2: undefined, bgp: [], reason: undefined, ...plan };
  return { address, plan: whole, reports: new Map(Object.entries(reports)) };
}

const onNode = (node: string): Pick<AnnouncementPlan, 'layer2'> => ({
  layer2: { node, interfaces: ['eth0'] },
});

describe('the condition of a Service', () => {
  test('names the node, and since when: the time stays while the node does', () => {
    const address = one('192.0.2.1', onNode('a'), { a: has('192.0.2.1') });
    const first = planAnnounced(service(), [address], begin);
    expect(first.condition).toEqual({
      type: announcedCondition,
      status: 'True',
      reason: 'Announced',
      message: '192.0.2.1 by a on eth0 since 2026-01-01T00:00:00Z',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    });
    expect(first.events).toMatchObject([{ type: 'Normal', reason: 'Announced' }]);
    expect(planAnnounced(service(first), [address], later)).toEqual({ ...first, events: [] });

    const moved = planAnnounced(
      service(first),
      [one('192.0.2.1', onNode('b'), { b: has('192.0.2.1') })],
      later,
    );
    expect(moved.condition).toMatchObject({
      message: '192.0.2.1 by b on eth0 since 2026-01-01T00:01:00Z',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    });
    expect(moved.events).toMatchObject([{ type: 'Normal', reason: 'Announced' }]);
  });

  test('on a move the former node has the address until the next one says that it announces it', () => {
    const moving = one('192.0.2.1', onNode('b'), { a: has('192.0.2.1'), b: report() });
    expect(planAnnounced(service(), [moving], begin).condition?.message).toContain('192.0.2.1 by a since');
  });

  test('an address that no agent has taken yet is pending, without an Event', () => {
    const { condition, events } = planAnnounced(
      service(),
      [one('192.0.2.1', onNode('a'), { a: report() })],
      begin,
    );
    expect(condition).toMatchObject({ status: 'False', reason: 'Pending' });
    expect(events).toEqual([]);
  });

  test('of two addresses, the one that is not announced is the reason, with who has it', () => {
    const refusal = {
      address: '2001:db8::1',
      reason: 'AddressConflict',
      holder: '02:00:00:00:00:01',
    } as const;
    const reports = { a: report({ announced: ['192.0.2.1'], refused: [refusal] }) };
    const addresses = [
      one('192.0.2.1', onNode('a'), reports),
      one('2001:db8::1', { reason: 'AddressConflict' }, reports),
    ];
    const plan = planAnnounced(service(), addresses, begin);
    expect(plan.condition).toMatchObject({ status: 'False', reason: 'AddressConflict' });
    expect(plan.condition?.message).toContain('02:00:00:00:00:01');
    expect(plan.events).toMatchObject([{ type: 'Warning', reason: 'AddressConflict' }]);
    expect(announcedBy(service(plan), '192.0.2.1')).toBe('a on eth0');
    expect(announcedBy(service(plan), '2001:db8::1')).toBe('AddressConflict');
    expect(announcedBy(service(), '192.0.2.1')).toBeUndefined();
  });

  test('many nodes that announce by BGP are written once, not each time', () => {
    const nodes = Array.from({ length: 8 }, (_, i) => `node-${i}`);
    const first = planAnnounced(service(), [one('192.0.2.1', { bgp: nodes })], begin);
    expect(first.condition?.message).toContain('and 3 more');
    expect(planAnnounced(service(first), [one('192.0.2.1', { bgp: nodes })], later).condition).toEqual(
      first.condition,
    );
  });
});

describe('the status of a pool', () => {
  test('counts, and has the most frequent reason', () => {
    const reasons = new Map([
      ['Announced', 3],
      ['NoInterface', 1],
      ['AddressConflict', 2],
    ] as const);
    expect(poolCondition({ reasons, refused: [] })).toEqual({
      type: 'Announced',
      status: 'False',
      reason: 'AddressConflict',
      message: '3 of 6 addresses in use are announced, 2 AddressConflict, 1 NoInterface',
    });
    expect(poolCondition({ reasons: new Map(), refused: [] })).toBeUndefined();
  });

  test('refused addresses keep their time, and lose it when another reason comes', () => {
    const refusal = { address: '192.0.2.1', node: 'a', reason: 'AddressConflict', holder: 'm' } as const;
    const state = { reasons: new Map(), refused: [refusal] };
    const first = refusedAddresses([], state, begin);
    expect(first).toEqual([
      {
        ...{ address: '192.0.2.1', node: 'a', reason: 'AddressConflict' },
        ...{ message: 'held by m', since: '2026-01-01T00:00:00Z' },
      },
    ]);
    expect(refusedAddresses(first, state, later)).toEqual(first);
    const other = { ...state, refused: [{ ...refusal, reason: 'NodeAddress' as const }] };
    expect(refusedAddresses(first, other, later)[0]?.since).toBe('2026-01-01T00:01:00Z');
  });
});
