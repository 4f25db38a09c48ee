import { describe, expect, it } from 'vitest';
import {
  planMissingScale,
  planScaling,
  planStatus,
  type ScaleState,
} from '../../../../src/controllers/horizontal-pod-autoscaler/plan.ts';
import type { ScalingHistory } from '../../../../src/controllers/horizontal-pod-autoscaler/plan-behavior.ts';
import { conditionOf } from '../../../../src/objects/meta.ts';
import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerSpec,
  MetricSpec,
} from '../../../../src/objects/types/autoscaling.generated.ts';

const now = Date.parse('2026-11-28T12:00:00Z');
const long = '2026-11-28T10:00:00Z';
const none: ScalingHistory = { recommendations: [], added: [], removed: [] };

const cpu = (averageUtilization: number): MetricSpec => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
});
const memory: MetricSpec = {
  type: 'Resource',
  resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '1Mi' } },
};

function autoscaler(spec: Partial<HorizontalPodAutoscalerSpec> = {}): HorizontalPodAutoscaler {
  return {
    metadata: { name: 'web', namespace: 'shop' },
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
      ...{ minReplicas: 1, maxReplicas: 10, metrics: [cpu(50)] },
      ...spec,
    },
    status: { desiredReplicas: 3, currentMetrics: null },
  };
}

/** Pods that request 100m each. @param used thousandths of a CPU. */
function stateOf(used: readonly number[], differences: Partial<ScaleState> = {}): ScaleState {
  return {
    ...{ current: used.length, selector: 'app=web', autoscalers: ['shop/web'] },
    pods: used.map((_, index) => ({
      metadata: { name: `p${index}` },
      spec: { containers: [{ name: 'main', resources: { requests: { cpu: '100m' } } }] },
      status: {
        ...{ phase: 'Running', startTime: long },
        conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: long }],
      },
    })),
    samples: used.map((milli, index) => ({
      ...{ pod: `p${index}`, atMs: now, windowMs: 15_000 },
      containers: [{ name: 'main', usage: { cpu: `${milli}m` } }],
    })),
    ...differences,
  };
}

const scale = (
  state: ScaleState,
  spec: Partial<HorizontalPodAutoscalerSpec> = {},
  history: ScalingHistory = none,
) => planScaling(autoscaler(spec), state, history, now);

