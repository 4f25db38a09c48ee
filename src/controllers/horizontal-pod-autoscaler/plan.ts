/** What an autoscaler does with the metrics of its target (pkg/controller/podautoscaler/horizontal.go, `reconcileAutoscaler`). */
import type { PlannedEvent } from '../../client/events/events.ts';
import { conditionOf, replacedCondition, transitionTime } from '../../objects/meta.ts';
import { formatQuantity, parseQuantity, quantityIn } from '../../objects/formats/quantity.ts';
import { formatTime } from '../../objects/formats/time.ts';
import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerCondition,
  HorizontalPodAutoscalerStatus,
  HPAScalingRules,
  MetricSpec,
  MetricStatus,
  MetricTarget,
  MetricValueStatus,
} from '../../objects/types/autoscaling.generated.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import {
  boundReplicas,
  type Recommendation,
  type ScalingBounds,
  type ScalingHistory,
} from './plan-behavior.ts';
import {
  MetricError,
  type PodSample,
  proposeByAverage,
  proposeByUtilization,
  type ReplicaProposal,
  type ResourceOf,
  type Tolerance,
} from './plan-replicas.ts';

/** What is known of the target. */
export interface ScaleState {
  /** `spec.replicas` of its scale. */
  readonly current: number;
  /** The text of its selector; empty: it has none. */
  readonly selector: string;
  readonly pods: readonly Pod[];
  /** Of these Pods, or why there are none. */
  readonly samples: readonly PodSample[] | string;
  /** Keys of all autoscalers that control one of its Pods, this one among them. */
  readonly autoscalers: readonly string[];
}

/** What is to be done, before it is. */
export interface ScalingPlan {
  /** The new number of replicas; undefined: no change. */
  readonly rescale: { readonly replicas: number; readonly reason: string } | undefined;
  readonly conditions: readonly HorizontalPodAutoscalerCondition[];
  readonly metrics: readonly MetricStatus[] | null;
  /** `status.desiredReplicas` where nothing is written. */
  readonly desired: number;
  readonly events: readonly PlannedEvent[];
  readonly recommendations: readonly Recommendation[];
}

type Condition = Omit<HorizontalPodAutoscalerCondition, 'lastTransitionTime'>;
type FailureReason =
  | 'FailedGetResourceMetric'
  | 'FailedGetContainerResourceMetric'
  | 'FailedGetPodsMetric'
  | 'FailedGetObjectMetric'
  | 'FailedGetExternalMetric'
  | 'InvalidMetricSourceType';

/** `--horizontal-pod-autoscaler-tolerance`. */
const defaultTolerance = 0.1;

/** The limits of an autoscaler at a time. */
export function boundsOf(
  { spec }: Pick<HorizontalPodAutoscaler, 'spec'>,
  current: number,
  now: number,
): ScalingBounds {
  const { minReplicas: min = 1, maxReplicas: max, behavior } = spec;
  return { current, min, max, behavior, now };
}

const belowMinimum = 'Current number of replicas below Spec.MinReplicas';
const scaledToZero = 'ScaledToZero';

/** It has a metric that does not need Pods. */
function followsOthers({ spec }: HorizontalPodAutoscaler): boolean {
  return (spec.metrics ?? []).some(({ type }) => type === 'Object' || type === 'External');
}

