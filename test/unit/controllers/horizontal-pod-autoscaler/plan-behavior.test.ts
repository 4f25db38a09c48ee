import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  boundReplicas,
  rememberChange,
  type Recommendation,
  type ScalingBounds,
  type ScalingHistory,
} from '../../../../src/controllers/horizontal-pod-autoscaler/plan-behavior.ts';

const now = 1_000_000_000;
const none: ScalingHistory = { recommendations: [], added: [], removed: [] };
const ago = (seconds: number, replicas: number): Recommendation => ({ replicas, atMs: now - seconds * 1000 });
const bounds = (differences: Partial<ScalingBounds>): ScalingBounds => ({
  ...{ current: 10, min: 1, max: 100, behavior: undefined, now },
  ...differences,
});
const pods = (value: number, periodSeconds: number) => ({ type: 'Pods', value, periodSeconds });
const percent = (value: number, periodSeconds: number) => ({ type: 'Percent', value, periodSeconds });

describe('without a behavior', () => {
  it.for<[string, number, Partial<ScalingBounds>, Recommendation[], number, string, string]>([
    ['up', 15, {}, [], 15, 'ReadyForNewScale', 'DesiredWithinRange'],
    ['up to twice', 50, {}, [], 20, 'ReadyForNewScale', 'ScaleUpLimit'],
    ['or to four', 50, { current: 1 }, [], 4, 'ReadyForNewScale', 'ScaleUpLimit'],
    ['up to the maximum', 50, { max: 12 }, [], 12, 'ReadyForNewScale', 'TooManyReplicas'],
    ['down', 3, {}, [], 3, 'ReadyForNewScale', 'DesiredWithinRange'],
    ['down to the minimum', 0, { min: 2 }, [], 2, 'ReadyForNewScale', 'TooFewReplicas'],
    [
      'down to the highest of five minutes',
      3,
      {},
      [ago(299, 8), ago(200, 5)],
      8,
      'ScaleDownStabilized',
      'DesiredWithinRange',
    ],
    ['and not of longer', 3, {}, [ago(301, 8), ago(200, 5)], 5, 'ScaleDownStabilized', 'DesiredWithinRange'],
  ])('%s', ([, wanted, differences, recommendations, replicas, stable, limit]) => {
    const bounded = boundReplicas(wanted, bounds(differences), { ...none, recommendations });
    expect(bounded).toMatchObject({ replicas, stable: { reason: stable }, limit: { reason: limit } });
    expect(bounded.limit.isLimited).toBe(limit !== 'DesiredWithinRange');
    expect(bounded.recommendations).toContainEqual({ replicas: wanted, atMs: now });
  });
});

