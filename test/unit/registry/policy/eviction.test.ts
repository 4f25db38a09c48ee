import type { Pod } from '../../../../src/objects/types/core.generated.ts';
import type { PodDisruptionBudget } from '../../../../src/objects/types/policy.generated.ts';
import { describe, expect, it } from 'vitest';
import { admitEviction } from '../../../../src/registry/policy/eviction.ts';
import { create, definitionOf, update } from '../decide.ts';

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

const doesNotAllow = 'The disruption budget b does not allow evicting pods currently';
const disallowed = {
  type: 'DisruptionAllowed',
  status: 'False',
  reason: 'InsufficientPods',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
} as const;
const causes = (message: string) => ({ causes: [{ reason: 'DisruptionBudget', message }] });

describe('an eviction', () => {
  it('uses up a disruption of the budget', () => {
    expect(admitEviction(pod, [budget(1), budget(1, 'y')])).toEqual(budget(1));
  });

  it('waits when the budget allows none', () => {
    expect(() => admitEviction(pod, [budget(0)])).toThrow("would violate the pod's disruption budget");
  });

  it.each<[string, Partial<PodDisruptionBudget['status']>, object]>([
    [
      'allows none: client-go must not wait by itself',
      {},
      {
        ...{
          code: 429,
          details: {
            causes: [
              {
                reason: 'DisruptionBudget',
                message: 'The disruption budget b needs 2 healthy pods and has 2 currently',
              },
            ],
          },
        },
      },
    ],
    [
      'is new',
      { observedGeneration: 1 },
      {
        code: 429,
        details: {
          causes: [
            {
              reason: 'DisruptionBudget',
              message: 'The disruption budget b is still being processed by the server.',
            },
          ],
          retryAfterSeconds: 10,
        },
      },
    ],
    [
      'is broken',
      { disruptionsAllowed: -1 },
      {
        code: 403,
        message: 'poddisruptionbudget.policy "b" is forbidden: pdb disruptions allowed is negative',
        details: causes(`${doesNotAllow}: pdb disruptions allowed is negative`),
      },
    ],
    [
      'has too many Pods that went',
      { disruptedPods: Object.fromEntries(Array.from({ length: 2001 }, (_, i) => [`p${i}`, ''])) },
      {
        code: 403,
        details: causes(`${doesNotAllow}: too many pending evictions not confirmed by PDB controller`),
      },
    ],
    [
      'could not be computed',
      { conditions: [{ ...disallowed, reason: 'SyncFailed', message: 'no controller' }] },
      { code: 429, details: causes(`${doesNotAllow} because it failed sync: no controller`) },
    ],
    [
      'allows none although more Pods are healthy than it asks for',
      { currentHealthy: 3, conditions: [{ ...disallowed, message: 'wait' }] },
      { code: 429, details: causes(`${doesNotAllow} (InsufficientPods): wait`) },
    ],
    [
      'does not say why',
      { currentHealthy: 3, conditions: [disallowed] },
      { code: 429, details: causes(doesNotAllow) },
    ],
  ])('is refused by a budget that %s', (_what, status, error) => {
    const one = budget(0);
    const refusing = {
      ...one,
      metadata: { name: 'b', generation: 2 },
      status: { ...one.status, observedGeneration: 2, ...status },
    };
    let thrown: unknown;
    try {
      admitEviction(pod, [refusing]);
    } catch (caught) {
      thrown = caught;
    }
    expect(thrown).toMatchObject(error);
    if (!('retryAfterSeconds' in Object(Reflect.get(Object(error), 'details'))))
      expect(thrown).not.toHaveProperty('details.retryAfterSeconds');
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

it('reports through conditions that are whole, each once', () => {
  const budgets = definitionOf('PodDisruptionBudget');
  const { stored } = create(budgets, { spec: {} });
  const status = { conditions: [disallowed, { ...disallowed, reason: '' }] };
  expect(update(budgets, stored, { status }, 'status').errors).toEqual([
    'status.conditions[1]: Duplicate value: "DisruptionAllowed"',
    'status.conditions[1].reason: Required value',
  ]);
});