/** Plans the next step of an autoscaler whose scale was read. */
export function planScaling(
  hpa: HorizontalPodAutoscaler,
  state: ScaleState,
  history: ScalingHistory,
  now: number,
): ScalingPlan {
  const { current } = state;
  const { status } = hpa;
  const bounds = boundsOf(hpa, current, now);
  const able = condition(
    'AbleToScale',
    true,
    'SucceededGetScale',
    "the HPA controller was able to get the target's current scale",
  );
  const conditions = (...more: Condition[]) => withConditions(status.conditions ?? [], [able, ...more], now);
  const first = { replicas: current, atMs: now };
  const recommendations = history.recommendations.length === 0 ? [first] : history.recommendations;
  const plan = { metrics: null, desired: current, events: [], recommendations, rescale: undefined };
  const wasScaledToZero = conditionOf(status.conditions, scaledToZero)?.status === 'True';
  // Who set a target to zero by hand wants no scaling.
  if (current === 0 && !(wasScaledToZero && (bounds.min !== 0 || followsOthers(hpa)))) {
    const message = 'scaling is disabled since the replica count of the target is zero';
    return { ...plan, conditions: conditions(condition('ScalingActive', false, 'ScalingDisabled', message)) };
  }
  if (current > bounds.max || (current < bounds.min && current !== 0)) {
    const isAbove = current > bounds.max;
    const reason = isAbove ? 'Current number of replicas above Spec.MaxReplicas' : belowMinimum;
    const replicas = isAbove ? bounds.max : bounds.min;
    return { ...plan, conditions: conditions(), rescale: { replicas, reason } };
  }
  const computed = replicasForMetrics(hpa, state, now);
  const { events, metrics } = computed;
  if (computed.proposal === undefined) {
    const failed = computed.failed === undefined ? [] : [computed.failed];
    const { desiredReplicas = 0 } = status;
    return { ...plan, metrics, events, conditions: conditions(...failed), desired: desiredReplicas };
  }
  const { replicas: wanted, metric } = computed.proposal;
  const bounded = boundReplicas(wanted, bounds, { ...history, recommendations });
  const { stable, limit } = bounded;
  const replicas = current === 0 ? Math.max(bounded.replicas, bounds.min) : bounded.replicas;
  const reason =
    wanted > current
      ? `${metric} above target`
      : wanted < current
        ? 'All metrics below target'
        : current === 0
          ? belowMinimum
          : '';
  const message = `the HPA was able to successfully calculate a replica count from ${metric}`;
  return {
    rescale: replicas === current ? undefined : { replicas, reason },
    conditions: conditions(
      condition('ScalingActive', true, 'ValidMetricFound', message),
      condition('AbleToScale', true, stable.reason, stable.message),
      condition('ScalingLimited', limit.isLimited, limit.reason, limit.message),
    ),
    ...{ metrics, events, desired: current, recommendations: bounded.recommendations },
  };
}

/** The status of a plan that was carried out, and the Event of it. @param failure why the scale could not be written. */
export function planStatus(
  hpa: HorizontalPodAutoscaler,
  { rescale, conditions, metrics, desired }: ScalingPlan,
  {
    current,
    now,
    failure,
  }: { readonly current: number; readonly now: number; readonly failure?: string | undefined },
): { readonly status: HorizontalPodAutoscalerStatus; readonly event?: PlannedEvent } {
  const { status, metadata, spec } = hpa;
  const base = statusWith(status, {
    ...(metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }),
    currentReplicas: current,
    currentMetrics: metrics && [...metrics],
  });
  if (rescale === undefined) {
    return { status: { ...base, desiredReplicas: desired, conditions: [...conditions] } };
  }
  const { replicas, reason } = rescale;
  if (failure !== undefined) {
    const message = `the HPA controller was unable to update the target scale: ${failure}`;
    const failed = condition('AbleToScale', false, 'FailedUpdateScale', message);
    return {
      status: { ...base, conditions: withConditions(conditions, [failed], now) },
      event: {
        ...{ type: 'Warning', reason: 'FailedRescale' },
        message: `New size: ${replicas}; reason: ${reason}; error: ${failure}`,
      },
    };
  }
  const message = `the HPA controller was able to update the target scale to ${replicas}`;
  const able = condition('AbleToScale', true, 'SucceededRescale', message);
  const isZero = current > 0 && replicas === 0 && spec.minReplicas === 0 && followsOthers(hpa);
  const zero = isZero
    ? condition(scaledToZero, true, 'ScaledToZero', 'the HPA controller scaled the workload to zero')
    : condition(
        scaledToZero,
        false,
        'NotScaledToZero',
        'the HPA controller did not scale the workload to zero',
      );
  return {
    status: {
      ...base,
      desiredReplicas: replicas,
      lastScaleTime: formatTime(now),
      conditions: withConditions(conditions, [able, zero], now),
    },
    event: {
      type: 'Normal',
      reason: 'SuccessfulRescale',
      message: `New size: ${replicas}; reason: ${reason}`,
    },
  };
}