describe('with a behavior', () => {
  const up = (rules: object) => ({ behavior: { scaleUp: rules } });
  const down = (rules: object) => ({ behavior: { scaleDown: { stabilizationWindowSeconds: 0, ...rules } } });

  it.for<[string, number, Partial<ScalingBounds>, Partial<ScalingHistory>, number, string]>([
    ['the default goes up by four Pods', 30, { current: 2, behavior: {} }, {}, 6, 'ScaleUpLimit'],
    ['or to twice', 30, { behavior: {} }, {}, 20, 'ScaleUpLimit'],
    ['the default goes down to nothing', 0, { behavior: {}, min: 1 }, {}, 1, 'TooFewReplicas'],
    ['Pods in a period', 30, up({ policies: [pods(3, 60)] }), {}, 13, 'ScaleUpLimit'],
    [
      'less those that were added in it',
      30,
      up({ policies: [pods(3, 60)] }),
      { added: [ago(30, 2)] },
      11,
      'ScaleUpLimit',
    ],
    ['not those before', 30, up({ policies: [pods(3, 60)] }), { added: [ago(61, 2)] }, 13, 'ScaleUpLimit'],
    [
      'and more where some were removed in it',
      30,
      up({ policies: [pods(3, 60)] }),
      { removed: [ago(30, 2)] },
      15,
      'ScaleUpLimit',
    ],
    [
      'percent of the start of the period',
      30,
      up({ policies: [percent(50, 60)] }),
      { added: [ago(30, 2)] },
      12,
      'ScaleUpLimit',
    ],
    ['never down for that', 30, up({ policies: [pods(3, 60)] }), { added: [ago(30, 9)] }, 10, 'ScaleUpLimit'],
    [
      'the largest of several policies',
      30,
      up({ policies: [pods(3, 60), percent(50, 60)] }),
      {},
      15,
      'ScaleUpLimit',
    ],
    [
      'the smallest with Min',
      30,
      up({ selectPolicy: 'Min', policies: [pods(3, 60), percent(50, 60)] }),
      {},
      13,
      'ScaleUpLimit',
    ],
    ['not at all when disabled', 30, up({ selectPolicy: 'Disabled' }), {}, 10, 'ScaleUpLimit'],
    [
      'the maximum before all',
      30,
      { ...up({ policies: [pods(30, 60)] }), max: 20 },
      {},
      20,
      'TooManyReplicas',
    ],
    ['down by Pods', 1, down({ policies: [pods(3, 60)] }), {}, 7, 'ScaleDownLimit'],
    [
      'less those that were removed',
      1,
      down({ policies: [pods(3, 60)] }),
      { removed: [ago(30, 2)] },
      9,
      'ScaleDownLimit',
    ],
    ['down by percent', 1, down({ policies: [percent(15, 60)] }), {}, 8, 'ScaleDownLimit'],
    ['the largest change', 1, down({ policies: [pods(3, 60), percent(50, 60)] }), {}, 5, 'ScaleDownLimit'],
    [
      'the smallest with Min',
      1,
      down({ selectPolicy: 'Min', policies: [pods(3, 60), percent(50, 60)] }),
      {},
      7,
      'ScaleDownLimit',
    ],
    ['not down when disabled', 1, down({ selectPolicy: 'Disabled' }), {}, 10, 'ScaleDownLimit'],
    ['up while down is disabled', 12, down({ selectPolicy: 'Disabled' }), {}, 12, 'DesiredWithinRange'],
  ])('%s', ([, wanted, differences, history, replicas, limit]) => {
    const bounded = boundReplicas(wanted, bounds(differences), { ...none, ...history });
    expect(bounded).toMatchObject({ replicas, limit: { reason: limit } });
  });

  it.for<[string, number, object, Recommendation[], number, string]>([
    [
      'up to the lowest of its window',
      20,
      { scaleUp: { stabilizationWindowSeconds: 60 } },
      [ago(30, 12), ago(90, 5)],
      12,
      'ScaleUpStabilized',
    ],
    [
      'and not down for it',
      20,
      { scaleUp: { stabilizationWindowSeconds: 60 } },
      [ago(30, 4)],
      10,
      'ScaleUpStabilized',
    ],
    [
      'down to the highest',
      2,
      { scaleDown: { stabilizationWindowSeconds: 60 } },
      [ago(30, 6), ago(90, 9)],
      6,
      'ScaleDownStabilized',
    ],
    [
      'and not up for it',
      2,
      { scaleDown: { stabilizationWindowSeconds: 60 } },
      [ago(30, 20)],
      10,
      'ScaleDownStabilized',
    ],
    ['five minutes by default', 2, {}, [ago(299, 6)], 6, 'ScaleDownStabilized'],
    ['at once', 2, { scaleDown: { stabilizationWindowSeconds: 0 } }, [ago(1, 6)], 2, 'ReadyForNewScale'],
  ])('is stabilized: %s', ([, wanted, behavior, recommendations, replicas, stable]) => {
    const bounded = boundReplicas(wanted, bounds({ behavior }), { ...none, recommendations });
    expect(bounded).toMatchObject({ replicas, stable: { reason: stable } });
  });

  it('remembers changes for as long as a policy looks back', () => {
    const before = { ...none, added: [ago(61, 1), ago(30, 2)], removed: [ago(10, 1)] };
    const behavior = { scaleUp: { policies: [pods(1, 60)] } };
    expect(rememberChange(bounds({ behavior }), 13, before)).toEqual({
      recommendations: [],
      added: [ago(30, 2), ago(0, 3)],
      removed: [ago(10, 1)],
    });
    expect(rememberChange(bounds({ behavior }), 8, before).removed).toEqual([ago(10, 1), ago(0, 2)]);
    expect(rememberChange(bounds({}), 13, before)).toBe(before);
  });
});

describe('any bounds', () => {
  const policy = fc.record({
    type: fc.constantFrom('Pods', 'Percent'),
    value: fc.integer({ min: 1, max: 200 }),
    periodSeconds: fc.integer({ min: 1, max: 1800 }),
  });
  const rules = fc.record(
    {
      stabilizationWindowSeconds: fc.integer({ min: 0, max: 3600 }),
      selectPolicy: fc.constantFrom('Max', 'Min', 'Disabled'),
      policies: fc.array(policy, { minLength: 1, maxLength: 4 }),
    },
    { requiredKeys: [] },
  );
  const behavior = fc.option(fc.record({ scaleUp: rules, scaleDown: rules }, { requiredKeys: [] }), {
    nil: undefined,
  });
  const past = fc.array(
    fc.record({
      replicas: fc.integer({ min: 0, max: 50 }),
      atMs: fc.integer({ min: now - 4_000_000, max: now }),
    }),
    { maxLength: 6 },
  );
  const history = fc.record({ recommendations: past, added: past, removed: past });

  it('hold between the minimum and the maximum, and a change never goes past what is wanted or back', () => {
    const within = fc.tuple(
      fc.integer({ min: 0, max: 20 }),
      fc.integer({ min: 0, max: 20 }),
      fc.integer({ min: 0, max: 20 }),
    );
    fc.assert(
      fc.property(
        within,
        fc.integer({ min: 0, max: 100 }),
        behavior,
        history,
        ([a, b, c], wanted, rule, before) => {
          const [min = 0, current = 0, max = 0] = [a, b, c].sort((x, y) => x - y);
          const { replicas } = boundReplicas(wanted, bounds({ current, min, max, behavior: rule }), before);
          expect(replicas).toBeGreaterThanOrEqual(min);
          expect(replicas).toBeLessThanOrEqual(max);
          if (rule === undefined) return;
          if (wanted >= current) expect(replicas).toBeGreaterThanOrEqual(current);
          if (wanted <= current) expect(replicas).toBeLessThanOrEqual(current);
        },
      ),
    );
  });
});
