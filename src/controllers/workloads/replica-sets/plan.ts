/**
 * Plans the Pods of a ReplicaSet or a ReplicationController (pkg/controller/replicaset/replica_set.go,
 * replica_set_utils.go).
 */
import type { Draft } from '../../../client/resource-client.ts';
import { containsLabels } from '../../../objects/selectors/labels.ts';
import type { Pod, ContainerStatus } from '../../../objects/types/core.generated.ts';
import { formatTime, parseTime } from '../../../objects/formats/time.ts';
import type { Replicated, WorkloadCondition } from '../../../objects/types/workloads.ts';
import { conditionOf } from '../../../objects/meta.ts';
import { isActive, isPodAvailable, isFinished, isPodReady } from '../../../objects/pods.ts';
import { podFromTemplate } from '../plan-template.ts';
import { compareText } from '../../../objects/formats/go-text.ts';
import { maxOf } from '../../../objects/lists.ts';

/** The most Pods that one sync creates or deletes (`BurstReplicas`). */
const burst = 500;

export interface ReplicaSetPlan {
  readonly create: readonly Draft<Pod>[];
  readonly remove: readonly Pod[];
}

/**
 * The Pods to create or to delete.
 *
 * @param owned the ReplicaSet's Pods.
 * @param related active Pods of the same Deployment, which decide which nodes are crowded.
 */
export function planReplicas(
  replicaSet: Replicated,
  owned: readonly Pod[],
  related: readonly Pod[],
  now: number,
): ReplicaSetPlan {
  const active = owned.filter(isActive);
  const missing = (replicaSet.spec.replicas ?? 0) - active.length;
  if (missing > 0) {
    const draft = podFromTemplate(replicaSet, replicaSet.spec.template ?? {});
    return { create: Array.from({ length: Math.min(missing, burst) }, () => draft), remove: [] };
  }
  if (missing === 0) return { create: [], remove: [] };
  const order = deletionOrder(active, related, now);
  return { create: [], remove: order.slice(0, Math.min(-missing, burst)) };
}

/**
 * The status to report.
 *
 * @param failure why Pods could not be created or deleted just now.
 */
export function planReplicaSetStatus(
  replicaSet: Replicated,
  owned: readonly Pod[],
  failure: { readonly reason: string; readonly message: string } | undefined,
  now: number,
): Replicated['status'] {
  const { spec, metadata, status } = replicaSet;
  const active = owned.filter(isActive);
  const labels = spec.template?.metadata?.labels ?? {};
  const fullyLabeled = active.filter((pod) => containsLabels(pod.metadata.labels, labels)).length;
  const ready = active.filter(isPodReady).length;
  const available = active.filter((pod) => isPodAvailable(pod, spec.minReadySeconds ?? 0, now)).length;
  const terminating = owned.filter((pod) => !isFinished(pod) && pod.metadata.deletionTimestamp !== undefined);
  const conditions = conditionsOf(status.conditions, failure, now);
  return {
    replicas: active.length,
    ...(fullyLabeled === 0 ? {} : { fullyLabeledReplicas: fullyLabeled }),
    ...(ready === 0 ? {} : { readyReplicas: ready }),
    ...(available === 0 ? {} : { availableReplicas: available }),
    terminatingReplicas: terminating.length,
    ...(metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }),
    ...(conditions.length === 0 ? {} : { conditions }),
  };
}

/** The first failure stays until there is none, even when a different one follows (`calculateStatus`). */
function conditionsOf(
  present: readonly WorkloadCondition[] | undefined,
  failure: { readonly reason: string; readonly message: string } | undefined,
  now: number,
): WorkloadCondition[] {
  const others = (present ?? []).filter(({ type }) => type !== 'ReplicaFailure');
  if (failure === undefined) return others;
  const old = conditionOf(present, 'ReplicaFailure');
  if (old !== undefined) return [...(present ?? [])];
  return [
    ...others,
    { type: 'ReplicaFailure', status: 'True', lastTransitionTime: formatTime(now), ...failure },
  ];
}

// Which Pods go first when there are too many (`ActivePodsWithRanks`, pkg/controller/controller_utils.go).

const deletionCost = 'controller.kubernetes.io/pod-deletion-cost';
const phases = new Map([
  ['Pending', 0],
  ['Unknown', 1],
  ['Running', 2],
]);

