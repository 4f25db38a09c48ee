/** How fast an autoscaler may follow its metrics (pkg/controller/podautoscaler/horizontal.go, `normalizeDesiredReplicas…`). */
import { maxOf } from '../../objects/lists.ts';
import type {
  HorizontalPodAutoscalerBehavior,
  HPAScalingRules,
} from '../../objects/types/autoscaling.generated.ts';

/** What happened at a time, in milliseconds since 1970. */
export interface Recommendation {
  readonly replicas: number;
  readonly atMs: number;
}

/** What an autoscaler remembers; it is lost at a restart, as kube-controller-manager's. */
export interface ScalingHistory {
  readonly recommendations: readonly Recommendation[];
  /** Replicas that were added and removed. */
  readonly added: readonly Recommendation[];
  readonly removed: readonly Recommendation[];
}

/** Between which numbers, and how fast. */
export interface ScalingBounds {
  readonly current: number;
  readonly min: number;
  readonly max: number;
  /** Undefined: the rules of before there was a behavior. */
  readonly behavior: HorizontalPodAutoscalerBehavior | undefined;
  readonly now: number;
}

/** What bounds make of a number. */
export interface BoundedReplicas {
  readonly replicas: number;
  /** Of the condition AbleToScale. */
  readonly stable: ScalingReason;
  /** Of the condition ScalingLimited. */
  readonly limit: ScalingReason & { readonly isLimited: boolean };
  readonly recommendations: readonly Recommendation[];
}

interface ScalingReason {
  readonly reason: string;
  readonly message: string;
}

/** `--horizontal-pod-autoscaler-downscale-stabilization`. */
const downStabilizationSeconds = 300;

const readyForNewScale: ScalingReason = {
  reason: 'ReadyForNewScale',
  message: 'recommended size matches current size',
};
const upStabilized: ScalingReason = {
  reason: 'ScaleUpStabilized',
  message: 'recent recommendations were lower than current one, applying the lowest recent recommendation',
};
const downStabilized: ScalingReason = {
  reason: 'ScaleDownStabilized',
  message: 'recent recommendations were higher than current one, applying the highest recent recommendation',
};
const upLimit: ScalingReason = {
  reason: 'ScaleUpLimit',
  message: 'the desired replica count is increasing faster than the maximum scale rate',
};
const downLimit: ScalingReason = {
  reason: 'ScaleDownLimit',
  message: 'the desired replica count is decreasing faster than the maximum scale rate',
};
const tooMany: ScalingReason = {
  reason: 'TooManyReplicas',
  message: 'the desired replica count is more than the maximum replica count',
};
const tooFew: ScalingReason = {
  reason: 'TooFewReplicas',
  message: 'the desired replica count is less than the minimum replica count',
};
const withinRange: ScalingReason = {
  reason: 'DesiredWithinRange',
  message: 'the desired count is within the acceptable range',
};

/** Bounds what metrics ask for: by what they asked for lately, the rate of change, and the limits. */
export function boundReplicas(
  wanted: number,
  bounds: ScalingBounds,
  history: ScalingHistory,
): BoundedReplicas {
  const { behavior, current, now } = bounds;
  const [upMs, downMs] =
    behavior === undefined
      ? [0, downStabilizationSeconds * 1000]
      : [windowMs(behavior.scaleUp, 0), windowMs(behavior.scaleDown, downStabilizationSeconds)];
  const before = history.recommendations;
  const since = (ms: number): number[] =>
    before.filter(({ atMs }) => atMs > now - ms).map(({ replicas }) => replicas);
  // Up to the lowest of one time, down to the highest of another.
  const lowest = least([wanted, ...since(upMs)]);
  const highest = maxOf([wanted, ...since(downMs)]);
  const stabilized = behavior === undefined ? highest : Math.min(Math.max(current, lowest), highest);
  const isUp = behavior !== undefined && wanted >= current;
  const stable = stabilized === wanted ? readyForNewScale : isUp ? upStabilized : downStabilized;
  const { replicas, ...reason } = limited(stabilized, bounds, history);
  const keptMs = Math.max(upMs, downMs);
  return {
    replicas,
    stable,
    limit: { ...reason, isLimited: replicas !== stabilized },
    recommendations: [...before.filter(({ atMs }) => atMs > now - keptMs), { replicas: wanted, atMs: now }],
  };
}