describe('an autoscaler', () => {
  it('scales up, and says by which metric', () => {
    const state = stateOf([100, 100]);
    const plan = scale(state);
    expect(plan.rescale).toEqual({
      replicas: 4,
      reason: 'cpu resource utilization (percentage of request) above target',
    });
    const { status, event } = planStatus(autoscaler(), plan, { current: 2, now });
    expect(event).toEqual({
      ...{ type: 'Normal', reason: 'SuccessfulRescale' },
      message: 'New size: 4; reason: cpu resource utilization (percentage of request) above target',
    });
    expect(status).toMatchObject({
      ...{ currentReplicas: 2, desiredReplicas: 4, lastScaleTime: '2026-11-28T12:00:00Z' },
      currentMetrics: [
        {
          type: 'Resource',
          resource: { name: 'cpu', current: { averageUtilization: 100, averageValue: '100m' } },
        },
      ],
    });
    const reasons = status.conditions?.map(({ type, status: value, reason }) => [type, value, reason]);
    expect(reasons).toEqual([
      ['AbleToScale', 'True', 'SucceededRescale'],
      ['ScalingActive', 'True', 'ValidMetricFound'],
      ['ScalingLimited', 'False', 'DesiredWithinRange'],
      ['ScaledToZero', 'False', 'NotScaledToZero'],
    ]);
  });

  it('says which generation of it the status is of', () => {
    const hpa = autoscaler();
    const observed = { ...hpa, metadata: { ...hpa.metadata, generation: 7 } };
    const { status } = planStatus(observed, scale(stateOf([50])), { current: 1, now });
    expect(status.observedGeneration).toBe(7);
  });

  describe('whose target has no Pods', () => {
    const zero = stateOf([], { current: 0 });
    const scaledToZero = (spec: Partial<HorizontalPodAutoscalerSpec>) => ({
      ...autoscaler(spec),
      status: {
        desiredReplicas: 0,
        currentMetrics: null,
        conditions: [{ type: 'ScaledToZero', status: 'True' }],
      },
    });

    it('leaves it alone that somebody else scaled to zero', () => {
      for (const minReplicas of [0, 1]) {
        const { rescale, conditions } = scale(zero, { minReplicas });
        expect(rescale).toBeUndefined();
        expect(conditions).toContainEqual(
          expect.objectContaining({ type: 'ScalingActive', reason: 'ScalingDisabled' }),
        );
      }
    });

    it('asks its metrics again if it scaled the target to zero itself', () => {
      const { conditions } = planScaling(scaledToZero({ minReplicas: 2 }), zero, none, now);
      expect(conditions).not.toContainEqual(expect.objectContaining({ reason: 'ScalingDisabled' }));
    });
  });

  it('scales down when the recommendations of five minutes allow it', () => {
    const state = stateOf([10, 10, 10, 10]);
    expect(scale(state), 'it has just begun').toMatchObject({ rescale: undefined, desired: 4 });
    const old = { replicas: 4, atMs: now - 301_000 };
    const plan = scale(state, {}, { ...none, recommendations: [old] });
    expect(plan.rescale).toEqual({ replicas: 1, reason: 'All metrics below target' });
  });

  it('follows the metric that wants most', () => {
    const samples = [
      {
        pod: 'p0',
        atMs: now,
        windowMs: 1,
        containers: [{ name: 'main', usage: { cpu: '60m', memory: '3Mi' } }],
      },
    ];
    const plan = scale(stateOf([60], { samples }), { metrics: [cpu(50), memory] });
    expect(plan.rescale).toEqual({ replicas: 3, reason: 'memory resource above target' });
    expect(plan.metrics?.[1]).toEqual({
      type: 'Resource',
      resource: { name: 'memory', current: { averageValue: '3145728' } },
    });
  });

  it('has a tolerance of its own for each direction', () => {
    const behavior = { scaleUp: { tolerance: '500m' }, scaleDown: { tolerance: '0' } };
    expect(scale(stateOf([70, 70]), { behavior }).rescale).toBeUndefined();
    expect(scale(stateOf([70, 70])).rescale).toMatchObject({ replicas: 3 });
  });

  it.for<[string, number, Partial<HorizontalPodAutoscalerSpec>, number | undefined, string]>([
    ['more than the maximum', 12, {}, 10, 'Current number of replicas above Spec.MaxReplicas'],
    ['less than the minimum', 1, { minReplicas: 2 }, 2, 'Current number of replicas below Spec.MinReplicas'],
    ['none: it is off', 0, {}, undefined, ''],
  ])('whose target has %s asks no metric', ([, current, spec, replicas, reason]) => {
    const plan = scale(stateOf([], { current }), spec);
    expect(plan).toMatchObject({ metrics: null, events: [] });
    expect(plan.rescale).toEqual(replicas === undefined ? undefined : { replicas, reason });
    const active = conditionOf(plan.conditions, 'ScalingActive');
    expect(active?.reason).toBe(replicas === undefined ? 'ScalingDisabled' : undefined);
  });

  it('says which metric it does not get, and does nothing', () => {
    const plan = scale(stateOf([100], { samples: 'the server could not find the requested resource' }));
    const error =
      'failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource';
    expect(plan).toMatchObject({ rescale: undefined, desired: 3, metrics: [{ type: '' }] });
    expect(plan.events).toEqual([
      { type: 'Warning', reason: 'FailedGetResourceMetric', message: error },
      {
        ...{ type: 'Warning', reason: 'FailedComputeMetricsReplicas' },
        message: `invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: ${error}`,
      },
    ]);
    expect(conditionOf(plan.conditions, 'ScalingActive')).toMatchObject({
      ...{ status: 'False', reason: 'FailedGetResourceMetric' },
      message: `the HPA was unable to compute the replica count: ${error}`,
    });
  });

  it('goes up, and never down, by some of its metrics', () => {
    const missing: MetricSpec = {
      type: 'Pods',
      pods: { metric: { name: 'rate' }, target: { type: 'AverageValue', averageValue: '1' } },
    };
    const metrics = [missing, cpu(50)];
    expect(scale(stateOf([100]), { metrics })).toMatchObject({
      rescale: { replicas: 2 },
      events: [{ reason: 'FailedGetPodsMetric' }],
    });
    const old = { ...none, recommendations: [{ replicas: 2, atMs: now - 301_000 }] };
    const down = scale(stateOf([1, 1]), { metrics }, old);
    expect(down.rescale).toBeUndefined();
    expect(down.events.map(({ reason }) => reason)).toEqual([
      ...['FailedGetPodsMetric', 'FailedComputeMetricsReplicas'],
    ]);
  });

  it.for<[Partial<ScaleState>, string, string, string]>([
    [{ selector: '' }, 'SelectorRequired', 'InvalidSelector', 'selector is required'],
    [
      { autoscalers: ['shop/other', 'shop/web'] },
      ...(['AmbiguousSelector', 'AmbiguousSelector'] as const),
      'pods by selector app=web are controlled by multiple HPAs: [shop/other shop/web]',
    ],
  ])('leaves alone what it cannot tell from others: %j', ([differences, reason, condition, message]) => {
    const plan = scale(stateOf([100], differences));
    expect(plan.rescale).toBeUndefined();
    expect(plan.events[0]).toEqual({ type: 'Warning', reason, message });
    expect(conditionOf(plan.conditions, 'ScalingActive')).toMatchObject({
      status: 'False',
      reason: condition,
    });
  });

  it('says why the scale could not be written, or read', () => {
    const plan = scale(stateOf([100, 100]));
    const failed = planStatus(autoscaler(), plan, { current: 2, now, failure: 'no' });
    expect(failed.event).toMatchObject({ type: 'Warning', reason: 'FailedRescale' });
    expect(failed.event?.message).toMatch(/^New size: 4; reason: .* above target; error: no$/);
    expect(failed.status.desiredReplicas).toBe(3);
    expect(failed.status).not.toHaveProperty('lastScaleTime');
    expect(conditionOf(failed.status.conditions, 'AbleToScale')).toMatchObject({
      ...{ status: 'False', reason: 'FailedUpdateScale' },
      message: 'the HPA controller was unable to update the target scale: no',
    });
    const unread = planMissingScale(autoscaler(), 'deployments.apps "web" not found', now);
    expect(unread.event).toEqual({
      ...{ type: 'Warning', reason: 'FailedGetScale', message: 'deployments.apps "web" not found' },
    });
    expect(conditionOf(unread.status.conditions, 'AbleToScale')?.message).toBe(
      'the HPA controller was unable to get the target\'s current scale: deployments.apps "web" not found',
    );
  });

  it('keeps the time of a condition whose status stays', () => {
    const before = {
      type: 'AbleToScale',
      status: 'True',
      lastTransitionTime: long,
      reason: 'x',
      message: 'y',
    };
    const hpa = autoscaler();
    const plan = planScaling(
      { ...hpa, status: { ...hpa.status, conditions: [before] } },
      stateOf([50]),
      none,
      now,
    );
    expect(plan.conditions[0]).toMatchObject({ lastTransitionTime: long, reason: 'ReadyForNewScale' });
    expect(plan.conditions[1]).toMatchObject({ lastTransitionTime: '2026-11-28T12:00:00Z' });
  });
});