/** The status and the Event of an autoscaler whose target has no scale. */
export function planMissingScale(
  { status }: HorizontalPodAutoscaler,
  why: string,
  now: number,
): { readonly status: HorizontalPodAutoscalerStatus; readonly event: PlannedEvent } {
  const message = `the HPA controller was unable to get the target's current scale: ${why}`;
  const failed = condition('AbleToScale', false, 'FailedGetScale', message);
  return {
    status: statusWith(status, { conditions: withConditions(status.conditions ?? [], [failed], now) }),
    event: { type: 'Warning', reason: 'FailedGetScale', message: why },
  };
}

function statusWith(
  status: HorizontalPodAutoscalerStatus,
  members: Partial<HorizontalPodAutoscalerStatus>,
): HorizontalPodAutoscalerStatus {
  const { currentReplicas = 0, desiredReplicas = 0, currentMetrics } = status;
  return { ...status, currentReplicas, desiredReplicas, currentMetrics, ...members };
}

interface Computed {
  /** Undefined: nothing is to be done. */
  readonly proposal: { readonly replicas: number; readonly metric: string } | undefined;
  readonly failed?: Condition;
  readonly metrics: readonly MetricStatus[] | null;
  readonly events: readonly PlannedEvent[];
}

/** The highest number that a metric asks for (`computeReplicasForMetrics`). */
function replicasForMetrics(hpa: HorizontalPodAutoscaler, state: ScaleState, now: number): Computed {
  const refused = selectorProblem(state);
  if (refused !== undefined) {
    const { reason, said, message } = refused;
    return {
      ...{ proposal: undefined, metrics: null },
      failed: condition(
        'ScalingActive',
        false,
        reason === 'SelectorRequired' ? 'InvalidSelector' : reason,
        message,
      ),
      events: [
        { type: 'Warning', reason, message: said },
        { type: 'Warning', reason: 'FailedComputeMetricsReplicas', message: said },
      ],
    };
  }
  const { metrics: specs = [], behavior } = hpa.spec;
  const events: PlannedEvent[] = [];
  const statuses: MetricStatus[] = [];
  const errors: { readonly text: string; readonly failed: Condition }[] = [];
  let best: Computed['proposal'];
  const tolerance = { up: toleranceOf(behavior?.scaleUp), down: toleranceOf(behavior?.scaleDown) };
  for (const spec of specs) {
    const result = replicasForMetric(spec, state, tolerance, now);
    if ('error' in result) {
      const { reason, error, kind } = result;
      const message = `the HPA was unable to compute the replica count: ${error}`;
      events.push({ type: 'Warning', reason, message: error });
      errors.push({ text: `${kind}${error}`, failed: condition('ScalingActive', false, reason, message) });
      // As kube-controller-manager leaves it.
      statuses.push({ type: '' });
      continue;
    }
    statuses.push(result.status);
    if (best === undefined || best.replicas === 0 || result.replicas > best.replicas) {
      best = { replicas: result.replicas, metric: result.metric };
    }
  }
  const [first] = errors;
  if (first === undefined)
    return { proposal: best ?? { replicas: 0, metric: '' }, metrics: statuses, events };
  // With some of the metrics, it goes up and never down.
  if (best !== undefined && best.replicas >= state.current)
    return { proposal: best, metrics: statuses, events };
  const message = `invalid metrics (${errors.length} invalid out of ${specs.length}), first error is: ${first.text}`;
  events.push({ type: 'Warning', reason: 'FailedComputeMetricsReplicas', message });
  return { proposal: undefined, failed: first.failed, metrics: statuses, events };
}

function selectorProblem({ selector, autoscalers }: ScaleState) {
  if (selector === '') {
    const message = "the HPA target's scale is missing a selector";
    return { reason: 'SelectorRequired', said: 'selector is required', message } as const;
  }
  if (autoscalers.length <= 1) return undefined;
  const said = `pods by selector ${selector} are controlled by multiple HPAs: [${autoscalers.join(' ')}]`;
  return { reason: 'AmbiguousSelector', said, message: said } as const;
}

/** KEP-4951. */
function toleranceOf({ tolerance }: HPAScalingRules = {}): number {
  return tolerance === undefined ? defaultTolerance : Number(parseQuantity(tolerance).nanos) / 1e9;
}

type MetricResult =
  | { readonly replicas: number; readonly metric: string; readonly status: MetricStatus }
  /** `kind`: what stands before the error where metrics are counted together. */
  | { readonly reason: FailureReason; readonly error: string; readonly kind: string };