/** The history after a change that was made. Without a behavior nothing reads it. */
export function rememberChange(
  { current, behavior, now }: ScalingBounds,
  replicas: number,
  history: ScalingHistory,
): ScalingHistory {
  if (behavior === undefined || replicas === current) return history;
  const policies = [behavior.scaleUp?.policies ?? defaultUp, behavior.scaleDown?.policies ?? defaultDown];
  const longestMs = maxOf(policies.flat().map(({ periodSeconds }) => periodSeconds * 1000));
  const kept = (all: readonly Recommendation[]) => all.filter(({ atMs }) => atMs > now - longestMs);
  const change = { replicas: Math.abs(replicas - current), atMs: now };
  return {
    ...history,
    added: [...kept(history.added), ...(replicas > current ? [change] : [])],
    removed: [...kept(history.removed), ...(replicas < current ? [change] : [])],
  };
}

function windowMs({ stabilizationWindowSeconds }: HPAScalingRules = {}, otherwiseSeconds: number): number {
  return (stabilizationWindowSeconds ?? otherwiseSeconds) * 1000;
}

type Limited = ScalingReason & { readonly replicas: number };

function limited(wanted: number, bounds: ScalingBounds, history: ScalingHistory): Limited {
  const { behavior, current, min, max } = bounds;
  // Without a behavior both limits hold whichever way it goes.
  const rises = behavior === undefined || wanted > current;
  const falls = behavior === undefined || wanted < current;
  const up = behavior === undefined ? Math.max(2 * current, 4) : Math.max(current, upTo(bounds, history));
  const down = behavior === undefined ? min : Math.min(current, downTo(bounds, history));
  if (rises && wanted > Math.min(max, up)) {
    return { replicas: Math.min(max, up), ...(max > up ? upLimit : tooMany) };
  }
  if (falls && wanted < Math.max(min, down)) {
    return { replicas: Math.max(min, down), ...(min < down ? downLimit : tooFew) };
  }
  return { replicas: wanted, ...withinRange };
}

/** The most replicas that the policies allow (`calculateScaleUpLimitWithScalingRules`). */
function upTo({ behavior, current, now }: ScalingBounds, history: ScalingHistory): number {
  const rules = behavior?.scaleUp ?? {};
  if (rules.selectPolicy === 'Disabled') return current;
  const proposals = (rules.policies ?? defaultUp).map(({ type, value, periodSeconds }) => {
    const start = atPeriodStart(current, history, now - periodSeconds * 1000);
    return type === 'Pods' ? start + value : Math.ceil(start * (1 + value / 100));
  });
  return rules.selectPolicy === 'Min' ? least(proposals) : maxOf(proposals);
}

/** The fewest (`calculateScaleDownLimitWithBehaviors`). */
function downTo({ behavior, current, now }: ScalingBounds, history: ScalingHistory): number {
  const rules = behavior?.scaleDown ?? {};
  if (rules.selectPolicy === 'Disabled') return current;
  const proposals = (rules.policies ?? defaultDown).map(({ type, value, periodSeconds }) => {
    const start = atPeriodStart(current, history, now - periodSeconds * 1000);
    return type === 'Pods' ? start - value : Math.trunc(start * (1 - value / 100));
  });
  // The policy with the smallest change leaves the most.
  return rules.selectPolicy === 'Min' ? maxOf(proposals) : least(proposals);
}

function least(numbers: readonly number[]): number {
  return -maxOf(numbers.map((each) => -each));
}

/** As autoscaling/v2 has it by default. */
const defaultUp = [
  { type: 'Pods', value: 4, periodSeconds: 15 },
  { type: 'Percent', value: 100, periodSeconds: 15 },
];
const defaultDown = [{ type: 'Percent', value: 100, periodSeconds: 15 }];

function atPeriodStart(current: number, { added, removed }: ScalingHistory, sinceMs: number): number {
  const sum = (all: readonly Recommendation[]): number =>
    all.reduce((total, { replicas, atMs }) => total + (atMs > sinceMs ? replicas : 0), 0);
  return current - sum(added) + sum(removed);
}
