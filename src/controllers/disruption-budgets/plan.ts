/** How many Pods may be disrupted (pkg/controller/disruption/disruption.go). */
import type { Pod } from '../../objects/pod.ts';
import { formatTime, parseTime } from '../../objects/time.ts';
import type { PodDisruptionBudget } from '../../objects/workloads.ts';
import { conditionOf, isFinished, isReady } from '../workloads/plan-pods.ts';
import { scaledValue } from '../workloads/plan-scaled-value.ts';

/** Milliseconds after which an eviction that did not lead to a deletion no longer counts. */
const deletionTimeout = 120_000;

/**
 * The status of a budget.
 *
 * @param pods those that its selector matches.
 * @param expected how many Pods their controllers want; read for percentages and `maxUnavailable`.
 */
export function planBudgetStatus(
  budget: PodDisruptionBudget,
  pods: readonly Pod[],
  expected: number,
  now: number,
): PodDisruptionBudget['status'] {
  const { spec, metadata, status } = budget;
  const { total, desired } = wanted(spec, pods, expected);
  const disrupted = stillDisrupted(status.disruptedPods ?? {}, pods, now);
  const healthy = pods.filter(
    (pod) =>
      isReady(pod) &&
      pod.metadata.deletionTimestamp === undefined &&
      !Object.hasOwn(disrupted, pod.metadata.name ?? ''),
  ).length;
  const allowed = total <= 0 ? 0 : Math.max(0, healthy - desired);
  const isAllowed = allowed > 0;
  const present = conditionOf(status.conditions, 'DisruptionAllowed');
  const conditionState = isAllowed ? 'True' : 'False';
  const condition = {
    type: 'DisruptionAllowed',
    status: conditionState,
    ...(metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }),
    lastTransitionTime:
      (present?.status === conditionState ? present.lastTransitionTime : undefined) ?? formatTime(now),
    reason: isAllowed ? 'SufficientPods' : 'InsufficientPods',
    message: '',
  };
  const others = (status.conditions ?? []).filter(({ type }) => type !== condition.type);
  return {
    ...(metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }),
    ...(Object.keys(disrupted).length === 0 ? {} : { disruptedPods: disrupted }),
    disruptionsAllowed: allowed,
    currentHealthy: healthy,
    desiredHealthy: desired,
    expectedPods: total,
    conditions: [...others, condition],
  };
}

function wanted(
  { minAvailable, maxUnavailable }: PodDisruptionBudget['spec'],
  pods: readonly Pod[],
  expected: number,
): { total: number; desired: number } {
  if (maxUnavailable !== undefined) {
    return { total: expected, desired: Math.max(0, expected - scaledValue(maxUnavailable, expected, 'up')) };
  }
  if (typeof minAvailable === 'string') {
    return { total: expected, desired: scaledValue(minAvailable, expected, 'up') };
  }
  return { total: pods.length, desired: minAvailable ?? 0 };
}

function stillDisrupted(
  disrupted: Readonly<Record<string, string>>,
  pods: readonly Pod[],
  now: number,
): Record<string, string> {
  const present = new Map(pods.map((pod) => [pod.metadata.name ?? '', pod]));
  return Object.fromEntries(
    Object.entries(disrupted).filter(([name, time]) => {
      const pod = present.get(name);
      const since = parseTime(time) ?? 0;
      return (
        pod !== undefined && pod.metadata.deletionTimestamp === undefined && since + deletionTimeout > now
      );
    }),
  );
}

/** The Pods that count: those that run or are to run. */
export function counted(pods: readonly Pod[]): Pod[] {
  return pods.filter((pod) => !isFinished(pod));
}
