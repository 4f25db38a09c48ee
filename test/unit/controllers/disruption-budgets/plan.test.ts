import { describe, expect, it } from 'vitest';
import { planBudgetStatus } from '../../../../src/controllers/disruption-budgets/plan.ts';
import { formatTime } from '../../../../src/objects/time.ts';
import type { PodDisruptionBudget } from '../../../../src/objects/workloads.ts';
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

describe('planBudgetStatus', () => {
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
