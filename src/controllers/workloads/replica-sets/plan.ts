/**
 * Plans the Pods of a ReplicaSet or a ReplicationController (pkg/controller/replicaset/replica_set.go,
 * replica_set_utils.go).
 */
import type { Draft } from '../../../client/resource-client.ts';
import { containsLabels } from '../../../objects/labels/labels.ts';
import type { Pod } from '../../../objects/types/core.generated.ts';
import { formatTime } from '../../../objects/time.ts';
import type { Replicated, WorkloadCondition } from '../../../objects/types/workloads.ts';
import { deletionOrder } from '../plan-deletion-order.ts';
import { conditionOf } from '../../../objects/meta.ts';
import { isActive, isPodAvailable, isFinished, isPodReady } from '../../../objects/pods.ts';
import { podFromTemplate } from '../plan-template.ts';

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
