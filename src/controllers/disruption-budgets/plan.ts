/** How many Pods may be disrupted (pkg/controller/disruption/disruption.go). */
import type { Condition, LabelSelector } from '../../objects/meta.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import type { PodDisruptionBudget } from '../../objects/types/policy.generated.ts';
import { parseTime } from '../../objects/formats/time.ts';
import { transitionTime } from '../../objects/meta.ts';
import { controllerOf, isPodReady } from '../../objects/pods.ts';
import { scaledValue } from '../workloads/plan-template.ts';
import type { PlannedEvent } from '../../client/events/events.ts';

/** Milliseconds after which an eviction that did not lead to a deletion no longer counts. */
const deletionTimeoutMs = 120_000;

/**
 * The status of a budget.
 *
 * @param pods those that its selector matches.
 * @param expected the desired Pods of their controllers; used for percentages and `maxUnavailable`.
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
      isPodReady(pod) &&
      pod.metadata.deletionTimestamp === undefined &&
      !Object.hasOwn(disrupted, pod.metadata.name ?? ''),
  ).length;
  const allowed = total <= 0 ? 0 : Math.max(0, healthy - desired);
  const isAllowed = allowed > 0;
  const state = { type: 'DisruptionAllowed', status: isAllowed ? 'True' : 'False' } as const;
  const condition: Condition = {
    ...state,
    ...(metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }),
    lastTransitionTime: transitionTime(status.conditions, state, now),
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
        pod !== undefined && pod.metadata.deletionTimestamp === undefined && since + deletionTimeoutMs > now
      );
    }),
  );
}

/** The scale of a controller of Pods. */
export interface ControllerScale {
  /** Of the controller. */
  readonly uid: string;
  readonly replicas: number;
}

/**
 * The desired Pods of all their controllers together (`getExpectedScale`). Pods without a controller do not count.
 *
 * @param scaleOf undefined for a controller of an unknown kind: each of its Pods counts as one.
 */
export function expectedScale(
  pods: readonly Pod[],
  scaleOf: (pod: Pod) => ControllerScale | undefined,
): number {
  const scales = new Map<string, number>();
  for (const pod of pods) {
    if (controllerOf(pod) === undefined) continue;
    const { uid, replicas } = scaleOf(pod) ?? { uid: pod.metadata.uid ?? '', replicas: 1 };
    scales.set(uid, replicas);
  }
  return [...scales.values()].reduce((sum, replicas) => sum + replicas, 0);
}

/** The Event about the Pods of a budget, if there is one to record. */
export function planBudgetEvent(
  { spec }: PodDisruptionBudget,
  pods: readonly Pod[],
): PlannedEvent<'NoPods' | 'UnmanagedPods'> | undefined {
  if (pods.length === 0) return { type: 'Normal', reason: 'NoPods', message: 'No matching pods found' };
  const needsControllers = spec.maxUnavailable !== undefined || typeof spec.minAvailable === 'string';
  if (!needsControllers || pods.every((pod) => controllerOf(pod) !== undefined)) return undefined;
  const message =
    `Pods selected by this PodDisruptionBudget (selector: ${goSelector(spec.selector ?? {})}) were found to be unmanaged. ` +
    'As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. ' +
    'To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.';
  return { type: 'Warning', reason: 'UnmanagedPods', message };
}

/** A selector as Go prints it. */
function goSelector({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const labels = Object.keys(matchLabels)
    .sort()
    .map((key) => `${key}: ${matchLabels[key] ?? ''},`);
  const requirements = matchExpressions.map(
    ({ key, operator, values = [] }) =>
      `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values.join(' ')}],},`,
  );
  return `&LabelSelector{MatchLabels:map[string]string{${labels.join('')}},MatchExpressions:[]LabelSelectorRequirement{${requirements.join('')}},}`;
}
