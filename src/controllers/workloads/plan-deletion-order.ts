/** Which Pods go first when there are too many (`ActivePodsWithRanks`, pkg/controller/controller_utils.go). */
import type { Pod } from '../../objects/pod.ts';
import { parseTime } from '../../objects/time.ts';
import { compareText, conditionOf, isReady } from './plan-pods.ts';

const deletionCost = 'controller.kubernetes.io/pod-deletion-cost';
const phases = new Map([
  ['Pending', 0],
  ['Unknown', 1],
  ['Running', 2],
]);

/**
 * The Pods in the order in which to delete them: unassigned, pending, not ready; then by deletion cost, crowded
 * nodes, short readiness, many restarts and youth.
 *
 * @param related active Pods of the same workload, these included: nodes that run many of them are crowded.
 */
export function deletionOrder(pods: readonly Pod[], related: readonly Pod[], now: number): Pod[] {
  const perNode = new Map<string, number>();
  for (const { spec } of related) {
    const node = spec.nodeName ?? '';
    perNode.set(node, (perNode.get(node) ?? 0) + 1);
  }
  const keyed = pods.map((pod) => ({ pod, keys: sortKeys(pod, perNode, now) }));
  keyed.sort((a, b) => {
    for (const [i, key] of a.keys.entries()) {
      const difference = key - (b.keys[i] ?? 0);
      if (difference !== 0) return difference;
    }
    return compareText(a.pod.metadata.name ?? '', b.pod.metadata.name ?? '');
  });
  return keyed.map(({ pod }) => pod);
}

/** Smaller goes first. Times count in powers of two, so that all of about the same age are equal. */
function sortKeys(pod: Pod, perNode: ReadonlyMap<string, number>, now: number): number[] {
  const { spec, status, metadata } = pod;
  const ready = isReady(pod);
  const node = spec.nodeName ?? '';
  return [
    node === '' ? 0 : 1,
    phases.get(status.phase ?? '') ?? 1,
    ready ? 1 : 0,
    costOf(pod),
    -(perNode.get(node) ?? 0),
    ready ? age(conditionOf(status.conditions, 'Ready')?.lastTransitionTime, now) : 0,
    -Math.max(0, ...(status.containerStatuses ?? []).map(({ restartCount }) => restartCount)),
    age(metadata.creationTimestamp, now),
  ];
}

function age(time: string | undefined, now: number): number {
  const since = parseTime(time ?? '') ?? now;
  return Math.floor(Math.log2(Math.max(1, (now - since) / 1000)));
}

function costOf({ metadata }: Pod): number {
  const text = metadata.annotations?.[deletionCost] ?? '';
  return /^[-+]?\d{1,10}$/.test(text) ? Number(text) : 0;
}
