import type { Pod } from '../../../../src/objects/types/core.generated.ts';
import type { PodDisruptionBudget } from '../../../../src/objects/types/policy.generated.ts';
import { describe, expect, it } from 'vitest';
import { admitEviction } from '../../../../src/registry/policy/eviction.ts';

const ready = [{ type: 'Ready', status: 'True' }];
const pod: Pod = {
  metadata: { name: 'a', labels: { app: 'x' } },
  spec: {},
  status: { phase: 'Running', conditions: ready },
};

function budget(disruptionsAllowed: number, app = 'x'): PodDisruptionBudget {
  return {
    metadata: { name: 'b' },
    spec: { selector: { matchLabels: { app } } },
    status: { disruptionsAllowed, currentHealthy: 2, desiredHealthy: 2 },
  };
}

describe('an eviction', () => {
  it('uses up a disruption of the budget', () => {
    expect(admitEviction(pod, [budget(1), budget(1, 'y')])).toEqual(budget(1));
  });

  it('waits when the budget allows none', () => {
    expect(() => admitEviction(pod, [budget(0)])).toThrow("would violate the pod's disruption budget");
  });

  it('asks no budget for a Pod that has ended, is pending or is going', () => {
    for (const phase of ['Succeeded', 'Failed', 'Pending']) {
      expect(admitEviction({ ...pod, status: { phase } }, [budget(0)])).toBeUndefined();
    }
    const going = { ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2020-01-01T00:00:00Z' } };
    expect(admitEviction(going, [budget(0)])).toBeUndefined();
  });

  it('lets an unready Pod go while the budget is met', () => {
    expect(admitEviction({ ...pod, status: { phase: 'Running' } }, [budget(0)])).toBeUndefined();
  });

  it('does not work with two budgets', () => {
    expect(() => admitEviction(pod, [budget(1), budget(1)])).toThrow('more than one PodDisruptionBudget');
  });
});