/**
 * The properties that decide the order of two Pods. Times are milliseconds since 1970; undefined where there is none.
 */
interface Standing {
  readonly pod: Pod;
  /** Compared one after the other; smaller is deleted first. */
  readonly ranks: readonly number[];
  readonly readySince: number | undefined;
  /** Restarts of containers and of sidecars: more is deleted first. */
  readonly restarts: readonly number[];
  readonly created: number | undefined;
}

/**
 * The Pods in the order in which to delete them: unassigned, pending, not ready; then by deletion cost, crowded nodes,
 * short readiness, many restarts and youth. The order depends only on the Pods, so that two controllers delete the same
 * ones.
 *
 * @param related active Pods of the same workload, these included: nodes with many of them are crowded.
 */
function deletionOrder(pods: readonly Pod[], related: readonly Pod[], now: number): Pod[] {
  const perNode = new Map<string, number>();
  for (const { spec } of related) {
    const node = spec.nodeName ?? '';
    perNode.set(node, (perNode.get(node) ?? 0) + 1);
  }
  return pods
    .map((pod) => standingOf(pod, perNode))
    .sort((a, b) => compare(a, b, now))
    .map(({ pod }) => pod);
}

function standingOf(pod: Pod, perNode: ReadonlyMap<string, number>): Standing {
  const { spec, status, metadata } = pod;
  const node = spec.nodeName ?? '';
  const sidecars = new Set(
    (spec.initContainers ?? []).flatMap(({ name, restartPolicy }) =>
      restartPolicy === 'Always' ? [name] : [],
    ),
  );
  return {
    pod,
    ranks: [
      node === '' ? 0 : 1,
      phases.get(status.phase ?? '') ?? 0,
      isPodReady(pod) ? 1 : 0,
      costOf(pod),
      -(perNode.get(node) ?? 0),
    ],
    readySince: isPodReady(pod)
      ? timeOf(conditionOf(status.conditions, 'Ready')?.lastTransitionTime ?? undefined)
      : undefined,
    restarts: [
      mostRestarts(status.containerStatuses),
      mostRestarts(status.initContainerStatuses?.filter(({ name }) => sidecars.has(name))),
    ],
    created: timeOf(metadata.creationTimestamp),
  };
}

function compare(a: Standing, b: Standing, now: number): number {
  return (
    compareNumbers(a.ranks, b.ranks) ||
    // Pods that are not ready have no such time.
    compareTimes(a.readySince, b.readySince, a.pod, b.pod, now) ||
    compareNumbers(b.restarts, a.restarts) ||
    compareTimes(a.created, b.created, a.pod, b.pod, now) ||
    compareText(a.pod.metadata.name ?? '', b.pod.metadata.name ?? '')
  );
}

function compareNumbers(a: readonly number[], b: readonly number[]): number {
  for (const [i, number] of a.entries()) {
    const difference = number - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** The younger first; those without a time come before. Of about the same age, in powers of two, the smaller uid. */
function compareTimes(
  a: number | undefined,
  b: number | undefined,
  podA: Pod,
  podB: Pod,
  now: number,
): number {
  if (a === b) return 0;
  if (a === undefined) return -1;
  if (b === undefined) return 1;
  return age(a, now) - age(b, now) || compareText(podA.metadata.uid ?? '', podB.metadata.uid ?? '');
}

/** The power of two of an age in nanoseconds; -1 for times that are not past (`logarithmicRankDiff`). */
function age(since: number, now: number): number {
  return now > since ? Math.floor(Math.log2((now - since) * 1e6)) : -1;
}

function timeOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseTime(text);
}

function mostRestarts(statuses: readonly ContainerStatus[] = []): number {
  return maxOf([0, ...statuses.map(({ restartCount }) => restartCount)]);
}

/** A number within Go's int32, without a plus sign or leading zeros; other texts count as 0. */
function costOf({ metadata }: Pod): number {
  const text = metadata.annotations?.[deletionCost] ?? '';
  const cost = /^(?:-\d{1,20}|0|[1-9]\d{0,9})$/.test(text) ? Number(text) : 0;
  return cost >= -(2 ** 31) && cost < 2 ** 31 ? cost : 0;
}