function replicasForMetric(
  spec: MetricSpec,
  state: ScaleState,
  tolerance: Tolerance,
  now: number,
): MetricResult {
  const { type, resource, containerResource, pods, object, external } = spec;
  if (type === 'Resource' && resource !== undefined) {
    const { name, target } = resource;
    const result = byResource({ resource: name }, target, state, tolerance, now);
    const [reason, kind] = [
      'FailedGetResourceMetric',
      `failed to get ${name} resource metric value: `,
    ] as const;
    if (typeof result === 'string') return { reason, error: result, kind };
    const { replicas, metric, current } = result;
    return { replicas, metric, status: { type, resource: { name, current } } };
  }
  if (type === 'ContainerResource' && containerResource !== undefined) {
    const { name, container, target } = containerResource;
    const result = byResource({ resource: name, container }, target, state, tolerance, now);
    const kind = `failed to get ${name} container metric value: `;
    if (typeof result === 'string')
      return { reason: 'FailedGetContainerResourceMetric', error: result, kind };
    const { replicas, metric, current } = result;
    return { replicas, metric, status: { type, containerResource: { name, container, current } } };
  }
  const none = (api: string): string =>
    `unable to fetch metrics from ${api} metrics API: no ${api} metrics API (${api}.metrics.k8s.io) registered`;
  if (pods !== undefined) {
    const error = `unable to get metric ${pods.metric.name}: ${none('custom')}`;
    return { reason: 'FailedGetPodsMetric', error, kind: 'failed to get pods metric value: ' };
  }
  if (object !== undefined) {
    const { kind, name } = object.describedObject;
    const error = `unable to get metric ${object.metric.name}: ${kind} on ${name}: ${none('custom')}`;
    return { reason: 'FailedGetObjectMetric', error, kind: 'failed to get object metric value: ' };
  }
  if (external !== undefined) {
    const { name } = external.metric;
    const error = `unable to get external metric ${name}: ${none('external')}`;
    return {
      reason: 'FailedGetExternalMetric',
      error,
      kind: `failed to get ${name} external metric value: `,
    };
  }
  return { reason: 'InvalidMetricSourceType', error: `unknown metric source type "${type}"`, kind: '' };
}

/** A text: why it cannot be computed. */
function byResource(
  of: ResourceOf,
  { averageUtilization, averageValue }: MetricTarget,
  { current, pods, samples }: ScaleState,
  tolerance: Tolerance,
  now: number,
): { readonly replicas: number; readonly metric: string; readonly current: MetricValueStatus } | string {
  const { resource } = of;
  const question = { ...of, current, pods, samples, tolerance, nowMs: now };
  const isByValue = averageValue !== undefined;
  if (!isByValue && averageUtilization === undefined) {
    return 'invalid resource metric source: neither an average utilization target nor an average value (usage) target was set';
  }
  try {
    const proposal = isByValue
      ? proposeByAverage(question, quantityIn(averageValue, 'thousandths'))
      : proposeByUtilization(question, averageUtilization ?? 0);
    const metric = `${resource} resource${isByValue ? '' : ' utilization (percentage of request)'}`;
    return { replicas: proposal.replicas, metric, current: valueOf(proposal) };
  } catch (error) {
    if (!(error instanceof MetricError)) throw error;
    return `failed to get ${resource} ${isByValue ? 'usage' : 'utilization'}: ${error.message}`;
  }
}

function valueOf({ averageMilli, utilization }: ReplicaProposal): MetricValueStatus {
  const averageValue = formatQuantity({ nanos: averageMilli * 1_000_000n, format: 'DecimalSI' });
  return { averageValue, ...(utilization !== undefined && { averageUtilization: utilization }) };
}

function condition(type: string, isTrue: boolean, reason: string, message: string): Condition {
  return { type, status: isTrue ? 'True' : 'False', reason, message };
}

/** Each in the place of the one of its type, with the time at which its status last changed. */
function withConditions(
  present: readonly HorizontalPodAutoscalerCondition[],
  conditions: readonly Condition[],
  now: number,
): HorizontalPodAutoscalerCondition[] {
  let all = [...present];
  for (const each of conditions) {
    const { type, status, ...rest } = each;
    const lastTransitionTime = transitionTime(present, each, now);
    all = replacedCondition(all, { type, status, lastTransitionTime, ...rest });
  }
  return all;
}
