import { describe, expect, it } from 'vitest';
import {
  expectedScale,
  planBudgetEvent,
  planBudgetStatus,
} from '../../../../src/controllers/disruption-budgets/plan.ts';
import type { Pod } from '../../../../src/objects/types/core.generated.ts';
import type { PodDisruptionBudget } from '../../../../src/objects/types/policy.generated.ts';
import { formatTime } from '../../../../src/objects/formats/time.ts';
import { now, pod } from '../workloads/samples.ts';

function budget(
  spec: PodDisruptionBudget['spec'],
  status: PodDisruptionBudget['status'] = {},
): PodDisruptionBudget {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', generation: 3 },
    spec,
    status,
  };
}

const five = ['a', 'b', 'c', 'd', 'e'].map((name) => pod(name, { ready: name !== 'e' }));

describe('expectedScale', () => {
  it('adds what each controller wants once, and leaves out Pods that have none', () => {
    const owner = (name: string, kind = 'ReplicaSet') => ({ kind, metadata: { name, uid: name } });
    const pods = [
      pod('a', { owner: owner('web') }),
      pod('b', { owner: owner('web') }),
      pod('c', { owner: owner('own', 'Widget') }),
      pod('d', { owner: owner('own', 'Widget') }),
      pod('alone'),
    ];
    const scaleOf = ({ metadata: { ownerReferences = [] } }: Pod) =>
      ownerReferences[0]?.name === 'web' ? { uid: 'web', replicas: 7 } : undefined;
    expect(expectedScale(pods, scaleOf)).toBe(9);
  });
});

describe('planBudgetEvent', () => {
  const selector = {
    matchLabels: { b: '2', a: '1' },
    matchExpressions: [{ key: 'c', operator: 'In', values: ['3', '4'] }],
  };

  it.each([
    ['nothing where a number says how many', { minAvailable: 1 }, undefined],
    ['of Pods without a controller', { maxUnavailable: 1 }, 'UnmanagedPods'],
    ['of them for a share, too', { minAvailable: '50%' }, 'UnmanagedPods'],
  ])('tells %s', (_what, spec, reason) => {
    expect(planBudgetEvent(budget({ ...spec, selector }), five)?.reason).toBe(reason);
  });

  it('prints the selector as Go does, and tells that there are no Pods', () => {
    expect(planBudgetEvent(budget({ maxUnavailable: 1, selector }), five)?.message).toContain(
      '(selector: &LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:c,Operator:In,Values:[3 4],},},})',
    );
    expect(planBudgetEvent(budget({ minAvailable: 1 }), [])?.message).toBe('No matching pods found');
  });
});

describe('planBudgetStatus', () => {
  it('counts Pods that finished', () => {
    const pods = [...five, pod('f', { phase: 'Succeeded' })];
    expect(planBudgetStatus(budget({ minAvailable: 2 }), pods, 0, now)).toMatchObject({
      expectedPods: 6,
      currentHealthy: 4,
    });
  });

  it.each([
    [{ minAvailable: 2 }, 5, { disruptionsAllowed: 2, desiredHealthy: 2, expectedPods: 5 }],
    [{ minAvailable: '50%' }, 5, { disruptionsAllowed: 1, desiredHealthy: 3, expectedPods: 5 }],
    [{ minAvailable: '50%' }, 8, { disruptionsAllowed: 0, desiredHealthy: 4, expectedPods: 8 }],
    [{ maxUnavailable: 1 }, 5, { disruptionsAllowed: 0, desiredHealthy: 4, expectedPods: 5 }],
    [{ maxUnavailable: '40%' }, 5, { disruptionsAllowed: 1, desiredHealthy: 3, expectedPods: 5 }],
    [{ minAvailable: 0 }, 5, { disruptionsAllowed: 4, desiredHealthy: 0, expectedPods: 5 }],
  ])('%j of %i', (spec, expected, result) => {
    const status = planBudgetStatus(budget(spec), five, expected, now);
    expect(status).toMatchObject({ ...result, currentHealthy: 4, observedGeneration: 3 });
    const reason = result.disruptionsAllowed > 0 ? 'SufficientPods' : 'InsufficientPods';
    expect(status.conditions).toMatchObject([{ type: 'DisruptionAllowed', reason }]);
  });

  it('counts an evicted Pod as gone until it is, or two minutes have passed', () => {
    const evicted = (secondsAgo: number): PodDisruptionBudget =>
      budget({ minAvailable: 2 }, { disruptedPods: { a: formatTime(now - secondsAgo * 1000) } });
    expect(planBudgetStatus(evicted(5), five, 5, now)).toMatchObject({
      currentHealthy: 3,
      disruptionsAllowed: 1,
    });
    expect(planBudgetStatus(evicted(121), five, 5, now)).toMatchObject({
      currentHealthy: 4,
      disruptionsAllowed: 2,
    });
  });

  it('keeps the time of a condition that did not change', () => {
    const first = planBudgetStatus(budget({ minAvailable: 2 }), five, 5, now);
    expect(planBudgetStatus(budget({ minAvailable: 2 }, first), five, 5, now + 9000)).toEqual(first);
  });
});
