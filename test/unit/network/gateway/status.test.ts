import { expect, test } from 'vitest';
import { gatewayController } from '../../../../src/network/gateway/plan.ts';
import { conditionsOf, policyStatus, routeStatus } from '../../../../src/network/gateway/status.ts';
import type { Condition } from '../../../../src/objects/meta.ts';

const nowMs = Date.parse('2026-11-29T12:00:00Z');
const before = '2026-11-29T10:00:00Z';
const condition = (type: string, status: Condition['status'], reason: string): Condition => ({
  ...{ type, status, reason, message: '', observedGeneration: 1, lastTransitionTime: before },
});
const planned = (type: string, status: Condition['status'], reason: string) => ({
  ...{ type, status, reason, message: '' },
});

test('the time of a condition is that of the change of its status', () => {
  const now = conditionsOf(
    [planned('Accepted', 'True', 'Accepted'), planned('Programmed', 'True', 'Programmed')],
    [condition('Accepted', 'True', 'ListenersNotValid'), condition('Programmed', 'False', 'Pending')],
    2,
    nowMs,
  );
  expect(now.map(({ lastTransitionTime }) => lastTransitionTime)).toEqual([before, '2026-11-29T12:00:00Z']);
  expect(now.map(({ observedGeneration }) => observedGeneration)).toEqual([2, 2]);
});

test('conditions of others stay; one of ours that is no longer planned goes', () => {
  const others = condition('example.com/Audited', 'True', 'Audited');
  const old = [condition('OverlappingTLSConfig', 'True', 'OverlappingHostnames'), others];
  expect(conditionsOf([planned('Accepted', 'True', 'Accepted')], old, 2, nowMs).slice(1)).toEqual([others]);
});

test('a Route has an entry for each parentRef of ours, and keeps those of other controllers', () => {
  const parentRef = { name: 'web', sectionName: 'http' };
  const foreign = {
    parentRef: { name: 'web' },
    controllerName: 'example.com/other',
    conditions: [condition('Accepted', 'True', 'Accepted')],
  };
  const own = { parentRef, controllerName: gatewayController, conditions: foreign.conditions };
  const gone = { ...own, parentRef: { name: 'gone' } };
  const entry = {
    ...({ kind: 'HTTPRoute', key: 'shop/site', generation: 3, parentRef } as const),
    conditions: [planned('Accepted', 'True', 'Accepted')],
  };
  const status = routeStatus({ status: { parents: [gone, foreign, own] } }, [entry], nowMs);
  expect(status.parents).toEqual([
    foreign,
    { ...own, conditions: [{ ...condition('Accepted', 'True', 'Accepted'), observedGeneration: 3 }] },
  ]);
});

test('a policy names each Gateway once, sixteen at most', () => {
  const policy = { key: 'shop/tls', generation: 1, conditions: [planned('Accepted', 'True', 'Accepted')] };
  const ancestors = Array.from({ length: 20 }, (_, n) => ({ gateway: `shop/web-${n}`, policy }));
  const status = policyStatus({}, ancestors, nowMs);
  expect(status.ancestors.length).toBe(16);
  expect(status.ancestors[3]?.ancestorRef).toEqual({
    ...{ group: 'gateway.networking.k8s.io', kind: 'Gateway', namespace: 'shop', name: 'web-3' },
  });
});
